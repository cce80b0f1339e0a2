/* trend.h: does a series rise, and where does it jump? Without assuming a distribution:
 * step times have tails, memory has stairs.
 *
 * Slope: Theil and Sen, the median of the slopes of all pairs, with Kendall's interval.
 * Jumps: Pettitt's rank test splits the series where it is surest, then each half again
 * (binary segmentation), while the test and the size of the jump say so.
 */
#ifndef SONDE_NUM_TREND_H
#define SONDE_NUM_TREND_H

#include <stddef.h>

enum { TREND_MAX_N = 1024, TREND_LEAST_N = 4 };

struct trend {
    double slope;     /* of y per x */
    double low, high; /* the interval of the confidence asked for */
    double intercept; /* median of y − slope·x */
};

/* x need not be sorted; pairs with equal x are left out. −EINVAL below TREND_LEAST_N
 * points, for a value that is not finite, or when all x are equal; SONDE_E_LIMIT above
 * TREND_MAX_N; −ENOMEM. */
int trend_fit(const double *x, const double *y, size_t n, double confidence,
              struct trend *ret_trend);

struct change {
    size_t at;            /* the first value behind the jump */
    double before, after; /* medians of the parts around it */
    double p;             /* of Pettitt's test when it was found */
};

struct change_limits {
    double p; /* at most: the test */
    double
        ratio; /* at least: |after − before| / before, so that tiny sure jumps of very
                   * quiet series are left alone */
    size_t part; /* the fewest values in a part; at least 2 */
};

/* The most likely place of a jump among n ≥ 2 finite values, and how likely its
 * statistic is without one. */
int change_most_likely(const double *values, size_t n, size_t *ret_at, double *ret_p);

/* Ascending by place; at most `cap` of them. −EINVAL, SONDE_E_LIMIT, −ENOMEM as above. */
int change_find(const double *values, size_t n, const struct change_limits *limits,
                struct change *ret_changes, size_t cap, size_t *ret_count);

/* The median; NaN without values. Reorders them. */
double median_of(double *values, size_t n);

#endif
