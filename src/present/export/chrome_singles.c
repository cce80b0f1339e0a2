/* chrome_singles.c: single allocations and I/O calls. See chrome.c. */
#include "present/export/chrome_parts.h"

#include <math.h>

#include "analyse/events.h"

struct singles {
    struct chrome *c;
    uint32_t pid; /* whose live bytes these are */
    int64_t live;
    uint64_t count;
};

static void begin_single(struct chrome *c, const char *name, const char *cat,
                         const char *phase, const struct event_common *at)
{
    c->pid = at->pid;
    chrome_begin(c, name, cat, phase, at->time_ns ? at->time_ns : c->origin_ns,
                 at->tid ? at->tid : at->pid);
}

/* How much more there is than at the first event kept: what was live before is not
 * known. One in 64 is enough for a curve. */
static int put_live_bytes(struct singles *s, const struct alloc_event *e)
{
    struct chrome *c = s->c;
    if (s->pid != e->at.pid) {
        s->pid = e->at.pid;
        s->live = 0;
        s->count = 0;
    }
    s->live += e->is_free ? -(int64_t)e->bytes : (int64_t)e->bytes;
    if (s->count++ % 64)
        return 0;
    begin_single(c, "traced allocations", "allocation", "C", &e->at);
    chrome_args(c);
    chrome_number(c, "bytes", (double)s->live);
    json_object_end(&c->w);
    return chrome_end(c);
}

static int put_allocation(void *arg, const struct alloc_event *e)
{
    struct singles *s = arg;
    struct chrome *c = s->c;
    char address[24];
    (void)snprintf(address, sizeof(address), "0x%llx", (unsigned long long)e->address);
    begin_single(c, e->is_free ? "free" : "malloc", "allocation", "i", &e->at);
    chrome_text(&c->w, "s", "t");
    chrome_args(c);
    json_key(&c->w, "bytes");
    json_put_uint(&c->w, e->bytes);
    chrome_text(&c->w, "address", address);
    if (e->at.zone[0])
        chrome_text(&c->w, "zone", e->at.zone);
    if (e->place.function[0])
        chrome_text(&c->w, "function", e->place.function);
    json_object_end(&c->w);
    const int rc = chrome_end(c);
    return rc < 0 ? rc : put_live_bytes(s, e);
}

static int put_call(void *arg, const struct io_event *e)
{
    struct singles *s = arg;
    struct chrome *c = s->c;
    const bool took = isfinite(e->latency_s) && e->latency_s > 0;
    begin_single(c, e->operation, "io", took ? "X" : "i", &e->at);
    if (took)
        chrome_us(c, "dur", llround(e->latency_s * 1e9));
    else
        chrome_text(&c->w, "s", "t");
    chrome_args(c);
    chrome_text(&c->w, "path", e->path);
    json_key(&c->w, "bytes");
    json_put_int(&c->w, e->bytes);
    if (e->error) {
        json_key(&c->w, "errno");
        json_put_int(&c->w, e->error);
    }
    if (e->at.zone[0])
        chrome_text(&c->w, "zone", e->at.zone);
    json_object_end(&c->w);
    return chrome_end(c);
}

int chrome_singles(struct chrome *c, const struct run *run)
{
    struct singles s = { .c = c };
    const struct event_visitor visitor = { put_allocation, put_call, &s };
    struct event_totals totals = { 0 };
    const int rc = events_walk(run, &visitor, &totals);
    c->totals.lost += totals.lost;
    return rc;
}
