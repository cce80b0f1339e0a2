/* keep.h: runs go into the store, and the store is brought up to date.
 *
 * None of this may fail a verb that is about something else: what cannot be kept now
 * is kept by the next verb that looks into the store, from the run's directory.
 */
#ifndef SONDE_CLI_KEEP_H
#define SONDE_CLI_KEEP_H

#include "analyse/report.h"
#include "store/store.h"

/* Opens the store of $SONDE_DIR. Prints why not and returns false. */
bool cli_store_open(unsigned flags, struct store **ret_store);

/* Puts a run that has been analysed, with its profile. */
int keep_report(struct store *store, const struct report *report);

/* At the end of `sonde run`: `report` may be NULL (nobody wanted one), then only what
 * run.json says is kept. Old runs make room. Quiet unless the store is damaged. */
void keep_after_run(const char *dir, const struct report *report, bool quiet);

/* Every finished run directory that the store does not know, or only in part. */
int keep_all(struct store *store, uint64_t *ret_added);

/* The experiment that a RUN, an id, a name or the beginning of an id means. Prints why
 * not and returns false. */
bool cli_find_experiment(struct store *store, const char *ref, struct arena *arena,
                         struct experiment *ret_experiment);

/* Adopts orphans, opens for writing, brings it up to date; for verbs that search. Falls
 * back to reading only. Prints why not and returns false. */
bool cli_store_ready(struct store **ret_store);

#endif
