// link: none
// libs: -static -pthread
/* known_calls N [forks|threads COUNT]: N system calls (getppid, past libc) in this process
 * or, COUNT times, in children or threads, beside a fixed number for starting and ending.
 * Nothing of Sonde is or can be loaded into it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long calls;

static void *call(void *arg)
{
    for (long i = 0; i < calls; i++)
        (void)syscall(SYS_getppid);
    return arg;
}

/* One at a time: who waits for whom, and so how often, does not depend on the machine. */
static int in_children(int count)
{
    for (int i = 0; i < count; i++) {
        const pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            (void)call(NULL);
            _exit(0);
        }
        if (waitpid(pid, NULL, 0) != pid)
            return 1;
    }
    return 0;
}

/* Joined or not first, they may wait in the kernel: their number is not fixed. */
static int in_threads(int count)
{
    pthread_t thread;
    for (int i = 0; i < count; i++)
        if (pthread_create(&thread, NULL, call, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    calls = argc > 1 ? atol(argv[1]) : 0;
    const int count = argc > 3 ? atoi(argv[3]) : 0;
    if (argc > 3 && strcmp(argv[2], "forks") == 0)
        return in_children(count);
    if (argc > 3 && strcmp(argv[2], "threads") == 0)
        return in_threads(count);
    (void)call(NULL);
    return 0;
}
