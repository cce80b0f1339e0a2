/* chrome.c: the timeline as Chrome trace events, for ui.perfetto.dev and
 * chrome://tracing.
 *
 *     {"displayTimeUnit":"ns","otherData":{…},"traceEvents":[
 *     {"name":"forward","cat":"forward","ph":"X","ts":12.345,"dur":1.5,…},
 *     …
 *     ]}
 *
 * ts and dur are microseconds with three decimals, counted from the start of the
 * run, so that every nanosecond is exact. What becomes what:
 *
 *   zones             X   complete events; open ones end at their thread's last event
 *                         with args.truncated (or args.open while the process lives)
 *   counters, metrics C
 *   steps, marks      i   instants of the process, of the thread
 *   spans             b e with id2.local; suspends and resumes are n
 *   processes         M   process_name, thread_name, process_sort_index
 *   allocations       i   with bytes and address, and C, what they come to
 *   I/O calls         X   those that took time, else i
 *
 *   monitors          C   of the program
 *
 * The two before where every one was recorded (--trace=alloc,io).
 *
 * A span's begin is written together with its end, which knows how long it took: so
 * the pair is complete although its events may come from different threads, and no
 * memory is needed. Spans that never ended are found by a second look at the ids.
 */
#include "present/export/export.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "analyse/events.h"
#include "analyse/report.h"
#include "analyse/timeline.h"
#include "base/json.h"

/* Ids of spans kept to tell which never ended; more are counted as left out. */
enum { MAX_SPANS = 1 << 20 };

struct span_mark {
    uint64_t id;
    int64_t time_ns;
    uint32_t tid, site;
    bool end;
};

/* What every zone of a site has in common, as JSON: most zones are this and times. */
struct site_text {
    char *head; /* {"name":…,"cat":…,"ph":"X" */
    char *tail; /* "args":{…}} */
    size_t head_len, tail_len;
};

struct chrome {
    FILE *out;
    int64_t origin_ns;
    const struct trace *trace;
    uint32_t pid;
    bool alive;
    struct buf text; /* one event */
    struct json_writer w;
    bool any;
    int64_t last_ns;         /* of this trace */
    struct site_text *sites; /* by site, filled when first met */
    size_t site_count;
    struct span_mark *spans;
    size_t span_count, span_cap;
    struct export_totals totals;
};

/* ---- One event ------------------------------------------------------------------------ */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text);
}

static void put_us(struct chrome *c, const char *key, int64_t ns)
{
    json_key(&c->w, key);
    json_put_fixed(&c->w, (double)ns / 1000, 3);
}

/* Leaves the event's object open for more keys. */
static void begin_event(struct chrome *c, const char *name, const char *cat,
                        const char *phase, int64_t time_ns, uint32_t tid)
{
    buf_clear(&c->text);
    buf_puts(&c->text, c->any ? ",\n" : "\n");
    json_init_buf(&c->w, &c->text, JSON_STYLE_COMPACT);
    json_object_begin(&c->w);
    put_text(&c->w, "name", name);
    if (cat)
        put_text(&c->w, "cat", cat);
    put_text(&c->w, "ph", phase);
    put_us(c, "ts", time_ns - c->origin_ns);
    json_key(&c->w, "pid");
    json_put_uint(&c->w, c->pid);
    json_key(&c->w, "tid");
    json_put_uint(&c->w, tid);
    if (time_ns > c->last_ns)
        c->last_ns = time_ns;
}

/* Writes the event in c->text. */
static int write_event(struct chrome *c)
{
    if (c->text.error)
        return c->text.error;
    c->any = true;
    c->totals.events++;
    errno = 0;
    if (fwrite(c->text.data, 1, c->text.len, c->out) != c->text.len)
        return errno > 0 ? -errno : -EIO;
    return 0;
}

static int end_event(struct chrome *c)
{
    json_object_end(&c->w);
    const int rc = json_finish(&c->w);
    return rc < 0 ? rc : write_event(c);
}

static void begin_args(struct chrome *c)
{
    json_key(&c->w, "args");
    json_object_begin(&c->w);
}

