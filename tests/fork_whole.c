/* fork_whole.c: fork() for programs under AddressSanitizer.
 *
 * The sanitizer of gcc 12 and clang 14 takes no lock of its allocator before a fork (later
 * ones do): a child that is born while another thread allocates waits for that lock for
 * ever. This fork() comes before libc's in every test program of such a build. The child
 * tries the allocator first; one that does not come back is ended, and another is made. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 20, PATIENCE_MS = 5000 };

/* More of every size than a thread keeps for itself, so that each lock is taken once. */
static void try_the_allocator(void)
{
    enum { KEPT = 256, KEPT_BYTES = 1 << 16, LARGEST = 1 << 17 };
    static void *blocks[2 * KEPT + 2];
    for (size_t size = 16; size <= LARGEST; size += size / 4 / 16 * 16 + 16) {
        const size_t fit = KEPT_BYTES / size < KEPT ? KEPT_BYTES / size : KEPT;
        const size_t count = 2 * fit + 2;
        for (size_t i = 0; i < count; i++)
            blocks[i] = malloc(size);
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
    }
}

static bool has_threads(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) < 0 || st.st_nlink > 3;
}

/* True once the child has closed its end after a byte; false if it hangs. */
static bool comes_back(int fd)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    int n;
    while ((n = poll(&ready, 1, PATIENCE_MS)) < 0 && errno == EINTR) {}
    return n > 0;
}

static pid_t fork_and_try(pid_t (*libc_fork)(void))
{
    int ends[2];
    if (pipe(ends) < 0)
        return -1;
    const pid_t pid = libc_fork();
    if (pid == 0) {
        try_the_allocator();
        (void)close(ends[0]);
        (void)close(ends[1]);
        return 0;
    }
    (void)close(ends[1]);
    const bool good = pid < 0 || comes_back(ends[0]);
    (void)close(ends[0]);
    if (good)
        return pid;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    errno = EAGAIN;
    return -1;
}

__attribute__((visibility("default"))) pid_t fork(void)
{
    pid_t (*libc_fork)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    pid_t pid = -1;
    if (!has_threads())
        return libc_fork();
    for (unsigned i = 0; i < TRIES && pid < 0; i++)
        pid = fork_and_try(libc_fork);
    return pid;
}
