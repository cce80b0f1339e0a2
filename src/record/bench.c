/* bench.c: time a function many times and say what the times are worth. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sonde/sonde.h>

#include "num/summary.h"

enum { DEFAULT_WARMUP = 10, DEFAULT_RUNS = 100 };

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void fill(const struct summary *s, struct sonde_bench_result *r)
{
    r->outliers = s->outliers_low + s->outliers_high;
    r->mean_s = s->mean;
    r->std_s = s->std;
    r->min_s = s->min;
    r->max_s = s->max;
    r->median_s = s->median;
    r->p95_s = s->p95;
    r->ci_low_s = s->mean_boot.low;
    r->ci_high_s = s->mean_boot.high;
    char note[SUMMARY_NOTE_LEN];
    snprintf(r->note, sizeof r->note, "%.150s", summary_note(s, note));
}

int sonde_bench(void (*fn)(void *), void *arg, int warmup, int runs,
                struct sonde_bench_result *ret_result)
{
    if (!fn || runs < 0 || !ret_result)
        return -EINVAL;
    size_t n = runs ? (size_t)runs : DEFAULT_RUNS;
    int warm = warmup < 0 ? 0 : warmup ? warmup : DEFAULT_WARMUP;
    double *times = calloc(n, sizeof *times);
    if (!times)
        return -ENOMEM;
    struct sonde_bench_result result = { .runs = n, .warmup = (size_t)warm };
    for (int i = 0; i < warm; i++)
        fn(arg);
    for (size_t i = 0; i < n; i++) {
        double start = now_s();
        fn(arg);
        times[i] = now_s() - start;
        result.total_s += times[i];
    }
    struct summary s;
    int rc = summary_compute(times, n, 42, &s);
    free(times);
    if (rc < 0)
        return rc;
    fill(&s, &result);
    *ret_result = result;
    return 0;
}
