/* experiment.c: one experiment, and the JSON line it arrives as. */
#include "store/experiment.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/error.h"
#include "base/json.h"
#include "base/moment.h"
#include "base/redact.h"
#include "store/jread.h"
#include "trace/runfile.h"

const char *const fact_kind_names[FACT_KINDS] = { "params", "metrics", "tags" };

const char *const core_names[CORE_FIELDS] = {
#define CORE_NAME(upper, lower) #lower,
    CORE_FIELDS_LIST(CORE_NAME)
#undef CORE_NAME
};

enum { FACT_DEPTH = 8 };

static bool same(const char *word, const char *text, size_t len)
{
    return strlen(word) == len && memcmp(word, text, len) == 0;
}

int core_find(const char *name, size_t len)
{
    static const struct {
        const char *name;
        int field;
    } others[] = {
        { "duration", CORE_DURATION_S },      { "memory", CORE_MEMORY_PEAK_MB },
        { "memory_mb", CORE_MEMORY_PEAK_MB }, { "peak_rss_mb", CORE_MEMORY_PEAK_MB },
        { "energy", CORE_ENERGY_J },
    };
    for (int i = 0; i < CORE_FIELDS; i++)
        if (same(core_names[i], name, len))
            return i;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (same(others[i].name, name, len))
            return others[i].field;
    return -1;
}

void experiment_init(struct experiment *ret_experiment)
{
    *ret_experiment = (struct experiment){ .kind = "log",
                                           .exit_code = -1,
                                           .bytes = -1 };
    for (int i = 0; i < CORE_FIELDS; i++)
        ret_experiment->core[i] = NAN;
}

void experiment_derive(struct experiment *e)
{
    struct arena arena = ARENA_INIT;
    const struct value v = facts_get(e, FACT_METRIC, "accuracy", &arena);
    const double accuracy = v.type == VALUE_INT || v.type == VALUE_FLOAT ? v.number
                                                                         : NAN;
    const double time = e->core[CORE_DURATION_S];
    const double memory = e->core[CORE_MEMORY_PEAK_MB];
    if (isnan(e->core[CORE_EFFICIENCY]) && time > 0 && memory > 0)
        e->core[CORE_EFFICIENCY] = accuracy / (time * memory);
    if (isnan(e->core[CORE_ACCURACY_PER_S]) && time > 0)
        e->core[CORE_ACCURACY_PER_S] = accuracy / time;
    arena_release(&arena);
}

/* 256 ids from one system call: a campaign logs fifty thousand a second. */
int experiment_new_id(char ret_id[EXPERIMENT_ID_LEN])
{
    static _Thread_local uint64_t pool[32];
    static _Thread_local size_t left;
    if (left == 0) {
        if (getrandom(pool, sizeof pool, 0) != (ssize_t)sizeof pool)
            return -EIO;
        left = sizeof pool / sizeof *pool;
    }
    (void)snprintf(ret_id, EXPERIMENT_ID_LEN, "%016llx",
                   (unsigned long long)pool[--left]);
    return 0;
}

bool experiment_id_is_good(const char *id, size_t len)
{
    if (len == 0 || len > 128 || id[0] == '@' || id[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)id[i] <= ' ' || id[i] == 0x7f || strchr("'\"/\\", id[i]))
            return false;
    return true;
}

/* ---- Reading a line ----------------------------------------------------------------- */

struct line {
    struct jread r;
    struct arena *arena;
    struct experiment *e;
    struct buf *message;
    double accuracy;
};

