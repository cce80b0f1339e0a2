/* doctor.c: the list of groups, and what probes share. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"

const struct doctor_group doctor_groups[] = {
    { "RECORDING", doctor_core },
    { "KERNEL", doctor_kernel },
    { "MACHINE", doctor_machine },
    { "SOFTWARE", doctor_software },
    { NULL, NULL },
};

enum { PATIENCE_MS = 5000 };

void doctor_found(struct doctor_answer *a, enum doctor_state state, const char *fmt,
                  ...)
{
    va_list args;
    a->state = state;
    va_start(args, fmt);
    (void)vsnprintf(a->found, sizeof a->found, fmt, args);
    va_end(args);
}

void doctor_why(struct doctor_answer *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(a->why, sizeof a->why, fmt, args);
    va_end(args);
}

void doctor_fix(struct doctor_answer *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(a->fix, sizeof a->fix, fmt, args);
    va_end(args);
}

bool doctor_read(const char *root, const char *name, char *ret_text, size_t len)
{
    struct buf path = BUF_INIT;
    path_join(&path, root, name);
    const int fd = path.error ? -1 : open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    buf_release(&path);
    const ssize_t n = fd < 0 ? -1 : fd_read_full(fd, ret_text, len - 1);
    if (fd >= 0)
        (void)close(fd);
    ret_text[n > 0 ? n : 0] = '\0';
    while (n > 0 && strlen(ret_text) && ret_text[strlen(ret_text) - 1] == '\n')
        ret_text[strlen(ret_text) - 1] = '\0';
    return n >= 0;
}

__attribute__((noreturn)) static void become(char *const argv[], int out, bool both)
{
    const int null = open("/dev/null", O_RDWR);
    (void)dup2(null, 0);
    (void)dup2(out, 1);
    (void)dup2(both ? out : null, 2);
    (void)execvp(argv[0], argv);
    _exit(127);
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads until the end or until patience ends; false: it ended by itself. */
static bool listen_to(int fd, char *ret_text, size_t len)
{
    const int64_t end = now_ms() + PATIENCE_MS;
    char rest[512] = "";
    for (size_t used = 0;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        const int64_t left = end - now_ms();
        if (left <= 0 || poll(&p, 1, (int)left) == 0)
            return true;
        const bool room = used + 1 < len;
        const ssize_t n = read(fd, room ? ret_text + used : rest,
                               room ? len - 1 - used : sizeof rest);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        if (room) {
            used += (size_t)n;
            ret_text[used] = '\0';
        }
    }
}

int doctor_run(char *const argv[], bool both, char *ret_text, size_t len)
{
    int fds[2], status = 0;
    ret_text[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    const pid_t pid = fork();
    if (pid == 0)
        become(argv, fds[1], both);
    (void)close(fds[1]);
    if (pid < 0) {
        (void)close(fds[0]);
        return -1;
    }
    const bool late = listen_to(fds[0], ret_text, len);
    (void)close(fds[0]);
    if (late)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return !late && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
