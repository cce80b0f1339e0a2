/* habits.h: how long would the loop take if what is done now and then were done more
 * seldom, or if batches were larger?
 *
 * The loop is what lies between the first step and the last: steps, and evaluations,
 * checkpoints and logging among them. Each was measured; done K times more seldom, a
 * K-th of it is left. With batches K times as large there are K times fewer steps for the
 * same samples, and each still pays once for what does not depend on how many there are.
 */
#ifndef SONDE_ANALYSE_HABITS_H
#define SONDE_ANALYSE_HABITS_H

#include <stdint.h>

#include "analyse/account.h"
#include "analyse/whatif.h"

struct facts;
struct report;

/* As it was measured; times in nanoseconds, NaN: not known. */
struct habits {
    double loop_ns, step_ns; /* step_ns: the mean steady one */
    double steps;
    double extras[EXTRAS];    /* how many of them */
    double extra_ns[EXTRAS];  /* all of them together, in their zones */
    double beside_ns[EXTRAS]; /* in steps, because of them (account_beside_ns) */
    double log_ns;            /* of the loop */
    double gc_ns;        /* of the loop: with what the collector takes from others */
    double optimizer_ns; /* of the loop: the optimizer's steps … */
    double exchange_ns;  /* … and talking to other ranks */
    double fixed;        /* of a step: the share paid however large its batch is */
    double fixed_low, fixed_high;
    double workers;            /* of the loader; NaN: none */
    double foreign_share;      /* of the cores, taken by other programs; NaN: none */
    const struct facts *facts; /* for threads.h; NULL: nothing is known of threads */
};

struct habits_forecast {
    double loop_ns, loop_low_ns, loop_high_ns;
    double step_ns, step_low_ns, step_high_ns;
};

void habits_of(const struct report *report, const struct facts *facts,
               struct habits *ret_habits);

/* Whether anything of the loop was asked for. */
bool habits_asked(const struct settings *settings);
/* What logging, collecting and exchanging more seldom, and a faster optimizer, take off the
 * main thread's work in a step. */
double habits_less_ns(const struct habits *habits, const struct settings *settings);
/* `loader`: what settings of the loader make of a step, with the logging as it is asked
 * for; NULL where none was named. −EINVAL: ret_error says what was not recorded. */
int habits_predict(const struct habits *habits, const struct settings *settings,
                   const struct forecast *loader, double loader_now_ns,
                   struct habits_forecast *ret_forecast,
                   char ret_error[WHATIF_ERROR_LEN]);

/* Of CPU time in training: the interpreter and the framework; NaN: not known. What the
 * program's own functions do beside it is neither. */
double habits_step_overhead(const struct facts *facts);
/* Of step time: what is paid however large the batch is; NaN: not known. `low`, `high`:
 * how little and how much it may be. */
struct fixed_share {
    double low, mid, high;
};
struct fixed_share habits_fixed_share(const struct facts *facts);
/* Of the time for the same samples: what is left with batches so many times as large when
 * `fixed` of a step is such a share. */
double habits_left_of_samples(double fixed, double times);
/* Of step time: what is left without the garbage collector; NaN: not known. */
double habits_without_collector(const struct facts *facts);
/* Of the main thread's time: logging, with what is computed only to be logged. */
double habits_log_share(const struct facts *facts);
/* Of step time: exchanging data with other ranks; NaN: not known. */
double habits_exchange_share(const struct facts *facts);

#endif
