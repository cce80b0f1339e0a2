/* facts_loader.c: facts about the training loader. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/loader_own.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "analyse/whatif.h"
#include "base/files.h"

/* ---- Samples ------------------------------------------------------------------------- */

/* Share of the time that goes into what samples, or batches, take beyond so many
 * medians. */
static double tail_share(const struct distribution *d, double median, double medians)
{
    enum { POINTS = 1000 };
    double beyond = 0;
    double all = 0;
    for (int i = 0; i < POINTS; i++) {
        const double ns = distribution_quantile(d, (i + 0.5) / POINTS);
        beyond += fmax(ns - medians * median, 0);
        all += ns;
    }
    return all > 0 ? beyond / all : NAN;
}

/* Share of the makers' time in which they could have run and had no core: on a busy
 * machine that makes tails which are nobody's samples. */
static double waits_for_core(const struct report *r, const struct loader *l)
{
    const double wants = loader_starvation(r, l);
    return 1 - 1 / wants;
}

/* Of batches, beyond two medians: a slow sample that stalls a step makes a slow batch. */
static double slow_batches(const struct distribution *d)
{
    return d->count >= 20 ? tail_share(d, distribution_quantile(d, 0.5), 2) : NAN;
}

/* CPU time knows nothing of a busy machine; waits for storage are in wall time alone.
 * Whichever tail is the heavier. */
static void set_tails(const struct report *r, const struct loader *l, struct facts *f)
{
    const struct distribution *wall = &l->sample.d, *cpu = &l->sample_cpu.d;
    if (wall->count < 100)
        return;
    const double median = distribution_quantile(wall, 0.5);
    const double waits = waits_for_core(r, l);
    const double batches = slow_batches(&l->make.d) - waits;
    f->v[FACT_SAMPLE_TAIL] = distribution_quantile(wall, 0.995) / median;
    f->v[FACT_SLOW_SAMPLE_SHARE] = fmax(tail_share(wall, median, 4) - waits, 0);
    f->v[FACT_SLOW_BATCH_SHARE] = batches < 0 ? 0 : batches;
    if (cpu->count < 100)
        return;
    const double busy = distribution_quantile(cpu, 0.5);
    const double share = tail_share(cpu, busy, 4) * f->v[FACT_SAMPLE_CPU_SHARE];
    if (share > f->v[FACT_SLOW_SAMPLE_SHARE]) {
        f->v[FACT_SLOW_SAMPLE_SHARE] = share;
        f->v[FACT_SAMPLE_TAIL] = distribution_quantile(cpu, 0.995) / busy;
        f->v[FACT_SLOW_BATCH_SHARE] = slow_batches(&l->make_cpu.d);
    }
}

static void set_samples(const struct report *r, const struct loader *l, struct facts *f)
{
    const double make = loader_usual_ns(l, &l->make);
    f->v[FACT_SAMPLE_MS] = loader_mean_ns(&l->sample) / 1e6;
    f->v[FACT_BATCH_MS] = make / 1e6;
    if (l->pickle.d.count)
        f->v[FACT_SEND_MS] = (l->pickle.d.mean + l->send.d.mean) / 1e6;
    f->v[FACT_BATCH_CPU_MS] = loader_usual_ns(l, &l->make_cpu) / 1e6;
    const double cpu = l->sample_cpu.d.count
                           ? loader_mean_ns(&l->sample_cpu) / loader_mean_ns(&l->sample)
                           : f->v[FACT_BATCH_CPU_MS] / f->v[FACT_BATCH_MS];
    f->v[FACT_SAMPLE_CPU_SHARE] = at_most(cpu * loader_starvation(r, l), 1);
    set_tails(r, l, f);
    /* Of what batches take, samples may be the lesser part. */
    const double of_batch = f->v[FACT_SAMPLE_MS] *
                            (l->batch_samples.count ? l->batch_samples.mean
                                                    : l->batch_size) /
                            f->v[FACT_BATCH_MS];
    if (of_batch >= 0)
        f->v[FACT_SLOW_SAMPLE_SHARE] *= at_most(of_batch, 1);
    if (l->collate.d.count && make > 0)
        f->v[FACT_COLLATE_OF_BATCH] = loader_mean_ns(&l->collate) /
                                      loader_mean_ns(&l->make);
    const double transform = loader_transform_share(l);
    /* Without a list of transforms the work on a sample is all that is known. */
    const double rest = 1 - (l->collate.d.count ? f->v[FACT_COLLATE_OF_BATCH] : 0);
    f->v[FACT_TRANSFORM_OF_SAMPLE] = isnan(transform)
                                         ? f->v[FACT_SAMPLE_CPU_SHARE] * rest
                                         : transform;
}

/* Share of batches that were there but could not be taken yet: their worker was making
 * the next and did not answer. A process that has to wait for a core takes longer without
 * that, and workers that have nothing to do answer as soon as they have one. */
