/* loader_sums.c: rows of sums become distributions. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/loader_parts.h"

enum { MAX_TRANSFORMS = 1024 };

/* Where times of a kind go; plain numbers have no `every`. */
static struct loader_times *times_of(struct loader *l, uint64_t what)
{
    switch (what) {
    case LOADER_FETCH:
        return &l->fetch;
    case LOADER_FIRST_FETCH:
        return &l->first_fetch;
    case LOADER_WAIT:
        return &l->wait;
    case LOADER_RECEIVE:
        return &l->receive;
    case LOADER_SAMPLING:
        return &l->sampling;
    case LOADER_PINNING:
        return &l->pin;
    case LOADER_TRANSFER:
        return &l->transfer;
    case LOADER_CONSUME:
        return &l->consume;
    case LOADER_SAMPLE:
        return &l->sample;
    case LOADER_SAMPLE_CPU:
        return &l->sample_cpu;
    case LOADER_COLLATE:
        return &l->collate;
    case LOADER_MAKE:
        return &l->make;
    case LOADER_MAKE_CPU:
        return &l->make_cpu;
    case LOADER_PICKLE:
        return &l->pickle;
    case LOADER_SEND:
        return &l->send;
    case LOADER_IDLE:
        return &l->idle;
    default:
        return NULL;
    }
}

static struct distribution *numbers_of(struct loader *l, uint64_t what)
{
    switch (what) {
    case LOADER_QUEUED:
        return &l->queued;
    case LOADER_IN_FLIGHT:
        return &l->in_flight;
    case LOADER_BATCH_BYTES:
        return &l->batch_bytes;
    case LOADER_BATCH_SAMPLES:
        return &l->batch_samples;
    case LOADER_SAMPLE_BYTES:
        return &l->sample_bytes;
    default:
        return NULL;
    }
}

/* A sum whose writer was killed may have one value more in one field than in another. */
static int add(const struct loader_reading *g, struct distribution *d,
               const struct loader_sum_row *row)
{
    const double scale = row->unit == LOADER_TICKS ? g->ns_per_tick : 1;
    const double n = (double)row->count;
    if (!row->count || !isfinite(row->sum) || !isfinite(row->squares) || row->sum < 0)
        return 0;
    const double mean = row->sum / n;
    const double m2 = fmax(row->squares - mean * row->sum, 0);
    distribution_add(d, row->count, mean * scale, m2 * scale * scale,
                     (double)row->min * scale, (double)row->max * scale);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < LOADER_BUCKETS; i++)
        if (row->bucket[i])
            rc = distribution_add_bucket(d, loader_bucket_middle(i) * scale,
                                         row->bucket[i]);
    distribution_settle(d);
    return rc;
}

static int add_times(const struct loader_reading *g, struct loader_times *t,
                     const struct loader_sum_row *row)
{
    t->every = (t->d.count == 0 || t->every) && row->every;
    return add(g, &t->d, row);
}

/* ---- Transforms ------------------------------------------------------------------------- */

static bool is_random(const char *name)
{
    return strncasecmp(name, "random", 6) == 0 || strstr(name, "Jitter") ||
           strstr(name, "jitter") || strstr(name, "Erasing") || strstr(name, "Augment");
}

static int add_transform(struct loader_reading *g, struct loader *l,
                         const struct loader_sum_row *row)
{
    const char *name = row->name ? tablefile_text(g->file, row->name) : "?";
    for (size_t i = 0; i < l->transform_count; i++) {
        struct loader_transform *t = &l->transforms[i];
        if (t->place == (int)row->place && strcmp(t->name, name) == 0)
            return add_times(g, &t->wall, row);
    }
    if (l->transform_count >= MAX_TRANSFORMS || row->place > MAX_TRANSFORMS)
        return 0;
    const int rc = loader_grow(g, (void **)&l->transforms, &l->transform_cap,
                               l->transform_count, sizeof *l->transforms);
    if (rc < 0)
        return rc;
    const char *kept = arena_strdup(&g->report->arena, *name ? name : "?");
    if (!kept)
        return -ENOMEM;
    struct loader_transform *t = &l->transforms[l->transform_count++];
    *t = (struct loader_transform){ .name = kept,
                                    .place = (int)row->place,
                                    .random = is_random(kept) };
    return add_times(g, &t->wall, row);
}

bool loader_add_shapes(struct loader_reading *g, const struct loader_sum_row *row,
                       int *ret_rc)
{
    const bool sound = isfinite(row->sum) && row->sum >= 0;
    if (row->key < LOADER_ROWS || row->key > LOADER_FILLED)
        return false;
    if (row->key == LOADER_ROWS)
        *ret_rc = add(g, &g->out->rows, row);
    else if (sound)
        *(row->key == LOADER_CELLS ? &g->out->cells : &g->out->filled) += row->sum;
    return true;
}

int loader_add_sum(struct loader_reading *g, struct loader *l, struct loader_worker *w,
                   const struct loader_sum_row *row)
{
    if (row->key == LOADER_TRANSFORM)
        return add_transform(g, l, row);
    struct distribution *numbers = numbers_of(l, row->key);
    if (numbers)
        return add(g, numbers, row);
    struct loader_times *times = times_of(l, row->key);
    int rc = times ? add_times(g, times, row) : 0;
    if (rc < 0 || !w || !isfinite(row->sum))
        return rc;
    const double s = row->sum * g->ns_per_tick / 1e9;
    if (row->key == LOADER_SAMPLE)
        rc = add_times(g, &w->sample, row);
    else if (row->key == LOADER_MAKE)
        w->busy_s += s;
    else if (row->key == LOADER_PICKLE || row->key == LOADER_SEND)
        w->put_s += s;
    return rc;
}

/* ---- What follows ------------------------------------------------------------------------- */

static int most_time_first(const void *a, const void *b)
{
    const struct loader_transform *x = a, *y = b;
    return x->total_s != y->total_s ? (x->total_s < y->total_s ? 1 : -1)
                                    : x->place - y->place;
}

void loader_finish_sums(struct loader *l)
{
    const double looked = (double)l->sample.d.count;
    const double samples_s = loader_times_total_s(&l->sample);
    const double scale = looked > 0 && (double)l->made_samples > looked &&
                                 !l->sample.every
                             ? (double)l->made_samples / looked
                             : 1;
    for (size_t i = 0; i < l->transform_count; i++) {
        struct loader_transform *t = &l->transforms[i];
        const double s = loader_times_total_s(&t->wall);
        t->wall.every = l->sample.every;
        t->total_s = s * scale;
        t->share = samples_s > 0 ? s / samples_s : NAN;
    }
    if (l->transform_count)
        qsort(l->transforms, l->transform_count, sizeof *l->transforms,
              most_time_first);
    l->bytes = l->batch_bytes.count
                   ? (uint64_t)(l->batch_bytes.mean * (double)l->batches)
                   : 0;
}

void loader_release_sums(struct loader *l)
{
    for (uint64_t what = 1; what < LOADER_SUM_END; what++) {
        struct loader_times *t = times_of(l, what);
        struct distribution *n = numbers_of(l, what);
        if (t)
            distribution_release(&t->d);
        if (n)
            distribution_release(n);
    }
    for (size_t i = 0; i < l->transform_count; i++)
        distribution_release(&l->transforms[i].wall.d);
    for (size_t i = 0; i < l->worker_count; i++)
        distribution_release(&l->workers[i].sample.d);
}
