/* edges.h: begins and ends of zones in the order of time, each begin with its end.
 * Private to export/.
 *
 * timeline.h tells of a zone when it has ended, inner ones first; formats that want an
 * event per edge get them here, lane by lane. The rules are the same: an end that skips
 * inner zones ends them too, an end without a begin is none, what is open at the end of
 * its thread ends there. Memory is bounded by the depth of the stack.
 */
#ifndef SONDE_PRESENT_EXPORT_EDGES_H
#define SONDE_PRESENT_EXPORT_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

struct edge_visitor {
    /* A thread's events begin, and end. */
    int (*lane_begin)(void *arg, const struct trace_lane *lane, int64_t first_ns);
    int (*lane_end)(void *arg, int64_t last_ns);
    int (*edge)(void *arg, bool begin, unsigned site, int64_t time_ns);
    void *arg;
};

struct edge_totals {
    uint64_t zones, orphan_ends, too_deep;
};

/* Returns 0, what a visitor returned, or a negative error. */
int edges_walk(const struct trace *trace, const struct edge_visitor *visitor,
               struct edge_totals *ret_totals);

#endif