static void put_flag(struct chrome *c, const char *key, bool set)
{
    if (!set)
        return;
    json_key(&c->w, key);
    json_put_bool(&c->w, true);
}

static void put_number(struct chrome *c, const char *key, double value)
{
    if (!isfinite(value))
        return;
    json_key(&c->w, key);
    json_put_double(&c->w, value);
}

/* The phase is the category viewers colour and filter by; a free one comes first. */
static const char *category_of(const struct trace_site *site)
{
    if (site->category[0])
        return site->category;
    const char *phase = site->phase ? sonde_phase_name(site->phase) : NULL;
    return phase ? phase : "zone";
}

/* ---- Zones ---------------------------------------------------------------------------- */

static void put_place(struct chrome *c, const struct trace_site *site)
{
    if (site->file[0]) {
        struct buf where = BUF_INIT;
        buf_printf(&where, "%s:%d", site->file, site->line);
        put_text(&c->w, "where", where.data);
        buf_release(&where);
    }
    if (site->component[0])
        put_text(&c->w, "component", site->component);
    if (site->tags[0])
        put_text(&c->w, "tags", site->tags);
}

/* A value's name is the program's: it must not replace an argument of ours. */
static void put_values(struct chrome *c, const struct timeline_zone *zone)
{
    if (zone->value_count == 0)
        return;
    json_key(&c->w, "values");
    json_array_begin(&c->w);
    for (unsigned i = 0; i < zone->value_count; i++) {
        json_object_begin(&c->w);
        json_key(&c->w, trace_site(c->trace, zone->values[i].name)->name);
        json_put_double(&c->w, zone->values[i].value);
        json_object_end(&c->w);
    }
    json_array_end(&c->w);
}

/* A zone about which there is more to say than its times. */
static int put_special_zone(struct chrome *c, const struct timeline_zone *zone)
{
    const struct trace_site *site = trace_site(c->trace, zone->site);
    begin_event(c, site->name, category_of(site), "X", zone->begin_ns, zone->tid);
    put_us(c, "dur", zone->end_ns - zone->begin_ns);
    begin_args(c);
    put_place(c, site);
    put_flag(c, "truncated", zone->truncated);
    put_flag(c, "open", zone->open);
    put_flag(c, "unbalanced", zone->unbalanced);
    put_flag(c, "begin_lost", zone->begin_lost);
    if (zone->has_op) {
        put_number(c, "cpu_ms", zone->cpu_ns / 1e6);
        put_number(c, "mem_before_mb", zone->mem_before_mb);
        put_number(c, "mem_after_mb", zone->mem_after_mb);
        put_number(c, "mem_peak_mb", zone->mem_peak_mb);
    }
    put_values(c, zone);
    json_object_end(&c->w);
    return end_event(c);
}

/* The text of a special zone that is not special, cut where the times go. */
static int make_site_text(struct chrome *c, unsigned number, struct site_text *ret_text)
{
    const struct trace_site *site = trace_site(c->trace, number);
    struct buf head = BUF_INIT;
    struct buf tail = BUF_INIT;
    json_init_buf(&c->w, &head, JSON_STYLE_COMPACT);
    json_object_begin(&c->w);
    put_text(&c->w, "name", site->name);
    put_text(&c->w, "cat", category_of(site));
    put_text(&c->w, "ph", "X");
    json_object_end(&c->w);
    int rc = json_finish(&c->w);
    json_init_buf(&c->w, &tail, JSON_STYLE_COMPACT);
    json_object_begin(&c->w);
    begin_args(c);
    put_place(c, site);
    json_object_end(&c->w);
    json_object_end(&c->w);
    if (rc == 0)
        rc = json_finish(&c->w);
    if (rc == 0) {
        *ret_text = (struct site_text){ .head_len = head.len - 1, /* without } */
                                        .tail_len = tail.len };
        ret_text->head = buf_steal(&head);
        ret_text->tail = buf_steal(&tail);
        rc = ret_text->head && ret_text->tail ? 0 : -ENOMEM;
    }
    buf_release(&head);
    buf_release(&tail);
    return rc;
}

