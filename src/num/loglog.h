/* loglog.h: how fast something grows: the exponent p of y ~ xᵖ.
 *
 * Measured at several sizes, several times each. The slope in double logarithms, with a
 * 95 % interval that knows both the scatter of repeats and, from the points' distance to
 * the line, how far growth is from a power at all.
 */
#ifndef SONDE_NUM_LOGLOG_H
#define SONDE_NUM_LOGLOG_H

#include <stddef.h>

struct exponent {
    double value;
    double low, high; /* NaN when there are too few points to tell */
    size_t points;
};

/* `y[i]` was measured at `x[i] > 0`; a size may stand there several times. −EINVAL for
 * fewer than two different sizes or values that are not positive. */
int loglog_fit(const double *x, const double *y, size_t n, struct exponent *ret);
/* Different sizes: repeats at one size say nothing about the slope. */
size_t loglog_sizes(const double *x, size_t n);

#endif
