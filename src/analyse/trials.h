/* trials.h: was advice followed, and did it bring what was predicted?
 *
 * A run is compared with the newest one before it of the same program (same folder, same
 * script or binary) that ended well and had steps, in the store or where `-o` put it. Advice counts as tried when the
 * recordings show that the settings are as advised; or when nothing speaks against it
 * (trial_followed.h), the finding is gone or next to gone, and it became faster. What is
 * measured is what was predicted: a step, the loop from the first step to the last, or the
 * run. Prediction and result go into the ledger, once.
 */
#ifndef SONDE_ANALYSE_TRIALS_H
#define SONDE_ANALYSE_TRIALS_H

#include "analyse/report.h"

/* Fills in report->since when there is something to tell. Fails only for want of memory;
 * runs that cannot be read, or a ledger that cannot be written, are passed over. */
int trial_enter(struct report *report, const char *sonde_dir);

/* The same with a run before that somebody named. */
int trial_between(const struct report *before, struct report *now,
                  const char *sonde_dir);

/* What the ledger knows about each finding's kind of advice. */
void trials_recall(struct report *report, const char *sonde_dir);

#endif
