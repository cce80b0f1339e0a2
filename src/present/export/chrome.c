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
 */
#include "present/export/chrome_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report.h"

/* ---- The other events ---------------------------------------------------------------------- */

static int put_instant(struct chrome *c, uint32_t tid, const struct trace_event *e,
                       const char *name, const char *scope, const char *number)
{
    chrome_begin(c, name, "sonde", "i", e->time_ns, tid);
    chrome_text(&c->w, "s", scope);
    if (number && e->number) {
        chrome_args(c);
        json_key(&c->w, number);
        json_put_uint(&c->w, e->number);
        json_object_end(&c->w);
    }
    return chrome_end(c);
}

static int put_counter(struct chrome *c, uint32_t tid, const struct trace_event *e)
{
    if (!isfinite(e->value)) /* JSON has no word for it */
        return 0;
    chrome_begin(c, trace_site(c->trace, e->site)->name,
                 e->sub == VALUE_METRIC ? "metric" : "counter", "C", e->time_ns, tid);
    chrome_args(c);
    chrome_number(c, "value", e->value);
    json_object_end(&c->w);
    return chrome_end(c);
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
        return chrome_span(c, tid, e);
    default:
        return 0;
    }
}

/* ---- Monitors --------------------------------------------------------------------------- */

static int put_series(struct chrome *c, const struct report_series *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->point_count; i++) {
        chrome_begin(c, s->name, "monitor", "C",
                     c->origin_ns + llround(s->points[i].t_s * 1e9), c->pid);
        chrome_args(c);
        chrome_number(c, s->unit[0] && strcmp(s->unit, "1") != 0 ? s->unit : "value",
                      s->points[i].mean);
        json_object_end(&c->w);
        rc = chrome_end(c);
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
    chrome_begin(c, what, NULL, "M", c->origin_ns, tid);
    chrome_args(c);
    chrome_text(&c->w, "name", name);
    json_object_end(&c->w);
    return chrome_end(c);
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
    const struct timeline_visitor visitor = { .zone = chrome_zone,
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
        rc = chrome_unended_spans(c);
    chrome_forget_sites(c);
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
    chrome_text(&w, "run", run->id);
    chrome_text(&w, "sonde", SONDE_VERSION);
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
        rc = chrome_singles(&c, job->run);
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
