// link: a
/* billion: ZONES zones in all, on THREADS threads: half "outer", half "inner".
 *
 *     billion ZONES THREADS
 *
 * Prints the growth of its resident set in MiB over the recording.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { MAX_THREADS = 64 };
static unsigned long pairs_each;

static void *work(void *arg)
{
    for (unsigned long i = 0; i < pairs_each; i++)
        SONDE_ZONE("outer", SONDE_FORWARD) {
            SONDE_ZONE("inner", SONDE_NO_PHASE) {}
        }
    return arg;
}

static double resident_mb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        (void)fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int threads = atoi(argv[2]);
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    pairs_each = strtoul(argv[1], NULL, 10) / 2 / (unsigned long)threads;
    const double before = resident_mb();
    pthread_t thread[MAX_THREADS];
    for (int i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, NULL) != 0)
            return 3;
    (void)work(NULL);
    for (int i = 1; i < threads; i++)
        (void)pthread_join(thread[i], NULL);
    (void)printf("%.1f\n", resident_mb() - before);
    return 0;
}
