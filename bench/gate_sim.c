// link: all
/* gate_sim.c: how often the gate is right, by simulation.
 *
 *     gate_sim gates=2000
 *
 * A cell is a kind of machine: noise (the spread of one run's time), drift (the machine
 * gets slower during the gate), heavy tails (a run in ten is disturbed, up to three
 * times as long), and an effect. Each gate runs pairs as `sonde check` does (the same
 * code says which run is next), looks after 8, 12 and 20 and stops when it has decided.
 * Prints one JSON object per cell.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/gatepairs.h"
#include "num/prng.h"

struct machine {
    double noise, drift, tail;
};

static double normal(struct prng *r)
{
    const double u = 1 - prng_double(r), v = prng_double(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* The time of one run, the turn-th. */
static double run_time(struct prng *r, const struct machine *m, double factor, int turn)
{
    double t = factor * exp(m->noise * normal(r)) * (1 + m->drift * turn / 40);
    if (m->tail > 0 && prng_double(r) < m->tail)
        t *= 1 + 2 * prng_double(r);
    return t;
}

static enum gate_verdict paired(struct prng *r, const struct machine *m, double effect,
                                double threshold, size_t *ret_runs)
{
    struct gate_pairs *p = calloc(1, sizeof *p);
    enum gate_verdict verdict = GATE_INCONCLUSIVE;
    int turn = 0, first;
    size_t pair;
    if (!p)
        abort();
    for (int look = 0; look < GATE_LOOKS && verdict == GATE_INCONCLUSIVE; look++) {
        while (gate_pairs_next(p, look, &pair, &first)) {
            double values[2][GATE_METRICS];
            for (int k = 0; k < 2; k++) {
                const int side = k ? !first : first;
                values[side][0] = run_time(r, m, side ? 1 + effect : 1, turn++);
            }
            gate_pairs_add(p, pair, 1, values);
        }
        struct gate_metric metric = { .threshold = threshold };
        struct gate_result result;
        gate_pairs_fold(p, 0, &metric);
        gate_judge(&metric, 1, look, &result);
        verdict = result.verdict;
    }
    *ret_runs = gate_pairs_runs(p);
    free(p);
    return verdict;
}

static enum gate_verdict unpaired(struct prng *r, const struct machine *m,
                                  double effect, double threshold, size_t *ret_runs)
{
    double before[20], after[20];
    for (int i = 0; i < 20; i++) /* the baseline was measured another day */
        before[i] = run_time(r, &(struct machine){ m->noise, 0, m->tail }, 1, 0);
    for (int i = 0; i < 20; i++)
        after[i] = run_time(r, m, 1 + effect, i);
    const struct gate_metric metric = { .baseline = before,
                                        .now = after,
                                        .baseline_count = 20,
                                        .now_count = 20,
                                        .threshold = threshold };
    struct gate_result result;
    gate_judge(&metric, 1, -1, &result);
    *ret_runs = 20;
    return result.verdict;
}

int main(int argc, char **argv)
{
    static const double noises[] = { 0.01, 0.03, 0.05, 0.10, 0.15 };
    static const double effects[] = { -0.1, 0, 0.1, 0.2, 0.3, 0.5, 1.0 };
    static const double drifts[] = { 0, 0.3 };
    static const double tails[] = { 0, 0.1 };
    unsigned long gates = 2000;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "gates=", 6) == 0)
            gates = strtoul(argv[i] + 6, NULL, 10);
    struct prng random;
    prng_init(&random, 20261115);
    for (int way = 0; way < 2; way++)
        for (size_t n = 0; n < 5; n++)
            for (size_t d = 0; d < 2; d++)
                for (size_t t = 0; t < 2; t++)
                    for (size_t e = 0; e < 7; e++) {
                        const struct machine m = { noises[n], drifts[d], tails[t] };
                        unsigned long counts[3] = { 0 };
                        double runs = 0;
                        for (unsigned long i = 0; i < gates; i++) {
                            size_t used = 0;
                            const enum gate_verdict v =
                                way ? unpaired(&random, &m, effects[e], 0.2, &used)
                                    : paired(&random, &m, effects[e], 0.2, &used);
                            counts[v]++;
                            runs += (double)used;
                        }
                        printf("{\"paired\": %s, \"noise\": %g, \"drift\": %g, "
                               "\"tail\": %g, \"effect\": %g, \"gates\": %lu, "
                               "\"pass\": %lu, \"fail\": %lu, \"inconclusive\": %lu, "
                               "\"runs\": %.2f}\n",
                               way ? "false" : "true", m.noise, m.drift, m.tail,
                               effects[e], gates, counts[GATE_PASS], counts[GATE_FAIL],
                               counts[GATE_INCONCLUSIVE], runs / (double)gates);
                    }
    return 0;
}
