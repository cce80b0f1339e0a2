// link: a
/* disk_writer: records ZONES zones on THREADS threads and prints an answer that
 * depends on nothing else, then exits with status 7.
 *
 *     disk_writer ZONES THREADS [FILE_SIZE_LIMIT]
 *
 * With a limit, the program sets RLIMIT_FSIZE for itself before its first zone.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <sonde/sonde.h>

enum { MAX_THREADS = 64 };
static long zones_each;

static void *work(void *arg)
{
    uint64_t sum = (uint64_t)(uintptr_t)arg;
    for (long i = 0; i < zones_each; i++)
        SONDE_ZONE("write", SONDE_FORWARD) {
            sum = sum * 6364136223846793005ULL + 1442695040888963407ULL;
        }
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int threads = atoi(argv[2]);
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    zones_each = atol(argv[1]) / threads;
    if (argc > 3) {
        const rlim_t limit = strtoull(argv[3], NULL, 10);
        const struct rlimit both = { limit, limit };
        if (setrlimit(RLIMIT_FSIZE, &both) != 0)
            return 3;
    }
    pthread_t thread[MAX_THREADS];
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(i + 1)) != 0)
            return 4;
    for (int i = 0; i < threads; i++) {
        void *part = NULL;
        (void)pthread_join(thread[i], &part);
        sum ^= (uint64_t)(uintptr_t)part;
    }
    (void)printf("answer %016llx\n", (unsigned long long)sum);
    return 7;
}