static double late_share(const struct report *r, const struct loader *l)
{
    enum { POINTS = 100 };
    const double most = loader_usual_receive_ns(l) * loader_wants_cpu(r, l->pid);
    int late = 0;
    if (l->receive.d.count < 20 || isnan(loader_batch_mb(l)) || !loader_is_busy(l))
        return 0;
    for (int i = 0; i < POINTS; i++)
        late += distribution_quantile(&l->receive.d, (i + 0.5) / POINTS) > most;
    return (double)late / POINTS;
}

/* ---- Workers --------------------------------------------------------------------------- */

/* What a worker got of its own beyond its first quarter of life: until then it warms up. */
static double private_growth(const struct report *r, uint32_t pid, double *ret_last)
{
    char subject[16];
    (void)snprintf(subject, sizeof subject, "%u", pid);
    const struct report_series *s = monitors_find(&r->monitors, "rss_private", subject);
    if (!s || s->point_count < 3)
        return NAN;
    *ret_last = s->points[s->point_count - 1].mean;
    return *ret_last - s->points[s->point_count / 4].mean;
}

/* What they copied is known to the page, where they looked themselves; what they grew by
 * may be more, by what they allocate. */
static void set_copied(const struct loader *l, struct facts *f)
{
    const double copied = loader_copied_mb(l), own = loader_private_mb(l);
    if (isnan(copied))
        return;
    f->v[FACT_WORKER_COPIED_MB] = copied;
    f->v[FACT_DATASET_OBJECTS] = l->objects[0] != '\0';
    f->v[FACT_WORKER_GROWTH_MB] = fmax(f->v[FACT_WORKER_GROWTH_MB], copied);
    f->v[FACT_WORKER_PRIVATE_MB] = fmax(f->v[FACT_WORKER_PRIVATE_MB], own);
}

static void set_workers(struct report *r, const struct loader *l, struct facts *f)
{
    double busy = 0, alive = 0, growth = 0, last = 0, own = 0;
    size_t watched = 0;
    for (size_t i = 0; i < l->worker_count; i++) {
        const struct loader_worker *w = &l->workers[i];
        busy += w->busy_s;
        alive += w->alive_s;
        const double g = private_growth(r, w->pid, &last);
        if (isnan(g))
            continue;
        growth += fmax(g, 0);
        own += last;
        watched++;
    }
    if (alive > 0)
        f->v[FACT_WORKER_BUSY_SHARE] = busy / alive;
    if (watched) {
        f->v[FACT_WORKER_GROWTH_MB] = growth;
        f->v[FACT_WORKER_PRIVATE_MB] = own;
    }
    set_copied(l, f);
    r->readers_ns = busy * 1e9;
}

/* Starting processes also slows what runs beside it, and their ends the program notices
 * late: the steps at changes of epochs and the pauses between steps tell it all, but
 * they may hold other work of the epoch. Of that no more than so many times as much as
 * was seen in the loader itself. */
static double lost_at_changes(const struct step_account *a, double in_loader_s)
{
    const double most = 1.5 * in_loader_s;
    const double lost = (a->between_idle_ns + a->epoch_ns) / 1e9;
    return a->known && lost > in_loader_s ? fmin(lost, most) : in_loader_s;
}

/* Indices sent, a worker woken, a batch taken. */
static const double WAY_S = 2.2e-3;

/* Where kept workers make most of an epoch's batches before its first is there, all but
 * that one is what batches cost, whenever they are made. `lost`: seconds beyond a usual
 * fetch. */
static double lost_with_first(const struct loader *l, double lost)
{
    const double cpu = loader_usual_ns(l, &l->make_cpu);
    const double make = isnan(cpu) ? loader_usual_ns(l, &l->make) : cpu;
    return loader_ahead_is_epoch(l) ? at_most(lost, make / 1e9 + WAY_S) : lost;
}

/* The first batch of an epoch waits for the workers to start, and workers that are not kept
 * are ended behind its last. What the first start and the last end take is no change. */
static void set_epochs(const struct report *r, const struct loader *l, struct facts *f)
{
    const double usual = l->fetch.d.count ? l->fetch.d.mean / 1e9 : 0;
    const bool anew = l->num_workers > 0 && !l->persistent_workers;
    double all = 0, changes = 0;
    for (size_t i = 0; i < l->epoch_count; i++) {
        const double waited = l->epoch_list[i].first_batch_s - usual;
        const double lost = i > 0 ? lost_with_first(l, waited) : waited;
        const double ending = l->epoch_list[i].end_s;
        all += lost > 0 ? lost : 0;
        changes += i > 0 && lost > 0 ? lost : 0;
        changes += anew && i + 1 < l->epoch_count && ending > 0 ? ending : 0;
    }
    const double loop_s = account_loop_ns(&r->account) / 1e9;
    const double wall_s = loop_s > 0 ? loop_s : report_duration_s(r);
    f->v[FACT_EPOCHS] = (double)l->epochs;
    if (l->num_workers > 0)
        f->v[FACT_WORKER_START_S] = all;
    if (l->num_workers > 0 && l->epoch_count)
        f->v[FACT_FIRST_WAIT_S] = fmax(
            l->epoch_list[0].first_batch_s - l->epoch_list[0].iter_s - usual, 0);
    const double lost_s = loader_ahead_is_epoch(l)
                              ? changes
                              : lost_at_changes(&r->account, changes);
    if (wall_s > 0 && l->epoch_count >= 2)
        f->v[FACT_EPOCH_SHARE] = fmin(lost_s / wall_s, 1);
}

