/* facts_loader.c: facts about the training loader, and the model of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "analyse/whatif.h"
#include "base/files.h"

static const double MIB = 1 << 20;

/* The one whose fetches are the steps; else the one that was fetched from most. */
static const struct loader *training(const struct loader_report *all)
{
    const struct loader *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct loader *l = &all->list[i];
        if (!best || l->training > best->training ||
            (l->training == best->training && l->batches > best->batches))
            best = l;
    }
    return best;
}

static double mean_of(const struct loader_times *t)
{
    return t->d.count ? t->d.mean : NAN;
}

/* ---- The model ------------------------------------------------------------------------ */

/* Where there are more workers than cores, what a worker does not compute it waits for a
 * core: with fewer of them it would not. */
static double own_make(const struct loader *l, double cores, double make, double cpu)
{
    const bool crowded = l->num_workers + 1 > cores && cpu >= 0.3 * make;
    return crowded ? fmin(make, 1.05 * cpu) : make;
}

static double transform_of(const struct loader *l)
{
    double share = 0;
    for (size_t i = 0; i < l->transform_count; i++)
        share += isnan(l->transforms[i].share) ? 0 : l->transforms[i].share;
    return l->transform_count ? fmin(share, 1) : NAN;
}

static double foreign_cores(const struct report *r)
{
    const double all = steady_cores_busy(r);
    const double own = steady_mean(r, "cpu", "") / 100;
    return isnan(all) || isnan(own) ? NAN : fmax(all - own, 0);
}

/* Cores that threads of the run take by spinning until they are given work. */
static double spinning_cores(const struct report *r)
{
    const double loop = account_loop_ns(&r->account);
    return native_spin_ns(&r->hot) / (loop > 0 ? loop : report_duration_s(r) * 1e9);
}

static double part_waited(double delay, double cpu)
{
    return delay / (cpu + delay);
}

/* Of the wall time of the main thread outside of fetching: waiting for a core while the
 * workers had it. Others that want cores have their part of the waiting.
 *
 * The kernel adds up the delays of a process's threads. Where some of them only spin, the
 * delay may be all the main thread's (`most`) or theirs as much as they had of the CPU
 * time (`least`); between the two, computing takes the CPU time that the process has for
 * it, which is known to a twentieth of all it had. */
static double waited_for_workers(const struct report *r, const struct loader *l,
                                 const struct pipeline *p)
{
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%u", l->pid);
    const double main_cpu = steady_mean(r, "cpu", pid) / 100;
    const double delay = steady_mean(r, "run_delay", pid) / 100;
    const double workers = steady_mean(r, "cpu", "") / 100 - main_cpu;
    const double others = foreign_cores(r);
    if (!(main_cpu > 0.01) || !(delay > 0) || !(workers > 0) || isnan(others))
        return 0;
    const double works = fmax(main_cpu - spinning_cores(r), 0.05 * main_cpu);
    const double needs = (works + 0.05 * main_cpu) * p->step_ns -
                         (isnan(p->receive_ns) ? 0 : p->receive_ns);
    const double ours = p->compute_ns * workers / (workers + others);
    const double least = ours * part_waited(delay, main_cpu);
    const double most = ours * part_waited(delay, works);
    return fmin(fmax(p->compute_ns - needs, least), most);
}

/* CPU of the main process in a step, without what it spends on making or taking batches,
 * and without threads that spin until they are given work: they make room for whoever
 * wants their core. At least what the main thread itself computes, at most all cores
 * while it does. */
static double compute_cpu(const struct report *r, const struct loader *l,
                          const struct pipeline *p)
{
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%u", l->pid);
    const double spin = fmin(spinning_cores(r), p->cores - 1);
    const double cores = steady_mean(r, "cpu", pid) / 100 - spin;
    const double beside = l->num_workers > 0 ? p->receive_ns : p->make_cpu_ns;
    const double all = cores * p->step_ns - (isnan(beside) ? 0 : beside);
    const double least = p->compute_ns - p->compute_wait_ns;
    return isnan(all) ? NAN : fmin(fmax(all, least), p->compute_ns * p->cores);
}

