/* chrome_spans.c: spans as pairs of asynchronous events. See chrome.c.
 *
 * A span's begin is written together with its end, which knows how long it took: so
 * the pair is complete although its events may come from different threads, and no
 * memory is needed. Spans that never ended are found by a second look at the ids.
 */
#include "present/export/chrome_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Ids of spans kept to tell which never ended; more are counted as left out. */
enum { MAX_SPANS = 1 << 20 };

static void put_id(struct chrome *c, uint64_t id)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)id);
    json_key(&c->w, "id2");
    json_object_begin(&c->w);
    chrome_text(&c->w, "local", text);
    json_object_end(&c->w);
}

static int put_span_mark(struct chrome *c, const char *phase, const struct span_mark *m,
                         const char *note)
{
    const struct trace_site *site = trace_site(c->trace, m->site);
    chrome_begin(c, site->name, "span", phase, m->time_ns, m->tid);
    put_id(c, m->id);
    if (note) {
        chrome_args(c);
        json_key(&c->w, note);
        json_put_bool(&c->w, true);
        json_object_end(&c->w);
    }
    return chrome_end(c);
}

static int put_span_end(struct chrome *c, uint32_t tid, const struct trace_event *e)
{
    const int64_t wall = isfinite(e->wall_ns) && e->wall_ns > 0 ? llround(e->wall_ns)
                                                                : 0;
    const struct span_mark begin = { e->number, e->time_ns - wall, tid, e->site,
                                     false };
    const int rc = put_span_mark(c, "b", &begin, NULL);
    if (rc < 0)
        return rc;
    chrome_begin(c, trace_site(c->trace, e->site)->name, "span", "e", e->time_ns, tid);
    put_id(c, e->number);
    chrome_args(c);
    chrome_number(c, "active_ms", e->active_ns / 1e6);
    chrome_number(c, "suspended_ms", fmax(e->wall_ns - e->active_ns, 0) / 1e6);
    json_object_end(&c->w);
    return chrome_end(c);
}

static int remember_span(struct chrome *c, uint32_t tid, const struct trace_event *e)
{
    if (c->span_count == MAX_SPANS) {
        c->totals.left_out++;
        return 0;
    }
    if (c->span_count == c->span_cap) {
        const size_t cap = c->span_cap ? c->span_cap * 2 : 256;
        struct span_mark *more = realloc(c->spans, cap * sizeof(*more));
        if (!more)
            return -ENOMEM;
        c->spans = more;
        c->span_cap = cap;
    }
    c->spans[c->span_count++] = (struct span_mark){ e->number, e->time_ns, tid, e->site,
                                                    e->sub == SPAN_END };
    return 0;
}

int chrome_span(struct chrome *c, uint32_t tid, const struct trace_event *e)
{
    const struct span_mark here = { e->number, e->time_ns, tid, e->site, false };
    int rc = 0;
    switch (e->sub) {
    case SPAN_BEGIN:
        return remember_span(c, tid, e);
    case SPAN_SUSPEND:
        return put_span_mark(c, "n", &here, "suspended");
    case SPAN_RESUME:
        return put_span_mark(c, "n", &here, "resumed");
    case SPAN_END:
        rc = remember_span(c, tid, e);
        return rc < 0 ? rc : put_span_end(c, tid, e);
    default:
        return 0;
    }
}

static int by_id_and_time(const void *a, const void *b)
{
    const struct span_mark *x = a;
    const struct span_mark *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->end - y->end;
}

static int put_unended_span(struct chrome *c, struct span_mark *m)
{
    const int rc = put_span_mark(c, "b", m, c->alive ? "open" : "truncated");
    if (c->last_ns > m->time_ns)
        m->time_ns = c->last_ns;
    return rc < 0 ? rc : put_span_mark(c, "e", m, NULL);
}

/* Ids are used again after a while: a span is open when a begin is the last its id
 * was heard of. */
int chrome_unended_spans(struct chrome *c)
{
    int rc = 0;
    if (c->span_count)
        qsort(c->spans, c->span_count, sizeof(*c->spans), by_id_and_time);
    for (size_t i = 0; rc == 0 && i < c->span_count; i++) {
        const bool last = i + 1 == c->span_count ||
                          c->spans[i + 1].id != c->spans[i].id;
        if (last && !c->spans[i].end)
            rc = put_unended_span(c, &c->spans[i]);
    }
    c->span_count = 0;
    return rc;
}
