/* pprof.c: call paths as a profile for `go tool pprof`, Grafana Pyroscope, Polar Signals:
 * github.com/google/pprof/proto/profile.proto, gzip'd.
 *
 * Fields of a message may come in any order, so texts, functions and places are written
 * when they are met first, and samples as they come: memory is that of the different
 * places, not of the samples.
 */
#include "present/export/samples.h"

#include <errno.h>
#include <string.h>

#include "base/strmap.h"
#include "present/export/gzip.h"
#include "present/export/proto.h"

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_TEXT = 6,
    PROFILE_TIME_NS = 9,
    PROFILE_DURATION_NS = 10,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
};
enum { FLUSH_FROM = 1 << 16 };

struct pprof {
    struct gzip gzip;
    struct buf out, message, inner, key;
    struct strmap texts, functions, places; /* number of each */
    unsigned type_count;
    struct export_totals totals;
    int rc;
};

static int flush(struct pprof *p)
{
    if (p->out.error)
        return p->out.error;
    const int rc = gzip_put(&p->gzip, p->out.data, p->out.len);
    buf_clear(&p->out);
    return rc;
}

/* The number of a text; it is in the file from now on. */
static uint64_t text_number(struct pprof *p, const char *text)
{
    bool added;
    struct strmap_entry *e = strmap_enter(&p->texts, text, strlen(text), &added);
    if (!e) {
        p->rc = -ENOMEM;
        return 0;
    }
    if (added) {
        e->value = p->texts.count - 1;
        proto_text(&p->out, PROFILE_TEXT, text);
    }
    return e->value;
}

/* A key of several texts; they hold no NUL. */
static void begin_key(struct pprof *p, const struct sample_frame *f)
{
    buf_clear(&p->key);
    buf_append(&p->key, f->name, strlen(f->name) + 1);
    buf_append(&p->key, f->file, strlen(f->file) + 1);
    buf_append(&p->key, f->module, strlen(f->module) + 1);
}

static struct strmap_entry *enter(struct pprof *p, struct strmap *map, bool *ret_added)
{
    struct strmap_entry *e = p->key.error ? NULL
                                          : strmap_enter(map, p->key.data, p->key.len,
                                                         ret_added);
    if (!e)
        p->rc = -ENOMEM;
    else if (*ret_added)
        e->value = map->count; /* from 1 on: 0 is none */
    return e;
}

static uint64_t function_number(struct pprof *p, const struct sample_frame *f)
{
    bool added = false;
    begin_key(p, f);
    buf_append(&p->key, &f->first_line, sizeof f->first_line);
    const struct strmap_entry *e = enter(p, &p->functions, &added);
    if (!e)
        return 0;
    const uint64_t number = e->value;
    if (added) {
        const uint64_t name = text_number(p, f->name), file = text_number(p, f->file);
        buf_clear(&p->message);
        proto_uint(&p->message, 1, number);
        /* No system name: pprof would take the name for mangled and cut "<module>". */
        proto_uint(&p->message, 2, name);
        proto_uint(&p->message, 4, file);
        proto_uint(&p->message, 5, f->first_line);
        proto_message(&p->out, PROFILE_FUNCTION, &p->message);
    }
    return number;
}

static uint64_t place_number(struct pprof *p, const struct sample_frame *f)
{
    bool added = false;
    begin_key(p, f);
    buf_append(&p->key, &f->line, sizeof f->line);
    const struct strmap_entry *e = enter(p, &p->places, &added);
    if (!e)
        return 0;
    const uint64_t number = e->value;
    if (added) {
        const uint64_t function = function_number(p, f);
        buf_clear(&p->inner);
        proto_uint(&p->inner, 1, function);
        proto_uint(&p->inner, 2, f->line);
        buf_clear(&p->message);
        proto_uint(&p->message, 1, number);
        proto_message(&p->message, 4, &p->inner);
        proto_message(&p->out, PROFILE_LOCATION, &p->message);
    }
    return number;
}

