/* offset.h: how fast something grows beyond what it costs anyway: y = a + b·xᵖ.
 *
 * A slope in double logarithms (loglog.h) is too flat while the constant a is a good part
 * of y. Here it is fitted along: a and b not negative, relative errors counted, p where the
 * rest is smallest. The 95 % interval is the p's whose rest is not significantly larger
 * (the profile of the likelihood), so it widens by itself where the sizes tell little.
 */
#ifndef SONDE_NUM_OFFSET_H
#define SONDE_NUM_OFFSET_H

#include "num/loglog.h"

struct offset_power {
    struct exponent exponent; /* an end that is not bounded by the data is NaN */
    double constant, factor;  /* a and b */
};

/* One y > 0 per x > 0, three different x at least. −EINVAL otherwise; −ENODATA when less
 * than a fifth of the largest y is growth, or when any exponent would do as well. */
int offset_fit(const double *x, const double *y, size_t n, struct offset_power *ret);

#endif
