/* witness.c: see witness.h. */
#include "launch/witness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Who signals process by process takes a moment from one to the next. */
static const struct timespec PATIENCE = { .tv_nsec = 10000000 };
enum { ANSWER_MS = 500 }; /* on a machine that has no core for it */

struct question {
    uint32_t number;
    int signal;
};
struct answer {
    uint32_t number;
    int seen;
};

static int wait_for(int signal)
{
    sigset_t set;
    int got;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    do
        got = sigtimedwait(&set, NULL, &PATIENCE);
    while (got < 0 && errno == EINTR);
    return got == signal;
}

/* A pipe has no reader in us, nor a writer. */
static void close_all_but(int fd)
{
    enum { MOST = 4096 }; /* what a kernel without the call has open, or more */
    if (syscall(SYS_close_range, fd + 1, ~0U, 0) == 0 &&
        (fd == 0 || syscall(SYS_close_range, 0, fd - 1, 0) == 0))
        return;
    for (int other = 0; other < MOST; other++)
        if (other != fd)
            (void)close(other);
}

/* After a fork of a process that may have threads: nothing but system calls. */
__attribute__((noreturn)) static void stand_by(int fd)
{
    struct question q;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)prctl(PR_SET_NAME, "sonde-witness");
    if (chdir("/") < 0) /* nobody's file system is busy because of us */
        _exit(1);
    close_all_but(fd);
    while (recv(fd, &q, sizeof q, 0) == sizeof q) {
        const struct answer a = { q.number, wait_for(q.signal) };
        if (send(fd, &a, sizeof a, MSG_NOSIGNAL) != sizeof a)
            break;
    }
    _exit(0);
}

void witness_start(struct witness *ret_witness)
{
    int ends[2];
    *ret_witness = (struct witness){ .fd = -1 };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    const pid_t pid = fork();
    if (pid == 0)
        stand_by(ends[1]);
    (void)close(ends[1]);
    if (pid < 0)
        (void)close(ends[0]);
    else
        *ret_witness = (struct witness){ .pid = pid, .fd = ends[0] };
}

void witness_end(struct witness *w)
{
    if (w->pid <= 0)
        return;
    (void)close(w->fd);
    (void)kill(w->pid, SIGKILL); /* it may be stopped */
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *w = (struct witness){ .fd = -1 };
}

static bool ask(struct witness *w, int signal)
{
    const struct question q = { ++w->asked, signal };
    return w->pid > 0 &&
           send(w->fd, &q, sizeof q, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof q;
}

bool witness_saw(struct witness *w, int signal)
{
    struct answer a = { 0, 0 };
    struct pollfd ready = { .fd = w->fd, .events = POLLIN };
    if (!ask(w, signal))
        return false;
    while (poll(&ready, 1, ANSWER_MS) > 0 &&
           recv(w->fd, &a, sizeof a, MSG_DONTWAIT) == sizeof a)
        if (a.number == w->asked) /* others nobody waited for */
            return a.seen;
    return false;
}

void witness_forget(struct witness *w, int signal)
{
    struct answer old;
    while (w->pid > 0 && recv(w->fd, &old, sizeof old, MSG_DONTWAIT) > 0)
        ;
    (void)ask(w, signal);
}
