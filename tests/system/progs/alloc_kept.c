// link: none
// flags: -O1 -fno-builtin
// libs: -lpthread
/* Large blocks that come and go, and whether they come back (SONDE_TRIAL_KEEP). Prints
 * what it found as JSON; ends with an error where memory is not what it must be. */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 40 << 20, THREADS = 4, ROUNDS = 20000, SLOTS = 8, CHILD_IS_ANEW = 7 };

static void need(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static long faults(void)
{
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
}

/* Page faults of ten blocks in a row. */
static long come_and_go(void)
{
    const long before = faults();
    for (int i = 0; i < 10; i++) {
        char *p = malloc(BIG);
        need(p && malloc_usable_size(p) >= BIG, "too small");
        memset(p, 1, BIG);
        free(p);
    }
    return faults() - before;
}

static bool is_zero(const char *p, size_t size)
{
    return p[0] == 0 && memcmp(p, p + 1, size - 1) == 0;
}

static void memory_is_zeroed_and_aligned(void)
{
    char *p = calloc(BIG / 8, 8);
    need(p && is_zero(p, BIG), "calloc gave what was there");
    memset(p, 2, BIG);
    free(p);
    static const size_t alignments[] = { 64, 4096, 1 << 16 };
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        const size_t alignment = alignments[i];
        void *q = NULL, *r = aligned_alloc(alignment, BIG);
        need(posix_memalign(&q, alignment, BIG) == 0 && q != r, "one block for two");
        need(((uintptr_t)q | (uintptr_t)r) % alignment == 0, "not aligned");
        memset(q, 3, BIG);
        memset(r, 4, BIG);
        free(q);
        free(r);
    }
    void *unset = &p;
    need(posix_memalign(&unset, 24, BIG) != 0, "a wrong alignment is one");
}

static void blocks_can_grow_and_shrink(void)
{
    char *p = malloc(BIG);
    need(p != NULL, "no memory");
    memset(p, 5, BIG);
    p = realloc(p, 2 * (size_t)BIG);
    need(p && p[0] == 5 && p[BIG - 1] == 5, "realloc lost what was there");
    p = realloc(p, BIG / 2);
    need(p && p[BIG / 2 - 1] == 5, "realloc lost what was there");
    free(p);
}

/* A child has an empty store: what its parent keeps stays the parent's. */
static bool a_child_begins_anew(void)
{
    char *p = malloc(BIG);
    need(p != NULL, "no memory");
    memset(p, 6, BIG);
    free(p);
    const pid_t pid = fork();
    if (pid == 0) {
        char *q = malloc(BIG);
        const bool anew = q != p;
        memset(q, 7, BIG);
        free(q);
        need(come_and_go() >= 0, "");
        _exit(anew ? CHILD_IS_ANEW : 0);
    }
    int status = 0;
    need(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "the child died");
    return WEXITSTATUS(status) == CHILD_IS_ANEW;
}

/* Blocks of many sizes, each with its owner's mark at both ends. */
static void *storm(void *arg)
{
    const uint64_t me = (uint64_t)(uintptr_t)arg;
    uint64_t random = me, *block[SLOTS] = { NULL }, words[SLOTS] = { 0 };
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        const unsigned at = (unsigned)(random >> 60) % SLOTS;
        if (block[at])
            need(block[at][0] == me && block[at][words[at] - 1] == me, "not mine");
        free(block[at]);
        words[at] = 1024 + (random >> 33) % (1 << 17);
        block[at] = random >> 32 & 1 ? malloc(8 * words[at]) : calloc(words[at], 8);
        need(block[at] != NULL, "no memory");
        block[at][0] = block[at][words[at] - 1] = me;
    }
    for (unsigned i = 0; i < SLOTS; i++)
        free(block[i]);
    return NULL;
}

static void threads_do_not_share_blocks(void)
{
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        need(pthread_create(&thread[i], NULL, storm, (void *)(i + 1)) == 0, "thread");
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(thread[i], NULL);
}

/* MiB that stay although everything was freed. */
static long left_mb(void)
{
    enum { BLOCKS = 6 };
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BIG);
        need(block[i] != NULL, "no memory");
        memset(block[i], 8, BIG);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(block[i]);
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    need(file && fscanf(file, "%ld %ld", &pages, &resident) == 2, "no statm");
    (void)fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) >> 10) >> 10;
}

int main(void)
{
    (void)come_and_go(); /* the first is new in any case */
    const long again = come_and_go();
    memory_is_zeroed_and_aligned();
    blocks_can_grow_and_shrink();
    const bool anew = a_child_begins_anew();
    threads_do_not_share_blocks();
    printf("{\"faults\": %ld, \"anew\": %s, \"left_mb\": %ld}\n", again,
           anew ? "true" : "false", left_mb());
    return 0;
}
