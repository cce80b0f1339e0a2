/* correlate.h: do two things go together?
 *
 * Pearson's r measures how well a line fits, Spearman's rho how well any rising or
 * falling curve does. Intervals by Fisher's z, for rho with Bonett and Wright's variance
 * (1 + rho²/2) / (n − 3). Correlation is no cause.
 */
#ifndef SONDE_NUM_CORRELATE_H
#define SONDE_NUM_CORRELATE_H

#include <stddef.h>

struct correlation {
    size_t n;
    double r;         /* −1 to 1 */
    double low, high; /* the interval; NaN below 4 pairs */
    double p;         /* of so large an |r| if there were none; NaN below 3 */
};

/* −EINVAL below 2 pairs, for values that are not finite, or when all x or all y are
 * equal; −ENOMEM. */
int correlate_pearson(const double *x, const double *y, size_t n, double confidence,
                      struct correlation *ret_correlation);
int correlate_spearman(const double *x, const double *y, size_t n, double confidence,
                       struct correlation *ret_correlation);

/* Ranks from 1, equal values share the mean of theirs. −ENOMEM. */
int rank_values(const double *values, size_t n, double *ret_ranks);

/* Which points no other beats: at least as good in every goal and better in one.
 * values[goal * n + point]; bigger[goal] says what better means; a point with a NaN is
 * never among them. Sets ret_front[point]. −ENOMEM. */
#include <stdbool.h>
int pareto_front(const double *values, size_t n, const bool *bigger, size_t goals,
                 bool *ret_front);

#endif
