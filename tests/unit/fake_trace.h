/* fake_trace.h: a stand-in for the trace reader, filled from tables.
 *
 * A test includes this once and gets the functions of trace/reader.h. A trace is a
 * real (empty) file in a run directory plus a `struct trace` registered under its
 * name; trace_open() finds it by the last part of the path, so store and analyse run
 * as they would, on data the test knows exactly.
 *
 *     struct trace *t = fake_trace("0001-100-a.sonde", 100);
 *     unsigned train = fake_node(t, 0, fake_site(t, "train", 0, "a.c", 7));
 *     fake_durations(t, train, (double[]){ 5e6, 6e6 }, 2);
 */
#ifndef SONDE_TESTS_FAKE_TRACE_H
#define SONDE_TESTS_FAKE_TRACE_H

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/files.h"
#include "num/loghist.h"
#include "trace/reader.h"

enum {
    FAKE_NODES = 512,
    FAKE_SITES = 512,
    FAKE_VALUES = 64,
    FAKE_LANES = 40,
    FAKE_EVENTS = 4096,
    FAKE_TRACES = 64,
    FAKE_OPEN = 16,
};

struct fake_histogram {
    uint64_t counts[LOGHIST_CHUNKS][LOGHIST_SUBS];
};

struct trace {
    struct trace_info info;
    const char *damage;
    int open_error; /* what trace_open() answers, 0: the trace */
    struct trace_node nodes[FAKE_NODES];
    bool used[FAKE_NODES];
    struct fake_histogram *histograms[FAKE_NODES];
    unsigned node_count;
    struct trace_site sites[FAKE_SITES];
    unsigned site_count;
    struct trace_lane lanes[FAKE_LANES];
    struct trace_frame frames[FAKE_LANES][FAKE_OPEN];
    unsigned lane_count;
    struct trace_value values[FAKE_VALUES];
    unsigned value_count;
    struct trace_event events[FAKE_EVENTS];
    unsigned event_count;
};

static struct trace *fake_traces[FAKE_TRACES];
static unsigned fake_count;
static int fake_opened, fake_freed; /* a test may check that they balance */

/* ---- Filling ------------------------------------------------------------------------ */

static inline struct trace *fake_trace(const char *file, uint32_t pid)
{
    struct trace *t = calloc(1, sizeof(*t));
    if (!t || fake_count == FAKE_TRACES)
        abort();
    (void)snprintf(t->info.file, sizeof(t->info.file), "%s", file);
    (void)snprintf(t->info.exe, sizeof(t->info.exe), "train");
    t->info.pid = pid;
    t->info.ppid = 1;
    t->info.ns_per_tick = 0.4;
    t->info.clock_error_ns = 55;
    t->info.event_cost_ns = NAN;
    t->info.timeline_complete = true;
    t->damage = "";
    t->site_count = FIRST_SITE;
    t->node_count = FIRST_NODE;
    for (unsigned i = 0; i < FIRST_NODE; i++) {
        t->used[i] = i < ROOT_NODES || i == NODE_STEP || i == NODE_OTHER ||
                     i == NODE_SPANS;
        t->nodes[i].parent = TRACE_NO_NODE;
        t->nodes[i].min_ns = NAN;
    }
    fake_traces[fake_count++] = t;
    return t;
}

static inline void fake_forget(void)
{
    for (unsigned i = 0; i < fake_count; i++) {
        for (unsigned k = 0; k < FAKE_NODES; k++)
            free(fake_traces[i]->histograms[k]);
        free(fake_traces[i]);
    }
    fake_count = 0;
    fake_opened = fake_freed = 0;
}

static inline unsigned fake_site_full(struct trace *t, struct trace_site site)
{
    const char **texts[] = { &site.name, &site.file, &site.component, &site.category,
                             &site.tags };
    for (size_t i = 0; i < 5; i++)
        if (!*texts[i])
            *texts[i] = "";
    if (t->site_count == FAKE_SITES)
        abort();
    t->sites[t->site_count] = site;
    return t->site_count++;
}

static inline unsigned fake_site(struct trace *t, const char *name, int phase,
                                 const char *file, int line)
{
    return fake_site_full(
        t, (struct trace_site){
               .name = name, .phase = phase, .file = file, .line = line });
}

static inline unsigned fake_node(struct trace *t, unsigned parent, unsigned site)
{
    if (t->node_count == FAKE_NODES)
        abort();
    const unsigned n = t->node_count++;
    t->used[n] = true;
    t->nodes[n] = (struct trace_node){
        .parent = parent,
        .site = site,
        .depth = t->nodes[parent].depth + 1,
        .mem_before_mb = NAN,
        .mem_after_mb = NAN,
        .mem_peak_mb = NAN,
    };
    return n;
}

/* Moments as the reader computes them, histogram with the reader's buckets. */
static inline void fake_durations(struct trace *t, unsigned node, const double *ns,
                                  size_t n)
{
    struct trace_node *d = &t->nodes[node];
    double squares = 0;
    if (!t->histograms[node])
        t->histograms[node] = calloc(1, sizeof(struct fake_histogram));
    d->count = n;
    d->total_ns = 0;
    d->min_ns = INFINITY;
    d->max_ns = 0;
    for (size_t i = 0; i < n; i++) {
        d->total_ns += ns[i];
        d->min_ns = fmin(d->min_ns, ns[i]);
        d->max_ns = fmax(d->max_ns, ns[i]);
        const uint64_t ticks = (uint64_t)llround(ns[i] / t->info.ns_per_tick);
        const struct loghist_slot slot = loghist_slot(ticks);
        t->histograms[node]->counts[slot.chunk][slot.sub]++;
    }
    d->mean_ns = n ? d->total_ns / (double)n : NAN;
    for (size_t i = 0; i < n; i++)
        squares += (ns[i] - d->mean_ns) * (ns[i] - d->mean_ns);
    d->std_ns = n > 1 ? sqrt(squares / (double)(n - 1)) : n ? 0 : NAN;
}

