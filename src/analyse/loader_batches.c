/* loader_batches.c: batches and samples one by one: the newest, and the slowest. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/loader_parts.h"

enum { MAX_BATCHES = 65536, SHOWN_SLOWEST = 20 };

/* ---- Batches as the program got them ------------------------------------------------------ */

static struct loader_batch batch_from(const struct loader_reading *g,
                                      const struct loader_batch_row *row)
{
    return (struct loader_batch){
        .epoch = row->epoch,
        .number = row->number,
        .step = row->step,
        .worker = row->worker,
        .asked_ns = loader_moment(g, row->asked),
        .given_ns = loader_moment(g, row->given),
        .sent_index_ns = loader_moment(g, row->sent_index),
        .arrived_ns = loader_moment(g, row->arrived),
        .collate_ns = NAN,
        .samples = row->samples,
        .bytes = row->bytes,
        .in_flight = row->in_flight,
        .queued = row->queued,
        .ready = row->flags & 1,
        .early = row->flags & 2,
        .slowest_index = -1,
        .slowest_ns = NAN,
        .high = row->high,
        .card_high = row->card_high,
        .card_reserved = row->card_reserved,
    };
}

int loader_add_batches(struct loader_reading *g)
{
    struct loader_batch_row row;
    for (uint32_t i = 0; i < tablefile_count(g->file, LOADER_BATCHES); i++) {
        if (!tablefile_get(g->file, LOADER_BATCHES, i, &row, sizeof row))
            continue;
        struct loader *l = loader_of_row(g, row.loader);
        if (!l || l->recent_count >= MAX_BATCHES)
            continue;
        const int rc = loader_grow(g, (void **)&l->recent, &l->recent_cap,
                                   l->recent_count, sizeof *l->recent);
        if (rc < 0)
            return rc;
        l->recent[l->recent_count++] = batch_from(g, &row);
    }
    return 0;
}

static int by_epoch(const void *a, const void *b)
{
    const struct loader_batch *x = a, *y = b;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : 0;
}

/* ---- … and as they were made ---------------------------------------------------------------- */

static struct loader_batch *find_batch(struct loader *l, uint64_t epoch,
                                       uint64_t number)
{
    const struct loader_batch wanted = { .epoch = epoch, .number = number };
    return l->recent_count ? bsearch(&wanted, l->recent, l->recent_count,
                                     sizeof *l->recent, by_epoch)
                           : NULL;
}

static void add_made(const struct loader_reading *g, struct loader_batch *b,
                     const struct loader_made_row *row)
{
    b->begun_ns = loader_moment(g, row->begun);
    b->made_ns = loader_moment(g, row->made);
    b->put_ns = loader_moment(g, row->put);
    b->sent_ns = loader_moment(g, row->sent);
    b->collate_ns = (double)row->collate_ticks * g->ns_per_tick;
    b->slowest_index = row->slowest_index;
    b->slowest_ns = row->slowest_ticks ? (double)row->slowest_ticks * g->ns_per_tick
                                       : NAN;
    if (row->samples)
        b->samples = row->samples;
}

int loader_add_made(struct loader_reading *g)
{
    struct loader_made_row row;
    for (size_t i = 0; i < g->here; i++) { /* just read */
        struct loader *l = &g->out->list[g->first + i];
        if (l->recent_count)
            qsort(l->recent, l->recent_count, sizeof *l->recent, by_epoch);
    }
    for (uint32_t i = 0; i < tablefile_count(g->file, LOADER_MADE); i++) {
        if (!tablefile_get(g->file, LOADER_MADE, i, &row, sizeof row))
            continue;
        struct loader *l = loader_of_row(g, row.loader);
        const uint64_t epoch = (l && l == g->worked ? g->epoch : 0) + row.epoch;
        struct loader_batch *b = l ? find_batch(l, epoch, row.number) : NULL;
        if (b)
            add_made(g, b, &row);
    }
    return 0;
}

/* ---- The slowest samples ------------------------------------------------------------------------ */

static struct loader_slow_sample slow_from(struct loader_reading *g,
                                           const struct loader_slow_row *row)
{
    const bool of_worker = row->loader == LOADER_OF_WORKER;
    return (struct loader_slow_sample){
        .index = row->index >= 0 ? row->index : -1,
        .number = row->number,
        .path = loader_text(g, row->path),
        .wall_ns = (double)row->key * g->ns_per_tick,
        .cpu_ns = row->cpu_ns == UINT64_MAX ? NAN : (double)row->cpu_ns,
        .slowest = row->slowest_ticks ? loader_text(g, row->slowest) : "",
        .slowest_ns = row->slowest_ticks ? (double)row->slowest_ticks * g->ns_per_tick
                                         : NAN,
        .worker = of_worker ? g->worker->number : -1,
        .epoch = (of_worker ? g->epoch : 0) + row->epoch,
        .batch = row->batch,
        .start_ns = loader_moment(g, row->begun),
        .times_median = NAN,
    };
}

int loader_add_slowest(struct loader_reading *g)
{
    struct loader_slow_row row;
    for (uint32_t i = 0; i < tablefile_count(g->file, LOADER_SLOWEST); i++) {
        if (!tablefile_get(g->file, LOADER_SLOWEST, i, &row, sizeof row))
            continue;
        struct loader *l = loader_of_row(g, row.loader);
        if (!l || l->slowest_count >= MAX_BATCHES)
            continue;
        const int rc = loader_grow(g, (void **)&l->slowest, &l->slowest_cap,
                                   l->slowest_count, sizeof *l->slowest);
        if (rc < 0)
            return rc;
        l->slowest[l->slowest_count++] = slow_from(g, &row);
    }
    return 0;
}

static int slowest_first(const void *a, const void *b)
{
    const struct loader_slow_sample *x = a, *y = b;
    return x->wall_ns != y->wall_ns ? (x->wall_ns < y->wall_ns ? 1 : -1) : 0;
}

void loader_finish_batches(struct loader *l)
{
    const double median = distribution_quantile(&l->sample.d, 0.5);
    if (l->slowest_count)
        qsort(l->slowest, l->slowest_count, sizeof *l->slowest, slowest_first);
    if (l->slowest_count > SHOWN_SLOWEST)
        l->slowest_count = SHOWN_SLOWEST;
    for (size_t i = 0; i < l->slowest_count; i++)
        l->slowest[i].times_median = median > 0 ? l->slowest[i].wall_ns / median : NAN;
}