static void forget_sites(struct chrome *c)
{
    for (size_t i = 0; i < c->site_count; i++) {
        free(c->sites[i].head);
        free(c->sites[i].tail);
    }
    free(c->sites);
    c->sites = NULL;
    c->site_count = 0;
}

/* Microseconds with three decimals; times before the origin have their sign. */
static void append_us(struct buf *out, const char *key, int64_t ns)
{
    char digits[32];
    size_t at = sizeof(digits);
    uint64_t rest = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    for (int i = 0; i < 4 || rest > 0; i++) {
        if (i == 3)
            digits[--at] = '.';
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (ns < 0)
        digits[--at] = '-';
    buf_puts(out, key);
    buf_append(out, digits + at, sizeof(digits) - at);
}

static int put_plain_zone(struct chrome *c, const struct timeline_zone *zone)
{
    struct site_text *site = &c->sites[zone->site];
    int rc = site->head ? 0 : make_site_text(c, zone->site, site);
    if (rc < 0)
        return rc;
    buf_clear(&c->text);
    buf_puts(&c->text, c->any ? ",\n" : "\n");
    buf_append(&c->text, site->head, site->head_len);
    append_us(&c->text, ",\"ts\":", zone->begin_ns - c->origin_ns);
    append_us(&c->text, ",\"dur\":", zone->end_ns - zone->begin_ns);
    buf_printf(&c->text, ",\"pid\":%u,\"tid\":%u,", c->pid, zone->tid);
    buf_append(&c->text, site->tail + 1, site->tail_len - 1); /* without { */
    return write_event(c);
}

static int put_zone(void *arg, const struct timeline_zone *zone)
{
    struct chrome *c = arg;
    const bool plain = !zone->truncated && !zone->open && !zone->unbalanced &&
                       !zone->begin_lost && !zone->has_op && zone->value_count == 0;
    if (zone->end_ns > c->last_ns)
        c->last_ns = zone->end_ns;
    return plain && zone->site < c->site_count ? put_plain_zone(c, zone)
                                               : put_special_zone(c, zone);
}

/* ---- Spans ---------------------------------------------------------------------------- */

static void put_id(struct chrome *c, uint64_t id)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)id);
    json_key(&c->w, "id2");
    json_object_begin(&c->w);
    put_text(&c->w, "local", text);
    json_object_end(&c->w);
}

