/* value.c: plain values: numbers, truths, texts, and objects of them. */
#include "store/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "store/jread.h"

static const struct {
    const char *text;
    double number;
} not_finite[] = {
    { "NaN", NAN },
    { "nan", NAN },
    { "Infinity", INFINITY },
    { "inf", INFINITY },
    { "-Infinity", -INFINITY },
    { "-inf", -INFINITY },
};

static bool find_not_finite(const char *text, size_t len, double *ret_number)
{
    for (size_t i = 0; i < sizeof not_finite / sizeof *not_finite; i++)
        if (strlen(not_finite[i].text) == len &&
            memcmp(not_finite[i].text, text, len) == 0) {
            *ret_number = not_finite[i].number;
            return true;
        }
    return false;
}

static struct value of_bool(bool truth)
{
    return (struct value){ .type = VALUE_BOOL, .integer = truth, .number = truth };
}

struct value value_from_text(const char *text, size_t len)
{
    struct value v = { .text = text, .len = len };
    bool integer;
    if (len == 4 && memcmp(text, "true", 4) == 0)
        return of_bool(true);
    if (len == 5 && memcmp(text, "false", 5) == 0)
        return of_bool(false);
    if (number_parse(text, len, &v.number, &integer, &v.integer)) {
        v.type = integer ? VALUE_INT : VALUE_FLOAT;
        if (!integer)
            v.integer = 0;
        return v;
    }
    v.type = find_not_finite(text, len, &v.number) ? VALUE_FLOAT : VALUE_TEXT;
    return v;
}

static void write_float(struct buf *out, double number)
{
    char text[40];
    if (!isfinite(number)) {
        buf_puts(out, isnan(number) ? "\"NaN\""
                      : number > 0  ? "\"Infinity\""
                                    : "\"-Infinity\"");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    for (char *p = text; *p; p++) /* another locale's point */
        if (!strchr("+-0123456789e", *p))
            *p = '.';
    buf_puts(out, text);
    if (!strpbrk(text, ".e"))
        buf_puts(out, ".0");
}

void value_write(struct buf *out, const struct value *v)
{
    struct json_writer w;
    switch (v->type) {
    case VALUE_NONE:
        buf_puts(out, "null");
        break;
    case VALUE_BOOL:
        buf_puts(out, v->integer ? "true" : "false");
        break;
    case VALUE_INT:
        buf_printf(out, "%lld", (long long)v->integer);
        break;
    case VALUE_FLOAT:
        write_float(out, v->number);
        break;
    case VALUE_TEXT:
        json_init_buf(&w, out, JSON_STYLE_COMPACT);
        json_put_stringn(&w, v->text, v->len);
        (void)json_finish(&w);
        break;
    }
}

void fact_write(struct buf *out, const char *key, const struct value *value)
{
    const struct value name = { .type = VALUE_TEXT, .text = key, .len = strlen(key) };
    if (out->len && out->data[out->len - 1] != '{')
        buf_putc(out, ',');
    value_write(out, &name);
    buf_putc(out, ':');
    value_write(out, value);
}

/* ---- Objects ------------------------------------------------------------------------ */

/* The plain value just read; VALUE_NONE for null. False when it is a container. */
static bool plain_value(const struct jread *r, struct arena *arena, struct value *ret)
{
    struct value v = { .type = VALUE_NONE };
    switch (r->token) {
    case JREAD_INT:
        v = (struct value){ VALUE_INT, r->integer, r->number, NULL, 0 };
        break;
    case JREAD_FLOAT:
        v = (struct value){ VALUE_FLOAT, 0, r->number, NULL, 0 };
        break;
    case JREAD_TRUE:
    case JREAD_FALSE:
        v = of_bool(r->token == JREAD_TRUE);
        break;
    case JREAD_STRING:
        v.type = VALUE_TEXT;
        v.text = r->escaped ? jread_text(r, arena, &v.len) : r->text;
        if (!r->escaped)
            v.len = r->len;
        break;
    case JREAD_NULL:
        break;
    default:
        return false;
    }
    *ret = v;
    return true;
}

int facts_each(const char *json, size_t len, struct arena *scratch, fact_fn each,
               void *arg)
{
    struct jread r;
    struct value v;
    if (!json || len == 0)
        return 0;
    jread_init(&r, json, len);
    if (jread_next(&r) != JREAD_OBJECT_BEGIN)
        return SONDE_E_FORMAT;
    while (jread_next(&r) == JREAD_KEY) {
        size_t key_len = r.len;
        const char *key = r.escaped ? jread_text(&r, scratch, &key_len) : r.text;
        (void)jread_next(&r);
        if (!key || !plain_value(&r, scratch, &v) || (v.type == VALUE_TEXT && !v.text))
            return SONDE_E_FORMAT;
        const int rc = v.type == VALUE_NONE ? 0 : each(arg, key, key_len, &v);
        if (rc != 0)
            return rc;
    }
    return r.token == JREAD_OBJECT_END ? 0 : SONDE_E_FORMAT;
}

void value_fix_metric(struct value *v)
{
    if (v->type == VALUE_TEXT && find_not_finite(v->text, v->len, &v->number))
        v->type = VALUE_FLOAT;
}

struct wanted {
    const char *key;
    size_t len;
    enum fact_kind kind;
    struct value found;
};

static int look(void *arg, const char *key, size_t key_len, const struct value *value)
{
    struct wanted *w = arg;
    if (key_len == w->len && memcmp(key, w->key, key_len) == 0)
        w->found = *value; /* the last of several, as everywhere */
    return 0;
}

struct value facts_get(const struct experiment *e, enum fact_kind kind, const char *key,
                       struct arena *arena)
{
    struct wanted w = { .key = key, .len = strlen(key), .kind = kind };
    if (facts_each(e->facts[kind], e->facts_len[kind], arena, look, &w) < 0)
        return (struct value){ .type = VALUE_NONE };
    if (kind == FACT_METRIC)
        value_fix_metric(&w.found);
    return w.found;
}
