/* ranksum.h: is one set of measurements larger than another? Unpaired, and the p value
 * of pairs; without assuming a distribution.
 *
 * Unpaired: the Hodges-Lehmann shift (the median of all differences y − x) with the
 * interval that belongs to the Mann-Whitney test, exact up to RANKSUM_EXACT each, by the
 * normal approximation above. Both are assumed to differ by a shift alone.
 */
#ifndef SONDE_NUM_RANKSUM_H
#define SONDE_NUM_RANKSUM_H

#include <stddef.h>

#include "num/ranktest.h"

enum { RANKSUM_EXACT = 40, RANKSUM_MAX = 1000 };

/* The shift from x to y. −EINVAL without values, for one that is not finite or a
 * confidence outside 0..1; SONDE_E_LIMIT above RANKSUM_MAX; −ENOMEM. */
int ranksum_shift(const double *x, size_t nx, const double *y, size_t ny,
                  double confidence, struct ranktest *ret_result);

/* P(U <= u) of the Mann-Whitney statistic without ties; nx, ny <= RANKSUM_EXACT. */
double ranksum_cdf(size_t nx, size_t ny, size_t u);

/* How likely so large a sum of ranks is if y is no larger than x (one-sided). Ties count
 * half and are rounded against us. NaN on failure. */
double ranksum_p(const double *x, size_t nx, const double *y, size_t ny);
/* The same for the differences of pairs (Wilcoxon); zeros are left out. */
double ranktest_p(const double *differences, size_t n);

#endif