static int put_span_mark(struct chrome *c, const char *phase, const struct span_mark *m,
                         const char *note)
{
    const struct trace_site *site = trace_site(c->trace, m->site);
    begin_event(c, site->name, "span", phase, m->time_ns, m->tid);
    put_id(c, m->id);
    if (note) {
        begin_args(c);
        json_key(&c->w, note);
        json_put_bool(&c->w, true);
        json_object_end(&c->w);
    }
    return end_event(c);
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
    begin_event(c, trace_site(c->trace, e->site)->name, "span", "e", e->time_ns, tid);
    put_id(c, e->number);
    begin_args(c);
    put_number(c, "active_ms", e->active_ns / 1e6);
    put_number(c, "suspended_ms", fmax(e->wall_ns - e->active_ns, 0) / 1e6);
    json_object_end(&c->w);
    return end_event(c);
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

static int put_span(struct chrome *c, uint32_t tid, const struct trace_event *e)
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
static int put_unended_spans(struct chrome *c)
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

/* ---- The other events ---------------------------------------------------------------------- */

static int put_instant(struct chrome *c, uint32_t tid, const struct trace_event *e,
                       const char *name, const char *scope, const char *number)
{
    begin_event(c, name, "sonde", "i", e->time_ns, tid);
    put_text(&c->w, "s", scope);
    if (number && e->number) {
        begin_args(c);
        json_key(&c->w, number);
        json_put_uint(&c->w, e->number);
        json_object_end(&c->w);
    }
    return end_event(c);
}

static int put_counter(struct chrome *c, uint32_t tid, const struct trace_event *e)
{
    if (!isfinite(e->value)) /* JSON has no word for it */
        return 0;
    begin_event(c, trace_site(c->trace, e->site)->name,
                e->sub == VALUE_METRIC ? "metric" : "counter", "C", e->time_ns, tid);
    begin_args(c);
    put_number(c, "value", e->value);
    json_object_end(&c->w);
    return end_event(c);
}

static int put_event(void *arg, uint32_t tid, const struct trace_event *e)
{
    struct chrome *c = arg;
    switch (e->kind) {
    case TRACE_VALUE:
        return put_counter(c, tid, e);
    case TRACE_STEP:
        return e->sub == STEP_NEXT ? put_instant(c, tid, e, "step", "p", "samples") : 0;
    case TRACE_MARK:
        return put_instant(c, tid, e, trace_site(c->trace, e->site)->name, "t", NULL);
    case TRACE_LOST:
        return put_instant(c, tid, e, "events lost", "t", "events");
    case TRACE_FILTERED:
        return put_instant(c, tid, e, "short zones left out", "t", "zones");
    case TRACE_SPAN:
        return put_span(c, tid, e);
    default:
        return 0;
    }
}

/* ---- Single allocations and I/O calls (--trace=alloc,io) ------------------------------- */

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
    begin_event(c, name, cat, phase, at->time_ns ? at->time_ns : c->origin_ns,
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
    begin_args(c);
    put_number(c, "bytes", (double)s->live);
    json_object_end(&c->w);
    return end_event(c);
}

static int put_allocation(void *arg, const struct alloc_event *e)
{
    struct singles *s = arg;
    struct chrome *c = s->c;
    char address[24];
    (void)snprintf(address, sizeof(address), "0x%llx", (unsigned long long)e->address);
    begin_single(c, e->is_free ? "free" : "malloc", "allocation", "i", &e->at);
    put_text(&c->w, "s", "t");
    begin_args(c);
    json_key(&c->w, "bytes");
    json_put_uint(&c->w, e->bytes);
    put_text(&c->w, "address", address);
    if (e->at.zone[0])
        put_text(&c->w, "zone", e->at.zone);
    if (e->place.function[0])
        put_text(&c->w, "function", e->place.function);
    json_object_end(&c->w);
    const int rc = end_event(c);
    return rc < 0 ? rc : put_live_bytes(s, e);
}

static int put_call(void *arg, const struct io_event *e)
{
    struct singles *s = arg;
    struct chrome *c = s->c;
    const bool took = isfinite(e->latency_s) && e->latency_s > 0;
    begin_single(c, e->operation, "io", took ? "X" : "i", &e->at);
    if (took)
        put_us(c, "dur", llround(e->latency_s * 1e9));
    else
        put_text(&c->w, "s", "t");
    begin_args(c);
    put_text(&c->w, "path", e->path);
    json_key(&c->w, "bytes");
    json_put_int(&c->w, e->bytes);
    if (e->error) {
        json_key(&c->w, "errno");
        json_put_int(&c->w, e->error);
    }
    if (e->at.zone[0])
        put_text(&c->w, "zone", e->at.zone);
    json_object_end(&c->w);
    return end_event(c);
}

static int put_single_events(struct chrome *c, const struct run *run)
{
    struct singles s = { .c = c };
    const struct event_visitor visitor = { put_allocation, put_call, &s };
    struct event_totals totals = { 0 };
    const int rc = events_walk(run, &visitor, &totals);
    c->totals.lost += totals.lost;
    return rc;
}

/* ---- Monitors --------------------------------------------------------------------------- */

static int put_series(struct chrome *c, const struct report_series *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->point_count; i++) {
        begin_event(c, s->name, "monitor", "C",
                    c->origin_ns + llround(s->points[i].t_s * 1e9), c->pid);
        begin_args(c);
        put_number(c, s->unit[0] && strcmp(s->unit, "1") != 0 ? s->unit : "value",
                   s->points[i].mean);
        json_object_end(&c->w);
        rc = end_event(c);
    }
    return rc;
}

