/* loader_memory.c: what a forked worker copied of its parent's memory.
 *
 * A page that is copied was resident before and is so after: the private part grows and
 * the resident set does not (pages of files apart). What the worker allocates makes both
 * grow. And a page may
 * become private because all others let go of it or wrote to theirs (a model that is
 * trained): then the worker has had no fault. So it is at most the private pages beyond
 * the growth of the resident set, and at most what it had faults for.
 */
#include <math.h>

#include "analyse/loader_parts.h"

static double grown(uint64_t last, uint64_t first)
{
    return last > first ? (double)(last - first) / 1024 : 0;
}

static double copied_mb(const struct loader_look *first, const struct loader_look *last)
{
    const double own = grown(last->private_kb, first->private_kb) -
                       grown(last->resident_kb, first->resident_kb);
    return fmax(fmin(own, grown(last->faulted_kb, first->faulted_kb)), 0);
}

void loader_add_looks(struct loader_worker *w, const struct loader_self_row *row)
{
    if (row->looks < 2)
        return;
    const double copied = copied_mb(&row->first_look, &row->last_look);
    /* One process after the other: the one that copied most stands for them. */
    if (w->copied_mb >= copied)
        return;
    w->copied_mb = copied;
    w->private_mb = (double)row->last_look.private_kb / 1024;
}

/* Only some look: the others do the same work. */
static double of_all(const struct loader *l, double sum, size_t known)
{
    return known ? sum * (double)l->worker_count / (double)known : NAN;
}

double loader_copied_mb(const struct loader *l)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < l->worker_count; i++)
        if (!isnan(l->workers[i].copied_mb)) {
            sum += l->workers[i].copied_mb;
            known++;
        }
    return of_all(l, sum, known);
}

double loader_private_mb(const struct loader *l)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < l->worker_count; i++)
        if (!isnan(l->workers[i].private_mb)) {
            sum += l->workers[i].private_mb;
            known++;
        }
    return of_all(l, sum, known);
}
