/* loaders.c: the data loaders of a run, brought together from all its processes. */
#include "analyse/loaders.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/loader_parts.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/redact.h"

#include <jansson.h>

/* Two clocks tell of the same moment. */
static const double TOLD_SLACK_S = 1e-3;

enum { MAX_LOADERS = 4096, MAX_NUMBER = 4096, MAX_STARTS = 1 << 20 };

/* ---- Small ones ------------------------------------------------------------------------ */

int loader_grow(struct loader_reading *g, void **list, size_t *cap, size_t count,
                size_t size)
{
    if (count < *cap)
        return 0;
    const size_t more = *cap ? *cap * 2 : 16;
    void *next = arena_alloc_array(&g->report->arena, more, size);
    if (!next)
        return -ENOMEM;
    if (count)
        memcpy(next, *list, count * size);
    *list = next;
    *cap = more;
    return 0;
}

const char *loader_text(struct loader_reading *g, uint32_t place)
{
    const char *text = place ? tablefile_text(g->file, place) : "";
    struct buf clean = BUF_INIT;
    if (g->redact)
        redact_text(&clean, text);
    else
        buf_puts(&clean, text);
    const char *copy = clean.error || !clean.len
                           ? ""
                           : arena_strdup(&g->report->arena, clean.data);
    buf_release(&clean);
    return copy ? copy : "";
}

int64_t loader_moment(const struct loader_reading *g, uint64_t ticks)
{
    const struct clock_table *clock = &g->report->run->clock;
    return ticks && clock->count ? clock_real_ns(clock, ticks) : 0;
}

struct loader *loader_of_row(struct loader_reading *g, uint32_t loader)
{
    if (loader == LOADER_OF_WORKER)
        return g->worked;
    return loader < g->here ? &g->out->list[g->first + loader] : NULL;
}

static double seconds(const struct loader_reading *g, uint64_t from, uint64_t to)
{
    return from && to >= from ? (double)(to - from) * g->ns_per_tick / 1e9 : NAN;
}

double loader_times_total_s(const struct loader_times *times)
{
    return times->d.mean * (double)times->d.count / 1e9;
}

const struct loader *loaders_training(const struct loader_report *loaders)
{
    const struct loader *best = NULL;
    for (size_t i = 0; i < loaders->count; i++) {
        const struct loader *l = &loaders->list[i];
        if (l->training && (!best || l->batches > best->batches))
            best = l;
    }
    return best;
}

/* ---- Rows of who iterates ----------------------------------------------------------------- */

static void describe(struct loader_reading *g, struct loader *l,
                     const struct loader_row *row)
{
    l->pid = tablefile_head(g->file)->pid;
    l->file = loader_text(g, row->file);
    l->line = row->line > 0 ? row->line : 0;
    l->kind = loader_text(g, row->kind);
    l->dataset = loader_text(g, row->dataset);
    l->sampler = loader_text(g, row->sampler);
    l->collate_fn = loader_text(g, row->collate);
    l->start_method = loader_text(g, row->start_method);
    l->objects = loader_text(g, row->objects);
    l->dataset_length = row->dataset_length >= 0 ? row->dataset_length : -1;
    l->num_workers = row->num_workers >= 0 ? row->num_workers : 0;
    l->prefetch_factor = row->prefetch_factor > 0 ? row->prefetch_factor : -1;
    l->batch_size = row->batch_size > 0 ? row->batch_size : -1;
    l->pin_memory = row->flags & LOADER_PIN;
    l->persistent_workers = row->flags & LOADER_PERSISTENT;
    l->shuffle = row->flags & LOADER_SHUFFLE;
    l->iterable = row->flags & LOADER_ITERABLE;
    l->in_order = !(row->flags & LOADER_UNORDERED);
    l->untimed_samples = row->flags & LOADER_UNTIMED;
    l->by_batch = row->flags & LOADER_BY_BATCH;
    l->timeout_s = isfinite(row->timeout_s) ? row->timeout_s : 0;
}

static void count(const struct loader_reading *g, struct loader *l,
                  const struct loader_row *row)
{
    l->epochs = row->epochs;
    l->batches = row->batches;
    l->samples = row->samples;
    l->wait_s = (double)row->fetch_ticks * g->ns_per_tick / 1e9;
    l->ready_share = row->fetches && l->num_workers
                         ? (double)row->ready / (double)row->fetches
                         : NAN;
    l->out_of_order.count = row->early;
    l->out_of_order.wait_s = (double)row->early_ticks * g->ns_per_tick / 1e9;
    l->failed = row->failed;
    l->trains = row->flags & LOADER_TRAINS;
    l->training = l->trains || row->stepped * 2 > row->batches;
    l->evaluation_wait_s = (double)row->evaluation_ticks * g->ns_per_tick / 1e9;
}

