/* baselinefile.c: a baseline as JSON. */
#include "store/baselinefile.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "store/experiment.h"
#include "store/jread.h"
#include "trace/runfile.h"

static const char schema[] = "sonde.baseline/1";

struct reading {
    struct jread r;
    struct arena *arena;
    struct baseline_doc *doc;
    struct buf *message;
};

static int complain(struct reading *b, const char *what)
{
    buf_puts(b->message, what);
    if (b->r.error)
        buf_printf(b->message, " (%s at byte %zu)", b->r.error, b->r.error_at + 1);
    return SONDE_E_FORMAT;
}

static int take_text(struct reading *b, const char **ret_text)
{
    size_t len;
    if (jread_next(&b->r) == JREAD_NULL)
        return 0;
    if (b->r.token != JREAD_STRING)
        return complain(b, "a text should stand here");
    const char *text = jread_text(&b->r, b->arena, &len);
    if (!text)
        return -ENOMEM;
    if (strlen(text) != len)
        return complain(b, "a text with a NUL");
    *ret_text = text;
    return 0;
}

static int take_command(struct reading *b)
{
    if (jread_next(&b->r) != JREAD_ARRAY_BEGIN)
        return complain(b, "\"command\" must be a list");
    char **words = arena_alloc_array(b->arena, BASELINE_WORDS + 1, sizeof *words);
    size_t n = 0;
    if (!words)
        return -ENOMEM;
    while (jread_next(&b->r) == JREAD_STRING) {
        size_t len;
        const char *word = jread_text(&b->r, b->arena, &len);
        if (!word || n == BASELINE_WORDS || strlen(word) != len)
            return word ? complain(b, "too long a command") : -ENOMEM;
        words[n++] = (char *)(uintptr_t)word;
    }
    if (b->r.token != JREAD_ARRAY_END)
        return complain(b, "\"command\" must be a list of texts");
    b->doc->command = words;
    b->doc->command_count = n;
    return 0;
}

static int take_samples(struct reading *b, struct baseline_metric *m)
{
    if (jread_next(&b->r) != JREAD_ARRAY_BEGIN)
        return complain(b, "a metric must be a list of numbers");
    m->values = arena_alloc_array(b->arena, BASELINE_SAMPLES, sizeof *m->values);
    if (!m->values)
        return -ENOMEM;
    while (jread_next(&b->r) == JREAD_INT || b->r.token == JREAD_FLOAT) {
        if (m->count == BASELINE_SAMPLES || !isfinite(b->r.number))
            return complain(b, "too many samples, or one that is no number");
        m->values[m->count++] = b->r.number;
    }
    return b->r.token == JREAD_ARRAY_END
               ? 0
               : complain(b, "a metric must be a list of numbers");
}

static int take_metrics(struct reading *b)
{
    int rc = 0;
    if (jread_next(&b->r) != JREAD_OBJECT_BEGIN)
        return complain(b, "\"metrics\" must be an object");
    while (rc == 0 && jread_next(&b->r) == JREAD_KEY) {
        size_t len;
        if (b->doc->metric_count == BASELINE_METRICS)
            return complain(b, "too many metrics");
        struct baseline_metric *m = &b->doc->metrics[b->doc->metric_count++];
        *m = (struct baseline_metric){ .name = jread_text(&b->r, b->arena, &len) };
        rc = m->name ? take_samples(b, m) : -ENOMEM;
    }
    if (rc == 0 && b->r.token != JREAD_OBJECT_END)
        rc = complain(b, "\"metrics\" is cut off");
    return rc;
}

