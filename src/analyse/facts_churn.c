/* facts_churn.c: see facts_churn.h.
 *
 * A page fault is churn when its page was given back and comes anew. Those of memory that
 * grows (a leak, a cache, a file that is mapped) are no churn: they are as many as the
 * pages the resident set gained. Programs touch most of their memory for the first time
 * while they start, so only the steady part counts, however few points it has. And where
 * allocations were counted there cannot be more fresh pages than were allocated: what is
 * left are faults of other kinds (pages copied after fork(), shared memory).
 */
#include "analyse/facts_churn.h"

#include <math.h>

#include "analyse/fact_series.h"
#include "analyse/facts.h"
#include "analyse/report.h"

static const double MIB = 1 << 20, PAGES_PER_MB = 256;
static const double TURNOVER_MOST = 1000; /* nothing stays */

/* NaN: it did not fall into the steady part, or was looked at once. */
static double grown_per_s(const struct report *r)
{
    const struct report_series *s = monitors_find(&r->monitors, "rss", "");
    const struct series_point *first = NULL, *last = NULL;
    for (size_t i = 0; s && i < s->point_count; i++)
        if (steady_has(r, s->points[i].t_s)) {
            last = &s->points[i];
            first = first ? first : last;
        }
    return first && last->t_s > first->t_s
               ? fmax(last->mean - first->mean, 0) / (last->t_s - first->t_s)
               : NAN;
}

static double allocated_per_s(const struct report *r, const struct facts *f)
{
    const struct allocations *a = &r->allocations;
    const double mb = (double)(a->bytes + a->mapped_bytes) / MIB;
    const double step_s = f->v[FACT_STEP_MS] / 1e3;
    if (!a->known)
        return NAN;
    return r->account.steps && step_s > 0 ? mb / (double)r->account.steps / step_s
                                          : mb / report_duration_s(r);
}

double churn_returned(const struct churn *c)
{
    const double kept = c->kept_mb_per_s / c->made_mb_per_s;
    return isnan(kept) ? 1 : fmax(1 - kept, 0);
}

struct churn churn_of(const struct report *r, const struct facts *f)
{
    struct churn c = { .faults_per_s = steady_points_mean(r, "page_faults", ""),
                       .made_mb_per_s = allocated_per_s(r, f),
                       .kept_mb_per_s = grown_per_s(r) };
    const double growing = c.kept_mb_per_s * PAGES_PER_MB;
    if (growing > 0)
        c.faults_per_s = c.faults_per_s > growing ? c.faults_per_s - growing : 0;
    const double most = c.made_mb_per_s * churn_returned(&c) * PAGES_PER_MB;
    if (c.faults_per_s > most)
        c.faults_per_s = most;
    return c;
}

double churn_turnover(const struct churn *c)
{
    if (isnan(c->kept_mb_per_s) || isnan(c->made_mb_per_s))
        return NAN;
    return c->kept_mb_per_s * TURNOVER_MOST > c->made_mb_per_s
               ? c->made_mb_per_s / c->kept_mb_per_s
               : TURNOVER_MOST;
}
