/* loader_own.c: see loader_own.h. */
#include "analyse/loader_own.h"

#include <math.h>
#include <stdio.h>

#include "analyse/fact_parts.h"
#include "analyse/fact_series.h"
#include "analyse/report.h"

static const double MIB = 1 << 20;

/* The one whose fetches are the steps; else the one that was fetched from most. */
const struct loader *loader_of_steps(const struct loader_report *all)
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

double loader_mean_ns(const struct loader_times *t)
{
    return t->d.count ? t->d.mean : NAN;
}

/* Share of batches that were the first of their worker's process. */
static double first_share(const struct loader *l)
{
    double processes = 0;
    for (size_t i = 0; i < l->worker_count; i++)
        processes += l->workers[i].processes;
    return l->make.d.count ? processes / (double)l->make.d.count : 0;
}

/* Mean of what lies between two quantiles. */
static double mean_between(const struct distribution *d, double from, double to)
{
    enum { POINTS = 500 };
    double sum = 0;
    for (int i = 0; i < POINTS; i++)
        sum += distribution_quantile(d, from + (to - from) * (i + 0.5) / POINTS);
    return sum / POINTS;
}

/* With its first batch a worker often makes what it needs for itself: files parsed, tables
 * built. Which batches were first is not written down; it is the slowest ones where those
 * are many times the others and take as long as first batches were waited for. */
static bool starts_slowly(const struct loader *l, double first)
{
    const struct distribution *d = &l->make.d;
    if (d->count < 20 || !(first > 0) || first > 0.5 || !l->first_fetch.d.count)
        return false;
    const double slowest = mean_between(d, 1 - first, 1);
    return slowest >= 4 * mean_between(d, 0, 1 - first) &&
           slowest <= 1.25 * l->first_fetch.d.mean;
}

double loader_usual_ns(const struct loader *l, const struct loader_times *times)
{
    const double first = first_share(l);
    return times->d.count >= 20 && starts_slowly(l, first)
               ? mean_between(&times->d, 0, 1 - first)
               : loader_mean_ns(times);
}

double loader_transform_share(const struct loader *l)
{
    double share = 0;
    for (size_t i = 0; i < l->transform_count; i++)
        share += isnan(l->transforms[i].share) ? 0 : l->transforms[i].share;
    return l->transform_count ? fmin(share, 1) : NAN;
}

double loader_batch_mb(const struct loader *l)
{
    return l->batch_bytes.count ? l->batch_bytes.mean / MIB : NAN;
}

/* A loader starts every epoch with nothing prepared. Where an epoch is not much longer than
 * what its workers keep ahead, most batches are made while the first is waited for, and
 * steady steps, which are those behind it, do not tell what a batch costs. */
bool loader_ahead_is_epoch(const struct loader *l)
{
    const double ahead = (double)l->num_workers * fmax(l->prefetch_factor, 1);
    return l->num_workers > 0 && l->persistent_workers && l->epochs >= 2 &&
           2 * ahead >= (double)l->batches / (double)l->epochs;
}

bool loader_is_busy(const struct loader *l)
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
double loader_usual_receive_ns(const struct loader *l)
{
    const double mb = loader_batch_mb(l);
    return 1.5e6 + 1.2e6 * (isnan(mb) ? 0 : mb);
}

/* The batch its worker was making while this one was being taken; NULL: none. Batches of
 * one worker are made in their order. */
static const struct loader_batch *made_next(const struct loader *l, size_t of)
{
    const struct loader_batch *b = &l->recent[of];
    for (size_t i = of + 1; i < l->recent_count; i++)
        if (l->recent[i].worker == b->worker && l->recent[i].begun_ns >= b->made_ns)
            return &l->recent[i];
    return NULL;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

double loader_answer_ns(const struct loader *l)
{
    const double usual = loader_usual_receive_ns(l);
    double sum = 0;
    for (size_t i = 0; i < l->recent_count; i++) {
        const struct loader_batch *b = &l->recent[i];
        const struct loader_batch *next = b->worker >= 0 ? made_next(l, i) : NULL;
        if (!next || b->sent_ns <= 0)
            continue;
        const int64_t from = latest(latest(b->asked_ns, b->sent_ns), next->begun_ns);
        const int64_t to = b->given_ns < next->made_ns ? b->given_ns : next->made_ns;
        sum += fmax((double)(to - from) - usual, 0);
    }
    return l->recent_count ? sum / (double)l->recent_count : 0;
}

/* How much longer than it computes a process would like to: it also waits for a core,
 * and that is no waiting for data. */
double loader_wants_cpu(const struct report *r, uint32_t pid)
{
    char subject[16];
    (void)snprintf(subject, sizeof subject, "%u", pid);
    const double cpu = steady_mean(r, "cpu", subject);
    const double delay = steady_mean(r, "run_delay", subject);
    return cpu > 1 && delay > 0 ? (cpu + delay) / cpu : 1;
}

double loader_starvation(const struct report *r, const struct loader *l)
{
    double sum = 0;
    if (l->worker_count == 0)
        return loader_wants_cpu(r, l->pid);
    for (size_t i = 0; i < l->worker_count; i++)
        sum += loader_wants_cpu(r, l->workers[i].pid);
    return sum / (double)l->worker_count;
}
