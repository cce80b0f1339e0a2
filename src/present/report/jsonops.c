/* jsonops.c: the operations of the JSON report, and what else comes in rows. */
#include "present/report/jsonparts.h"

#include <math.h>
#include <string.h>

static const char *const kind_names[] = {
    [OP_ROOT] = "root",
    [OP_ZONE] = "zone",
    [OP_SPAN] = "span",
    [OP_OTHER] = "other",
};

static void put_path(struct json_writer *w, const struct op_table *t, uint32_t index)
{
    uint32_t chain[256];
    size_t n = 0;
    for (uint32_t at = index; at && n < 256; at = t->ops[at].parent)
        chain[n++] = at;
    json_key(w, "path");
    json_array_begin(w);
    while (n > 0)
        json_put_string(w, t->ops[chain[--n]].name);
    json_array_end(w);
}

/* "key=value,key=value" as an object. A key that comes again is left out: of two
 * equal keys readers of JSON keep whichever they like. */
static size_t tag_length(const char *p)
{
    size_t n = 0;
    while (p[n] && p[n] != ',')
        n += p[n] == '\\' && (p[n + 1] == ',' || p[n + 1] == '\\') ? 2 : 1;
    return n;
}

/* The value without the backslashes that kept its commas. */
static void put_tag_value(struct json_writer *w, const char *value, size_t len)
{
    char plain[1024];
    size_t n = 0;
    for (size_t i = 0; i < len && n < sizeof plain; i++) {
        i += value[i] == '\\' && i + 1 < len &&
             (value[i + 1] == ',' || value[i + 1] == '\\');
        plain[n++] = value[i];
    }
    json_put_stringn(w, plain, n);
}

static bool came_before(const char *tags, const char *key, size_t len)
{
    for (const char *p = tags; p < key;) {
        const size_t item = tag_length(p);
        if (item >= len && strncmp(p, key, len) == 0 && (p[len] == '=' || item == len))
            return true;
        p += item + (p[item] == ',');
    }
    return false;
}

static void put_tags(struct json_writer *w, const char *tags)
{
    json_key(w, "tags");
    json_object_begin(w);
    for (const char *p = tags; *p;) {
        const size_t item = tag_length(p);
        const char *equals = memchr(p, '=', item);
        const size_t len = equals ? (size_t)(equals - p) : item;
        if (len > 0 && !came_before(tags, p, len)) {
            json_keyn(w, p, len);
            if (equals)
                put_tag_value(w, equals + 1, item - len - 1);
            else
                json_put_string(w, "");
        }
        p += item + (p[item] == ',');
    }
    json_object_end(w);
}

static void put_value(struct json_writer *w, const struct op_value *v)
{
    json_key(w, v->name);
    json_object_begin(w);
    field_uint(w, "count", v->count);
    json_key(w, "sum");
    json_put_double(w, v->sum);
    json_key(w, "mean");
    json_put_double(w, v->sum / (double)v->count);
    json_key(w, "min");
    json_put_double(w, v->min);
    json_key(w, "max");
    json_put_double(w, v->max);
    json_key(w, "last");
    json_put_double(w, v->last);
    json_object_end(w);
}

static void put_values(struct json_writer *w, const char *key,
                       const struct op_value *list)
{
    json_key(w, key);
    json_object_begin(w);
    for (const struct op_value *v = list; v; v = v->next)
        put_value(w, v);
    json_object_end(w);
}

static void put_identity(struct json_writer *w, const struct op_table *t,
                         uint32_t index)
{
    const struct op *op = &t->ops[index];
    json_key(w, "name");
    json_put_string(w, op->name);
    put_path(w, t, index);
    field_text(w, "kind", kind_names[op->kind]);
    field_text(w, "component", op->component);
    field_text(w, "category", op->category);
    field_text(w, "phase", op->phase ? sonde_phase_name(op->phase) : NULL);
    field_text(w, "file", op->file);
    field_int(w, "line", op->file[0] ? op->line : -1);
    put_tags(w, op->tags);
}

