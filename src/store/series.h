/* series.h: the series of an experiment, read: {"loss":[[step,value],…]} or
 * {"loss":[value,…]}, as experiment.h keeps them.
 *
 * They may come from anybody (sonde log, imports): what has another shape is left out
 * and counted, never guessed at.
 */
#ifndef SONDE_STORE_SERIES_H
#define SONDE_STORE_SERIES_H

#include <stddef.h>

struct series_view {
    const char *name;
    const double *steps, *values; /* values may be NaN: null */
    size_t count, left_out;
};

/* Calls `visit` for each; texts and numbers live for the call. Stops at a non-zero
 * result and returns it. SONDE_E_FORMAT when it is no object of lists; −ENOMEM. */
int series_each(const char *json, size_t len,
                int (*visit)(void *arg, const struct series_view *series), void *arg);

#endif
