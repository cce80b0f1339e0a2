/* otlp.c: OpenTelemetry's own form, JSON as OTLP/HTTP takes it (POST it to a collector's
 * /v1/traces or /v1/metrics): zones as spans, or monitors as gauges.
 *
 *     {"resourceSpans":[{"resource":{…},"scopeSpans":[{"scope":{…},"spans":[…]}]}]}
 *
 * One resource per process. The run is one trace; its id comes from the run's. A zone is
 * told when it ends, inner ones first, and its parent is the next to end one level
 * further out: so a span's id is made of thread, level and how many ended there before,
 * and no memory is needed to name a parent that is not written yet.
 */
#include "present/export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <sonde/sonde.h>

#include "analyse/report.h"
#include "analyse/timeline.h"
#include "base/error.h"
#include "base/json.h"

enum { DEPTH_MOST = 4096, KIND_INTERNAL = 1 };

struct otlp {
    const struct export_job *job;
    struct json_writer w;
    const struct trace *trace;
    uint64_t trace_number;
    unsigned lane;
    bool any_lane;
    uint64_t ended[DEPTH_MOST]; /* zones of this lane that have ended, by level */
    char trace_id[33];
    struct export_totals totals;
};

/* ---- Ids ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
    uint64_t h = seed;
    for (; *text; text++)
        h = mix(h ^ (unsigned char)*text);
    return h ? h : 1; /* all zeros is no id */
}

static void span_id(const struct otlp *o, unsigned depth, uint64_t ordinal, char id[17])
{
    uint64_t h = mix(o->trace_number + 0x9e3779b97f4a7c15ULL);
    h = mix(h ^ ((uint64_t)o->lane << 32 | depth));
    h = mix(h ^ ordinal);
    (void)snprintf(id, 17, "%016" PRIx64, h ? h : 1);
}

/* ---- Small things ---------------------------------------------------------------------- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text);
}

/* 64-bit numbers are texts in protobuf's JSON. */
static void put_nanos(struct json_writer *w, const char *key, int64_t ns)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, ns > 0 ? ns : 0);
    put_text(w, key, text);
}

static void begin_value(struct json_writer *w, const char *key)
{
    json_object_begin(w);
    put_text(w, "key", key);
    json_key(w, "value");
    json_object_begin(w);
}

static void end_value(struct json_writer *w)
{
    json_object_end(w);
    json_object_end(w);
}

static void put_string(struct json_writer *w, const char *key, const char *text)
{
    if (!text || !text[0])
        return;
    begin_value(w, key);
    put_text(w, "stringValue", text);
    end_value(w);
}

static void put_int(struct json_writer *w, const char *key, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    begin_value(w, key);
    put_text(w, "intValue", text);
    end_value(w);
}

static void put_double(struct json_writer *w, const char *key, double value)
{
    if (!isfinite(value))
        return;
    begin_value(w, key);
    json_key(w, "doubleValue");
    json_put_double(w, value);
    end_value(w);
}

static void put_flag(struct json_writer *w, const char *key, bool set)
{
    if (!set)
        return;
    begin_value(w, key);
    json_key(w, "boolValue");
    json_put_bool(w, true);
    end_value(w);
}

static void begin_list(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_array_begin(w);
}

/* Resource and scope; leaves `items` open. */
static void begin_resource(struct otlp *o, const struct trace_info *info,
                           const char *scopes, const char *items)
{
    struct json_writer *w = &o->w;
    const struct run *run = o->job->run;
    json_object_begin(w);
    json_key(w, "resource");
    json_object_begin(w);
    begin_list(w, "attributes");
    put_string(w, "service.name", run->meta.name[0] ? run->meta.name : "sonde");
    put_string(w, "sonde.run", run->id);
    put_string(w, "host.name", run->meta.host);
    if (info) {
        put_int(w, "process.pid", info->pid);
        put_string(w, "process.executable.name", info->exe);
    }
    json_array_end(w);
    json_object_end(w);
    begin_list(w, scopes);
    json_object_begin(w);
    json_key(w, "scope");
    json_object_begin(w);
    put_text(w, "name", "sonde");
    put_text(w, "version", SONDE_VERSION);
    json_object_end(w);
    begin_list(w, items);
}

static void end_resource(struct otlp *o)
{
    json_array_end(&o->w);
    json_object_end(&o->w);
    json_array_end(&o->w);
    json_object_end(&o->w);
}

/* ---- Spans ------------------------------------------------------------------------------ */

static void put_attributes(struct otlp *o, const struct timeline_zone *zone,
                           const struct trace_site *site)
{
    struct json_writer *w = &o->w;
    begin_list(w, "attributes");
    put_int(w, "thread.id", zone->tid);
    put_string(w, "sonde.phase", site->phase ? sonde_phase_name(site->phase) : NULL);
    put_string(w, "sonde.component", site->component);
    put_string(w, "sonde.category", site->category);
    put_string(w, "code.file.path", site->file);
    if (site->file[0])
        put_int(w, "code.line.number", site->line);
    put_flag(w, "sonde.truncated", zone->truncated || zone->open);
    put_flag(w, "sonde.begin_lost", zone->begin_lost);
    if (zone->has_op) {
        put_double(w, "sonde.cpu_ms", zone->cpu_ns / 1e6);
        put_double(w, "sonde.mem_peak_mb", zone->mem_peak_mb);
    }
    json_array_end(w);
}