/* Batches may be there in time and still cost: where no core is idle, what workers compute
 * the step has to wait for. Share of all cores' time. */
static void set_crowding(const struct report *r, const struct pipeline *p,
                         struct facts *f)
{
    const double busy = steady_cores_busy(r) / p->cores;
    if (p->known && p->workers > 0 && busy >= 0)
        f->v[FACT_CROWDED_SHARE] =
            busy >= 0.9 ? at_most(p->make_cpu_ns / (p->cores * p->step_ns), 1) : 0;
}

/* ---- All of it --------------------------------------------------------------------------- */

/* Where no stack tells the line samples are made at: the class that makes them, and its
 * slowest transform. The line of DataLoader(…) says nothing about either. */
static void name_transform(struct report *r, const struct loader *l, struct facts *f)
{
    const char *known = f->place[PLACE_TRANSFORM];
    struct buf b = BUF_INIT;
    if (known[0] && strcmp(known, f->place[PLACE_LOADER]) != 0)
        return;
    buf_printf(&b, "%s.%s", l->dataset[0] ? l->dataset : "the data set",
               l->iterable ? "__iter__" : "__getitem__");
    if (l->transform_count)
        buf_printf(&b, " (%s)", l->transforms[0].name);
    fact_place(r, f, PLACE_TRANSFORM, &b);
    buf_release(&b);
}

/* "77 (cat.png, 57.5 ms), 12 (51 ms)". The same one in every epoch is named once. */
static void name_slowest(struct report *r, const struct loader *l, struct facts *f)
{
    enum { NAMED = 3 };
    int64_t named[NAMED];
    size_t count = 0;
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < l->slowest_count && count < NAMED; i++) {
        const struct loader_slow_sample *s = &l->slowest[i];
        bool again = s->index < 0;
        for (size_t k = 0; k < count; k++)
            again = again || named[k] == s->index;
        if (again)
            continue;
        named[count] = s->index;
        buf_printf(&b, "%s%lld (%s%s%.3g ms)", count ? ", " : "", (long long)s->index,
                   path_base(s->path), s->path[0] ? ", " : "", s->wall_ns / 1e6);
        count++;
    }
    fact_place(r, f, PLACE_SLOWEST, &b);
    buf_release(&b);
}

static void set_places(struct report *r, const struct loader *l, struct facts *f)
{
    struct buf b = BUF_INIT;
    name_slowest(r, l, f);
    if (l->file[0] && l->line > 0)
        buf_printf(&b, "%s:%d", path_base(l->file), l->line);
    fact_place(r, f, PLACE_LOADER, &b);
    buf_clear(&b);
    buf_puts(&b, l->dataset);
    fact_place(r, f, PLACE_DATASET, &b);
    if (b.len)
        buf_puts(&b, "'s attributes");
    if (l->objects[0]) {
        buf_clear(&b);
        buf_puts(&b, l->objects);
    }
    fact_place(r, f, PLACE_OBJECT, &b);
    buf_release(&b);
    name_transform(r, l, f);
}

/* Without batches of the loader's own (batch_size=None) an item may well be a batch that
 * the data set has made: one item is not one sample then. */
static double batch_size_of(const struct loader *l)
{
    const double n = l->batch_samples.count ? l->batch_samples.mean : l->batch_size;
    return l->batch_size > 0 || n > 1 ? n : NAN;
}

void facts_of_loader(struct report *r, struct facts *f)
{
    const struct loader *l = loader_of_steps(&r->loaders);
    struct pipeline p;
    if (!l)
        return;
    f->v[FACT_WORKERS] = l->num_workers;
    if (l->num_workers > 0)
        f->v[FACT_PREFETCH] = l->prefetch_factor;
    f->v[FACT_PERSISTENT] = l->persistent_workers;
    f->v[FACT_ITERABLE] = l->iterable;
    f->v[FACT_PIN_MEMORY] = l->pin_memory;
    f->v[FACT_BATCH_SIZE] = batch_size_of(l);
    f->v[FACT_BATCH_MB] = loader_batch_mb(l);
    if (l->num_workers > 0)
        f->v[FACT_QUEUE_WAIT_SHARE] = (loader_mean_ns(&l->wait) + loader_answer_ns(l)) /
                                      f->v[FACT_STEP_MEAN_MS] / 1e6;
    if (l->num_workers > 0)
        f->v[FACT_QUEUE_EMPTY_SHARE] = 1 - l->ready_share * (1 - late_share(r, l));
    set_samples(r, l, f);
    r->transforms_unknown = l->transform_count == 0;
    set_workers(r, l, f);
    set_epochs(r, l, f);
    set_places(r, l, f);
    pipeline_of(r, &p);
    set_crowding(r, &p, f);
}
