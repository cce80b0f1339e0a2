/* summary.c: what a handful of measurements says. */
#include "num/summary.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "num/prng.h"
#include "num/student.h"

enum {
    RESAMPLES = 2000,
    /* Above this the mean is normal for any practical distribution, the bootstrap
     * says what Student's t says, and costs seconds. */
    BOOTSTRAP_MAX_N = 10000,
};

static const double confidence_95 = 0.95;

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int sorted_copy(const double *values, size_t n, double **ret_sorted)
{
    if (n == 0)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return -EINVAL;
    double *sorted = calloc(n, sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, values, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    *ret_sorted = sorted;
    return 0;
}

double summary_quantile(const double *sorted, size_t n, double q)
{
    assert(n > 0 && q >= 0 && q <= 1);
    const double position = q * (double)(n - 1);
    const size_t below = (size_t)position;
    if (below + 1 >= n)
        return sorted[n - 1];
    const double fraction = position - (double)below;
    return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

/* Two passes: the one-pass formula cancels when the spread is small. */
static void set_moments(struct summary *s, const double *values)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += values[i];
    s->mean = sum / (double)s->n;

    double squares = 0;
    double rest = 0; /* the rounding error of the mean, subtracted below */
    for (size_t i = 0; i < s->n; i++) {
        const double d = values[i] - s->mean;
        squares += d * d;
        rest += d;
    }
    const double n = (double)s->n;
    s->mean += rest / n;
    s->std = s->n > 1 ? sqrt((squares - rest * rest / n) / (n - 1)) : NAN;
}

static void set_order_statistics(struct summary *s, const double *sorted)
{
    s->min = sorted[0];
    s->max = sorted[s->n - 1];
    s->median = summary_quantile(sorted, s->n, 0.5);
    s->p95 = summary_quantile(sorted, s->n, 0.95);
    s->p99 = summary_quantile(sorted, s->n, 0.99);

    const double q1 = summary_quantile(sorted, s->n, 0.25);
    const double q3 = summary_quantile(sorted, s->n, 0.75);
    const double reach = 1.5 * (q3 - q1);
    for (size_t i = 0; i < s->n; i++) {
        s->outliers_low += sorted[i] < q1 - reach;
        s->outliers_high += sorted[i] > q3 + reach;
    }
}

static void set_t_interval(struct summary *s)
{
    if (s->n < 2) {
        s->mean_t = (struct interval){ NAN, NAN };
        return;
    }
    const double df = (double)(s->n - 1);
    const double half = student_quantile(0.5 + confidence_95 / 2, df) * s->std /
                        sqrt((double)s->n);
    s->mean_t = (struct interval){ s->mean - half, s->mean + half };
}

static int set_bootstrap(struct summary *s, const double *sorted, uint64_t seed)
{
    if (s->n < 2 || s->n > BOOTSTRAP_MAX_N) {
        s->mean_boot = s->mean_t;
        return 0;
    }
    return summary_bootstrap_mean(sorted, s->n, RESAMPLES, confidence_95, seed,
                                  &s->mean_boot);
}

int summary_compute(const double *values, size_t n, uint64_t seed,
                    struct summary *ret_summary)
{
    double *sorted;
    int rc = sorted_copy(values, n, &sorted);
    if (rc < 0)
        return rc;

    struct summary s = { .n = n };
    /* From the sorted copy throughout: the order must not change a digit. */
    set_moments(&s, sorted);
    set_order_statistics(&s, sorted);
    set_t_interval(&s);
    rc = set_bootstrap(&s, sorted, seed);
    if (rc == 0)
        *ret_summary = s;
    free(sorted);
    return rc;
}

int summary_bootstrap_mean(const double *values, size_t n, size_t resamples,
                           double confidence, uint64_t seed,
                           struct interval *ret_interval)
{
    assert(resamples > 0 && confidence > 0 && confidence < 1);
    if (n == 0)
        return -EINVAL;
    double *means = calloc(resamples, sizeof(*means));
    if (!means)
        return -ENOMEM;

    struct prng random;
    prng_init(&random, seed);
    for (size_t r = 0; r < resamples; r++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += values[prng_below(&random, n)];
        means[r] = sum / (double)n;
    }
    qsort(means, resamples, sizeof(*means), compare_doubles);
    const double tail = (1 - confidence) / 2;
    ret_interval->low = summary_quantile(means, resamples, tail);
    ret_interval->high = summary_quantile(means, resamples, 1 - tail);
    free(means);
    return 0;
}

const char *summary_note(const struct summary *s, char ret_note[SUMMARY_NOTE_LEN])
{
    const size_t all = s->outliers_low + s->outliers_high;
    char side[64] = "high";

    ret_note[0] = '\0';
    if (all == 0)
        return ret_note;
    if (s->outliers_high == 0)
        (void)snprintf(side, sizeof(side), "low");
    else if (s->outliers_low > 0)
        (void)snprintf(side, sizeof(side), "%zu high, %zu low", s->outliers_high,
                       s->outliers_low);
    /* Something else running slows a few runs down; nothing speeds some up, so that
     * low values mean two kinds of run: a cache, a clock, a branch. */
    (void)snprintf(ret_note, SUMMARY_NOTE_LEN, "%zu of %zu runs %s (%s): %s", all, s->n,
                   all == 1 ? "is an outlier" : "are outliers", side,
                   s->outliers_high > 0 ? "the machine was disturbed"
                                        : "a few runs were unusually fast");
    return ret_note;
}