static int add_loaders(struct loader_reading *g)
{
    struct loader_report *out = g->out;
    const uint32_t rows = tablefile_count(g->file, LOADER_LOADERS);
    struct loader_row row;
    g->first = out->count;
    g->here = 0;
    for (uint32_t i = 0; i < rows && out->count < MAX_LOADERS; i++) {
        const int rc = loader_grow(g, (void **)&out->list, &g->loader_cap, out->count,
                                   sizeof *out->list);
        if (rc < 0)
            return rc;
        struct loader *l = &out->list[out->count];
        *l = (struct loader){ .id = (unsigned)out->count + 1, .ready_share = NAN };
        if (!tablefile_get(g->file, LOADER_LOADERS, i, &row, sizeof row))
            row = (struct loader_row){ .dataset_length = -1 };
        describe(g, l, &row);
        count(g, l, &row);
        out->count++;
        g->here++;
    }
    return 0;
}

static struct loader_epoch epoch_from(const struct loader_reading *g,
                                      const struct loader_epoch_row *row)
{
    return (struct loader_epoch){
        .number = row->number,
        .start_ns = loader_moment(g, row->start),
        .iter_s = seconds(g, row->start, row->iter_done),
        .first_batch_s = seconds(g, row->start, row->first_batch),
        .wait_s = (double)row->fetch_ticks * g->ns_per_tick / 1e9,
        .end_s = row->exhausted ? (double)row->end_ticks * g->ns_per_tick / 1e9 : NAN,
        .duration_s = seconds(g, row->start, row->ended ? row->ended : row->last),
        .batches = row->batches,
        .exhausted = row->exhausted,
        .under_way = !row->ended,
        .steps = row->stepped,
        .samples = row->samples,
    };
}

static int add_epochs(struct loader_reading *g)
{
    struct loader_epoch_row row;
    for (uint32_t i = 0; i < tablefile_count(g->file, LOADER_EPOCHS); i++) {
        if (!tablefile_get(g->file, LOADER_EPOCHS, i, &row, sizeof row))
            continue;
        struct loader *l = loader_of_row(g, row.loader);
        if (!l)
            continue;
        size_t cap = l->epoch_cap;
        const int rc = loader_grow(g, (void **)&l->epoch_list, &cap, l->epoch_count,
                                   sizeof *l->epoch_list);
        if (rc < 0)
            return rc;
        l->epoch_cap = cap;
        l->epoch_list[l->epoch_count++] = epoch_from(g, &row);
    }
    return 0;
}

/* Worker `number` of the loader, made when first met. */
static int find_worker(struct loader_reading *g, struct loader *l, uint32_t number,
                       size_t *ret_worker)
{
    for (size_t i = 0; i < l->worker_count; i++)
        if (l->workers[i].number == (int)number) {
            *ret_worker = i;
            return 0;
        }
    size_t cap = l->worker_cap;
    const int rc = loader_grow(g, (void **)&l->workers, &cap, l->worker_count,
                               sizeof *l->workers);
    if (rc < 0)
        return rc;
    l->worker_cap = cap;
    l->workers[l->worker_count] = (struct loader_worker){
        .number = (int)number, .sample.every = true, .copied_mb = NAN, .private_mb = NAN
    };
    *ret_worker = l->worker_count++;
    return 0;
}

static int add_starts(struct loader_reading *g)
{
    struct loader_worker_row row;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < tablefile_count(g->file, LOADER_WORKERS); i++) {
        if (!tablefile_get(g->file, LOADER_WORKERS, i, &row, sizeof row) ||
            row.number > MAX_NUMBER || g->start_count >= MAX_STARTS)
            continue;
        struct loader *l = loader_of_row(g, row.loader);
        size_t worker = 0;
        if (!l || (rc = find_worker(g, l, row.number, &worker)) < 0)
            continue;
        rc = loader_grow(g, (void **)&g->starts, &g->start_cap, g->start_count,
                         sizeof *g->starts);
        if (rc < 0)
            break;
        g->starts[g->start_count++] = (struct loader_start){
            .pid = row.pid,
            .started = row.started,
            .loader = (size_t)(l - g->out->list),
            .worker = worker,
            .epoch = row.epoch,
        };
        l->workers[worker].pid = row.pid;
        l->workers[worker].processes++;
    }
    return rc;
}

