// link: a
/* short_threads: THREADS threads, at most AT_ONCE alive, each recording one zone
 * "thread" with INNER zones "short" inside.
 *
 *     short_threads THREADS INNER AT_ONCE
 */
#include <pthread.h>
#include <stdlib.h>

#include <sonde/sonde.h>

enum { MOST = 256 };
static int inner;

static void *one(void *arg)
{
    SONDE_ZONE("thread", SONDE_PREPROCESSING) {
        for (int i = 0; i < inner; i++)
            SONDE_ZONE("short", SONDE_NO_PHASE) {}
    }
    return arg;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const int threads = atoi(argv[1]), at_once = atoi(argv[3]);
    inner = atoi(argv[2]);
    if (at_once < 1 || at_once > MOST)
        return 2;
    pthread_t ring[MOST];
    for (int i = 0; i < threads; i++) {
        if (i >= at_once)
            (void)pthread_join(ring[i % at_once], NULL);
        if (pthread_create(&ring[i % at_once], NULL, one, NULL) != 0)
            return 3;
    }
    for (int i = threads > at_once ? threads - at_once : 0; i < threads; i++)
        (void)pthread_join(ring[i % at_once], NULL);
    return 0;
}
