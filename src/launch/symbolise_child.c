/* symbolise_child.c: see symbolise_child.h. */
#include "launch/symbolise_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitizers reserve address space without end, and have something to say. */
#ifdef SONDE_SANITIZED
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* Address space, not memory: elfutils maps the files it reads. */
static const rlim_t MOST_BYTES = (rlim_t)8 << 30;

static void limit(int resource, rlim_t most)
{
    struct rlimit l;
    if (getrlimit(resource, &l) == 0 &&
        (l.rlim_cur == RLIM_INFINITY || l.rlim_cur > most)) {
        l.rlim_cur = most;
        (void)setrlimit(resource, &l);
    }
}

static void be_harmless(void)
{
    static const int ours[] = { SIGALRM, SIGBUS, SIGSEGV, SIGINT, SIGTERM };
    sigset_t none;
    (void)sigemptyset(&none);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        (void)signal(ours[i], SIG_DFL);
    (void)signal(SIGINT, SIG_IGN); /* the terminal's is meant for our parent */
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit(RLIMIT_CORE, 0);
    if (!SANITIZED)
        limit(RLIMIT_AS, MOST_BYTES);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        if (!SANITIZED)
            (void)dup2(null, STDERR_FILENO);
    }
}

int symbolise_in_child(void (*fn)(void *), void *arg, int *ret_status)
{
    const pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        be_harmless();
        fn(arg);
        _exit(0);
    }
    pid_t got;
    do
        got = waitpid(pid, ret_status, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == ECHILD) { /* SIGCHLD is ignored: gone without a word */
        *ret_status = 0;
        return 0;
    }
    return got == pid ? 0 : -errno;
}