static int add_sums(struct loader_reading *g)
{
    struct loader_sum_row row;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < tablefile_count(g->file, LOADER_SUMS); i++) {
        if (!tablefile_get(g->file, LOADER_SUMS, i, &row, sizeof row))
            continue;
        /* Files of workers are read a second time: then these are known. */
        if (!g->worked && loader_add_shapes(g, &row, &rc))
            continue;
        struct loader *l = loader_of_row(g, row.loader);
        if (l)
            rc = loader_add_sum(g, l, row.loader == LOADER_OF_WORKER ? g->worker : NULL,
                                &row);
    }
    return rc;
}

/* ---- A worker ---------------------------------------------------------------------------------- */

/* Pids are used again: the start nearest before the file is the one. */
static struct loader_start *start_of(struct loader_reading *g)
{
    const struct tables_head *head = tablefile_head(g->file);
    struct loader_start *best = NULL;
    for (size_t i = 0; i < g->start_count; i++) {
        struct loader_start *s = &g->starts[i];
        if (s->pid == head->pid && s->started <= head->start.ticks &&
            (!best || s->started > best->started))
            best = s;
    }
    return best;
}

static void count_worker(const struct loader_reading *g,
                         const struct loader_self_row *row)
{
    struct loader_worker *w = g->worker;
    const double alive_s = seconds(g, row->first, row->last);
    w->batches += row->batches;
    w->samples += row->samples;
    w->alive_s += isnan(alive_s) ? 0 : alive_s;
    w->idle_s += (double)row->idle_ticks * g->ns_per_tick / 1e9;
    w->cpu_s += (double)row->cpu_ns / 1e9;
    g->worked->by_batch |= row->flags & LOADER_BY_BATCH;
    g->worked->made_samples += row->samples;
}

static int add_worker(struct loader_reading *g)
{
    struct loader_self_row row;
    if (!tablefile_get(g->file, LOADER_SELF, 0, &row, sizeof row))
        return 0;
    struct loader_start *s = start_of(g);
    if (!s)
        return 0; /* whoever started it wrote nothing down */
    s->heard = true;
    g->worked = &g->out->list[s->loader];
    g->worker = &g->worked->workers[s->worker];
    g->epoch = s->epoch;
    count_worker(g, &row);
    loader_add_looks(g->worker, &row);
    int rc = add_sums(g);
    if (rc == 0)
        rc = loader_add_made(g);
    if (rc == 0)
        rc = loader_add_slowest(g);
    return rc;
}

/* ---- Files ---------------------------------------------------------------------------------------- */

static bool has_tables(const struct tablefile *file)
{
    static const char *const names[] = { "loaders", "epochs",  "workers",
                                         "self",    "sums",    "batches",
                                         "made",    "samples", "slowest" };
    for (int i = 0; i < LOADER_TABLE_END - 1; i++)
        if (tablefile_find(file, names[i]) != i + 1)
            return false;
    return true;
}

static int add_iterating(struct loader_reading *g)
{
    int rc = add_loaders(g);
    if (rc == 0)
        rc = add_epochs(g);
    if (rc == 0)
        rc = add_starts(g);
    if (rc == 0)
        rc = add_sums(g);
    if (rc == 0)
        rc = loader_add_batches(g);
    if (rc == 0)
        rc = loader_add_made(g);
    if (rc == 0)
        rc = loader_add_slowest(g);
    return rc;
}

