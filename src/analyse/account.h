/* account.h: where the time of steps went, and what of the run was no step.
 *
 * The main thread's time, from the start of the run to its end, is cut into parts:
 * before the first step, warm-up steps, steady steps, checkpoints, evaluations, what
 * steps at the change of an epoch took longer, and after the last step. Every
 * nanosecond is in exactly one part; within a step every nanosecond is in exactly one
 * phase, outside all zones in `other`. Inside an evaluation or a checkpoint everything
 * belongs to it, whatever its inner zones are called.
 *
 * A step that checkpoints or evaluates is judged without that; a step at the change of
 * an epoch is no steady one. Warm-up are the first steps while they are much slower than
 * the median. One pass over the retained events of one thread, memory bounded.
 */
#ifndef SONDE_ANALYSE_ACCOUNT_H
#define SONDE_ANALYSE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "analyse/phases.h"
#include "analyse/steps.h"
#include "num/trend.h"
#include "trace/reader.h"

enum { ACCOUNT_CHANGES = 8 };

/* What is done now and then. */
enum account_extra { EXTRA_CHECKPOINT, EXTRA_EVALUATION, EXTRAS };

/* Steady steps of one kind, checkpoints and evaluations themselves apart. */
struct step_class {
    uint64_t count;
    double wall_ns;
};

struct step_account {
    bool known;     /* there were steps on the timeline */
    bool partial;   /* older ones are no longer there: parts are of the rest */
    uint64_t steps; /* seen */
    uint64_t warmup, steady, epochs, checkpoints, evaluations;
    double wall_ns; /* the sum of the eight below */
    double
        startup_work_ns; /* of startup_ns: training already, before the first step that
                             * could be told */
    double startup_ns;   /* before the first step */
    double warmup_ns;
    double steady_ns;
    double checkpoint_ns, evaluation_ns;
    double between_ns;         /* between the end of a step and the begin of the next */
    double between_idle_ns;    /* of it, in no phase or waiting for data */
    double epoch_ns;           /* beyond a steady step */
    double end_ns;             /* behind the last step */
    struct phase_split phases; /* of steady steps; wall_ns is their time */
    double median_ns, mean_ns, mad_ns, p95_ns, p99_ns; /* of steady steps; NaN */
    double slow_ns; /* beyond twice the median, of all steady steps together */
    uint64_t slow;  /* how many of them */
    /* Steps with none of the extras and not behind one, steps with one, and the steps
     * directly behind those. */
    struct step_class plain, with[EXTRAS], behind[EXTRAS];
    /* How step time moved from the beginning of the steady steps to their end. */
    bool drift_known;
    double drift, drift_low, drift_high;    /* as a share of the median */
    struct change changes[ACCOUNT_CHANGES]; /* places are points of the series */
    size_t change_count;
};

/* `from_ns`, `to_ns`: the life of the process. Fails only for want of memory. */
int account_read(const struct trace *trace, int64_t from_ns, int64_t to_ns,
                 struct step_account *ret_account);
/* From the first step to the last: the run without its start and its end, which grow less
 * the longer it runs. NaN without steps. */
double account_loop_ns(const struct step_account *account);
/* Of steady steps: what those with a checkpoint (an evaluation), and those behind them,
 * take longer than the others. It goes with it: files that are synced behind
 * torch.save(), metrics made of a model's answers, caches that are filled again. NaN:
 * there are no others to compare with; 0 where there was none. */
double account_beside_ns(const struct step_account *account, enum account_extra extra);
/* Drift and jumps of the series behind the warm-up. */
int account_trend(struct step_account *account, const struct step_series *series);

#endif