/* Counters belong to a process in this format: the program. */
static int put_monitors(struct chrome *c, const struct run *run)
{
    struct report *report;
    int rc = report_build(run, &report);
    if (rc < 0)
        return rc;
    c->pid = run->meta.pid;
    for (size_t i = 0; rc == 0 && i < report->monitors.series_count; i++)
        rc = put_series(c, &report->monitors.series[i]);
    report_free(report);
    return rc;
}

/* ---- Names of processes and threads -------------------------------------------------------- */

static int put_name(struct chrome *c, const char *what, uint32_t tid, const char *name)
{
    begin_event(c, what, NULL, "M", c->origin_ns, tid);
    begin_args(c);
    put_text(&c->w, "name", name);
    json_object_end(&c->w);
    return end_event(c);
}

static int put_names(struct chrome *c)
{
    const struct trace_info *info = trace_info(c->trace);
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s%s%s", info->role, info->role[0] ? " " : "", info->exe);
    int rc = put_name(c, "process_name", c->pid, name.data);
    for (unsigned i = 0; rc == 0 && i < trace_lane_count(c->trace); i++) {
        const struct trace_lane *lane = trace_lane(c->trace, i);
        if (!lane || (!lane->name[0] && !lane->is_main))
            continue;
        buf_clear(&name);
        buf_append(&name, lane->name, strnlen(lane->name, sizeof(lane->name)));
        rc = put_name(c, "thread_name", lane->tid, name.len ? name.data : "main");
    }
    buf_release(&name);
    return rc;
}

/* ---- The document ---------------------------------------------------------------------------- */

static int put_trace(void *arg, const struct trace *trace)
{
    struct chrome *c = arg;
    const struct timeline_visitor visitor = { .zone = put_zone,
                                              .event = put_event,
                                              .arg = c };
    struct timeline_totals totals = { 0 };
    c->trace = trace;
    c->pid = trace_info(trace)->pid;
    c->alive = trace_info(trace)->alive;
    c->last_ns = 0;
    c->site_count = trace_site_count(trace);
    c->sites = calloc(c->site_count + 1, sizeof(*c->sites));
    if (!c->sites)
        return -ENOMEM;
    int rc = put_names(c);
    if (rc == 0)
        rc = timeline_walk(trace, &visitor, &totals);
    if (rc == 0)
        rc = put_unended_spans(c);
    forget_sites(c);
    c->totals.zones += totals.zones;
    c->totals.truncated += totals.truncated;
    c->totals.left_out += totals.orphan_ends + totals.too_deep;
    return rc;
}

static int put_head(struct chrome *c, const struct run *run)
{
    struct json_writer w;
    struct buf head = BUF_INIT;
    buf_puts(&head, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
    json_init_buf(&w, &head, JSON_STYLE_COMPACT);
    json_object_begin(&w);
    put_text(&w, "run", run->id);
    put_text(&w, "sonde", SONDE_VERSION);
    json_key(&w, "started_ns");
    json_put_int(&w, c->origin_ns);
    json_key(&w, "command");
    json_array_begin(&w);
    for (size_t i = 0; i < run->meta.command_count; i++)
        json_put_string(&w, run->meta.command[i]);
    json_array_end(&w);
    json_object_end(&w);
    int rc = json_finish(&w);
    buf_puts(&head, ",\"traceEvents\":[");
    if (rc == 0)
        rc = head.error;
    if (rc == 0 && fwrite(head.data, 1, head.len, c->out) != head.len)
        rc = -EIO;
    buf_release(&head);
    return rc;
}

int export_chrome(const struct export_job *job, struct export_totals *ret_totals)
{
    struct chrome c = { .out = job->out, .text = BUF_INIT };
    c.origin_ns = export_origin_ns(job->run);
    int rc = put_head(&c, job->run);
    if (rc == 0)
        rc = export_each(job, &c.totals, put_trace, &c);
    if (rc == 0)
        rc = put_single_events(&c, job->run);
    if (rc == 0)
        rc = put_monitors(&c, job->run);
    if (rc == 0 && fputs("\n]}\n", job->out) == EOF)
        rc = -EIO;
    free(c.spans);
    buf_release(&c.text);
    if (rc == 0)
        *ret_totals = c.totals;
    return rc;
}
