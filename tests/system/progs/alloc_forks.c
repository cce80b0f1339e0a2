// link: none
// flags: -O1 -fno-builtin
/* alloc_forks: children of every kind that allocate.
 *
 * The parent allocates 100 blocks of 3,000 bytes; fork, _Fork and clone children 10
 * each of 6,000; a vfork child, which is its parent for this purpose, 10 of 12,000,
 * and execs /bin/true. Sizes fall into classes of their own (up to 4, 8 and 16 KiB).
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern pid_t _Fork(void) __attribute__((weak));

static void take(int count, size_t size)
{
    for (int i = 0; i < count; i++) {
        char *p = malloc(size);
        if (!p)
            _exit(3);
        p[size - 1] = 1;
        free(p);
    }
}

static void wait_for(pid_t pid)
{
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        _exit(4);
}

static void child(void)
{
    take(10, 6000);
    _exit(0);
}

int main(void)
{
    take(100, 3000);
    pid_t pid = fork();
    if (pid == 0)
        child();
    wait_for(pid);
    if (_Fork) {
        pid = _Fork();
        if (pid == 0)
            child();
        wait_for(pid);
    }
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        child();
    wait_for(pid);
    pid = vfork();
    if (pid == 0) {
        take(10, 12000);
        execl("/bin/true", "true", (char *)NULL);
        _exit(5);
    }
    wait_for(pid);
    return _Fork ? 0 : 10;
}
