/* timeline.h: begin and end events as zones.
 *
 * One pass over the retained events of a process, lane by lane, with the same rules
 * as the statistics: an end that skips inner zones closes them at the event before
 * it, an end without a begin is counted, a thread that takes a lane over ends what
 * the one before left open. Time never runs backwards within a lane and an inner zone
 * begins after the one around it, so the nesting can be told from times alone. Memory is bounded by the depth of the stack.
 */
#ifndef SONDE_ANALYSE_TIMELINE_H
#define SONDE_ANALYSE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

enum { TIMELINE_VALUES = 8 };

struct timeline_zone {
    unsigned lane, site, depth; /* depth 0: outermost */
    uint32_t tid;
    int64_t begin_ns, end_ns;
    bool truncated;  /* open when its thread or process ended */
    bool open;       /* open now: the process lives */
    bool unbalanced; /* closed by the end of an outer zone */
    bool begin_lost; /* began before the retained events: begin_ns is theirs */
    bool has_op;
    double cpu_ns, mem_before_mb, mem_after_mb, mem_peak_mb;
    struct {
        unsigned name; /* a site */
        double value;
    } values[TIMELINE_VALUES]; /* the first ones attached */
    unsigned value_count;
};

/* Both may stop the walk by returning non-zero. */
struct timeline_visitor {
    /* At the end of each zone: inner ones before outer ones. */
    int (*zone)(void *arg, const struct timeline_zone *zone);
    /* Counters, metrics, steps, marks, spans, losses, as they come. May be NULL. */
    int (*event)(void *arg, uint32_t tid, const struct trace_event *event);
    void *arg;
};

struct timeline_totals {
    uint64_t zones, orphan_ends, unbalanced, truncated, too_deep;
};

/* Returns 0, what a visitor returned, or a negative error. */
int timeline_walk(const struct trace *trace, const struct timeline_visitor *visitor,
                  struct timeline_totals *ret_totals);

#endif