/* `count` calls of the same length. */
static inline void fake_calls(struct trace *t, unsigned node, uint64_t count, double ns)
{
    double *all = malloc((count + 1) * sizeof(*all));
    for (uint64_t i = 0; i < count; i++)
        all[i] = ns;
    fake_durations(t, node, all, count);
    free(all);
}

static inline struct trace_lane *fake_lane(struct trace *t, unsigned number,
                                           uint32_t tid, const char *name)
{
    struct trace_lane *lane = &t->lanes[t->lane_count++];
    *lane = (struct trace_lane){ .number = number, .tid = tid };
    lane->is_main = tid == t->info.pid;
    lane->open = t->frames[lane - t->lanes];
    (void)snprintf(lane->name, sizeof(lane->name), "%s", name);
    return lane;
}

static inline void fake_open(struct trace *t, struct trace_lane *lane, unsigned node,
                             int64_t begin_ns)
{
    t->frames[lane - t->lanes][lane->open_count++] = (struct trace_frame){
        node, t->nodes[node].site, begin_ns
    };
}

static inline void fake_value(struct trace *t, enum value_kind kind, unsigned node,
                              const char *name, const double *x, size_t n,
                              int64_t last_ns)
{
    struct trace_value v = { .node = node,
                             .name = name,
                             .kind = kind,
                             .count = n,
                             .min = INFINITY,
                             .max = -INFINITY,
                             .last_time_ns = last_ns };
    for (size_t i = 0; i < n; i++) {
        v.sum += x[i];
        v.min = fmin(v.min, x[i]);
        v.max = fmax(v.max, x[i]);
        v.last = x[i];
    }
    t->values[t->value_count++] = v;
}

static inline void fake_event(struct trace *t, struct trace_event event)
{
    if (t->event_count == FAKE_EVENTS)
        abort();
    t->events[t->event_count++] = event;
}

/* ---- trace/reader.h ----------------------------------------------------------------- */

int trace_open(const char *path, const struct clock_table *clock,
               struct trace **ret_trace)
{
    (void)clock;
    for (unsigned i = 0; i < fake_count; i++)
        if (strcmp(fake_traces[i]->info.file, path_base(path)) == 0) {
            if (fake_traces[i]->open_error)
                return fake_traces[i]->open_error;
            *ret_trace = fake_traces[i];
            fake_opened++;
            return 0;
        }
    return SONDE_E_FORMAT;
}

int trace_open_bytes(const void *bytes, size_t len, const struct clock_table *clock,
                     struct trace **ret_trace)
{
    (void)bytes, (void)len, (void)clock, (void)ret_trace;
    return -ENOSYS;
}

void trace_free(struct trace *trace)
{
    fake_freed += trace != NULL;
}

const struct trace_info *trace_info(const struct trace *t)
{
    return &t->info;
}

const char *trace_damage(const struct trace *t)
{
    return t->damage;
}

size_t trace_node_count(const struct trace *t)
{
    return t->node_count;
}

const struct trace_node *trace_node(const struct trace *t, unsigned node)
{
    return node < t->node_count && t->used[node] ? &t->nodes[node] : NULL;
}

const struct trace_site *trace_site(const struct trace *t, unsigned site)
{
    static const struct trace_site unknown = {
        .name = "?", .file = "", .component = "", .category = "", .tags = ""
    };
    return site >= FIRST_SITE && site < t->site_count ? &t->sites[site] : &unknown;
}

size_t trace_site_count(const struct trace *t)
{
    return t->site_count;
}

size_t trace_lane_count(const struct trace *t)
{
    return t->lane_count;
}

const struct trace_lane *trace_lane(const struct trace *t, unsigned index)
{
    return index < t->lane_count ? &t->lanes[index] : NULL;
}

size_t trace_value_count(const struct trace *t)
{
    return t->value_count;
}

const struct trace_value *trace_value(const struct trace *t, unsigned index)
{
    return index < t->value_count ? &t->values[index] : NULL;
}

double trace_node_quantile(const struct trace *t, unsigned node, double q)
{
    (void)t, (void)node, (void)q;
    return NAN;
}

void trace_node_histogram(const struct trace *t, unsigned node, trace_bucket_fn *visit,
                          void *arg)
{
    const struct fake_histogram *h = t->histograms[node];
    for (unsigned c = 0; h && c < LOGHIST_CHUNKS; c++)
        for (unsigned s = 0; s < LOGHIST_SUBS; s++)
            if (h->counts[c][s])
                visit(arg, loghist_middle(c, s) * t->info.ns_per_tick, h->counts[c][s]);
}

int trace_events(const struct trace *t, trace_event_fn *visit, void *arg)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < t->event_count; i++)
        rc = visit(arg, &t->events[i]);
    return rc;
}

#endif
