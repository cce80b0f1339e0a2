// link: a
/* deaths: one way to end each, inside zones, at known steps.
 *
 *     deaths grow              a MiB every 16 ms in train › forward, a step each
 *     deaths hang              waits for ever in train › stuck, no steps
 *     deaths hang_steps        20 steps of 20 ms, then waits for ever in train › stuck
 *     deaths resume FILE       the same, but goes on once FILE is there and ends well
 *     deaths sleep             waits for ever without any zone
 *     deaths worker SIGNAL     a forked worker raises SIGNAL in load; then exit 1
 *     deaths worker_exit CODE  a forked worker ends with CODE; then exit 1
 *     deaths worker_grow       a forked worker grows; then exit 1
 *     deaths bus FILE MIB MS   maps a new FILE of MIB and touches one every MS
 *     deaths disk FILE         writes to FILE until that fails, then exit 1
 *     deaths fault             writes to address 16 in train › crash
 *     deaths orphan_fault      the same once its parent is gone; so does a worker of
 *     deaths orphan_worker     this one, which waits for it and ends with 1
 *     deaths early_worker      a forked worker faults at once; then exit 1
 *     deaths hint CAUSE        leaves a hint as the Python layer will; exit 1
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { MIB = 1 << 20, STEPS = 20 };

static void nap(long ms)
{
    const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    (void)nanosleep(&t, NULL);
}

static void grow(void)
{
    for (;;) {
        sonde_step();
        SONDE_ZONE("forward", SONDE_FORWARD) {
            char *more = malloc(MIB);
            if (!more)
                exit(1);
            memset(more, 1, MIB);
            nap(16); /* slow enough to be looked at a few times by a busy machine */
        }
    }
}

static void steps(void)
{
    for (int i = 0; i < STEPS; i++) {
        sonde_step();
        nap(20);
    }
}

/* For ever, or until the file is there. */
static void stuck(const char *file)
{
    SONDE_ZONE("stuck", SONDE_SYNC) {
        while (!file)
            (void)pause();
        while (access(file, F_OK) != 0)
            nap(50);
    }
}

static int worker(const char *how, int number)
{
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        SONDE_ZONE("load", SONDE_DATA_LOADING) {
            nap(1000); /* the supervisor, which looks now and then, must have met it */
            if (strcmp(how, "worker") == 0)
                (void)raise(number);
            if (strcmp(how, "worker_grow") == 0)
                grow();
        }
        _exit(number);
    }
    printf("worker %d\n", (int)pid);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 1;
}

static int bus(const char *path, long mib, long nap_ms)
{
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, mib * MIB) < 0)
        return 3;
    char *p = mmap(NULL, (size_t)mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return 3;
    (void)unlink(path); /* as torch does: the space comes back with our death */
    for (long i = 0; i < mib * MIB; i += 4096) {
        if (i % MIB == 0)
            nap(nap_ms);
        p[i] = 1;
    }
    return 0;
}

static int disk(const char *path)
{
    static char block[65536];
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0)
        return 3;
    while (write(fd, block, sizeof block) > 0)
        ;
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return 1;
}

static int hint(const char *cause)
{
    char path[4096], line[256];
    (void)snprintf(path, sizeof path, "%s/hints", getenv("SONDE_RUN"));
    const int n = snprintf(line, sizeof line, "%d %s CUDA out of memory: tried 2 GiB\n",
                           (int)getpid(), cause);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    nap(100);
    return fd >= 0 && write(fd, line, (size_t)n) == n ? 1 : 3;
}

static void fault(void)
{
    int *volatile nowhere = (int *)16; /* volatile: the compiler must not know */
    SONDE_ZONE("crash", SONDE_OTHER) {
        *nowhere = 1;
    }
}

static void wait_for_death_of(pid_t parent)
{
    while (getppid() == parent)
        nap(20);
}

static int worker_that_faults(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        fault();
        _exit(0);
    }
    printf("worker %d\n", (int)pid);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 1;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const char *word = argc > 2 ? argv[2] : "0";
    const pid_t parent = getppid();
    int status = 2;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(how, "sleep") == 0)
        for (;;)
            (void)pause();
    SONDE_ZONE("train", SONDE_NO_PHASE) {
        if (strcmp(how, "grow") == 0)
            grow();
        if (strcmp(how, "hang_steps") == 0 || strcmp(how, "resume") == 0)
            steps();
        if (strncmp(how, "hang", 4) == 0)
            stuck(NULL);
        if (strcmp(how, "resume") == 0) {
            stuck(word);
            steps();
            status = 0;
        }
        if (strncmp(how, "worker", 6) == 0)
            status = worker(how, atoi(word));
        if (strcmp(how, "bus") == 0)
            status = bus(word, argc > 3 ? atol(argv[3]) : 1,
                         argc > 4 ? atol(argv[4]) : 0);
        if (strcmp(how, "disk") == 0)
            status = disk(word);
        if (strcmp(how, "hint") == 0)
            status = hint(word);
        if (strncmp(how, "orphan", 6) == 0)
            wait_for_death_of(parent);
        if (strcmp(how, "orphan_worker") == 0 || strcmp(how, "early_worker") == 0)
            status = worker_that_faults();
        if (strcmp(how, "fault") == 0 || strcmp(how, "orphan_fault") == 0)
            fault();
    }
    return status;
}
