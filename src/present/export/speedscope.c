/* speedscope.c: flame graphs for speedscope.app:
 * www.speedscope.app/file-format-schema.json
 *
 * Zones become one profile of events per thread, in the order of time. Everything else
 * that is call paths becomes one profile of samples per kind of weight. The frames,
 * which all profiles share, come last: a JSON object has no order.
 */
#include "present/export/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/json.h"
#include "base/strmap.h"
#include "present/export/edges.h"

struct speedscope {
    const struct export_job *job;
    struct json_writer w;
    struct strmap frames; /* number of the frame */
    struct buf key;
    int64_t origin_ns;
    const struct trace *trace;
    uint32_t *site_frames; /* number + 1 by site, of this trace */
    size_t site_count;
    unsigned value; /* which of a sample's is being written */
    bool weights;   /* the second walk */
    int64_t sum;
    struct export_totals totals;
};

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text);
}

/* ---- Frames ------------------------------------------------------------------------------ */

/* The key of a frame is what it will be written as: name NUL file NUL line. */
static int frame_number(struct speedscope *s, const char *name, const char *file,
                        uint32_t line, uint64_t *ret_number)
{
    bool added;
    buf_clear(&s->key);
    buf_append(&s->key, name, strlen(name) + 1);
    buf_append(&s->key, file, strlen(file) + 1);
    buf_append(&s->key, &line, sizeof line);
    struct strmap_entry *e = s->key.error ? NULL
                                          : strmap_enter(&s->frames, s->key.data,
                                                         s->key.len, &added);
    if (!e)
        return -ENOMEM;
    if (added)
        e->value = s->frames.count - 1;
    *ret_number = e->value;
    return 0;
}

static void put_frames(struct speedscope *s)
{
    json_key(&s->w, "shared");
    json_object_begin(&s->w);
    json_key(&s->w, "frames");
    json_array_begin(&s->w);
    for (size_t i = 0; i < s->frames.count; i++) {
        const struct strmap_entry *e = &s->frames.entries[i];
        const char *file = e->key + strlen(e->key) + 1;
        uint32_t line;
        memcpy(&line, file + strlen(file) + 1, sizeof line);
        json_object_begin(&s->w);
        put_text(&s->w, "name", e->key);
        if (file[0])
            put_text(&s->w, "file", file);
        if (line) {
            json_key(&s->w, "line");
            json_put_uint(&s->w, line);
        }
        json_object_end(&s->w);
    }
    json_array_end(&s->w);
    json_object_end(&s->w);
}

/* ---- Zones ------------------------------------------------------------------------------- */

static void begin_profile(struct speedscope *s, const char *type, const char *name,
                          const char *unit)
{
    json_object_begin(&s->w);
    put_text(&s->w, "type", type);
    put_text(&s->w, "name", name);
    put_text(&s->w, "unit", unit);
}

static void put_end_value(struct speedscope *s, int64_t value)
{
    json_array_end(&s->w);
    json_key(&s->w, "endValue");
    json_put_int(&s->w, value);
    json_object_end(&s->w);
}

static int lane_begin(void *arg, const struct trace_lane *lane, int64_t first_ns)
{
    struct speedscope *s = arg;
    const struct trace_info *info = trace_info(s->trace);
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s %u", info->exe, info->pid);
    if (lane && lane->is_main)
        buf_puts(&name, " main");
    else if (lane)
        buf_printf(&name, " %.16s %u", lane->name, lane->tid);
    begin_profile(s, "evented", name.data, "nanoseconds");
    json_key(&s->w, "startValue");
    json_put_int(&s->w, first_ns - s->origin_ns);
    json_key(&s->w, "events");
    json_array_begin(&s->w);
    const int rc = name.error;
    buf_release(&name);
    return rc;
}

static int lane_end(void *arg, int64_t last_ns)
{
    struct speedscope *s = arg;
    put_end_value(s, last_ns - s->origin_ns);
    return s->w.error;
}

static int site_frame(struct speedscope *s, unsigned site, uint64_t *ret_number)
{
    if (site < s->site_count && s->site_frames[site]) {
        *ret_number = s->site_frames[site] - 1u;
        return 0;
    }
    const struct trace_site *t = trace_site(s->trace, site);
    const int rc = frame_number(s, t->name[0] ? t->name : "(unknown)", t->file,
                                t->line > 0 ? (uint32_t)t->line : 0, ret_number);
    if (rc == 0 && site < s->site_count)
        s->site_frames[site] = (uint32_t)*ret_number + 1;
    return rc;
}

static int put_edge(void *arg, bool begin, unsigned site, int64_t time_ns)
{
    struct speedscope *s = arg;
    uint64_t frame;
    const int rc = site_frame(s, site, &frame);
    if (rc < 0)
        return rc;
    json_object_begin(&s->w);
    put_text(&s->w, "type", begin ? "O" : "C");
    json_key(&s->w, "frame");
    json_put_uint(&s->w, frame);
    json_key(&s->w, "at");
    json_put_int(&s->w, time_ns - s->origin_ns);
    json_object_end(&s->w);
    return s->w.error;
}

