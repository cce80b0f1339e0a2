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
