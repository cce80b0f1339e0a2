/* series.c: see series.h and trace/monitor_rows.h, which says why a kill is harmless. */
#include "capture/monitor/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/monitor/sampler.h"

enum { MERGE = 2, MAX_SHIFT = 40 };

static uint32_t hash_of(const char *metric, const char *subject)
{
    uint32_t h = 2166136261u;
    for (; *metric; metric++)
        h = (h ^ (uint8_t)*metric) * 16777619u;
    h *= 16777619u;
    for (; *subject; subject++)
        h = (h ^ (uint8_t)*subject) * 16777619u;
    return h;
}

static bool same(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

void series_init(struct series_store *store, struct tables *tables, uint64_t base_ns)
{
    *store = (struct series_store){ .tables = tables, .base_ns = base_ns };
}

void series_release(struct series_store *s)
{
    for (size_t i = 0; i < s->count; i++)
        free((char *)(uintptr_t)s->list[i].subject);
    for (size_t i = 0; i < s->text_count; i++)
        free(s->texts[i].text);
    free(s->texts);
    free(s->list);
    free(s->index);
    *s = (struct series_store){ 0 };
}

/* ---- Texts and rows ------------------------------------------------------------------ */

const struct series_text *series_text(struct series_store *s, const char *text)
{
    for (size_t i = 0; i < s->text_count; i++)
        if (strcmp(s->texts[i].text, text) == 0)
            return &s->texts[i];
    if (s->text_count == s->text_cap) {
        const size_t cap = s->text_cap ? s->text_cap * 2 : 64;
        struct series_text *more = realloc(s->texts, cap * sizeof *more);
        if (!more)
            return NULL;
        s->texts = more;
        s->text_cap = cap;
    }
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    struct series_text *t = &s->texts[s->text_count++];
    *t = (struct series_text){ copy, tables_text(s->tables, text, strlen(text)) };
    return t;
}

static struct monitor_points_row *new_points(struct series_store *s,
                                             uint32_t *ret_place)
{
    uint32_t index;
    struct monitor_points_row *row = tables_append(s->tables, MONITOR_TABLE_POINTS,
                                                   &index);
    if (!row)
        return NULL;
    __atomic_store_n(&row->key, index + 1ull, __ATOMIC_RELEASE);
    *ret_place = index + 1;
    return row;
}

static void make_row(struct series_store *s, struct series *one, uint32_t metric,
                     uint32_t unit)
{
    uint32_t index;
    struct monitor_series_row *row = tables_append(s->tables, MONITOR_TABLE_SERIES,
                                                   &index);
    if (!row) {
        s->lost++;
        return;
    }
    row->metric = metric;
    row->unit = unit;
    row->subject = tables_text(s->tables, one->subject, strlen(one->subject));
    one->points = new_points(s, &row->points[0]);
    one->row = row;
    __atomic_store_n(&row->key, index + 1ull, __ATOMIC_RELEASE);
}

/* ---- Finding --------------------------------------------------------------------------- */

static void index_put(struct series_store *s, size_t number)
{
    size_t at = s->list[number].hash & (s->index_cap - 1);
    while (s->index[at])
        at = (at + 1) & (s->index_cap - 1);
    s->index[at] = (uint32_t)number + 1;
}

static bool grow(struct series_store *s)
{
    const size_t cap = s->cap ? s->cap * 2 : 128;
    struct series *list = realloc(s->list, cap * sizeof *list);
    if (!list)
        return false;
    s->list = list;
    uint32_t *index = calloc(cap * 2, sizeof *index);
    if (!index)
        return false;
    free(s->index);
    s->index = index;
    s->index_cap = cap * 2;
    s->cap = cap;
    for (size_t i = 0; i < s->count; i++)
        index_put(s, i);
    return true;
}

static struct series *look_up(const struct series_store *s, const char *metric,
                              const char *subject, uint32_t hash)
{
    if (!s->index_cap)
        return NULL;
    for (size_t at = hash & (s->index_cap - 1); s->index[at];
         at = (at + 1) & (s->index_cap - 1)) {
        struct series *one = &s->list[s->index[at] - 1];
        if (one->hash == hash && same(one->metric, metric) &&
            same(one->subject, subject))
            return one;
    }
    return NULL;
}

const struct series *series_find(const struct series_store *s, const char *metric,
                                 const char *subject)
{
    return look_up(s, metric, subject, hash_of(metric, subject));
}

static struct series *add(struct series_store *s, const char *metric,
                          const char *subject, const char *unit, uint32_t hash)
{
    if (s->count >= SAMPLER_SERIES_MAX || (s->count == s->cap && !grow(s))) {
        s->lost++;
        return NULL;
    }
    const struct series_text *m = series_text(s, metric);
    const uint32_t metric_place = m ? m->place : 0;
    const char *metric_text = m ? m->text : NULL; /* the next call may move them */
    const struct series_text *u = series_text(s, unit);
    char *copy = strdup(subject);
    if (!m || !u || !copy) {
        free(copy);
        return NULL;
    }
    struct series *one = &s->list[s->count];
    *one = (struct series){ .metric = metric_text,
                            .subject = copy,
                            .unit = u->text,
                            .hash = hash,
                            .stats = { .min = INFINITY, .max = -INFINITY } };
    index_put(s, s->count++);
    if (s->tables->base)
        make_row(s, one, metric_place, u->place);
    return one;
}

/* ---- Values ---------------------------------------------------------------------------- */

/* The words of one point or of two next to each other. Means count alike: what a point
 * stands for is the same time for both. */
static uint64_t merged(uint64_t a, uint64_t b)
{
    double mean_a, max_a, mean_b, max_b;
    if (!a || !b)
        return a | b;
    monitor_point_read(a, &mean_a, &max_a);
    monitor_point_read(b, &mean_b, &max_b);
    return monitor_point((mean_a + mean_b) / 2, fmax(max_a, max_b));
}

/* Half the resolution, in the other row. */
static bool halve(struct series_store *s, struct series *one)
{
    const unsigned now = one->row->state >> 1 & 1;
    struct monitor_points_row *to;
    if (one->row->points[!now])
        to = tables_row(s->tables, MONITOR_TABLE_POINTS, one->row->points[!now] - 1);
    else
        to = new_points(s, &one->row->points[!now]);
    if (!to || one->shift == MAX_SHIFT)
        return false;
    for (unsigned i = 0; i < MONITOR_POINTS; i++) {
        const unsigned from = i * MERGE;
        to->point[i] = from + 1 < MONITOR_POINTS ? merged(one->points->point[from],
                                                          one->points->point[from + 1])
                                                 : 0;
    }
    const uint64_t state = (one->row->state & 1) | (uint64_t)!now << 1 |
                           (uint64_t)(one->shift + 1) << 8;
    __atomic_store_n(&one->row->state, state, __ATOMIC_RELEASE);
    one->shift++;
    one->points = to;
    one->bucket /= MERGE;
    return true;
}

static void add_point(struct series_store *s, struct series *one, double value,
                      uint64_t at_ns, double weight_s)
{
    while (one->points && (at_ns / s->base_ns) >> one->shift >= MONITOR_POINTS)
        if (!halve(s, one))
            one->points = NULL; /* what is there stays; the statistics go on */
    if (!one->points)
        return;
    const uint64_t bucket = (at_ns / s->base_ns) >> one->shift;
    if (weight_s <= 0)
        weight_s = 1e-9; /* the first sample stands for no time, yet it is one */
    if (bucket != one->bucket || one->bucket_weight == 0) {
        one->bucket = bucket;
        one->bucket_sum = one->bucket_weight = 0;
        one->bucket_max = value;
    }
    one->bucket_sum += value * weight_s;
    one->bucket_weight += weight_s;
    one->bucket_max = fmax(one->bucket_max, value);
    __atomic_store_n(
        &one->points->point[bucket],
        monitor_point(one->bucket_sum / one->bucket_weight, one->bucket_max),
        __ATOMIC_RELAXED);
}

static void publish_stats(struct series *one)
{
    struct monitor_series_row *row = one->row;
    const uint64_t state = row->state ^ 1;
    row->stats[state & 1] = one->stats;
    __atomic_store_n(&row->state, state, __ATOMIC_RELEASE);
}

void series_set(struct series_store *s, const char *metric, const char *subject,
                const char *unit, double value, uint64_t at_ns, double weight_s)
{
    const uint32_t hash = hash_of(metric, subject);
    struct series *one = look_up(s, metric, subject, hash);
    if (!isfinite(value))
        return;
    if (!one)
        one = add(s, metric, subject, unit, hash);
    if (!one)
        return;
    struct monitor_stats *stats = &one->stats;
    stats->count++;
    stats->weight_s += weight_s;
    stats->sum += value * weight_s;
    stats->min = fmin(stats->min, value);
    stats->max = fmax(stats->max, value);
    stats->last = value;
    stats->last_ns = at_ns;
    if (!one->row)
        return;
    publish_stats(one);
    add_point(s, one, value, at_ns, weight_s);
}