static void put_durations(struct json_writer *w, const struct report *r,
                          const struct op *op)
{
    const struct distribution *d = &op->durations;
    const bool any = d->count > 0;
    field_uint(w, "count", d->count);
    field_number(w, "calls_per_s", (double)d->count / report_duration_s(r), 6);
    field_seconds(w, "total_s", op->total_ns);
    field_seconds(w, "self_s", op->self_ns);
    field_ms(w, "mean_ms", any ? d->mean : NAN);
    field_ms(w, "std_ms", distribution_std(d));
    field_ms(w, "min_ms", any ? d->min : NAN);
    field_ms(w, "max_ms", any ? d->max : NAN);
    field_ms(w, "p50_ms", distribution_quantile(d, 0.50));
    field_ms(w, "p95_ms", distribution_quantile(d, 0.95));
    field_ms(w, "p99_ms", distribution_quantile(d, 0.99));
    field_seconds(w, "start_s",
                  op->first_ns ? (double)(op->first_ns - r->start_ns) : NAN);
    field_seconds(w, "end_s", op->last_ns ? (double)(op->last_ns - r->start_ns) : NAN);
}

static void put_resources(struct json_writer *w, const struct op *op)
{
    static const char *const gpu[] = { "gpu_mem_before_mb", "gpu_mem_after_mb",
                                       "gpu_mem_peak_mb", "gpu_util_percent", NULL };
    field_seconds(w, "cpu_s", op->op_count ? op->cpu_ns : NAN);
    field_number(w, "mem_before_mb", op->mem_before_mb, 6);
    field_number(w, "mem_after_mb", op->mem_after_mb, 6);
    field_number(w, "mem_peak_mb", op->mem_peak_mb, 6);
    field_nulls(w, gpu);
}

static void put_operation(struct json_writer *w, const struct report *r, uint32_t index)
{
    const struct op *op = &r->ops.ops[index];
    json_object_begin(w);
    put_identity(w, &r->ops, index);
    put_durations(w, r, op);
    put_resources(w, op);
    put_values(w, "custom", op->values);
    field_seconds(w, "main_s", op->main_ns);
    field_seconds(w, "main_self_s", op->main_self_ns);
    field_uint(w, "operations", op->op_count);
    field_uint(w, "truncated", op->truncated);
    field_uint(w, "unbalanced", op->unbalanced);
    field_uint(w, "open", op->kind == OP_SPAN ? op->spans_open : op->open);
    field_seconds(w, "open_s", op->open_ns);
    field_seconds(w, "suspended_s", op->kind == OP_SPAN ? op->suspended_ns : NAN);
    if (op->elsewhere_ns > 0)
        field_seconds(w, "elsewhere_s", op->elsewhere_ns);
    json_object_end(w);
}

static void put_components(struct json_writer *w, const struct report *r)
{
    json_key(w, "components");
    json_array_begin(w);
    for (size_t i = 0; i < r->component_count; i++) {
        const struct component_sum *c = &r->components[i];
        json_object_begin(w);
        field_text(w, "component", c->name);
        field_uint(w, "operations", c->operations);
        field_uint(w, "count", c->calls);
        field_seconds(w, "total_s", c->total_ns);
        field_seconds(w, "self_s", c->self_ns);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_steps(struct json_writer *w, const struct report *r)
{
    const struct step_series *s = &r->series;
    json_key(w, "steps");
    json_object_begin(w);
    field_uint(w, "count", s->steps);
    field_uint(w, "per_point", s->per_point);
    json_key(w, "partial");
    json_put_bool(w, s->partial);
    json_key(w, "points");
    json_array_begin(w);
    for (size_t i = 0; i < s->count; i++) {
        json_array_begin(w);
        json_put_fixed(w, (double)(s->points[i].time_ns - r->start_ns) / 1e9, 9);
        json_put_fixed(w, s->points[i].mean_ns / 1e6, 6);
        json_array_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

void fields_of_operations(struct json_writer *w, const struct report *r,
                          const struct op_filter *filter)
{
    json_key(w, "operations");
    json_array_begin(w);
    for (size_t i = 0; i < r->ops.order_count; i++)
        if (filter->shown[r->ops.order[i]])
            put_operation(w, r, r->ops.order[i]);
    json_array_end(w);
    json_key(w, "operations_left_out");
    json_object_begin(w);
    field_uint(w, "count", filter->left_out);
    field_seconds(w, "self_s", filter->left_out_ns);
    json_object_end(w);
    put_components(w, r);
    put_values(w, "values", r->ops.ops[0].values);
    put_values(w, "counters", r->counters);
    put_steps(w, r);
}
