// link: none
// libs: -lpthread
// truth: CPU seconds of the program (two threads) and of a worker it forks
// truth: bytes read and written by each, exactly
// truth: the program's memory grows by 96 MiB; the worker inherits 64 MiB of that and
// truth:   writes to 32 MiB: private memory +32 MiB, resident set unchanged
/* known_use: what a program did to the machine, known to the byte.
 *
 *     known_use DIRECTORY
 *
 * Prints one JSON line per process: pid, cpu_s, read_bytes, written_bytes. The worker
 * rests before it ends, so that a reading every few hundredths of a second sees all of
 * it; the program ends at once: its last reading is the supervisor's business.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { INHERITED_MIB = 64, OWN_MIB = 32, CHANGED_MIB = 32, PIECE = 65536 };

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *spin(void *arg)
{
    const double limit = *(const double *)arg;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < limit)
        ;
    return NULL;
}

static void rest(long ms)
{
    const struct timespec t = { 0, ms * 1000000 };
    nanosleep(&t, NULL);
}

static volatile char *take(size_t mib)
{
    char *at = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(3);
    for (size_t i = 0; i < mib << 20; i += 4096)
        ((volatile char *)at)[i] = 1;
    return at;
}

/* What the kernel has counted for this process so far, and the bytes of asking. */
struct counted {
    unsigned long long read, written;
};

static struct counted counted_so_far(void)
{
    char text[512];
    struct counted c = { 0, 0 };
    const int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        exit(4);
    text[n] = '\0';
    if (sscanf(text, "rchar: %llu wchar: %llu", &c.read, &c.written) != 2)
        exit(4);
    c.read += (unsigned long long)n;
    return c;
}

static unsigned long long write_file(const char *path, size_t bytes)
{
    static char piece[PIECE];
    unsigned long long sum = 0;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t left = bytes; left > 0;) {
        const ssize_t n = write(fd, piece, left < PIECE ? left : PIECE);
        if (n <= 0)
            exit(5);
        left -= (size_t)n;
        sum += (unsigned long long)n;
    }
    close(fd);
    return sum;
}

static unsigned long long read_file(const char *path, int times)
{
    static char piece[PIECE];
    unsigned long long sum = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < times; i++) {
        lseek(fd, 0, SEEK_SET);
        for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0;)
            sum += (unsigned long long)n;
    }
    close(fd);
    return sum;
}

/* The last thing a process does: the line itself is among the bytes written. */
static void tell(const char *who, const struct counted *c)
{
    char line[256];
    int len = 0;
    for (int i = 0; i < 3; i++) /* its length depends on a number in it */
        len = snprintf(line, sizeof line,
                       "{\"who\": \"%s\", \"pid\": %d, \"cpu_s\": %.4f, "
                       "\"read_bytes\": %llu, \"written_bytes\": %llu}\n",
                       who, (int)getpid(), seconds(CLOCK_PROCESS_CPUTIME_ID), c->read,
                       c->written + (unsigned long long)len);
    if (write(1, line, (size_t)len) != len)
        _exit(6);
}

static void worker(volatile char *inherited, const char *path)
{
    struct counted c = counted_so_far();
    const double limit = 0.6;
    rest(500); /* before: all of it shared */
    for (size_t i = 0; i < (size_t)CHANGED_MIB << 20; i += 4096)
        inherited[i] = 2;
    spin((void *)(size_t)&limit);
    c.read += read_file(path, 3);
    c.written += write_file(path, 1234567);
    tell("worker", &c);
    rest(900);
    _exit(7);
}

int main(int argc, char **argv)
{
    char mine[4096], theirs[4096];
    const double limit = 0.5;
    if (argc != 2)
        return 2;
    snprintf(mine, sizeof mine, "%s/mine", argv[1]);
    snprintf(theirs, sizeof theirs, "%s/theirs", argv[1]);
    struct counted c = counted_so_far();
    rest(100);
    c.written += write_file(theirs, 2000000);
    volatile char *inherited = take(INHERITED_MIB);
    rest(150);
    const pid_t pid = fork();
    if (pid == 0)
        worker(inherited, theirs);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, spin, (void *)(size_t)&limit);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    c.written += write_file(mine, 5000001);
    c.read += read_file(mine, 2);
    volatile char *own = take(OWN_MIB);
    int status;
    waitpid(pid, &status, 0);
    rest(150);
    /* Now, or the kernel does it after we have told what we used. */
    munmap((char *)(size_t)own, (size_t)OWN_MIB << 20);
    munmap((char *)(size_t)inherited, (size_t)INHERITED_MIB << 20);
    tell("program", &c);
    _exit(0);
}
