/* repeat.h: how often a trial is run, and what several of one question say together.
 *
 * One run of a program says as much as the moment it ran in: the same trial gave 4.3, 6.9
 * and 8.5 ms in turn. Where the first says what the model says, two independent answers
 * agree, and that is enough; where it does not, or no model has an answer, it is run two
 * more times as long as the time allows, and the median counts.
 */
#ifndef SONDE_TUNE_REPEAT_H
#define SONDE_TUNE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>

#include "store/triallog.h"

enum { REPEAT_MOST = 3 };

struct repeat {
    struct trial_entry done[REPEAT_MOST];
    size_t count;
    bool loop;       /* what counts is the loop, not the step */
    double model_ns; /* of that, as the model has it; NaN: it has no answer */
    /* All that was left out are calls; what is computed for them goes with the cure. */
    bool calls_alone;
};

/* Whether the first one leaves doubt. */
bool repeat_is_worth(const struct repeat *repeat);

/* … and another one as long as those so far fits what is left of the time. */
bool repeat_wants_more(const struct repeat *repeat, double spent_s, double budget_s);

/* Whether so much more was left than the model says that most of what goes with the calls
 * was still done: they say less than the model does. */
bool repeat_says_less(const struct repeat *repeat);

/* What they say together; at least one was done. The range has all of them in it. */
void repeat_median(const struct repeat *repeat, struct trial_entry *ret_entry);

#endif
