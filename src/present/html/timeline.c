/* timeline.c: the run over time, in as much detail as a page can hold.
 *
 * Two passes over the traces: the first finds phases by bucket and the steps, the
 * second collects zones for the windows the first has chosen. A short run is one
 * window; a long one has its longest zones, its slowest steps and some typical ones.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyse/timeline.h"
#include "present/html/lanes.h"
#include "present/html/parts.h"
#include "present/html/stepwalk.h"
#include "present/html/windows.h"
#include "store/run.h"

enum {
    WHOLE_ZONES = 16000, /* a run of so many is shown as it is */
    LONG_ZONES = 5000,
    STEP_ZONES = 1600, /* around each step */
    WINDOWS_MOST = 1 + SLOW_STEPS + TYPICAL_STEPS,
};

struct pass {
    const struct report *report;
    struct site_names *sites;
    struct lanes lanes;
    struct stepwalk *steps;
    struct window windows[WINDOWS_MOST];
    size_t window_count;
    /* Of the trace that is being read: */
    const struct trace *trace;
    size_t file;
    uint32_t *site_of; /* our number + 1 by the trace's */
    struct lane *lane; /* of the zone before: mostly the same */
    unsigned lane_number;
    bool lane_known;
    int64_t last_step_ns;
};

static struct lane *lane_of(struct pass *p, unsigned number)
{
    if (!p->lane_known || p->lane_number != number) {
        p->lane = lanes_find(&p->lanes, p->file, number);
        p->lane_number = number;
        p->lane_known = true;
        lanes_begin(&p->lanes);
    }
    return p->lane;
}

/* ---- First pass ---------------------------------------------------------------------- */

static int look_at_zone(void *arg, const struct timeline_zone *zone)
{
    struct pass *p = arg;
    struct lane *lane = lane_of(p, zone->lane);
    if (!lane)
        return 0;
    return lanes_add_zone(&p->lanes, lane, zone->depth,
                          trace_site(p->trace, zone->site)->phase, zone->begin_ns,
                          zone->end_ns);
}

static int look_at_event(void *arg, uint32_t tid, const struct trace_event *e)
{
    struct pass *p = arg;
    (void)tid;
    if (e->kind != TRACE_STEP || e->sub == STEP_SAMPLES)
        return 0;
    const struct lane *lane = lane_of(p, e->lane);
    if (!lane || !lane->trains)
        return 0;
    /* As analyse/steps.c counts them. */
    const int64_t end_ns = e->time_ns - (e->sub == STEP_END ? (int64_t)e->wall_ns : 0);
    if (p->last_step_ns && end_ns >= p->last_step_ns && e->sub != STEP_CANCEL)
        stepwalk_add(p->steps, p->last_step_ns, end_ns);
    p->last_step_ns = e->sub == STEP_NEXT ? e->time_ns : 0;
    return 0;
}

/* ---- Second pass --------------------------------------------------------------------- */

static uint32_t our_site(struct pass *p, unsigned number)
{
    const struct trace_site *s = trace_site(p->trace, number);
    const struct site_name site = { s->name, s->file,
                                    s->line > 0 ? (uint32_t)s->line : 0, s->phase };
    if (number >= trace_site_count(p->trace))
        return site_number(p->sites, &site);
    if (!p->site_of[number])
        p->site_of[number] = site_number(p->sites, &site) + 1;
    return p->site_of[number] - 1;
}

static int collect_zone(void *arg, const struct timeline_zone *zone)
{
    struct pass *p = arg;
    const struct lane *lane = lane_of(p, zone->lane);
    if (!lane)
        return 0;
    struct window_zone z = { .begin_ns = zone->begin_ns,
                             .end_ns = zone->end_ns,
                             .lane = (uint16_t)(lane - p->lanes.lanes),
                             .depth = (uint8_t)zone->depth };
    for (size_t i = 0; i < p->window_count; i++) {
        struct window *w = &p->windows[i];
        if (z.end_ns < w->start_ns || z.begin_ns > w->end_ns)
            continue;
        z.site = our_site(p, zone->site);
        window_add(w, &z);
    }
    return p->sites->error;
}

/* ---- Walking ------------------------------------------------------------------------- */

static int walk_trace(struct pass *p, const struct timeline_visitor *visitor)
{
    struct timeline_totals totals;
    p->site_of = calloc(trace_site_count(p->trace) + 1, sizeof(*p->site_of));
    if (!p->site_of)
        return -ENOMEM;
    p->lane_known = false;
    p->last_step_ns = 0;
    const int rc = timeline_walk(p->trace, visitor, &totals);
    free(p->site_of);
    p->site_of = NULL;
    return rc;
}

