/* small_trace.h: a small process file with something of everything, and a walk through
 * all that the reader offers. For tests and fuzz targets that damage it.
 */
#ifndef SONDE_TESTS_SMALL_TRACE_H
#define SONDE_TESTS_SMALL_TRACE_H

#include <math.h>

#include "handmade.h"
#include "trace/folder.h"
#include "trace/reader.h"

/* ---- Making ----------------------------------------------------------------------- */

static inline void small_words(struct words *w, uint64_t *now, const unsigned *sites,
                               unsigned rounds)
{
    words_thread(w, 1000, *now += 10);
    for (unsigned i = 0; i < rounds; i++) {
        words_step(w, 32, *now += 100);
        words_begin(w, sites[0], *now += 50);
        words_zone(w, sites[1], *now + 10, *now + (40ULL << 2 * i));
        words_value(w, sites[2], VALUE_ZONE, 1.5 * i, *now += 1000000);
        words_op(w, 12345, 1024, 4096, i % 2 ? 8192 : UINT32_MAX, *now += 10);
        words_end(w, sites[0], *now += 20);
    }
    words_value(w, sites[3], VALUE_METRIC, 0.25, *now += 10);
    words_span(w, sites[1], SPAN_BEGIN, 7, 0, 0, *now += 10);
    words_span(w, sites[1], SPAN_SUSPEND, 7, 10, 0, *now += 10);
    words_span(w, sites[1], SPAN_END, 7, 10, 30, *now += 10);
    words_record(w, TAG_MARK, *now += 10, (const uint64_t[]){ sites[3] }, 1);
    words_record(w, TAG_LOST, *now += 10, (const uint64_t[]){ 5 }, 1);
    words_record(w, TAG_FILTERED, *now += 10, (const uint64_t[]){ 6 }, 1);
}

/* Three lanes; one block counted and one sealed on the first, an open one with open
 * zones on the second, on the third orphans and lost ends. */
static inline void small_trace(struct handmade *t)
{
    uint64_t now = 1ULL << 40;
    struct words w = { 0 };
    struct folder folder;
    handmade_init(t, 40);
    const unsigned sites[4] = { handmade_site(t, "forward"), handmade_site(t, "layer"),
                                handmade_site(t, "batch"), handmade_site(t, "loss") };
    small_words(&w, &now, sites, 6);
    (void)handmade_block(t, 0, STATE_SEALED, &w, 1ULL << 40);
    folder_init(&folder, &t->file);
    assert_int_equal(folder_pass(&folder, true, 10), 1);
    folder_release(&folder);
    for (unsigned lane = 0; lane < 3; lane++) {
        const uint64_t base = now;
        w.count = 0;
        small_words(&w, &now, sites, 2);
        if (lane == 1) {
            words_begin(&w, sites[0], now += 10);
            words_begin(&w, sites[1], now += 10);
        } else if (lane == 2) {
            words_end(&w, sites[3], now += 10);
            words_begin(&w, sites[0], now += 10);
            words_begin(&w, sites[1], now += 10);
            words_end(&w, sites[0], now += 10);
        }
        (void)handmade_block(t, lane, lane == 1 ? STATE_OPEN : STATE_SEALED, &w, base);
        struct lane_cell *cell = tracefile_lane(&t->file, lane);
        cell->tid = 1000 + lane;
        memcpy(cell->name, "worker", 7);
    }
    words_release(&w);
}

/* ---- Walking through -------------------------------------------------------------- */

struct small_walk {
    uint64_t buckets, events;
    double sum;
};

static inline void small_bucket(void *arg, double middle, uint64_t count)
{
    struct small_walk *walk = arg;
    walk->buckets++;
    walk->sum += middle + (double)count;
}

static inline int small_event(void *arg, const struct trace_event *e)
{
    struct small_walk *walk = arg;
    walk->sum += (double)e->time_ns + e->value + e->active_ns + e->cpu_ns;
    return ++walk->events > 1000000; /* no small file holds as many */
}

static inline size_t small_site(const struct trace_site *s)
{
    return strlen(s->name) + strlen(s->file) + strlen(s->component) +
           strlen(s->category) + strlen(s->tags);
}

/* Asks for everything, numbers out of range included. Answers may be nonsense when the
 * file is; they must be there. Returns something that depends on all of them. */
static inline double small_use(const struct trace *trace)
{
    struct small_walk walk = { 0 };
    const struct trace_info *info = trace_info(trace);
    walk.sum += (double)(strlen(trace_damage(trace)) + strlen(info->exe) +
                         strlen(info->role) + strlen(info->file));
    if (trace_node_count(trace) > MAX_NODES)
        abort();
    for (unsigned i = 0; i < MAX_NODES + 2; i++) {
        const struct trace_node *n = trace_node(trace, i);
        trace_node_histogram(trace, i, small_bucket, &walk);
        if (n || i % 64 == 36) /* some that are not there, too */
            walk.sum += isnan(trace_node_quantile(trace, i, 0.95));
        if (!n)
            continue;
        if (n->parent != TRACE_NO_NODE &&
            (n->parent >= i || !trace_node(trace, n->parent)))
            abort(); /* callers walk up without looking */
        walk.sum += n->total_ns + n->self_ns + n->std_ns + (double)n->depth;
        walk.sum += (double)small_site(trace_site(trace, n->site));
    }
    for (size_t i = 0; i < trace_site_count(trace) + 2; i++)
        walk.sum += (double)small_site(trace_site(trace, (unsigned)i));
    for (unsigned i = 0; i < trace_lane_count(trace); i++) {
        const struct trace_lane *l = trace_lane(trace, i);
        walk.sum += (double)strnlen(l->name, sizeof l->name) + (double)l->events;
        for (unsigned k = 0; k < l->open_count; k++) {
            if (!trace_node(trace, l->open[k].node))
                abort();
            walk.sum += (double)small_site(trace_site(trace, l->open[k].site));
        }
    }
    for (unsigned i = 0; i < trace_value_count(trace); i++) {
        const struct trace_value *v = trace_value(trace, i);
        walk.sum += (double)strlen(v->name) + v->sum;
    }
    if (trace_lane(trace, (unsigned)trace_lane_count(trace)) ||
        trace_value(trace, (unsigned)trace_value_count(trace)))
        abort();
    (void)trace_events(trace, small_event, &walk);
    return walk.sum + (double)walk.buckets;
}

#endif
