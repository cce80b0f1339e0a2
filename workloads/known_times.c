// link: a
// flags: -Wno-shadow
// truth: 20 steps on the main thread; each spins
// truth:   data_loading 5 ms, of it 2 ms preprocessing ("decode" inside "load")
// truth:   forward 8 ms ("forward" 3 ms + two "layer" of 2.5 ms inside)
// truth:   backward 12 ms, optimizer 3 ms, no zone 2 ms
// truth: then evaluation 30 ms, checkpoint 10 ms
// truth: a second thread spins 50 × 4 ms in "worker" (preprocessing) meanwhile
/* known_times: spins on the clock for known times, zone by zone.
 *
 * A spin never ends early but may end late when the machine is busy. So each zone
 * also measures itself, and the sums are printed as JSON: name → milliseconds.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <sonde/sonde.h>

enum { STEPS = 20, WORKER_ZONES = 50 };

static double load_ms, decode_ms, forward_ms, layer_ms, backward_ms, optimizer_ms;
static double evaluate_ms, checkpoint_ms, outside_ms, worker_ms;
static double first_step_ms, last_step_ms; /* when they began */

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void spin(double ms)
{
    const double end = now_ms() + ms;
    while (now_ms() < end)
        ;
}

/* A zone that adds the time of its block, as seen from inside, to `sum`. */
#define TIMED(name, phase, sum)                                                        \
    SONDE_ZONE(name, phase)                                                            \
        for (double start_ = now_ms(), once_ = 1; once_ > 0;                           \
             (sum) += now_ms() - start_, once_ = 0)

static void step(void)
{
    sonde_step();
    last_step_ms = now_ms();
    if (first_step_ms == 0)
        first_step_ms = last_step_ms;
    TIMED("load", SONDE_DATA_LOADING, load_ms)
    {
        spin(3);
        TIMED("decode", SONDE_PREPROCESSING, decode_ms) spin(2);
    }
    TIMED("forward", SONDE_FORWARD, forward_ms)
    {
        spin(3);
        for (int i = 0; i < 2; i++)
            TIMED("layer", SONDE_NO_PHASE, layer_ms) spin(2.5);
    }
    TIMED("backward", SONDE_BACKWARD, backward_ms) spin(12);
    TIMED("optimizer", SONDE_OPTIMIZER, optimizer_ms) spin(3);
    const double start = now_ms();
    spin(2);
    outside_ms += now_ms() - start;
}

static void *worker(void *arg)
{
    for (int i = 0; i < WORKER_ZONES; i++)
        TIMED("worker", SONDE_PREPROCESSING, worker_ms) spin(4);
    return arg;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, NULL) != 0)
        return 2;
    for (int i = 0; i < STEPS; i++)
        step();
    TIMED("evaluate", SONDE_EVALUATION, evaluate_ms) spin(30);
    TIMED("checkpoint", SONDE_CHECKPOINT, checkpoint_ms) spin(10);
    (void)pthread_join(thread, NULL);
    (void)printf("{\"load\": %.4f, \"decode\": %.4f, \"forward\": %.4f, "
                 "\"layer\": %.4f, \"backward\": %.4f, \"optimizer\": %.4f, "
                 "\"evaluate\": %.4f, \"checkpoint\": %.4f, \"worker\": %.4f, "
                 "\"outside\": %.4f, \"between steps\": %.4f}\n",
                 load_ms, decode_ms, forward_ms, layer_ms, backward_ms, optimizer_ms,
                 evaluate_ms, checkpoint_ms, worker_ms, outside_ms,
                 (last_step_ms - first_step_ms) / (STEPS - 1));
    return 0;
}
