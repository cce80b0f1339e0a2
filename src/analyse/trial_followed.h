/* trial_followed.h: was the advice of one run followed in another? As far as the two
 * recordings can tell. Private to trials.c.
 */
#ifndef SONDE_ANALYSE_TRIAL_FOLLOWED_H
#define SONDE_ANALYSE_TRIAL_FOLLOWED_H

#include "analyse/report.h"

enum followed {
    FOLLOWED_NOT,     /* something else was changed, or the opposite was done */
    FOLLOWED_PERHAPS, /* nothing speaks against it: programs are edited unseen */
    FOLLOWED_SURELY,  /* the settings are recorded, and are those that were advised */
};

/* What the person calls the program: its script, its module, else the command itself. */
const char *trial_program(const struct run_meta *meta);

/* Same program, folder and machine; arguments may differ. */
bool trial_same_program(const struct run_meta *a, const struct run_meta *b);

/* `f` is a finding of `before`; the program is the same. */
enum followed trial_followed(const struct report *before, const struct report *now,
                             const struct finding *f);

#endif
