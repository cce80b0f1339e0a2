/* clock.h: ticks to time.
 *
 * Events carry raw ticks. The run's clock table holds simultaneous readings of the
 * tick counter and the system's clocks, appended every 10 s by whoever drains the
 * run. Readers interpolate between readings and extrapolate outside them, so all
 * processes of a host share one clock, and a clock that drifts or is stepped by NTP
 * is followed instead of guessed.
 */
#ifndef SONDE_TRACE_CLOCK_H
#define SONDE_TRACE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

/* Is the tick counter of this machine fit for use (invariant TSC, CNTVCT)? */
enum tick_source ticks_source(void);
/* The counter the hot path uses, or CLOCK_MONOTONIC_RAW in ns without one. */
uint64_t ticks_now(void);
/* The best of several attempts to read all clocks at one instant. */
void clock_read(struct clock_reading *ret_reading);
/* Ticks per nanosecond of this machine, measured once (about 1 ms). */
double ticks_per_ns(void);

struct clock_table {
    struct clock_reading *readings; /* ascending in ticks */
    size_t count;
    double ns_per_tick; /* over the whole table */
    double error_ns;    /* bound on the error of any conversion inside the table */
};
/* Builds a table from readings in any order; drops impossible ones. Where all are of one
 * half second of this boot, the present is read as one more. */
int clock_table_build(const struct clock_reading *readings, size_t count,
                      bool same_boot, enum tick_source source,
                      struct clock_table *ret_table);
void clock_table_release(struct clock_table *table);
/* Ticks → ns since the epoch, and since an arbitrary point for durations. */
int64_t clock_real_ns(const struct clock_table *table, uint64_t ticks);

#endif