static int walk_all(struct pass *p, const struct timeline_visitor *visitor)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->report->run->file_count; i++) {
        struct trace *trace;
        if (run_trace_open(p->report->run, i, &trace) < 0)
            continue;
        p->trace = trace;
        p->file = i;
        rc = walk_trace(p, visitor);
        trace_free(trace);
    }
    return rc;
}

/* ---- Windows ------------------------------------------------------------------------- */

static int add_window(struct pass *p, const char *kind, int64_t start_ns,
                      int64_t end_ns, size_t most, uint64_t step)
{
    struct window *w = &p->windows[p->window_count];
    const int rc = window_init(w, kind, start_ns, end_ns, most);
    if (rc == 0) {
        w->step = step;
        p->window_count++;
    }
    return rc;
}

static int add_steps(struct pass *p, const char *kind, const struct step_seen *steps,
                     size_t count)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct step_seen *s = &steps[i];
        const int64_t margin = (s->end_ns - s->begin_ns) / 10;
        if (s->end_ns)
            rc = add_window(p, kind, s->begin_ns - margin, s->end_ns + margin,
                            STEP_ZONES, s->number);
    }
    return rc;
}

static int choose_windows(struct pass *p)
{
    const struct lanes *l = &p->lanes;
    if (l->zones == 0)
        return 0;
    if (l->zones <= WHOLE_ZONES)
        return add_window(p, "whole", l->start_ns, l->end_ns, WHOLE_ZONES, 0);
    int rc = add_window(p, "longest", l->start_ns, l->end_ns, LONG_ZONES, 0);
    if (rc == 0)
        rc = add_steps(p, "slowest", p->steps->slow, SLOW_STEPS);
    if (rc == 0)
        rc = add_steps(p, "typical", p->steps->typical, TYPICAL_STEPS);
    return rc;
}

static void put_windows(struct json_writer *w, struct pass *p)
{
    json_key(w, "windows");
    json_array_begin(w);
    for (size_t i = 0; i < p->window_count; i++)
        window_put(w, &p->windows[i], p->lanes.start_ns);
    json_array_end(w);
}

/* The slowest and the typical steps by name, for those who click on them. */
static void put_seen(struct json_writer *w, const char *key,
                     const struct step_seen *steps, size_t count, int64_t origin_ns)
{
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        if (!steps[i].end_ns)
            continue;
        json_array_begin(w);
        json_put_uint(w, steps[i].number);
        json_put_fixed(w, (double)(steps[i].begin_ns - origin_ns) / 1e9, 9);
        json_put_fixed(w, (double)(steps[i].end_ns - origin_ns) / 1e9, 9);
        json_array_end(w);
    }
    json_array_end(w);
}

static void put_all(struct json_writer *w, struct pass *p)
{
    json_key(w, "timeline");
    json_object_begin(w);
    json_key(w, "duration_s");
    json_put_fixed(w, (double)(p->lanes.end_ns - p->lanes.start_ns) / 1e9, 9);
    lanes_put(w, &p->lanes);
    stepwalk_put(w, p->steps);
    put_seen(w, "slowest", p->steps->slow, SLOW_STEPS, p->lanes.start_ns);
    put_seen(w, "typical", p->steps->typical, TYPICAL_STEPS, p->lanes.start_ns);
    put_windows(w, p);
    json_object_end(w);
}

int html_timeline(struct json_writer *w, const struct report *report,
                  struct site_names *sites)
{
    struct pass p = { .report = report, .sites = sites };
    const struct timeline_visitor first = { .zone = look_at_zone,
                                            .event = look_at_event,
                                            .arg = &p };
    const struct timeline_visitor second = { .zone = collect_zone, .arg = &p };
    int rc = lanes_init(&p.lanes, report);
    if (rc < 0)
        return rc;
    p.steps = malloc(sizeof(*p.steps));
    if (!p.steps) {
        rc = -ENOMEM;
        goto done;
    }
    stepwalk_init(p.steps, p.lanes.start_ns, p.lanes.end_ns,
                  distribution_quantile(&report->steps.durations, 0.5));
    rc = walk_all(&p, &first);
    if (rc == 0)
        rc = choose_windows(&p);
    if (rc == 0 && p.window_count)
        rc = walk_all(&p, &second);
    if (rc == 0)
        put_all(w, &p);
done:
    for (size_t i = 0; i < p.window_count; i++)
        window_release(&p.windows[i]);
    free(p.steps);
    lanes_release(&p.lanes);
    return rc;
}
