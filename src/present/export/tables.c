/* tables.c: what a run holds, as tables: CSV for spreadsheets and pandas, JSON lines for
 * scripts (`jq`, pandas.read_json(lines=True), DuckDB).
 *
 *     zones          every single zone that the timeline still holds, inner ones first
 *     monitors       every point of every series
 *     alloc-events   every allocation and free (sonde run --trace alloc)
 *     io-events      every I/O call (sonde run --trace io)
 *
 * Times are seconds after the start of the run and milliseconds, as in report.json.
 */
#include "present/export/export.h"

#include <math.h>

#include <sonde/sonde.h>

#include "analyse/events.h"
#include "analyse/report.h"
#include "analyse/timeline.h"
#include "base/error.h"
#include "present/export/rows.h"

struct table_job {
    const struct export_job *job;
    struct rows rows;
    int64_t origin_ns;
    const struct trace *trace;
    struct export_totals totals;
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- Zones ------------------------------------------------------------------------------ */

static const char *const zone_columns[] = {
    "name",  "start_s",   "duration_ms", "pid",       "tid",    "depth",
    "phase", "component", "category",    "truncated", "cpu_ms", "begin_lost",
};

static int put_zone(void *arg, const struct timeline_zone *zone)
{
    struct table_job *t = arg;
    struct rows *r = &t->rows;
    const struct trace_site *site = trace_site(t->trace, zone->site);
    rows_text(r, site->name);
    rows_real(r, (double)(zone->begin_ns - t->origin_ns) / 1e9, 9);
    rows_real(r, (double)(zone->end_ns - zone->begin_ns) / 1e6, 6);
    rows_uint(r, trace_info(t->trace)->pid);
    rows_uint(r, zone->tid);
    rows_uint(r, zone->depth);
    rows_text(r, site->phase ? sonde_phase_name(site->phase) : NULL);
    rows_text(r, site->component);
    rows_text(r, site->category);
    rows_bool(r, zone->truncated || zone->open);
    rows_real(r, zone->has_op ? zone->cpu_ns / 1e6 : NAN, 6);
    rows_bool(r, zone->begin_lost);
    return rows_end(r);
}

static int put_trace(void *arg, const struct trace *trace)
{
    struct table_job *t = arg;
    const struct timeline_visitor visitor = { .zone = put_zone, .arg = t };
    struct timeline_totals totals;
    t->trace = trace;
    const int rc = timeline_walk(trace, &visitor, &totals);
    if (rc == 0) {
        t->totals.zones += totals.zones;
        t->totals.truncated += totals.truncated;
        t->totals.left_out += totals.orphan_ends + totals.too_deep;
    }
    return rc;
}

static int put_zones(struct table_job *t)
{
    return export_each(t->job, &t->totals, put_trace, t);
}

/* ---- Monitors --------------------------------------------------------------------------- */

static const char *const monitor_columns[] = { "name", "metric", "subject", "unit",
                                               "t_s",  "mean",   "max" };

static int put_series(struct table_job *t, const struct report_series *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->point_count; i++) {
        rows_text(&t->rows, s->name);
        rows_text(&t->rows, s->metric);
        rows_text(&t->rows, s->subject);
        rows_text(&t->rows, s->unit);
        rows_real(&t->rows, s->points[i].t_s, 6);
        rows_real(&t->rows, s->points[i].mean, 6);
        rows_real(&t->rows, s->points[i].max, 6);
        rc = rows_end(&t->rows);
    }
    return rc;
}

static int put_monitors(struct table_job *t)
{
    struct report *report;
    int rc = report_build(t->job->run, &report);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < report->monitors.series_count; i++)
        rc = put_series(t, &report->monitors.series[i]);
    if (rc == 0 && !report->monitors.present)
        rc = SONDE_E_NOTFOUND;
    report_free(report);
    return rc;
}

/* ---- Single allocations and calls ---------------------------------------------------------- */

static const char *const alloc_columns[] = { "t_s",   "pid",    "tid",      "kind",
                                             "bytes", "zone",   "function", "file",
                                             "line",  "address" };
