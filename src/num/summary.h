/* summary.h: what a handful of measurements says.
 *
 * For benchmarks and comparisons: the values are all there, the order does not
 * matter. Fields that cannot be had are NaN, never 0: the spread of one value.
 */
#ifndef SONDE_NUM_SUMMARY_H
#define SONDE_NUM_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

struct interval {
    double low;
    double high;
};

struct summary {
    size_t n;
    double mean;
    double std; /* of the sample: divided by n - 1 */
    double min;
    double max;
    double median;
    double p95;
    double p99;
    struct interval mean_t;    /* 95 % confidence interval of the mean by Student's t */
    struct interval mean_boot; /* the same by bootstrap: no normality assumed */
    size_t outliers_low;       /* beyond 1.5 interquartile ranges (Tukey) */
    size_t outliers_high;
};

enum { SUMMARY_NOTE_LEN = 192 };

/* -EINVAL without values or when one is not finite, -ENOMEM. The seed decides the
 * bootstrap; the same seed and values give the same result. */
int summary_compute(const double *values, size_t n, uint64_t seed,
                    struct summary *ret_summary);

/* One line about outliers, "" when there are none:
 * "3 of 100 runs are outliers (high): the machine was disturbed". */
const char *summary_note(const struct summary *s, char ret_note[SUMMARY_NOTE_LEN]);

/* The q-quantile of sorted values, interpolated as R and NumPy do by default
 * (type 7). n > 0, 0 <= q <= 1. */
double summary_quantile(const double *sorted, size_t n, double q);

/* The percentile bootstrap of the mean. -EINVAL without values, -ENOMEM. */
int summary_bootstrap_mean(const double *values, size_t n, size_t resamples,
                           double confidence, uint64_t seed,
                           struct interval *ret_interval);

#endif
