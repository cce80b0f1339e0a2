/* phases.h: every second of the main thread in exactly one phase.
 *
 * The self time of a path belongs to its own phase or, when it names none, to that
 * of the nearest zone around it; time outside all zones is `other`. So nothing is
 * counted twice and the shares add up to 1.
 */
#ifndef SONDE_ANALYSE_PHASES_H
#define SONDE_ANALYSE_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "analyse/tree.h"
#include "trace/reader.h"

struct phase_split {
    bool has_main;                      /* the main thread recorded something */
    double wall_ns;                     /* the main thread's time that was recorded */
    double unrecorded_ns;               /* besides: outside the window, or paused */
    double total_ns[SONDE_PHASE_COUNT]; /* [SONDE_NO_PHASE] is always 0 */
    double share[SONDE_PHASE_COUNT];
    uint64_t count[SONDE_PHASE_COUNT]; /* times the phase was entered */
    bool has_device;                   /* the GPU's time was measured */
    double device_s[SONDE_PHASE_COUNT];
    double device_calls; /* outermost; 0 unknown */
    double device_timed; /* of them with marks */
    bool has_busy;       /* kernels were recorded one by one (imports) */
    double busy_s;       /* time in which the cards had work, their mean */
    bool has_launch;
    double launch_share; /* of the steps, in operators that launch (imports) */
};

/* The root of the main thread's zones; TRACE_NO_NODE when it recorded nothing. */
unsigned phase_main_root(const struct trace *trace);

/* The zones of the main thread by phase; shares come with phase_split_close(). */
void phase_split_read(const struct trace *trace, const struct tree *tree,
                      struct phase_split *ret_split);
/* What a counter of this name (recorded by python/src/device.c, or by imports) is the time
 * of: a phase; 0 for other counters. */
int phase_of_device_counter(const char *name);
/* One of those, or another that tells of the device's time: none of the program's. */
bool phase_is_device_counter(const char *name);

/* Whether only some calls were timed; device_s then is extrapolated from them. */
bool phase_device_is_sampled(const struct phase_split *split);

/* Enters the time outside zones and computes shares. wall_ns: from the start of the
 * process to its end; when zones took longer (clocks, damage), they count. Of it, nothing
 * is known of unrecorded_ns. */
void phase_split_close(struct phase_split *split, double wall_ns, double unrecorded_ns);

/* The phase with the largest share; SONDE_NO_PHASE when there is no time at all. */
int phase_largest(const struct phase_split *split);

#endif
