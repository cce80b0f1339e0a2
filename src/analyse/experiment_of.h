/* experiment_of.h: a run as the store remembers it. */
#ifndef SONDE_ANALYSE_EXPERIMENT_OF_H
#define SONDE_ANALYSE_EXPERIMENT_OF_H

#include "analyse/report.h"
#include "store/experiment.h"

/* Everything but the profile, which is the report as JSON and the caller's to make.
 * Texts lie in the arena or in the report. */
int experiment_of(const struct report *report, struct arena *arena,
                  struct experiment *ret_experiment);

/* The little that run.json alone says, for when there is no time to analyse: the
 * result is marked partial. */
int experiment_of_meta(const char *id, const char *dir, const struct run_meta *meta,
                       struct arena *arena, struct experiment *ret_experiment);

#endif