static double batch_mb(const struct loader *l)
{
    return l->batch_bytes.count ? l->batch_bytes.mean / MIB : NAN;
}

static double median_of_times(const struct loader_times *t)
{
    return t->d.count ? distribution_quantile(&t->d, 0.5) : NAN;
}

static bool workers_are_busy(const struct loader *l)
{
    double busy = 0, alive = 0;
    for (size_t i = 0; i < l->worker_count; i++) {
        busy += l->workers[i].busy_s;
        alive += l->workers[i].alive_s;
    }
    return busy > 0.5 * alive;
}

/* To take a batch the main process asks its worker for the memory it is in, and a worker
 * that computes answers late: that is waiting, not the work of taking it. */
static double usual_receive(const struct loader *l)
{
    const double mb = batch_mb(l);
    return 1.5e6 + 1.2e6 * (isnan(mb) ? 0 : mb);
}

/* Workers with little to do answer at once: then all of it is work, of many tensors say. */
static double own_receive(const struct loader *l)
{
    const double median = median_of_times(&l->receive);
    return isnan(batch_mb(l)) || !workers_are_busy(l)
               ? median
               : at_most(median, usual_receive(l));
}

/* Share of batches that cost nothing to take when it was their turn: they had come
 * before it, and were taken inside of another's fetch. */
static double taken_before(const struct loader *l)
{
    enum { POINTS = 100 };
    int none = 0;
    while (none < POINTS &&
           !(distribution_quantile(&l->receive.d, (none + 0.5) / POINTS) > 0))
        none++;
    return (double)none / POINTS;
}

/* Of those that were taken in their turn the quicker ones had a worker with nothing else
 * to do. */
static double idle_receive(const struct loader *l)
{
    if (l->receive.d.count < 20)
        return NAN;
    const double before = taken_before(l);
    return before < 0.9
               ? distribution_quantile(&l->receive.d, before + 0.25 * (1 - before))
               : NAN;
}

static void fill_pipeline(const struct report *r, const struct loader *l,
                          struct pipeline *p)
{
    const double step = r->account.known ? r->account.mean_ns
                                         : mean_of(&l->fetch) + mean_of(&l->consume);
    const double make = mean_of(&l->make);
    const double cpu = mean_of(&l->make_cpu);
    const double cores = r->run->meta.cores;
    *p = (struct pipeline){
        .known = make > 0 && step > 0 && cores > 0,
        .workers = l->num_workers,
        .prefetch = l->prefetch_factor >= 1 ? l->prefetch_factor : 2,
        .cores = cores,
        .step_ns = step,
        .compute_ns = fmax(step - mean_of(&l->fetch), 0),
        /* Without workers all of next() is making, what is around it too. */
        .make_ns = l->num_workers > 0 ? own_make(l, cores, make, cpu)
                                      : fmax(make, mean_of(&l->fetch)),
        .make_cpu_ns = cpu,
        .transform_share = transform_of(l),
        .ship_ns = l->num_workers > 0 ? median_of_times(&l->pickle) : NAN,
        .receive_ns = l->num_workers > 0 ? own_receive(l) : NAN,
        .receive_idle_ns = l->num_workers > 0 ? idle_receive(l) : NAN,
        .batch_mb = batch_mb(l),
        .make = l->make.d.count ? &l->make.d : NULL,
        .foreign_cores = foreign_cores(r),
    };
    if (isnan(p->compute_ns))
        p->compute_ns = mean_of(&l->consume);
    p->known = p->known && p->compute_ns >= 0;
    if (l->num_workers > 0)
        p->compute_wait_ns = waited_for_workers(r, l, p);
    p->compute_cpu_ns = compute_cpu(r, l, p);
}

