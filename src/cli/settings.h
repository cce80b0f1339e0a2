/* settings.h: what in the environment changes how fast a program is.
 *
 * Samples of a baseline belong to the settings they were taken with: four threads are no
 * regression against eight. Not the whole environment: secrets are in it, and session
 * numbers.
 */
#ifndef SONDE_CLI_SETTINGS_H
#define SONDE_CLI_SETTINGS_H

#include "base/buf.h"

/* "OMP_NUM_THREADS=4\n…": those that are set. */
void settings_words(struct buf *out);

/* Adds how `then` differs from now: "then OMP_NUM_THREADS=1, now OMP_NUM_THREADS=8". */
void settings_compare(const char *then, struct buf *ret_differ);

#endif
