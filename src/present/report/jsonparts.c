/* jsonparts.c: small words of the JSON report. */
#include "present/report/jsonparts.h"

#include <math.h>

#include "trace/runfile.h"

/* Last: its JSON_STYLE_COMPACT is a macro, that of base/json.h an enum. */
#include <jansson.h>

void field_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text && text[0] ? text : NULL);
}

void field_uint(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_put_uint(w, value);
}

void field_int(struct json_writer *w, const char *key, int value)
{
    json_key(w, key);
    if (value >= 0)
        json_put_int(w, value);
    else
        json_put_null(w);
}

void field_number(struct json_writer *w, const char *key, double value, int decimals)
{
    json_key(w, key);
    json_put_fixed(w, value, decimals);
}

void field_seconds(struct json_writer *w, const char *key, double ns)
{
    field_number(w, key, ns / 1e9, 12);
}

void field_ms(struct json_writer *w, const char *key, double ns)
{
    field_number(w, key, ns / 1e6, 9);
}

void field_null(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_put_null(w);
}

void field_nulls(struct json_writer *w, const char *const *keys)
{
    for (; *keys; keys++)
        field_null(w, *keys);
}

void field_empty_array(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_array_begin(w);
    json_array_end(w);
}

void field_time(struct json_writer *w, const char *key, int64_t ns)
{
    char text[ISO_TIME_LEN];
    field_text(w, key, ns > 0 ? iso_time(ns, text) : NULL);
}

/* Passes part of run.json on. It may be nested as deep as jansson reads; we are not. */
static void put_any(struct json_writer *w, const json_t *value, int depth)
{
    enum { DEEPEST = 16 };
    switch (value && depth < DEEPEST ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT: {
        const char *key;
        json_t *member;
        json_object_begin(w);
        json_object_foreach((json_t *)value, key, member)
        {
            json_key(w, key);
            put_any(w, member, depth + 1);
        }
        json_object_end(w);
        break;
    }
    case JSON_ARRAY:
        json_array_begin(w);
        for (size_t i = 0; i < json_array_size(value); i++)
            put_any(w, json_array_get(value, i), depth + 1);
        json_array_end(w);
        break;
    case JSON_STRING:
        json_put_string(w, json_string_value(value));
        break;
    case JSON_INTEGER:
        json_put_int(w, json_integer_value(value));
        break;
    case JSON_REAL:
        json_put_double(w, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_put_bool(w, json_is_true(value));
        break;
    case JSON_NULL:
        json_put_null(w);
        break;
    }
}

void field_from_run(struct json_writer *w, const struct json_t *root, const char *group,
                    const char *key)
{
    const json_t *object = group ? json_object_get(root, group) : root;
    json_key(w, key);
    put_any(w, json_object_get(object, key), 0);
}
