/* peaks.c: see peaks.h. The best of several: interference only ever slows down. */
#include "model/run/peaks.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/moment.h"
#include "model/ref/blas.h"
#include "model/ref/kernels.h"

enum { SIDE = 768, TRIAD = 1 << 24, THREADS_MAX = 64 }; /* 3 × 64 MiB */

static double now(void)
{
    return (double)moment_ns(CLOCK_MONOTONIC) / 1e9;
}

static double best_product(float *a, double seconds)
{
    const struct mat left = { a, SIDE, false },
                     right = { a + SIDE * SIDE, SIDE, false };
    const double end = now() + seconds, work = 2.0 * SIDE * SIDE * SIDE;
    double best = 0;
    for (int i = 0; i < 2 || now() < end; i++) {
        const double start = now();
        blas_multiply(SIDE, SIDE, SIDE, 1, left, right, 0, a + 2 * SIDE * SIDE, SIDE);
        const double rate = work / (now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

struct share {
    float *a, *b, *c;
    size_t n;
};

static void *triad(void *arg)
{
    const struct share *s = arg;
    kernel_triad(s->a, s->b, s->c, 3, s->n);
    return NULL;
}

static void triad_once(float *a, int threads)
{
    pthread_t others[THREADS_MAX];
    struct share shares[THREADS_MAX] = { { NULL, NULL, NULL, 0 } };
    const size_t n = TRIAD / (size_t)threads;
    int started = 1;
    for (int i = 0; i < threads; i++)
        shares[i] = (struct share){ a + (size_t)i * n, a + TRIAD + (size_t)i * n,
                                    a + 2 * (size_t)TRIAD + (size_t)i * n, n };
    while (started < threads &&
           pthread_create(&others[started], NULL, triad, &shares[started]) == 0)
        started++;
    (void)triad(&shares[0]);
    for (int i = started; i < threads; i++)
        (void)triad(&shares[i]);
    for (int i = 1; i < started; i++)
        (void)pthread_join(others[i], NULL);
}

static double best_triad(float *a, int threads, double seconds)
{
    const double end = now() + seconds, bytes = 3.0 * TRIAD * sizeof *a;
    double best = 0;
    for (int i = 0; i < 2 || now() < end; i++) {
        const double start = now();
        triad_once(a, threads);
        const double rate = bytes / (now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

int peaks_measure(double seconds, struct peaks *ret_peaks)
{
    int threads = blas_threads(0);
    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    float *a = malloc(3 * (size_t)TRIAD * sizeof *a);
    if (!a)
        return -ENOMEM;
    kernel_fill(a, 0.5F, 3 * (size_t)TRIAD); /* touched: pages are there */
    ret_peaks->threads = threads;
    ret_peaks->flops_per_s = best_product(a, seconds / 2);
    ret_peaks->bytes_per_s = best_triad(a, threads, seconds / 2);
    free(a);
    return 0;
}
