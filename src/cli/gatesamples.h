/* gatesamples.h: numbers to judge that are there already, `sonde check --samples`.
 *
 *     {"wall": {"baseline": [1.1, …], "now": [1.2, …], "paired": false, "threshold": 0.2}}
 */
#ifndef SONDE_CLI_GATESAMPLES_H
#define SONDE_CLI_GATESAMPLES_H

#include <stdbool.h>
#include <stddef.h>

#include "analyse/gatepairs.h"
#include "base/arena.h"

enum { GATE_SAMPLES_MOST = 64 }; /* of a side */

struct gate_samples {
    struct gate_metric metrics[GATE_METRICS]; /* point into the numbers below */
    size_t count;
    double base[GATE_METRICS][GATE_SAMPLES_MOST], now[GATE_METRICS][GATE_SAMPLES_MOST];
};

/* False: the text is not of that form. Names are kept in the arena. */
bool gate_samples_parse(const char *json, size_t len, struct arena *arena,
                        struct gate_samples *ret_samples);

#endif
