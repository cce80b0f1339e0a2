/* spawn.c: fork and exec with the child's errno brought back.
 *
 * fork, not posix_spawn: the program must get back the ignored signals, which the
 * attributes of posix_spawn cannot express. The errno comes through a pipe that
 * closes on exec: nothing to read means the program runs.
 */
#include "launch/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

static int redirect_to_null(int target)
{
    const int fd = open("/dev/null", target == 0 ? O_RDONLY : O_WRONLY);
    if (fd < 0)
        return -errno;
    int rc = dup2(fd, target) < 0 ? -errno : 0;
    if (fd != target)
        (void)close(fd);
    return rc;
}

static int redirect(const struct spawn_options *o)
{
    int rc = o->null_stdin ? redirect_to_null(0) : 0;
    if (rc == 0 && o->null_stdout)
        rc = redirect_to_null(1);
    if (rc == 0 && o->null_stderr)
        rc = redirect_to_null(2);
    return rc;
}

/* Until the other end is closed, by whatever. */
static void wait_for_go(int gate_fd)
{
    char byte;
    (void)fd_read_full(gate_fd, &byte, sizeof byte);
    (void)close(gate_fd);
}

/* Without its group the program would run without its limit; the supervisor sees that
 * it is not in there. */
static void enter_group(const char *procs)
{
    const int fd = procs ? open(procs, O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    (void)!write(fd, "0", 1);
    (void)close(fd);
}

__attribute__((noreturn)) static void become_program(const struct spawn_options *o,
                                                     int report_fd)
{
    int rc = redirect(o);
    enter_group(o->group);
    if (rc == 0) {
        signals_give_back(o->signals);
        (void)execvp(o->argv[0], o->argv);
        rc = -errno;
    }
    (void)fd_write_full(report_fd, &rc, sizeof rc);
    _exit(127);
}

int spawn(const struct spawn_options *options, pid_t *ret_pid, bool *ret_no_exec)
{
    *ret_no_exec = false;
    int pipe_fds[2], gate[2] = { -1, -1 };
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    if (options->before_exec && pipe2(gate, O_CLOEXEC) < 0)
        gate[0] = gate[1] = -1; /* then it will be called a little late */
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(pipe_fds[0]);
        if (gate[0] >= 0) {
            (void)close(gate[1]);
            wait_for_go(gate[0]);
        }
        become_program(options, pipe_fds[1]);
    }
    int rc = pid < 0 ? -errno : 0;
    if (pid > 0 && options->before_exec)
        options->before_exec(options->arg, pid);
    if (gate[0] >= 0) {
        (void)close(gate[0]);
        (void)close(gate[1]);
    }
    (void)close(pipe_fds[1]);
    if (pid > 0) {
        int failure = 0;
        if (fd_read_full(pipe_fds[0], &failure, sizeof failure) == sizeof failure) {
            rc = failure;
            *ret_no_exec = true;
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        } else {
            *ret_pid = pid;
        }
    }
    (void)close(pipe_fds[0]);
    return rc;
}