/* Each file is opened twice: who started a worker is known only after the first time. */
static int add_file(struct loader_reading *g, const char *name, bool workers)
{
    struct buf path = BUF_INIT;
    struct tablefile *file = NULL;
    buf_printf(&path, "%s/%s", g->report->run->dir, name);
    int rc = path.error ? -ENOMEM : tablefile_open(path.data, &file);
    if (rc == 0 && has_tables(file)) {
        g->file = file;
        g->worked = NULL;
        g->worker = NULL;
        g->here = 0;
        g->out->present = true;
        for (int i = 1; workers && i < LOADER_TABLE_END; i++)
            g->out->refused += tablefile_head(file)->table[i].refused;
        rc = workers ? add_worker(g) : add_iterating(g);
    } else if (rc != -ENOMEM) {
        rc = 0; /* damaged: what is left tells enough */
    }
    tablefile_free(file);
    buf_release(&path);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names begin with when the file was made: sorted, loaders are in order. */
static int list_files(struct loader_reading *g, char ***ret_names, size_t *ret_count)
{
    size_t cap = 0;
    int rc = 0;
    DIR *dir = opendir(g->report->run->dir);
    for (struct dirent *e; rc == 0 && dir && (e = readdir(dir));) {
        if (!tablefile_is_name(e->d_name, LOADER_KIND))
            continue;
        rc = loader_grow(g, (void **)ret_names, &cap, *ret_count, sizeof **ret_names);
        char *name = rc == 0 ? arena_strdup(&g->report->arena, e->d_name) : NULL;
        if (name)
            (*ret_names)[(*ret_count)++] = name;
        else
            rc = -ENOMEM;
    }
    if (dir)
        (void)closedir(dir);
    if (*ret_count)
        qsort(*ret_names, *ret_count, sizeof **ret_names, by_name);
    return rc;
}

/* ---- All of it --------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    return ((const struct loader_worker *)a)->number -
           ((const struct loader_worker *)b)->number;
}

static void finish(struct loader_reading *g, struct loader *l)
{
    const struct step_stats *steps = &g->report->steps;
    const double consumed_s = loader_times_total_s(&l->consume);
    /* Of an iterable only those who made its last batch know how many were in it. */
    if (l->iterable && l->made_samples && l->made_samples < l->samples)
        l->samples = l->made_samples;
    if (!l->num_workers)
        l->made_samples = l->samples;
    loader_finish_sums(l);
    loader_finish_batches(l);
    l->wait_share = l->wait_s + consumed_s > 0 ? l->wait_s / (l->wait_s + consumed_s)
                                               : NAN;
    const double steps_s = steps->durations.mean * (double)steps->durations.count / 1e9;
    l->step_share = l->training && steps_s > 0
                        ? (l->wait_s - l->evaluation_wait_s) / steps_s
                        : NAN;
    if (l->worker_count)
        qsort(l->workers, l->worker_count, sizeof *l->workers, by_number);
}

static void count_unheard(struct loader_reading *g)
{
    for (size_t i = 0; i < g->start_count; i++) {
        const struct loader_start *s = &g->starts[i];
        g->out->list[s->loader].workers[s->worker].unheard += !s->heard;
    }
}

/* The pass that was under way when the process was killed: nobody told of it. */
static const struct loader_epoch *untold(const struct report *r, uint32_t pid)
{
    const struct py_layer *layer = &r->layer;
    const double told_s = layer->epoch_count
                              ? layer->epochs[layer->epoch_count - 1].end_s
                              : 0;
    const struct loader_epoch *best = NULL;
    for (size_t i = 0; i < r->loaders.count; i++) {
        const struct loader *l = &r->loaders.list[i];
        const struct loader_epoch *e = l->epoch_count
                                           ? &l->epoch_list[l->epoch_count - 1]
                                           : NULL;
        if (e && l->trains && l->pid == pid && e->under_way && e->steps &&
            (double)e->start_ns / 1e9 >= told_s - TOLD_SLACK_S &&
            (!best || e->steps > best->steps))
            best = e;
    }
    return best;
}

void loaders_complete_epochs(struct report *report, uint32_t pid)
{
    const struct loader_epoch *e = untold(report, pid);
    if (!e || !isfinite(e->duration_s))
        return;
    const double start_s = (double)e->start_ns / 1e9;
    pylayer_add_epoch(report,
                      &(struct py_epoch){ .pid = pid,
                                          .epoch = report->layer.epoch_count + 1,
                                          .steps = e->steps,
                                          .samples = e->samples,
                                          .start_s = start_s,
                                          .end_s = start_s + e->duration_s });
}

int loaders_read(struct report *report)
{
    struct loader_reading g = {
        .report = report,
        .out = &report->loaders,
        .ns_per_tick = report->run->clock.count ? report->run->clock.ns_per_tick
                                                : report->ns_per_tick,
        .redact = !json_is_false(json_object_get(
            json_object_get(report->run->meta.root, "options"), "redact")),
    };
    char **names = NULL;
    size_t count_of = 0;
    int rc = list_files(&g, &names, &count_of);
    if (!(g.ns_per_tick > 0) || !isfinite(g.ns_per_tick))
        count_of = 0; /* no clock, no times */
    for (size_t i = 0; rc == 0 && i < count_of; i++)
        rc = add_file(&g, names[i], false);
    for (size_t i = 0; rc == 0 && i < count_of; i++)
        rc = add_file(&g, names[i], true);
    if (rc < 0)
        return rc;
    count_unheard(&g);
    for (size_t i = 0; i < g.out->count; i++)
        finish(&g, &g.out->list[i]);
    return 0;
}

void loaders_release(struct loader_report *loaders)
{
    for (size_t i = 0; i < loaders->count; i++)
        loader_release_sums(&loaders->list[i]);
    distribution_release(&loaders->rows);
}