/* A loop that loads by itself is a loader without workers. */
static void fill_by_hand(const struct report *r, struct pipeline *p)
{
    const double step = r->account.mean_ns;
    const double make = r->hand_share * step;
    *p = (struct pipeline){
        .known = make > 0 && r->run->meta.cores > 0,
        .by_hand = true,
        .prefetch = 2,
        .cores = r->run->meta.cores,
        .step_ns = step,
        .compute_ns = step - make,
        .compute_cpu_ns = NAN,
        .make_ns = make,
        .make_cpu_ns = NAN,
        .ship_ns = NAN,
        .receive_ns = NAN,
        .receive_idle_ns = NAN,
        .batch_mb = NAN,
        .foreign_cores = foreign_cores(r),
    };
}

void pipeline_of(const struct report *report, struct pipeline *ret_pipeline)
{
    const struct loader *l = training(&report->loaders);
    *ret_pipeline = (struct pipeline){ .known = false };
    if (l)
        fill_pipeline(report, l, ret_pipeline);
    else if (report->hand_share > 0)
        fill_by_hand(report, ret_pipeline);
    /* Without a list of transforms: all that is neither a call for files nor collating. */
    if (!l || l->transform_count == 0)
        ret_pipeline->transform_share = report->transform_of_load > 0
                                            ? report->transform_of_load
                                            : NAN;
}

/* ---- Samples ------------------------------------------------------------------------- */

/* Share of the time that goes into what samples take beyond four medians. */
static double tail_share(const struct distribution *d, double median)
{
    enum { POINTS = 1000 };
    double beyond = 0;
    double all = 0;
    for (int i = 0; i < POINTS; i++) {
        const double ns = distribution_quantile(d, (i + 0.5) / POINTS);
        beyond += fmax(ns - 4 * median, 0);
        all += ns;
    }
    return all > 0 ? beyond / all : NAN;
}

/* How much longer than it computes a process would like to: it also waits for a core,
 * and that is no waiting for data. */
static double wants_cpu(const struct report *r, uint32_t pid)
{
    char subject[16];
    (void)snprintf(subject, sizeof subject, "%u", pid);
    const double cpu = steady_mean(r, "cpu", subject);
    const double delay = steady_mean(r, "run_delay", subject);
    return cpu > 1 && delay > 0 ? (cpu + delay) / cpu : 1;
}

static double starvation(const struct report *r, const struct loader *l)
{
    double sum = 0;
    if (l->worker_count == 0)
        return wants_cpu(r, l->pid);
    for (size_t i = 0; i < l->worker_count; i++)
        sum += wants_cpu(r, l->workers[i].pid);
    return sum / (double)l->worker_count;
}

/* Share of the makers' time in which they could have run and had no core: on a busy
 * machine that makes tails which are nobody's samples. */
static double waits_for_core(const struct report *r, const struct loader *l)
{
    const double wants = starvation(r, l);
    return 1 - 1 / wants;
}

/* CPU time knows nothing of a busy machine; waits for storage are in wall time alone.
 * Whichever tail is the heavier. */
static void set_tails(const struct report *r, const struct loader *l, struct facts *f)
{
    const struct distribution *wall = &l->sample.d, *cpu = &l->sample_cpu.d;
    if (wall->count < 100)
        return;
    const double median = distribution_quantile(wall, 0.5);
    f->v[FACT_SAMPLE_TAIL] = distribution_quantile(wall, 0.995) / median;
    f->v[FACT_SLOW_SAMPLE_SHARE] = fmax(tail_share(wall, median) - waits_for_core(r, l),
                                        0);
    if (cpu->count < 100)
        return;
    const double busy = distribution_quantile(cpu, 0.5);
    const double share = tail_share(cpu, busy) * f->v[FACT_SAMPLE_CPU_SHARE];
    if (share > f->v[FACT_SLOW_SAMPLE_SHARE]) {
        f->v[FACT_SLOW_SAMPLE_SHARE] = share;
        f->v[FACT_SAMPLE_TAIL] = distribution_quantile(cpu, 0.995) / busy;
    }
}

