/* gate.h: did a change make it slower? The judgement, without the measuring.
 *
 * Times are compared as ratios. Of pairs (baseline and change run one after the other,
 * in turn) the Hodges-Lehmann estimate of the log ratio with its exact signed-rank
 * interval; of unpaired samples the same by Mann-Whitney, which is weaker: whatever
 * happened to the machine in between is in the difference.
 *
 * Verdict on one metric, threshold T:
 *   FAIL           it is slower beyond doubt (the interval excludes 1) and the best
 *                  guess of by how much exceeds T
 *   PASS           a slowdown beyond T is excluded (the interval ends below 1 + T)
 *   INCONCLUSIVE   neither, or fewer than GATE_LEAST samples, or some are missing
 *
 * Pairs are looked at after 8, 12 and 20; each look may err, so each gets a part of the
 * 5 % (0.010, 0.014, 0.026: Bonferroni) and what is decided early stays decided. Of
 * several metrics, failures are corrected by Holm's method. gatepairs.h says which runs
 * a pair consists of.
 *
 * Metrics that are counts of a deterministic program (every sample of a side equal) are
 * compared as they are.
 */
#ifndef SONDE_ANALYSE_GATE_H
#define SONDE_ANALYSE_GATE_H

#include <stdbool.h>
#include <stddef.h>

enum { GATE_LEAST = 8, GATE_LOOKS = 3, GATE_METRICS = 16, GATE_WHY = 160 };

extern const size_t gate_looks[GATE_LOOKS]; /* 8, 12, 20 */

enum gate_verdict { GATE_PASS, GATE_FAIL, GATE_INCONCLUSIVE };

struct gate_metric {
    const char *name;
    const double *baseline, *now; /* paired: as many of each, by pair */
    size_t baseline_count, now_count;
    bool paired;
    bool varies;         /* runs differ, though these samples of them may not */
    bool more_is_better; /* samples/s */
    double threshold;    /* 0.2: 20 % worse is allowed */
};

struct gate_result {
    enum gate_verdict verdict;
    bool exact;         /* counts, compared as they are */
    double ratio;       /* worse above 1, whichever way the metric goes; NaN unknown */
    double low, high;   /* its interval; NaN where there is none */
    double confidence;  /* of the interval */
    double p;           /* of no slowdown, by Holm over all metrics; NaN */
    double smallest;    /* slowdown (0.05: 5 %) it could just have told from none, at
                           Holm's hardest step when there are several metrics */
    bool hopeless;      /* inconclusive, and more runs would not change that */
    char why[GATE_WHY]; /* of an inconclusive verdict */
};

/* The part of the 5 % that belongs to a look, or all of it: look −1, for unpaired
 * samples, which are looked at once. */
double gate_alpha(int look);

/* Judges all metrics with what there is. `look` as above. */
void gate_judge(const struct gate_metric *metrics, size_t count, int look,
                struct gate_result *ret_results);

/* FAIL if any fails, else INCONCLUSIVE if any is, else PASS. */
enum gate_verdict gate_together(const struct gate_result *results, size_t count);

/* "pass", "fail", "inconclusive" */
extern const char *const gate_words[];

#endif