static int complain(struct line *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int complain(struct line *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_vprintf(l->message, fmt, args);
    va_end(args);
    return SONDE_E_FORMAT;
}

static int bad_json(struct line *l)
{
    return complain(l, "not JSON: %s at byte %zu",
                    l->r.error ? l->r.error : "not an object", l->r.error_at + 1);
}

/* The same names come again in every line: judged once each, as far as they fit. */
static bool is_secret(const char *key, size_t len)
{
    static _Thread_local struct {
        char key[24];
        unsigned char len;
        bool known, secret;
    } seen[64];
    if (len >= sizeof seen[0].key)
        return redact_name_is_secret(key, len);
    unsigned hash = (unsigned)len;
    for (size_t i = 0; i < len; i++)
        hash = hash * 31 + (unsigned char)key[i];
    const unsigned at = hash % 64;
    if (!seen[at].known || seen[at].len != len || memcmp(seen[at].key, key, len) != 0) {
        memcpy(seen[at].key, key, len);
        seen[at].len = (unsigned char)len;
        seen[at].secret = redact_name_is_secret(key, len);
        seen[at].known = true;
    }
    return seen[at].secret;
}

/* Metrics are numbers, and those give nothing away, whatever they are called. */
static bool may_be_secret(enum fact_kind kind, const struct jread *key)
{
    return kind != FACT_METRIC && is_secret(key->text, key->len);
}

static void put_name(struct buf *out, const char *prefix, const struct jread *r)
{
    if (out->len > 1)
        buf_putc(out, ',');
    buf_putc(out, '"');
    buf_puts(out, prefix);
    buf_append(out, r->text, r->len); /* escapes stay as they are */
    buf_puts(out, "\":");
}

/* Metrics are numbers, "NaN" and "Infinity" among them. */
static bool may_be(enum fact_kind kind, enum jread_token token, const struct jread *r)
{
    if (kind != FACT_METRIC || token == JREAD_INT || token == JREAD_FLOAT ||
        token == JREAD_NULL)
        return true;
    if (token != JREAD_STRING)
        return false;
    const struct value v = value_from_text(r->text, r->len);
    return v.type == VALUE_FLOAT && !isfinite(v.number);
}

static int not_a_number(struct line *l, const struct jread *key)
{
    return complain(l, "metric \"%.*s\" is not a number",
                    (int)(key->len < 60 ? key->len : 60), key->text);
}

/* The slow way: objects within objects, lists, secrets. */
static int rewrite_facts(struct line *l, enum fact_kind kind, const char *prefix,
                         unsigned depth, struct buf *out)
{
    struct jread *r = &l->r;
    while (jread_next(r) == JREAD_KEY) {
        const struct jread key = *r;
        const bool secret = may_be_secret(kind, &key);
        const enum jread_token token = jread_next(r);
        const char *begin = r->at - 1; /* the bracket of a container */
        if (token == JREAD_ERROR)
            return bad_json(l);
        if (token == JREAD_OBJECT_BEGIN && depth < FACT_DEPTH) {
            char *inner = NULL;
            if (asprintf(&inner, "%s%.*s.", prefix, (int)key.len, key.text) < 0)
                return -ENOMEM;
            const int rc = rewrite_facts(l, kind, inner, depth + 1, out);
            free(inner);
            if (rc < 0)
                return rc;
            continue;
        }
        if (!jread_skip(r))
            return bad_json(l);
        if (token == JREAD_NULL)
            continue;
        if (!may_be(kind, token, r))
            return not_a_number(l, &key);
        put_name(out, prefix, &key);
        const struct value redacted = { .type = VALUE_TEXT,
                                        .text = REDACTED_TEXT,
                                        .len = sizeof REDACTED_TEXT - 1 };
        const struct value list = { .type = VALUE_TEXT,
                                    .text = begin,
                                    .len = (size_t)(r->at - begin) };
        if (secret)
            value_write(out, &redacted);
        else if (token == JREAD_ARRAY_BEGIN || token == JREAD_OBJECT_BEGIN)
            value_write(out, &list);
        else if (token == JREAD_STRING)
            buf_printf(out, "\"%.*s\"", (int)r->len, r->text);
        else
            buf_append(out, r->text, r->len);
    }
    return r->token == JREAD_OBJECT_END ? 0 : bad_json(l);
}

/* Keeps the object's own text when nothing in it needs changing. */
static int read_facts(struct line *l, enum fact_kind kind)
{
    struct jread *r = &l->r;
    const struct jread start = *r;
    if (jread_next(r) != JREAD_OBJECT_BEGIN)
        return r->token == JREAD_NULL
                   ? 0
                   : complain(l, "\"%s\" must be an object", fact_kind_names[kind]);
    const char *begin = r->at - 1;
    bool plain = true;
    while (plain && jread_next(r) == JREAD_KEY) {
        const bool accuracy = kind == FACT_METRIC && jread_is(r, "accuracy");
        plain = !may_be_secret(kind, r);
        const struct jread key = *r;
        const enum jread_token token = jread_next(r);
        const bool number = token == JREAD_INT || token == JREAD_FLOAT;
        plain &= token >= JREAD_STRING;
        if (plain && token != JREAD_ERROR && !may_be(kind, token, r))
            return not_a_number(l, &key);
        if (accuracy && number)
            l->accuracy = r->number;
    }
    if (plain && r->token == JREAD_OBJECT_END) {
        l->e->facts[kind] = begin;
        l->e->facts_len[kind] = (size_t)(r->at - begin);
        return 0;
    }
    if (r->token == JREAD_ERROR)
        return bad_json(l);
    *r = start;
    (void)jread_next(r);
    struct buf out = BUF_INIT;
    buf_putc(&out, '{');
    int rc = rewrite_facts(l, kind, "", 0, &out);
    buf_putc(&out, '}');
    if (rc == 0) {
        l->e->facts[kind] = out.error ? NULL
                                      : arena_strndup(l->arena, out.data, out.len);
        l->e->facts_len[kind] = out.len;
        rc = l->e->facts[kind] ? 0 : -ENOMEM;
    }
    buf_release(&out);
    return rc;
}

static int read_text(struct line *l, const char *what, const char **ret_text)
{
    size_t len;
    const enum jread_token token = jread_next(&l->r);
    if (token == JREAD_NULL)
        return 0;
    if (token == JREAD_ERROR)
        return bad_json(l);
    if (token != JREAD_STRING)
        return complain(l, "\"%s\" must be a text", what);
    const char *text = jread_text(&l->r, l->arena, &len);
    if (!text)
        return -ENOMEM;
    if (strlen(text) != len)
        return complain(l, "\"%s\" holds a NUL character", what);
    *ret_text = text;
    return 0;
}

bool moment_parse(const char *text, int64_t *ret_ns)
{
    struct tm tm = { 0 };
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!p)
        p = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    if (!p)
        p = strptime(text, "%Y-%m-%d", &tm);
    if (!p)
        return false;
    const int64_t seconds = (int64_t)timegm(&tm);
    if (seconds < 0 ||
        seconds > 9000000000) /* 1970 to 2255: what nanoseconds can say */
        return false;
    int64_t ns = seconds * 1000000000;
    if (*p == '.') {
        int64_t unit = 100000000;
        for (p++; isdigit((unsigned char)*p); p++, unit /= 10)
            ns += unit * (*p - '0');
    }
    if (*p == '+' || *p == '-') {
        int hours = 0, minutes = 0, used = 0;
        if (sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &used) < 2 &&
            sscanf(p + 1, "%2d%2d%n", &hours, &minutes, &used) < 2)
            return false;
        const int64_t shift = ((int64_t)hours * 60 + minutes) * 60000000000;
        ns -= *p == '+' ? shift : -shift;
        p += 1 + used;
    } else if (*p == 'Z') {
        p++;
    }
    if (*p)
        return false;
    *ret_ns = ns;
    return true;
}

