/* steps.c: how long training iterations took, and how that went over the run. */
#include "analyse/steps.h"

#include <math.h>

/* About a second of reading; only the picture of the steps depends on it. */
enum { EVENTS_MAX = 64000000 };

static void count_calls(const struct trace *trace, struct step_stats *s)
{
    for (unsigned i = 0; i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        if (!lane)
            continue;
        s->calls += lane->steps;
        s->samples += lane->samples;
    }
}

int step_stats_read(const struct trace *trace, struct step_stats *ret_stats)
{
    struct step_stats s = { 0 };
    count_calls(trace, &s);
    const struct trace_node *node = NODE_STEP < trace_node_count(trace)
                                        ? trace_node(trace, NODE_STEP)
                                        : NULL;
    if (node && node->count > 0) {
        const int rc = distribution_add_node(&s.durations, trace, NODE_STEP);
        if (rc < 0) {
            step_stats_release(&s);
            return rc;
        }
        s.total_ns = node->total_ns;
        s.first_ns = node->first_ns;
        s.last_ns = node->last_ns;
    }
    *ret_stats = s;
    return 0;
}

void step_stats_release(struct step_stats *stats)
{
    distribution_release(&stats->durations);
}

double step_rate_per_s(const struct step_stats *stats)
{
    if (stats->durations.count == 0 || !(stats->total_ns > 0))
        return NAN;
    return (double)stats->durations.count / stats->total_ns * 1e9;
}

/* The last step has begun but not ended: samples per call times calls per second. */
double step_samples_per_s(const struct step_stats *stats)
{
    if (stats->samples == 0 || stats->calls == 0)
        return NAN;
    return (double)stats->samples / (double)stats->calls * step_rate_per_s(stats);
}

/* ---- The series ----------------------------------------------------------------- */

struct series_walk {
    struct step_series *series;
    uint64_t events;
    bool found; /* a step on this lane */
    unsigned lane;
    int64_t last_ns;
};

/* Two points become one. */
static void halve(struct step_series *s)
{
    for (size_t i = 0; i < s->count / 2; i++) {
        s->points[i].time_ns = s->points[2 * i].time_ns;
        s->points[i].mean_ns = (s->points[2 * i].mean_ns +
                                s->points[2 * i + 1].mean_ns) /
                               2;
    }
    s->count /= 2;
    s->per_point *= 2;
}

static void add_step(struct step_series *s, int64_t time_ns, double duration_ns)
{
    const uint64_t place = s->steps % s->per_point;
    if (place == 0 && s->count == STEP_POINTS) {
        halve(s); /* STEP_POINTS is even: the next point starts here */
        add_step(s, time_ns, duration_ns);
        return;
    }
    if (place == 0) {
        s->points[s->count].time_ns = time_ns;
        s->points[s->count].mean_ns = duration_ns;
        s->count++;
    } else {
        double *mean = &s->points[s->count - 1].mean_ns;
        *mean += (duration_ns - *mean) / (double)(place + 1);
    }
    s->steps++;
}

/* Only the first lane that has steps: they come from one thread, nearly always. */
static int take_event(void *arg, const struct trace_event *e)
{
    struct series_walk *w = arg;
    if (++w->events > EVENTS_MAX || (w->found && e->lane != w->lane))
        return 1;
    if (e->kind == TRACE_THREAD)
        w->last_ns = 0;
    if (e->kind != TRACE_STEP)
        return 0;
    if (e->sub == STEP_SAMPLES)
        return 0;
    const int64_t end_ns = e->time_ns - (e->sub == STEP_END ? (int64_t)e->wall_ns : 0);
    if (w->found && w->last_ns && end_ns >= w->last_ns && e->sub != STEP_CANCEL)
        add_step(w->series, end_ns, (double)(end_ns - w->last_ns));
    w->found = true;
    w->lane = e->lane;
    w->last_ns = e->sub == STEP_NEXT ? e->time_ns : 0;
    return 0;
}

int step_series_read(const struct trace *trace, struct step_series *ret_series)
{
    struct step_series series = { .per_point = 1 };
    struct series_walk walk = { .series = &series };
    const int rc = trace_events(trace, take_event, &walk);
    if (rc < 0)
        return rc;
    series.partial = !trace_info(trace)->timeline_complete || walk.events > EVENTS_MAX;
    *ret_series = series;
    return 0;
}
