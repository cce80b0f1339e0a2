// link: a
// truth: per thread, REPEATS times:
// truth:   path (step) 1, (step, forward) 3, (step, forward, layer) 15
// truth:   path (tree) × d: 2^(d−1) for d = 1 … 9 (binary recursion)
// truth:   path (ping, pong) × d: 1 each, down to 6 zones (mutual recursion)
// truth:   value "items" in (step): count REPEATS per thread, sum 7 × REPEATS
// truth: on the main thread besides: REPEATS steps of 16 samples
/* known_counts: exact numbers of calls by path.
 *
 *     known_counts THREADS REPEATS
 */
#include <pthread.h>
#include <stdlib.h>

#include <sonde/sonde.h>

enum { MAX_THREADS = 64, TREE_DEPTH = 9, PING_DEPTH = 6 };
static int repeats;

static void tree(int depth)
{
    SONDE_ZONE("tree", SONDE_BACKWARD) {
        if (depth < TREE_DEPTH) {
            tree(depth + 1);
            tree(depth + 1);
        }
    }
}

static void pong(int depth);

static void ping(int depth)
{
    SONDE_ZONE("ping", SONDE_SYNC) {
        if (depth < PING_DEPTH)
            pong(depth + 1);
    }
}

static void pong(int depth)
{
    SONDE_ZONE("pong", SONDE_SYNC) {
        if (depth < PING_DEPTH)
            ping(depth + 1);
    }
}

static void forward(void)
{
    SONDE_ZONE("forward", SONDE_FORWARD) {
        for (int i = 0; i < 5; i++)
            SONDE_ZONE("layer", SONDE_NO_PHASE) {}
    }
}

static void *work(void *main_thread)
{
    for (int i = 0; i < repeats; i++) {
        if (main_thread)
            sonde_step_samples(16);
        SONDE_ZONE("step", SONDE_OTHER) {
            sonde_value("items", 7);
            for (int k = 0; k < 3; k++)
                forward();
        }
        tree(1);
        ping(1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int threads = atoi(argv[1]);
    repeats = atoi(argv[2]);
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    pthread_t thread[MAX_THREADS];
    for (int i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, NULL) != 0)
            return 3;
    (void)work(&repeats);
    for (int i = 1; i < threads; i++)
        (void)pthread_join(thread[i], NULL);
    return 0;
}