static int read_started(struct line *l)
{
    const char *text = NULL;
    const struct jread before = l->r;
    const enum jread_token token = jread_next(&l->r);
    if ((token == JREAD_INT || token == JREAD_FLOAT) && l->r.number > 0 &&
        l->r.number < 9e9) {
        l->e->started_ns = (int64_t)(l->r.number * 1e9);
        return 0;
    }
    l->r = before;
    const int rc = read_text(l, "started", &text);
    if (rc < 0 || !text)
        return rc;
    return moment_parse(text, &l->e->started_ns)
               ? 0
               : complain(
                     l, "\"started\" must be ISO 8601 or seconds since 1970, not '%s'",
                     text);
}

static int read_core(struct line *l, int field)
{
    const enum jread_token token = jread_next(&l->r);
    if (token == JREAD_NULL)
        return 0;
    if (token == JREAD_ERROR)
        return bad_json(l);
    if (token != JREAD_INT && token != JREAD_FLOAT)
        return complain(l, "\"%s\" must be a number", core_names[field]);
    l->e->core[field] = l->r.number;
    return 0;
}

static int read_series(struct line *l)
{
    const enum jread_token token = jread_next(&l->r);
    const char *begin = l->r.at - 1;
    if (token == JREAD_NULL)
        return 0;
    if (token != JREAD_OBJECT_BEGIN)
        return complain(l, "\"series\" must be an object of lists");
    while (jread_next(&l->r) == JREAD_KEY)
        if (jread_next(&l->r) != JREAD_ARRAY_BEGIN || !jread_skip(&l->r))
            return l->r.token == JREAD_ERROR
                       ? bad_json(l)
                       : complain(l, "\"series\" must be an object of lists");
    if (l->r.token != JREAD_OBJECT_END)
        return bad_json(l);
    l->e->series = begin;
    l->e->series_len = (size_t)(l->r.at - begin);
    return 0;
}

static int read_exit(struct line *l)
{
    const enum jread_token token = jread_next(&l->r);
    if (token == JREAD_NULL)
        return 0;
    if (token != JREAD_INT || l->r.integer < 0 || l->r.integer > 255)
        return complain(l, "\"exit_code\" must be 0 to 255");
    l->e->exit_code = (int)l->r.integer;
    return 0;
}

