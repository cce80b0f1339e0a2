/* trials.h: was advice followed, and did it bring what was predicted?
 *
 * A run is compared with the one before of the same program (same folder, same script or
 * binary; arguments may differ: settings often are arguments). When the finding that was
 * first there is gone here, and both have steps, the step times say what the cure
 * brought; prediction and result go into the ledger, once.
 */
#ifndef SONDE_ANALYSE_TRIALS_H
#define SONDE_ANALYSE_TRIALS_H

#include "analyse/report.h"

/* Fills in report->since when there is something to tell. Fails only for want of memory;
 * runs that cannot be read, or a ledger that cannot be written, are passed over. */
int trial_enter(struct report *report, const char *sonde_dir);

/* What the ledger knows about each finding's kind of advice. */
void trials_recall(struct report *report, const char *sonde_dir);

#endif