static int take_member(struct reading *b, bool *ret_schema)
{
    struct baseline_doc *d = b->doc;
    const struct {
        const char *key, **text;
    } texts[] = { { "name", &d->name },
                  { "run", &d->run },
                  { "cwd", &d->cwd },
                  { "machine", &d->machine },
                  { "fingerprint", &d->fingerprint } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (jread_is(&b->r, texts[i].key))
            return take_text(b, texts[i].text);
    if (jread_is(&b->r, "command"))
        return take_command(b);
    if (jread_is(&b->r, "metrics"))
        return take_metrics(b);
    const char *text = NULL;
    if (jread_is(&b->r, "environment")) {
        const int rc = take_text(b, &text);
        d->environment = text ? text : "";
        d->has_environment = rc == 0 && text;
        return rc;
    }
    if (jread_is(&b->r, "schema")) {
        const int rc = take_text(b, &text);
        *ret_schema = rc == 0 && text && strcmp(text, schema) == 0;
        return rc;
    }
    if (jread_is(&b->r, "created")) {
        const int rc = take_text(b, &text);
        if (rc == 0 && text && !moment_parse(text, &d->created_ns))
            d->created_ns = 0;
        return rc;
    }
    if (jread_is(&b->r, "profiled")) {
        d->profiled = jread_next(&b->r) == JREAD_TRUE;
        return jread_skip(&b->r) ? 0 : complain(b, "not JSON");
    }
    (void)jread_next(&b->r); /* of a later version */
    return jread_skip(&b->r) ? 0 : complain(b, "not JSON");
}

int baseline_parse(const char *json, size_t len, struct arena *arena,
                   struct baseline_doc *ret_doc, struct buf *ret_message)
{
    struct baseline_doc doc = { .name = "",
                                .run = "",
                                .cwd = "",
                                .machine = "",
                                .environment = "",
                                .fingerprint = "" };
    struct reading b = { .arena = arena, .doc = &doc, .message = ret_message };
    bool right_schema = false;
    int rc = 0;
    jread_init(&b.r, json, len);
    if (jread_next(&b.r) != JREAD_OBJECT_BEGIN)
        return complain(&b, "not a baseline: no JSON object");
    while (rc == 0 && jread_next(&b.r) == JREAD_KEY)
        rc = take_member(&b, &right_schema);
    if (rc == 0 && (b.r.token != JREAD_OBJECT_END || jread_next(&b.r) != JREAD_END))
        rc = complain(&b, "not JSON");
    if (rc == 0 && !right_schema)
        rc = complain(&b, "not a baseline: its schema is not sonde.baseline/1");
    if (rc == 0)
        *ret_doc = doc;
    return rc;
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text && text[0] ? text : NULL);
}

int baseline_write(const struct baseline_doc *d, struct buf *out)
{
    struct json_writer w;
    char time[ISO_TIME_LEN];
    json_init_buf(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    put_text(&w, "schema", schema);
    put_text(&w, "name", d->name);
    put_text(&w, "run", d->run);
    put_text(&w, "created", d->created_ns ? iso_time(d->created_ns, time) : NULL);
    put_text(&w, "cwd", d->cwd);
    put_text(&w, "machine", d->machine);
    json_key(&w, "environment");
    json_put_string(&w, d->has_environment ? d->environment : NULL);
    put_text(&w, "fingerprint", d->fingerprint);
    json_key(&w, "profiled");
    json_put_bool(&w, d->profiled);
    json_key(&w, "command");
    json_array_begin(&w);
    for (size_t i = 0; i < d->command_count; i++)
        json_put_string(&w, d->command[i]);
    json_array_end(&w);
    json_key(&w, "metrics");
    json_object_begin(&w);
    for (size_t i = 0; i < d->metric_count; i++) {
        json_key(&w, d->metrics[i].name);
        json_array_begin(&w);
        for (size_t k = 0; k < d->metrics[i].count; k++)
            json_put_double(&w, d->metrics[i].values[k]);
        json_array_end(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}

const struct baseline_metric *baseline_find(const struct baseline_doc *doc,
                                            const char *name)
{
    for (size_t i = 0; i < doc->metric_count; i++)
        if (strcmp(doc->metrics[i].name, name) == 0)
            return &doc->metrics[i];
    return NULL;
}
