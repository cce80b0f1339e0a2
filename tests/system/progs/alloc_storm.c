// link: none
// flags: -O1 -fno-builtin
/* alloc_storm: many threads allocate, free each other's blocks and come and go, while
 * others fork children that allocate too.
 *
 *     alloc_storm THREADS ALLOCATIONS FORKS
 *
 * Sizes tell who allocated: threads 2,049 to 4,096 bytes, children 4,097 to 8,192. So
 * a reader knows how many there must be of each: ALLOCATIONS by threads in all, and
 * FORKS times PER_CHILD by children. Exit status 0 when every block had what its owner
 * wrote into it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 4096, PER_CHILD = 1000, ROUNDS = 4 };

static uint64_t *slots[SLOTS]; /* blocks change hands here; atomic */
static unsigned long per_round;
static int broken;

static void drop(uint64_t *p)
{
    if (p && p[0] != ((uintptr_t)p ^ 0x5555))
        __atomic_store_n(&broken, 1, __ATOMIC_RELAXED);
    free(p);
}

static void *storm(void *arg)
{
    uint64_t x = (uintptr_t)arg * 2654435761u + 88172645463325252u;
    for (unsigned long i = 0; i < per_round; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        uint64_t *p = malloc(2049 + x % 2048);
        if (!p)
            abort();
        p[0] = (uintptr_t)p ^ 0x5555;
        drop(__atomic_exchange_n(&slots[x >> 52], p, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void child(void)
{
    for (int i = 0; i < PER_CHILD; i++)
        free(malloc(4097 + (size_t)i % 4096));
    _exit(0);
}

static void *forker(void *arg)
{
    for (unsigned i = 0; i < (unsigned)(uintptr_t)arg; i++) {
        const pid_t pid = fork();
        if (pid == 0)
            child();
        int status = 1;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            __atomic_store_n(&broken, 2, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
    const unsigned long all = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
    const unsigned forks = argc > 3 ? (unsigned)atoi(argv[3]) : 10;
    static pthread_t t[1024], f;
    per_round = all / threads / ROUNDS;
    if (threads > 1024 || per_round * threads * ROUNDS != all ||
        pthread_create(&f, NULL, forker, (void *)(uintptr_t)forks) != 0)
        return 3;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < threads; i++)
            if (pthread_create(&t[i], NULL, storm,
                               (void *)(uintptr_t)(round * threads + i + 1)) != 0)
                return 3;
        for (unsigned i = 0; i < threads; i++)
            (void)pthread_join(t[i], NULL);
    }
    (void)pthread_join(f, NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        drop(slots[i]);
    return broken;
}
