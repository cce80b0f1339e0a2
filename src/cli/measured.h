/* measured.h: one run of a command, measured; for gates and baselines.
 *
 * Time, CPU time and peak memory come from the process itself, without a profiler in
 * between. Metrics that only a profile knows (allocations, steps, the program's own
 * metrics) make it a run under `sonde run`, of baseline and change alike. System calls
 * are counted in one more run, without a profiler.
 */
#ifndef SONDE_CLI_MEASURED_H
#define SONDE_CLI_MEASURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/gate.h"
#include "base/buf.h"
#include "launch/signals.h"

struct measured_metric {
    const char *name; /* "wall", "cpu", "memory", "allocations", "metrics.X" … */
    bool more_is_better;
    double threshold; /* NaN: the gate's */
};

struct measuring {
    struct measured_metric metrics[GATE_METRICS];
    size_t count;
    bool plain, profile, counted; /* kinds of runs they need (measures.h) */
    bool apart; /* times and memory from a run without the profile that others need */
    bool show_output;
    struct signals signals;
    uint64_t deadline_ns; /* monotonic; a run is ended then; 0: never */
    int ended_by;         /* the signal that interrupted */
    bool leaves_running;  /* the command left processes behind */
};

/* Adds "NAME", "NAME=30%", "NAME:more" or a mix. Prints why not and returns false. */
bool measuring_add(struct measuring *m, const char *text);

enum measured_end {
    MEASURED_GOOD,
    MEASURED_FAILED,
    MEASURED_INTERRUPTED, /* nothing of the command is left running */
    MEASURED_LATE,        /* the deadline came; nor here */
};

/* Runs it in `dir` (NULL: here). Numbers that could not be had are NaN. On failure the
 * message says why. Between signals_take() and signals_give_back(). */
enum measured_end measure_once(struct measuring *m, char *const *argv, const char *dir,
                               double ret_values[GATE_METRICS],
                               struct buf *ret_message);

/* "AMD EPYC 7763, 2 cores": what times depend on. */
void machine_words(struct buf *out);

#endif