static void put_label(struct pprof *p, struct buf *sample, const char *key,
                      const char *text, uint64_t number)
{
    const uint64_t name = text_number(p, key);
    const uint64_t value = text ? text_number(p, text) : 0;
    buf_clear(&p->inner);
    proto_uint(&p->inner, 1, name);
    proto_uint(&p->inner, text ? 2 : 3, text ? value : number);
    proto_message(sample, 3, &p->inner);
}

static int put_sample(void *arg, const struct sample *s)
{
    struct pprof *p = arg;
    struct buf sample = BUF_INIT, numbers = BUF_INIT;
    for (unsigned i = 0; i < s->depth; i++)
        proto_varint(&numbers, place_number(p, &s->frames[i]));
    proto_message(&sample, 1, &numbers);
    buf_clear(&numbers);
    for (unsigned i = 0; i < p->type_count; i++)
        proto_varint(&numbers, (uint64_t)s->values[i]);
    proto_message(&sample, 2, &numbers);
    if (s->pid)
        put_label(p, &sample, "pid", NULL, s->pid);
    if (s->thread[0])
        put_label(p, &sample, "thread", s->thread, 0);
    proto_message(&p->out, PROFILE_SAMPLE, &sample);
    buf_release(&sample);
    buf_release(&numbers);
    p->totals.samples += (uint64_t)s->values[0];
    if (p->rc < 0)
        return p->rc;
    return p->out.error || p->out.len >= FLUSH_FROM ? flush(p) : 0;
}

static void put_head(struct pprof *p, const struct export_job *job,
                     const struct sample_source *source)
{
    const struct run_meta *m = &job->run->meta;
    struct buf comment = BUF_INIT;
    (void)text_number(p, ""); /* number 0 is that */
    for (unsigned i = 0; i < source->type_count; i++) {
        const uint64_t type = text_number(p, source->types[i].type);
        const uint64_t unit = text_number(p, source->types[i].unit);
        buf_clear(&p->message);
        proto_uint(&p->message, 1, type);
        proto_uint(&p->message, 2, unit);
        proto_message(&p->out, PROFILE_SAMPLE_TYPE, &p->message);
    }
    proto_uint(&p->out, PROFILE_DEFAULT_TYPE,
               text_number(p, source->types[source->usual].type));
    if (m->started_ns > 0)
        proto_uint(&p->out, PROFILE_TIME_NS, (uint64_t)m->started_ns);
    if (m->started_ns > 0 && m->ended_ns > m->started_ns)
        proto_uint(&p->out, PROFILE_DURATION_NS,
                   (uint64_t)(m->ended_ns - m->started_ns));
    buf_printf(&comment, "sonde run %s, %s", job->run->id,
               export_what_names[job->what]);
    proto_uint(&p->out, PROFILE_COMMENT, text_number(p, comment.data));
    buf_release(&comment);
}

int export_pprof(const struct export_job *job, struct export_totals *ret_totals)
{
    const struct sample_source *source = sample_source(job->what);
    struct pprof p = { .out = BUF_INIT,
                       .message = BUF_INIT,
                       .inner = BUF_INIT,
                       .key = BUF_INIT,
                       .type_count = source->type_count };
    strmap_init(&p.texts);
    strmap_init(&p.functions);
    strmap_init(&p.places);
    int rc = gzip_begin(&p.gzip, job->out);
    if (rc == 0) {
        put_head(&p, job, source);
        rc = p.rc < 0 ? p.rc : source->walk(job, put_sample, &p);
        if (rc == 0)
            rc = flush(&p);
        rc = gzip_end(&p.gzip, rc);
    }
    strmap_release(&p.texts);
    strmap_release(&p.functions);
    strmap_release(&p.places);
    buf_release(&p.out);
    buf_release(&p.message);
    buf_release(&p.inner);
    buf_release(&p.key);
    if (rc == 0)
        *ret_totals = p.totals;
    return rc;
}
