/* open.c: what each thread was in the middle of when the trace ends. */
#include "analyse/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More threads than anybody reads; the statistics still count their zones. */
enum { MAX_THREADS = 4096 };

static int copy_zones(struct arena *a, const struct trace *trace,
                      const struct trace_lane *lane, struct open_thread *ret_thread)
{
    struct open_zone *zones = arena_alloc_array(a, lane->open_count, sizeof(*zones));
    if (!zones)
        return -ENOMEM;
    for (unsigned i = 0; i < lane->open_count; i++) {
        const struct trace_site *site = trace_site(trace, lane->open[i].site);
        zones[i] = (struct open_zone){
            .name = arena_strdup(a, site->name),
            .file = arena_strdup(a, site->file),
            .line = site->line,
            .begin_ns = lane->open[i].begin_ns,
        };
        if (!zones[i].name || !zones[i].file)
            return -ENOMEM;
    }
    ret_thread->zones = zones;
    ret_thread->zone_count = lane->open_count;
    return 0;
}

static int append_thread(struct report *r, const struct open_thread *thread)
{
    if (r->thread_count == r->thread_cap) {
        const size_t cap = r->thread_cap ? r->thread_cap * 2 : 16;
        struct open_thread *more = realloc(r->threads, cap * sizeof(*more));
        if (!more)
            return -ENOMEM;
        r->threads = more;
        r->thread_cap = cap;
    }
    r->threads[r->thread_count++] = *thread;
    return 0;
}

static int read_lane(struct report *r, size_t process, const struct trace *trace,
                     const struct trace_lane *lane)
{
    struct open_thread thread = {
        .process = process,
        .tid = lane->tid,
        .is_main = lane->is_main,
        .last_ns = lane->last_time_ns,
        .steps = lane->steps,
        .name = arena_strndup(&r->arena, lane->name,
                              strnlen(lane->name, sizeof(lane->name))),
    };
    if (!thread.name)
        return -ENOMEM;
    const int rc = copy_zones(&r->arena, trace, lane, &thread);
    return rc < 0 ? rc : append_thread(r, &thread);
}

int open_threads_read(struct report *report, size_t process, const struct trace *trace)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        if (!lane || lane->open_count == 0 || report->thread_count == MAX_THREADS)
            continue;
        rc = read_lane(report, process, trace, lane);
    }
    return rc;
}
