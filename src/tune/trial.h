/* trial.h: a cure, measured before it is written.
 *
 * The recorded command runs once more under `sonde run`, in its folder, with what the
 * caller's environment has today, into a private folder that is removed afterwards. The
 * Python layer leaves the illness's work out (plan.h), ends the program after some steps,
 * and the recording says how long a step took. Nothing here runs unless somebody asks: the
 * program's side effects happen again.
 */
#ifndef SONDE_TUNE_TRIAL_H
#define SONDE_TUNE_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/triallog.h"
#include "tune/plan.h"

enum { TRIAL_STEPS = 60, TRIAL_WARMUP = 10, TRIAL_SECONDS = 120, TRIAL_LEAST_S = 2 };

struct trial_options {
    uint64_t steps; /* to be measured; 0: TRIAL_STEPS, and TRIAL_LEAST_S seconds */
    double seconds; /* at most, for all trials of one question; 0: TRIAL_SECONDS */
    double spent_s; /* of them, by trials before this one */
    /* Now and then while it runs; may be NULL. */
    void (*tick)(void *arg, double seconds);
    void *arg;
};

enum trial_end {
    TRIAL_GOOD,
    TRIAL_FAILED,      /* `why` says it */
    TRIAL_INTERRUPTED, /* nothing of it is left; `signal` asked for it */
};

struct trial_result {
    struct trial_entry entry;
    struct buf why;
    struct buf
        wrote; /* files elsewhere that the trial wrote, commas between; "" none */
    int signal;
};

/* Whether this run's program can be started again for one; false: `why` says why not. */
bool trial_is_possible(const struct report *report, struct buf *why);

/* How long it takes at most, and about, in seconds. */
double trial_guess_s(const struct report *report, const struct plan *plan,
                     const struct trial_options *options);

/* The result is to be released in any case. */
enum trial_end trial_run(const struct report *report, const struct plan *plan,
                         const struct trial_options *options,
                         struct trial_result *ret_result);
void trial_result_release(struct trial_result *result);

/* From two accounts to the time after the cure; for tests. `kept`, `seen`: occasions of
 * what became rarer, in the trial; 0 unknown. */
struct trial_counts {
    double kept, seen, times;
    bool whole;
};
void trial_judge(const struct step_account *sick, const struct step_account *trial,
                 const struct plan *plan, const struct trial_counts *counts,
                 struct trial_entry *ret_entry);

#endif
