/* ranktest.h: is one thing faster than another? Paired, without assuming a
 * distribution.
 *
 * From the differences of pairs: the Hodges-Lehmann estimate (the median of all
 * Walsh averages (d_i + d_j) / 2, i <= j) and the confidence interval that belongs
 * to Wilcoxon's signed-rank test. Exact up to RANKTEST_EXACT_N pairs, by the normal
 * approximation above. Differences are assumed symmetric about their median.
 */
#ifndef SONDE_NUM_RANKTEST_H
#define SONDE_NUM_RANKTEST_H

#include <stddef.h>

enum { RANKTEST_EXACT_N = 40, RANKTEST_MAX_N = 2000 };

struct ranktest {
    double estimate;
    double low;
    double high;
    /* What the interval really has: at least what was asked for, unless there are
     * too few pairs (fewer than 6 for 95 %); then the widest interval, and less. */
    double confidence;
};

/* -EINVAL without pairs, for a value that is not finite or a confidence outside
 * 0..1; SONDE_E_LIMIT above RANKTEST_MAX_N; -ENOMEM. */
int ranktest_paired(const double *differences, size_t n, double confidence,
                    struct ranktest *ret_result);

/* P(W <= w) for the signed-rank statistic of n <= RANKTEST_EXACT_N pairs. */
double ranktest_signed_rank_cdf(size_t n, size_t w);

#endif
