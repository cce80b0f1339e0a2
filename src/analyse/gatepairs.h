/* gatepairs.h: which run comes next in a gate, and what the runs of a pair count as.
 *
 * The first look wants each of 8 pairs once. When those have not decided, the machine is
 * disturbed or the program noisy, and the pairs there are become deeper as well as more:
 * the second look wants 12 pairs of two runs a side, the third 20 of four. The earlier
 * pairs get their further runs too, else eight noisy ones would outweigh the rest.
 *
 * A side of a pair counts as the mean of the better half of its runs (of one and of two
 * the best, of four the two best): what disturbs a run only ever slows it down, and two
 * are less chancy than one.
 *
 * Why the tests stay exact: without a difference the runs of both sides of a pair are
 * exchangeable as a whole, so the sign of its log ratio is a fair coin, whatever its size
 * and however deep the pair is. Both sides always have the same number of runs, and who
 * goes first alternates from pair to pair and from round to round.
 */
#ifndef SONDE_ANALYSE_GATEPAIRS_H
#define SONDE_ANALYSE_GATEPAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "analyse/gate.h"

enum { GATE_PAIRS = 20, GATE_ROUNDS = 4 };

extern const int gate_rounds[GATE_LOOKS]; /* 1, 2, 4 */

struct gate_pairs {
    double runs[2][GATE_METRICS][GATE_PAIRS][GATE_ROUNDS]; /* side 0 is the baseline */
    int rounds[GATE_PAIRS];                                /* done of each pair */
    double folded[2][GATE_METRICS][GATE_PAIRS];            /* by gate_pairs_fold() */
};

/* The pair that is to be run next for a look (both sides once), and the side that goes
 * first. False when the look has all it wants. */
bool gate_pairs_next(const struct gate_pairs *p, int look, size_t *ret_pair,
                     int *ret_first);

/* Enters one run of each side; values[side][metric], NaN is missing. */
void gate_pairs_add(struct gate_pairs *p, size_t pair, size_t metrics,
                    double values[2][GATE_METRICS]);

/* Pairs with at least one run of each side, and runs of each side in all. */
size_t gate_pairs_count(const struct gate_pairs *p);
size_t gate_pairs_runs(const struct gate_pairs *p);

/* Points a metric at what its pairs count as; sets its counts, `varies` and `paired`. */
void gate_pairs_fold(struct gate_pairs *p, size_t index, struct gate_metric *metric);

/* The mean of the better half; NaN when one is missing. Sorts. */
double gate_better_half(double *values, size_t n, bool more_is_better);

#endif