static int put_trace(void *arg, const struct trace *trace)
{
    struct speedscope *s = arg;
    const struct edge_visitor visitor = { lane_begin, lane_end, put_edge, s };
    struct edge_totals totals;
    s->trace = trace;
    s->site_count = trace_site_count(trace);
    s->site_frames = calloc(s->site_count + 1, sizeof *s->site_frames);
    if (!s->site_frames)
        return -ENOMEM;
    const int rc = edges_walk(trace, &visitor, &totals);
    free(s->site_frames);
    s->site_frames = NULL;
    s->totals.zones += totals.zones;
    s->totals.left_out += totals.orphan_ends + totals.too_deep;
    return rc;
}

static int put_zones(struct speedscope *s)
{
    const int rc = export_each(s->job, &s->totals, put_trace, s);
    return rc == 0 && s->totals.zones == 0 ? SONDE_E_NOTFOUND : rc;
}

/* ---- Samples ----------------------------------------------------------------------------- */

static int put_number(struct speedscope *s, const char *name, const char *file,
                      uint32_t line)
{
    uint64_t number;
    const int rc = frame_number(s, name, file, line, &number);
    if (rc == 0)
        json_put_uint(&s->w, number);
    return rc;
}

/* Outermost first: process, thread, functions. */
static int put_stack(struct speedscope *s, const struct sample *sample)
{
    struct buf who = BUF_INIT;
    int rc = 0;
    json_array_begin(&s->w);
    if (sample->pid) {
        buf_printf(&who, "%s (%u)", sample->process, sample->pid);
        rc = who.error ? who.error : put_number(s, who.data, "", 0);
    }
    if (rc == 0 && sample->thread[0])
        rc = put_number(s, sample->thread, "", 0);
    for (unsigned i = sample->depth; rc == 0 && i-- > 0;) {
        const struct sample_frame *f = &sample->frames[i];
        buf_clear(&who);
        sample_label(f, &who);
        rc = who.error ? who.error
                       : put_number(s, who.data, f->file,
                                    f->python ? f->line : f->first_line);
    }
    json_array_end(&s->w);
    buf_release(&who);
    return rc;
}

static int put_sample(void *arg, const struct sample *sample)
{
    struct speedscope *s = arg;
    const int64_t value = sample->values[s->value];
    if (value <= 0)
        return 0;
    if (s->weights) {
        json_put_int(&s->w, value);
        s->sum += value;
        return s->w.error;
    }
    if (s->value == 0)
        s->totals.samples += (uint64_t)value;
    return put_stack(s, sample);
}

static const char *unit_of(const char *unit)
{
    return strcmp(unit, "count") == 0 ? "none" : unit;
}

static int put_samples(struct speedscope *s, const struct sample_source *source)
{
    begin_profile(s, "sampled", source->types[s->value].type,
                  unit_of(source->types[s->value].unit));
    json_key(&s->w, "startValue");
    json_put_int(&s->w, 0);
    s->sum = 0;
    s->weights = false;
    json_key(&s->w, "samples");
    json_array_begin(&s->w);
    int rc = source->walk(s->job, put_sample, s);
    if (rc < 0)
        return rc;
    json_array_end(&s->w);
    s->weights = true;
    json_key(&s->w, "weights");
    json_array_begin(&s->w);
    rc = source->walk(s->job, put_sample, s);
    if (rc == 0)
        put_end_value(s, s->sum);
    return rc;
}

static int put_profiles(struct speedscope *s)
{
    const struct sample_source *source = sample_source(s->job->what);
    int rc = 0;
    json_key(&s->w, "profiles");
    json_array_begin(&s->w);
    if (s->job->what == EXPORT_ZONES)
        rc = put_zones(s);
    else
        for (s->value = 0; rc == 0 && s->value < source->type_count; s->value++)
            rc = put_samples(s, source);
    if (rc < 0)
        return rc;
    json_array_end(&s->w);
    json_key(&s->w, "activeProfileIndex");
    json_put_uint(&s->w, s->job->what == EXPORT_ZONES ? 0 : source->usual);
    return rc;
}

int export_speedscope(const struct export_job *job, struct export_totals *ret_totals)
{
    struct speedscope s = { .job = job,
                            .key = BUF_INIT,
                            .origin_ns = export_origin_ns(job->run) };
    strmap_init(&s.frames);
    json_init_file(&s.w, job->out, JSON_STYLE_COMPACT);
    json_object_begin(&s.w);
    put_text(&s.w, "$schema", "https://www.speedscope.app/file-format-schema.json");
    put_text(&s.w, "exporter", "sonde " SONDE_VERSION);
    put_text(&s.w, "name", job->run->id);
    int rc = put_profiles(&s);
    if (rc == 0) {
        put_frames(&s);
        json_object_end(&s.w);
        rc = json_finish(&s.w);
    } else {
        json_abandon(&s.w);
    }
    strmap_release(&s.frames);
    buf_release(&s.key);
    if (rc == 0)
        *ret_totals = s.totals;
    return rc;
}