static int read_member(struct line *l)
{
    static const struct {
        const char *key;
        size_t offset;
    } texts[] = {
        { "id", offsetof(struct experiment, id) },
        { "name", offsetof(struct experiment, name) },
        { "parent", offsetof(struct experiment, parent) },
        { "document", offsetof(struct experiment, document) },
        { "command", offsetof(struct experiment, command) },
        { "cause", offsetof(struct experiment, cause) },
    };
    struct jread *r = &l->r;
    for (int kind = 0; kind < FACT_KINDS; kind++)
        if (jread_is(r, fact_kind_names[kind]))
            return read_facts(l, (enum fact_kind)kind);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (jread_is(r, texts[i].key))
            return read_text(l, texts[i].key,
                             (const char **)(void *)((char *)l->e + texts[i].offset));
    const int field = core_find(r->text, r->len);
    if (field >= 0)
        return read_core(l, field);
    if (jread_is(r, "started"))
        return read_started(l);
    if (jread_is(r, "series"))
        return read_series(l);
    if (jread_is(r, "exit_code"))
        return read_exit(l);
    if (jread_is(r, "schema") || jread_is(r, "kind") || jread_is(r, "seq")) {
        (void)jread_next(r);
        return jread_skip(r) ? 0 : bad_json(l);
    }
    return complain(
        l,
        "unknown key \"%.*s\" (params, metrics, tags, name, id, duration_s, "
        "memory_peak_mb … are known)",
        (int)(r->len < 60 ? r->len : 60), r->text);
}

static int check(struct line *l)
{
    struct experiment *e = l->e;
    if (e->id && !experiment_id_is_good(e->id, strlen(e->id)))
        return complain(l, "\"id\" may not be '%.40s'", e->id);
    if (e->name && (e->name[0] == '\0' || e->name[0] == '@'))
        return complain(l, "\"name\" may not be empty or begin with '@'");
    if (!e->started_ns)
        e->started_ns = (int64_t)moment_ns(CLOCK_REALTIME);
    const double time = e->core[CORE_DURATION_S];
    const double memory = e->core[CORE_MEMORY_PEAK_MB];
    if (isnan(e->core[CORE_EFFICIENCY]) && time > 0 && memory > 0)
        e->core[CORE_EFFICIENCY] = l->accuracy / (time * memory);
    if (isnan(e->core[CORE_ACCURACY_PER_S]) && time > 0)
        e->core[CORE_ACCURACY_PER_S] = l->accuracy / time;
    return 0;
}

int experiment_parse(const char *line, size_t len, struct arena *arena,
                     struct experiment *ret_experiment, struct buf *ret_message)
{
    struct experiment e;
    struct line l = {
        .arena = arena, .e = &e, .message = ret_message, .accuracy = NAN
    };
    int rc = 0;
    experiment_init(&e);
    jread_init(&l.r, line, len);
    if (jread_next(&l.r) != JREAD_OBJECT_BEGIN)
        return l.r.token == JREAD_ERROR ? bad_json(&l)
                                        : complain(&l, "a line must be a JSON object");
    while (rc == 0 && jread_next(&l.r) == JREAD_KEY)
        rc = read_member(&l);
    if (rc == 0 && (l.r.token != JREAD_OBJECT_END || jread_next(&l.r) != JREAD_END))
        rc = bad_json(&l);
    if (rc == 0)
        rc = check(&l);
    if (rc == 0)
        *ret_experiment = e;
    return rc;
}

/* ---- Writing ------------------------------------------------------------------------ */

static void write_text(struct buf *out, const char *key, const char *text)
{
    if (text)
        fact_write(
            out, key,
            &(struct value){ .type = VALUE_TEXT, .text = text, .len = strlen(text) });
}

static void write_raw(struct buf *out, const char *key, const char *json, size_t len)
{
    if (!json || len == 0)
        return;
    buf_printf(out, "%s\"%s\":", out->data[out->len - 1] == '{' ? "" : ",", key);
    buf_append(out, json, len);
}

void experiment_write(struct buf *out, const struct experiment *e)
{
    char time[ISO_TIME_LEN];
    buf_putc(out, '{');
    write_text(out, "id", e->id);
    write_text(out, "kind", e->kind);
    write_text(out, "name", e->name);
    write_text(out, "parent", e->parent);
    write_text(out, "command", e->command);
    write_text(out, "document", e->document);
    if (e->started_ns)
        write_text(out, "started", iso_time(e->started_ns, time));
    if (e->exit_code >= 0)
        fact_write(out, "exit_code",
                   &(struct value){ .type = VALUE_INT, .integer = e->exit_code });
    write_text(out, "cause", e->cause);
    for (int i = 0; i < CORE_FIELDS; i++)
        if (isfinite(e->core[i]))
            fact_write(out, core_names[i],
                       &(struct value){ .type = VALUE_FLOAT, .number = e->core[i] });
    for (int kind = 0; kind < FACT_KINDS; kind++)
        write_raw(out, fact_kind_names[kind], e->facts[kind], e->facts_len[kind]);
    write_raw(out, "series", e->series, e->series_len);
    buf_putc(out, '}');
}
