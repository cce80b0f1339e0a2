/* edges.c: see edges.h. */
#include "present/export/edges.h"

#include <stddef.h>

enum { DEPTH_MOST = 512 };

struct edges {
    const struct trace *trace;
    const struct edge_visitor *visitor;
    struct edge_totals totals;
    bool started;
    unsigned lane, depth;
    uint64_t beyond; /* zones open that had no room on the stack */
    int64_t now_ns;
    unsigned stack[DEPTH_MOST]; /* sites */
};

static const struct trace_lane *find_lane(const struct trace *trace, unsigned number)
{
    for (unsigned i = 0; i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        if (lane && lane->number == number)
            return lane;
    }
    return NULL;
}

static int pop_to(struct edges *e, unsigned depth)
{
    int rc = 0;
    while (rc == 0 && e->depth > depth)
        rc = e->visitor->edge(e->visitor->arg, false, e->stack[--e->depth], e->now_ns);
    return rc;
}

static int finish_lane(struct edges *e)
{
    if (!e->started)
        return 0;
    int rc = pop_to(e, 0);
    e->beyond = 0;
    e->started = false;
    return rc == 0 ? e->visitor->lane_end(e->visitor->arg, e->now_ns) : rc;
}

static int start_lane(struct edges *e, const struct trace_event *event)
{
    e->started = true;
    e->lane = event->lane;
    e->now_ns = event->time_ns;
    return e->visitor->lane_begin(e->visitor->arg, find_lane(e->trace, event->lane),
                                  event->time_ns);
}

static int on_begin(struct edges *e, unsigned site)
{
    if (e->depth == DEPTH_MOST) {
        e->beyond++;
        e->totals.too_deep++;
        return 0;
    }
    e->stack[e->depth++] = site;
    e->totals.zones++;
    return e->visitor->edge(e->visitor->arg, true, site, e->now_ns);
}

static int on_end(struct edges *e, unsigned site)
{
    if (e->beyond) {
        e->beyond--;
        return 0;
    }
    for (unsigned depth = e->depth; depth-- > 0;)
        if (e->stack[depth] == site)
            return pop_to(e, depth);
    e->totals.orphan_ends++;
    return 0;
}

static int on_event(void *arg, const struct trace_event *event)
{
    struct edges *e = arg;
    int rc = 0;
    if (e->started && e->lane != event->lane)
        rc = finish_lane(e);
    if (rc == 0 && !e->started)
        rc = start_lane(e, event);
    if (rc != 0)
        return rc;
    if (event->time_ns > e->now_ns)
        e->now_ns = event->time_ns;
    switch (event->kind) {
    case TRACE_BEGIN:
        return on_begin(e, event->site);
    case TRACE_END:
        return on_end(e, event->site);
    case TRACE_THREAD: /* another thread takes the lane over */
        e->beyond = 0;
        return pop_to(e, 0);
    default:
        return 0;
    }
}

int edges_walk(const struct trace *trace, const struct edge_visitor *visitor,
               struct edge_totals *ret_totals)
{
    struct edges e = { .trace = trace, .visitor = visitor };
    int rc = trace_events(trace, on_event, &e);
    if (rc == 0)
        rc = finish_lane(&e);
    *ret_totals = e.totals;
    return rc;
}
