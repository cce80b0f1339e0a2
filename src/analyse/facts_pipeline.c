/* facts_pipeline.c: the pipeline of the recorded loader, as the what-if model wants it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/loader_own.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "analyse/whatif.h"

/* Where there are more workers than cores, what a worker does not compute it waits for a
 * core: with fewer of them it would not. Who waits for storage computes little, unless
 * the kernel says that he could have run. */
static double own_make(const struct report *r, const struct loader *l, double cores,
                       double make, double cpu)
{
    const bool crowded = l->num_workers + 1 > cores &&
                         (cpu >= 0.3 * make ||
                          cpu * loader_starvation(r, l) >= 0.7 * make);
    return crowded ? fmin(make, 1.05 * cpu) : make;
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
 * it, which is known to a twentieth of all it had; pieces of work for several threads have
 * the cores side by side once the workers leave them. */
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
    const double beside = native_pieces_share(r) * (1 - 1 / p->cores);
    const double needs = (works * (1 - beside) + 0.05 * main_cpu) * p->step_ns -
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

static double median_of_times(const struct loader_times *t)
{
    return t->d.count ? distribution_quantile(&t->d, 0.5) : NAN;
}

/* Workers with little to do answer at once: then all of it is work, of many tensors say. */
static double own_receive(const struct loader *l)
{
    const double median = median_of_times(&l->receive);
    return isnan(loader_batch_mb(l)) || !loader_is_busy(l)
               ? median
               : at_most(median, loader_usual_receive_ns(l));
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

/* Of those that were taken in their turn the quickest had a worker with nothing else
 * to do. */
static double idle_receive(const struct loader *l)
{
    if (l->receive.d.count < 20)
        return NAN;
    const double before = taken_before(l);
    return before < 0.9
               ? distribution_quantile(&l->receive.d, before + 0.1 * (1 - before))
               : NAN;
}

/* Mean time of a step: of the steady ones, or with what changes of epochs take. */
static double mean_step(const struct report *r, const struct loader *l)
{
    const struct step_account *a = &r->account;
    if (!a->known)
        return loader_mean_ns(&l->fetch) + loader_mean_ns(&l->consume);
    return loader_ahead_is_epoch(l) && a->steps > a->warmup
               ? (a->steady_ns + a->epoch_ns) / (double)(a->steps - a->warmup)
               : a->mean_ns;
}

/* CPU time of putting a batch together in memory that processes share: torch's own
 * collate does so in a worker. NaN: it is not that one, or not known. */
static double shared_collate(const struct loader *l, double make, double cpu)
{
    const bool torchs = l->collate_fn && strcmp(l->collate_fn, "default_collate") == 0;
    return torchs && l->num_workers > 0 && l->collate.d.count
               ? loader_mean_ns(&l->collate) * fmin(cpu / make, 1)
               : NAN;
}

static void fill_pipeline(const struct report *r, const struct loader *l,
                          struct pipeline *p)
{
    const double step = mean_step(r, l);
    const double steady = r->account.known ? r->account.mean_ns : step;
    const double make = loader_usual_ns(l, &l->make);
    const double cpu = loader_usual_ns(l, &l->make_cpu);
    const double cores = r->run->meta.cores;
    *p = (struct pipeline){
        .known = make > 0 && step > 0 && cores > 0,
        .workers = l->num_workers,
        .prefetch = l->prefetch_factor >= 1 ? l->prefetch_factor : 2,
        .cores = cores,
        .step_ns = step,
        .compute_ns = fmax(steady - loader_mean_ns(&l->fetch), 0),
        /* Without workers all of next() is making, what is around it too. */
        .make_ns = l->num_workers > 0 ? own_make(r, l, cores, make, cpu)
                                      : fmax(make, loader_mean_ns(&l->fetch)),
        .make_cpu_ns = cpu,
        .transform_share = loader_transform_share(l),
        .collate_share = l->collate.d.count
                             ? loader_mean_ns(&l->collate) / loader_mean_ns(&l->make)
                             : NAN,
        .ship_ns = l->num_workers > 0 ? median_of_times(&l->pickle) : NAN,
        .receive_ns = l->num_workers > 0 ? own_receive(l) : NAN,
        .receive_idle_ns = l->num_workers > 0 ? idle_receive(l) : NAN,
        .batch_mb = loader_batch_mb(l),
        .shared_collate_ns = shared_collate(l, make, cpu),
        .make = l->make.d.count ? &l->make.d : NULL,
        .foreign_cores = foreign_cores(r),
        .spinning_cores = spinning_cores(r),
    };
    if (isnan(p->compute_ns))
        p->compute_ns = loader_mean_ns(&l->consume);
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
        .make_cpu_ns = make * r->hand_cpu_share,
        .collate_share = NAN,
        .ship_ns = NAN,
        .receive_ns = NAN,
        .receive_idle_ns = NAN,
        .batch_mb = NAN,
        .shared_collate_ns = NAN,
        .foreign_cores = foreign_cores(r),
        .spinning_cores = spinning_cores(r),
    };
}

void pipeline_of(const struct report *report, struct pipeline *ret_pipeline)
{
    const struct loader *l = loader_of_steps(&report->loaders);
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
