/* gatepairs.c: see gatepairs.h. */
#include "analyse/gatepairs.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const int gate_rounds[GATE_LOOKS] = { 1, 2, 4 };

/* Round by round over all pairs, not pair by pair: the runs of one pair then lie apart,
 * and a disturbance of some seconds does not meet all of them. */
bool gate_pairs_next(const struct gate_pairs *p, int look, size_t *ret_pair,
                     int *ret_first)
{
    assert(look >= 0 && look < GATE_LOOKS);
    size_t next = gate_looks[look];
    for (size_t i = 0; i < gate_looks[look]; i++)
        if (p->rounds[i] < gate_rounds[look] &&
            (next == gate_looks[look] || p->rounds[i] < p->rounds[next]))
            next = i;
    if (next == gate_looks[look])
        return false;
    *ret_pair = next;
    *ret_first = (int)((next + (size_t)p->rounds[next]) % 2);
    return true;
}

void gate_pairs_add(struct gate_pairs *p, size_t pair, size_t metrics,
                    double values[2][GATE_METRICS])
{
    const int round = p->rounds[pair];
    assert(pair < GATE_PAIRS && round < GATE_ROUNDS);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < metrics; i++)
            p->runs[side][i][pair][round] = values[side][i];
    p->rounds[pair]++;
}

size_t gate_pairs_count(const struct gate_pairs *p)
{
    size_t count = 0;
    while (count < GATE_PAIRS && p->rounds[count])
        count++;
    return count;
}

size_t gate_pairs_runs(const struct gate_pairs *p)
{
    size_t runs = 0;
    for (size_t i = 0; i < GATE_PAIRS; i++)
        runs += (size_t)p->rounds[i];
    return runs;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double gate_better_half(double *values, size_t n, bool more_is_better)
{
    const size_t half = (n + 1) / 2;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return NAN;
    qsort(values, n, sizeof *values, compare_doubles);
    for (size_t i = 0; i < half; i++)
        sum += values[more_is_better ? n - 1 - i : i];
    return sum / (double)half;
}

/* Of two runs the better one is a count again, even where the program's counts vary: so
 * whether they vary is asked of the runs. */
static bool side_varies(const struct gate_pairs *p, int side, size_t index)
{
    const double first = p->runs[side][index][0][0];
    for (size_t i = 0; i < GATE_PAIRS; i++)
        for (int k = 0; k < p->rounds[i]; k++)
            if (p->runs[side][index][i][k] != first)
                return true;
    return false;
}

void gate_pairs_fold(struct gate_pairs *p, size_t index, struct gate_metric *metric)
{
    const size_t count = gate_pairs_count(p);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < count; i++) {
            double runs[GATE_ROUNDS];
            memcpy(runs, p->runs[side][index][i], sizeof runs);
            p->folded[side][index][i] = gate_better_half(runs, (size_t)p->rounds[i],
                                                         metric->more_is_better);
        }
    metric->baseline = p->folded[0][index];
    metric->now = p->folded[1][index];
    metric->baseline_count = metric->now_count = count;
    metric->paired = true;
    metric->varies = side_varies(p, 0, index) || side_varies(p, 1, index);
}
