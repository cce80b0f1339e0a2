/* timeline.c: begin and end events as zones. */
#include "analyse/timeline.h"

#include <errno.h>
#include <stdlib.h>

struct walk {
    const struct trace *trace;
    const struct timeline_visitor *visitor;
    struct timeline_totals totals;
    struct timeline_zone *stack; /* MAX_DEPTH zones */
    unsigned depth, too_deep;
    bool started; /* lane, tid, first_ns, now_ns are valid */
    unsigned lane;
    uint32_t tid;
    int64_t first_ns, now_ns;
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

static int emit(struct walk *w, struct timeline_zone *zone, int64_t end_ns)
{
    zone->end_ns = end_ns > zone->begin_ns ? end_ns : zone->begin_ns;
    w->totals.zones++;
    w->totals.truncated += zone->truncated;
    w->totals.unbalanced += zone->unbalanced;
    return w->visitor->zone(w->visitor->arg, zone);
}

static int pop(struct walk *w, int64_t end_ns)
{
    return emit(w, &w->stack[--w->depth], end_ns);
}

/* Everything still open ends here. `open`: not by death, the process goes on. */
static int close_all(struct walk *w, bool open)
{
    int rc = 0;
    while (rc == 0 && w->depth > 0) {
        struct timeline_zone *top = &w->stack[w->depth - 1];
        top->open = open;
        top->truncated = !open;
        rc = pop(w, w->now_ns);
    }
    w->too_deep = 0;
    return rc;
}

/* Zones open at the end whose begin is no longer among the events: the lane knows
 * them. Inner ones are on our stack and were closed already. */
static int close_forgotten(struct walk *w, unsigned on_stack, bool open)
{
    const struct trace_lane *lane = find_lane(w->trace, w->lane);
    int rc = 0;
    if (!lane || lane->open_count <= on_stack)
        return 0;
    for (unsigned k = lane->open_count - on_stack; rc == 0 && k-- > 0;) {
        struct timeline_zone zone = {
            .lane = w->lane,
            .site = lane->open[k].site,
            .depth = k,
            .tid = w->tid,
            .begin_ns = lane->open[k].begin_ns,
            .open = open,
            .truncated = !open,
        };
        rc = emit(w, &zone, w->now_ns);
    }
    return rc;
}

static int finish_lane(struct walk *w)
{
    if (!w->started)
        return 0;
    const struct trace_info *info = trace_info(w->trace);
    const unsigned on_stack = w->depth;
    int rc = close_all(w, info->alive);
    if (rc == 0 && !info->timeline_complete)
        rc = close_forgotten(w, on_stack, info->alive);
    w->started = false;
    return rc;
}

static void start_lane(struct walk *w, const struct trace_event *e)
{
    const struct trace_lane *lane = find_lane(w->trace, e->lane);
    w->started = true;
    w->lane = e->lane;
    w->tid = lane ? lane->tid : 0;
    w->first_ns = w->now_ns = e->time_ns;
}

static void on_begin(struct walk *w, const struct trace_event *e)
{
    if (w->depth == MAX_DEPTH) {
        w->too_deep++;
        w->totals.too_deep++;
        return;
    }
    /* Two zones that begin in the same nanosecond cannot be told apart by time:
     * viewers would guess which is inside. The inner one begins a nanosecond later. */
    if (w->depth > 0 && w->now_ns <= w->stack[w->depth - 1].begin_ns)
        w->now_ns = w->stack[w->depth - 1].begin_ns + 1;
    w->stack[w->depth] = (struct timeline_zone){
        .lane = w->lane,
        .site = e->site,
        .depth = w->depth,
        .tid = w->tid,
        .begin_ns = w->now_ns,
    };
    w->depth++;
}

/* An end whose begin was recycled encloses everything seen of the lane so far. */
static int on_orphan_end(struct walk *w, const struct trace_event *e)
{
    if (w->depth > 0 || trace_info(w->trace)->timeline_complete) {
        w->totals.orphan_ends++;
        return 0;
    }
    struct timeline_zone zone = {
        .lane = w->lane,
        .site = e->site,
        .tid = w->tid,
        .begin_ns = w->first_ns,
        .begin_lost = true,
    };
    return emit(w, &zone, w->now_ns);
}

static int on_end(struct walk *w, const struct trace_event *e)
{
    if (w->too_deep > 0) {
        w->too_deep--;
        return 0;
    }
    unsigned at = w->depth;
    while (at > 0 && w->stack[at - 1].site != e->site)
        at--;
    if (at == 0)
        return on_orphan_end(w, e);
    int rc = 0;
    while (rc == 0 && w->depth > at) {
        w->stack[w->depth - 1].unbalanced = true;
        rc = pop(w, w->now_ns);
    }
    return rc ? rc : pop(w, w->now_ns);
}

static void on_operation(struct walk *w, const struct trace_event *e)
{
    if (w->depth == 0)
        return;
    struct timeline_zone *zone = &w->stack[w->depth - 1];
    zone->has_op = true;
    zone->cpu_ns = e->cpu_ns;
    zone->mem_before_mb = e->mem_before_mb;
    zone->mem_after_mb = e->mem_after_mb;
    zone->mem_peak_mb = e->mem_peak_mb;
}

static void on_zone_value(struct walk *w, const struct trace_event *e)
{
    if (w->depth == 0)
        return;
    struct timeline_zone *zone = &w->stack[w->depth - 1];
    if (zone->value_count == TIMELINE_VALUES)
        return;
    zone->values[zone->value_count].name = e->site;
    zone->values[zone->value_count].value = e->value;
    zone->value_count++;
}

static int on_thread(struct walk *w, const struct trace_event *e)
{
    const int rc = close_all(w, false);
    w->tid = (uint32_t)e->number;
    return rc;
}

static int pass_on(struct walk *w, const struct trace_event *e)
{
    if (!w->visitor->event)
        return 0;
    struct trace_event copy = *e;
    copy.time_ns = w->now_ns;
    return w->visitor->event(w->visitor->arg, w->tid, &copy);
}

static int on_event(void *arg, const struct trace_event *e)
{
    struct walk *w = arg;
    int rc = 0;
    if (w->started && e->lane != w->lane)
        rc = finish_lane(w);
    if (rc)
        return rc;
    if (!w->started)
        start_lane(w, e);
    if (e->time_ns > w->now_ns)
        w->now_ns = e->time_ns;

    switch (e->kind) {
    case TRACE_BEGIN:
        on_begin(w, e);
        return 0;
    case TRACE_END:
        return on_end(w, e);
    case TRACE_THREAD:
        return on_thread(w, e);
    case TRACE_OP:
        on_operation(w, e);
        return 0;
    case TRACE_VALUE:
        if (e->sub != VALUE_ZONE)
            return pass_on(w, e);
        on_zone_value(w, e);
        return 0;
    default:
        return pass_on(w, e);
    }
}

int timeline_walk(const struct trace *trace, const struct timeline_visitor *visitor,
                  struct timeline_totals *ret_totals)
{
    struct walk w = { .trace = trace, .visitor = visitor };
    w.stack = calloc(MAX_DEPTH, sizeof(*w.stack));
    if (!w.stack)
        return -ENOMEM;
    int rc = trace_events(trace, on_event, &w);
    if (rc == 0)
        rc = finish_lane(&w);
    free(w.stack);
    if (rc == 0)
        *ret_totals = w.totals;
    return rc;
}
