/* jsonl.c: every single zone that the timeline still holds, one JSON object a line.
 *
 * For scripts: `jq`, pandas.read_json(lines=True), DuckDB. Times in seconds and
 * milliseconds as in report.json; inner zones before outer ones.
 */
#include "present/export/export.h"

#include <errno.h>

#include <sonde/sonde.h>

#include "analyse/timeline.h"
#include "base/json.h"

struct lines {
    FILE *out;
    int64_t origin_ns;
    const struct trace *trace;
    struct buf line;
    struct export_totals totals;
};

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text && text[0] ? text : NULL);
}

static void put_fields(struct json_writer *w, const struct lines *l,
                       const struct timeline_zone *zone)
{
    const struct trace_site *site = trace_site(l->trace, zone->site);
    json_key(w, "name");
    json_put_string(w, site->name);
    json_key(w, "start_s");
    json_put_fixed(w, (double)(zone->begin_ns - l->origin_ns) / 1e9, 9);
    json_key(w, "duration_ms");
    json_put_fixed(w, (double)(zone->end_ns - zone->begin_ns) / 1e6, 6);
    json_key(w, "pid");
    json_put_uint(w, trace_info(l->trace)->pid);
    json_key(w, "tid");
    json_put_uint(w, zone->tid);
    json_key(w, "depth");
    json_put_uint(w, zone->depth);
    put_text(w, "phase", site->phase ? sonde_phase_name(site->phase) : NULL);
    put_text(w, "component", site->component);
    json_key(w, "truncated");
    json_put_bool(w, zone->truncated || zone->open);
    json_key(w, "begin_lost");
    json_put_bool(w, zone->begin_lost);
}

static int put_zone(void *arg, const struct timeline_zone *zone)
{
    struct lines *l = arg;
    struct json_writer w;
    buf_clear(&l->line);
    json_init_buf(&w, &l->line, JSON_STYLE_COMPACT);
    json_object_begin(&w);
    put_fields(&w, l, zone);
    json_object_end(&w);
    json_newline(&w);
    const int rc = json_finish(&w);
    if (rc < 0)
        return rc;
    errno = 0;
    if (fwrite(l->line.data, 1, l->line.len, l->out) != l->line.len)
        return errno > 0 ? -errno : -EIO;
    return 0;
}

static int put_trace(void *arg, const struct trace *trace)
{
    struct lines *l = arg;
    const struct timeline_visitor visitor = { .zone = put_zone, .arg = l };
    struct timeline_totals totals;
    l->trace = trace;
    const int rc = timeline_walk(trace, &visitor, &totals);
    if (rc == 0) {
        l->totals.zones += totals.zones;
        l->totals.truncated += totals.truncated;
        l->totals.left_out += totals.orphan_ends + totals.too_deep;
    }
    return rc;
}

int export_jsonl(const struct run *run, FILE *out, struct export_totals *ret_totals)
{
    struct lines l = { .out = out,
                       .line = BUF_INIT,
                       .origin_ns = export_origin_ns(run) };
    const int rc = export_each(run, &l.totals, put_trace, &l);
    buf_release(&l.line);
    if (rc == 0)
        *ret_totals = l.totals;
    return rc;
}