static void set_samples(const struct report *r, const struct loader *l, struct facts *f)
{
    const double make = mean_of(&l->make);
    f->v[FACT_SAMPLE_MS] = mean_of(&l->sample) / 1e6;
    f->v[FACT_BATCH_MS] = make / 1e6;
    f->v[FACT_BATCH_CPU_MS] = mean_of(&l->make_cpu) / 1e6;
    const double cpu = l->sample_cpu.d.count
                           ? mean_of(&l->sample_cpu) / mean_of(&l->sample)
                           : mean_of(&l->make_cpu) / make;
    f->v[FACT_SAMPLE_CPU_SHARE] = at_most(cpu * starvation(r, l), 1);
    set_tails(r, l, f);
    /* Of what batches take, samples may be the lesser part. */
    const double of_batch = f->v[FACT_SAMPLE_MS] *
                            (l->batch_samples.count ? l->batch_samples.mean
                                                    : l->batch_size) /
                            f->v[FACT_BATCH_MS];
    if (of_batch >= 0)
        f->v[FACT_SLOW_SAMPLE_SHARE] *= at_most(of_batch, 1);
    if (l->collate.d.count && make > 0)
        f->v[FACT_COLLATE_OF_BATCH] = mean_of(&l->collate) / make;
    const double transform = transform_of(l);
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
    const double most = usual_receive(l) * wants_cpu(r, l->pid);
    int late = 0;
    if (l->receive.d.count < 20 || isnan(batch_mb(l)) || !workers_are_busy(l))
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

/* The first batch of an epoch waits for the workers to start, and workers that are not kept
 * are ended behind its last. What the first start and the last end take is no change. */
static void set_epochs(const struct report *r, const struct loader *l, struct facts *f)
{
    const double usual = l->fetch.d.count ? l->fetch.d.mean / 1e9 : 0;
    const bool anew = l->num_workers > 0 && !l->persistent_workers;
    double all = 0, changes = 0;
    for (size_t i = 0; i < l->epoch_count; i++) {
        const double lost = l->epoch_list[i].first_batch_s - usual;
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
    if (wall_s > 0 && l->epoch_count >= 2)
        f->v[FACT_EPOCH_SHARE] = fmin(lost_at_changes(&r->account, changes) / wall_s,
                                      1);
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

static void set_places(struct report *r, const struct loader *l, struct facts *f)
{
    struct buf b = BUF_INIT;
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

void facts_of_loader(struct report *r, struct facts *f)
{
    const struct loader *l = training(&r->loaders);
    struct pipeline p;
    if (!l)
        return;
    f->v[FACT_WORKERS] = l->num_workers;
    if (l->num_workers > 0)
        f->v[FACT_PREFETCH] = l->prefetch_factor;
    f->v[FACT_PERSISTENT] = l->persistent_workers;
    f->v[FACT_PIN_MEMORY] = l->pin_memory;
    f->v[FACT_BATCH_SIZE] = l->batch_samples.count ? l->batch_samples.mean
                                                   : l->batch_size;
    if (l->batch_bytes.count)
        f->v[FACT_BATCH_MB] = l->batch_bytes.mean / MIB;
    if (l->num_workers > 0)
        f->v[FACT_QUEUE_WAIT_SHARE] = mean_of(&l->wait) / f->v[FACT_STEP_MEAN_MS] / 1e6;
    if (l->num_workers > 0)
        f->v[FACT_QUEUE_EMPTY_SHARE] = 1 - l->ready_share * (1 - late_share(r, l));
    set_samples(r, l, f);
    r->transforms_unknown = l->transform_count == 0;
    set_workers(r, l, f);
    set_epochs(r, l, f);
    set_places(r, l, f);
    fill_pipeline(r, l, &p);
    set_crowding(r, &p, f);
}