static void next_lane(struct otlp *o, unsigned lane)
{
    if (o->any_lane && o->lane == lane)
        return;
    o->any_lane = true;
    o->lane = lane;
    memset(o->ended, 0, sizeof o->ended);
}

static int put_zone(void *arg, const struct timeline_zone *zone)
{
    struct otlp *o = arg;
    struct json_writer *w = &o->w;
    const struct trace_site *site = trace_site(o->trace, zone->site);
    const unsigned depth = zone->depth < DEPTH_MOST ? zone->depth : DEPTH_MOST - 1;
    char id[17];
    next_lane(o, zone->lane);
    span_id(o, depth, o->ended[depth]++, id);
    json_object_begin(w);
    put_text(w, "traceId", o->trace_id);
    put_text(w, "spanId", id);
    if (depth) {
        span_id(o, depth - 1, o->ended[depth - 1], id);
        put_text(w, "parentSpanId", id);
    }
    put_text(w, "name", site->name);
    json_key(w, "kind");
    json_put_uint(w, KIND_INTERNAL);
    put_nanos(w, "startTimeUnixNano", zone->begin_ns);
    put_nanos(w, "endTimeUnixNano", zone->end_ns);
    put_attributes(o, zone, site);
    json_object_end(w);
    return w->error;
}

static int put_trace(void *arg, const struct trace *trace)
{
    struct otlp *o = arg;
    const struct timeline_visitor visitor = { .zone = put_zone, .arg = o };
    struct timeline_totals totals = { 0 };
    o->trace = trace;
    o->trace_number++;
    o->any_lane = false;
    begin_resource(o, trace_info(trace), "scopeSpans", "spans");
    const int rc = timeline_walk(trace, &visitor, &totals);
    if (rc == 0)
        end_resource(o);
    o->totals.zones += totals.zones;
    o->totals.truncated += totals.truncated;
    o->totals.left_out += totals.orphan_ends + totals.too_deep;
    return rc;
}

/* ---- Metrics ----------------------------------------------------------------------------- */

static void put_series(struct otlp *o, const struct report *r,
                       const struct report_series *s)
{
    struct json_writer *w = &o->w;
    json_object_begin(w);
    struct buf name = BUF_INIT;
    buf_printf(&name, "sonde.%s", s->metric);
    put_text(w, "name", name.data);
    buf_release(&name);
    put_text(w, "unit", s->unit);
    json_key(w, "gauge");
    json_object_begin(w);
    begin_list(w, "dataPoints");
    for (size_t i = 0; i < s->point_count; i++) {
        json_object_begin(w);
        begin_list(w, "attributes");
        put_string(w, "subject", s->subject);
        json_array_end(w);
        put_nanos(w, "timeUnixNano", r->start_ns + (int64_t)(s->points[i].t_s * 1e9));
        json_key(w, "asDouble");
        json_put_double(w, s->points[i].mean);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
    json_object_end(w);
    o->totals.rows += s->point_count;
}

static int put_metrics(struct otlp *o)
{
    struct report *r;
    int rc = report_build(o->job->run, &r);
    if (rc < 0)
        return rc;
    if (!r->monitors.present) {
        report_free(r);
        return SONDE_E_NOTFOUND;
    }
    begin_resource(o, NULL, "scopeMetrics", "metrics");
    for (size_t i = 0; i < r->monitors.series_count; i++)
        put_series(o, r, &r->monitors.series[i]);
    end_resource(o);
    report_free(r);
    return o->w.error;
}

/* ---- The document ------------------------------------------------------------------------ */

int export_otlp(const struct export_job *job, struct export_totals *ret_totals)
{
    const bool metrics = job->what == EXPORT_MONITORS;
    static struct otlp o; /* large, and nobody exports two runs at once */
    o = (struct otlp){ .job = job };
    const uint64_t high = hash_text(job->run->id, 0x736f6e6465ULL);
    (void)snprintf(o.trace_id, sizeof o.trace_id, "%016" PRIx64 "%016" PRIx64, high,
                   hash_text(job->run->id, high));
    json_init_file(&o.w, job->out, JSON_STYLE_COMPACT);
    json_object_begin(&o.w);
    begin_list(&o.w, metrics ? "resourceMetrics" : "resourceSpans");
    int rc = metrics ? put_metrics(&o) : export_each(job, &o.totals, put_trace, &o);
    if (rc == 0) {
        json_array_end(&o.w);
        json_object_end(&o.w);
        json_newline(&o.w);
        rc = json_finish(&o.w);
    } else {
        json_abandon(&o.w);
    }
    if (rc == 0)
        *ret_totals = o.totals;
    return rc;
}