static const char *const io_columns[] = {
    "t_s",    "pid",   "tid",        "operation", "class", "path",
    "offset", "bytes", "latency_ms", "errno",     "zone",
};

static void put_common(struct table_job *t, const struct event_common *at)
{
    rows_real(&t->rows, at->time_ns ? (double)(at->time_ns - t->origin_ns) / 1e9 : NAN,
              9);
    rows_uint(&t->rows, at->pid);
    if (at->tid)
        rows_uint(&t->rows, at->tid);
    else
        rows_null(&t->rows);
}

static int put_allocation(void *arg, const struct alloc_event *e)
{
    struct table_job *t = arg;
    struct rows *r = &t->rows;
    char address[24];
    (void)snprintf(address, sizeof address, "0x%llx", (unsigned long long)e->address);
    put_common(t, &e->at);
    rows_text(r, e->is_free ? "free" : "alloc");
    rows_uint(r, e->bytes);
    rows_text(r, e->at.zone);
    rows_text(r, e->place.function);
    rows_text(r, e->place.file);
    if (e->place.line)
        rows_uint(r, e->place.line);
    else
        rows_null(r);
    rows_text(r, address);
    return rows_end(r);
}

static int put_call(void *arg, const struct io_event *e)
{
    struct table_job *t = arg;
    struct rows *r = &t->rows;
    put_common(t, &e->at);
    rows_text(r, e->operation);
    rows_text(r, e->io_class);
    rows_text(r, e->path);
    if (e->offset != UINT64_MAX)
        rows_uint(r, e->offset);
    else
        rows_null(r);
    rows_int(r, e->bytes);
    rows_real(r, e->latency_s * 1e3, 6);
    if (e->error)
        rows_int(r, e->error);
    else
        rows_null(r);
    rows_text(r, e->at.zone);
    return rows_end(r);
}

static int walk(struct table_job *t, const struct event_visitor *visitor)
{
    struct event_totals totals = { 0 };
    const int rc = events_walk(t->job->run, visitor, &totals);
    t->totals.lost = totals.lost;
    if (rc == 0 && !totals.alloc_traced && !totals.io_traced)
        return SONDE_E_NOTFOUND;
    return rc;
}

static int put_allocations(struct table_job *t)
{
    return walk(t, &(struct event_visitor){ .allocation = put_allocation, .arg = t });
}

static int put_calls(struct table_job *t)
{
    return walk(t, &(struct event_visitor){ .call = put_call, .arg = t });
}

/* ---- All -------------------------------------------------------------------------------------- */

static const struct table {
    const char *const *columns;
    unsigned count;
    int (*write)(struct table_job *job);
} tables[EXPORT_WHATS] = {
    [EXPORT_ZONES] = { zone_columns, COUNT(zone_columns), put_zones },
    [EXPORT_MONITORS] = { monitor_columns, COUNT(monitor_columns), put_monitors },
    [EXPORT_ALLOC_EVENTS] = { alloc_columns, COUNT(alloc_columns), put_allocations },
    [EXPORT_IO_EVENTS] = { io_columns, COUNT(io_columns), put_calls },
};

static int write_table(const struct export_job *job, enum rows_format format,
                       struct export_totals *ret_totals)
{
    const struct table *table = &tables[job->what];
    struct table_job t = { .job = job, .origin_ns = export_origin_ns(job->run) };
    if (!table->write)
        return SONDE_E_UNSUPPORTED;
    int rc = rows_begin(&t.rows, job->out, format, table->columns, table->count);
    if (rc == 0)
        rc = table->write(&t);
    t.totals.rows = t.rows.count;
    rows_release(&t.rows);
    if (rc == 0)
        *ret_totals = t.totals;
    return rc;
}

int export_csv(const struct export_job *job, struct export_totals *ret_totals)
{
    return write_table(job, ROWS_CSV, ret_totals);
}

int export_jsonl(const struct export_job *job, struct export_totals *ret_totals)
{
    return write_table(job, ROWS_JSONL, ret_totals);
}
