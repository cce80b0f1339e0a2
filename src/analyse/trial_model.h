/* trial_model.h: what the model says of what a trial measured.
 *
 * Whoever shows both, or decides by how far they are apart, asks here: both are to be of
 * the same quantity.
 */
#ifndef SONDE_ANALYSE_TRIAL_MODEL_H
#define SONDE_ANALYSE_TRIAL_MODEL_H

#include <stdbool.h>

#include "analyse/report.h"

/* Whether its result is the loop: what evaluations, checkpoints and changes of epochs take
 * is in no step. */
bool trial_is_of_loop(const struct report *report, const struct trial_entry *trial);

/* Of the loop, or of a step; NaN: the model has no answer. */
double trial_modelled_ns(const struct report *report, const struct trial_entry *trial,
                         bool loop);

#endif
