/* trends.c: what many experiments say together. */
#include "analyse/trends.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double CONFIDENCE = 0.95;

int trends_correlate(const double *a, const double *b, size_t n, const char *name,
                     struct trends_pair *ret_pair)
{
    struct trends_pair pair = { .name = name };
    double *both = calloc(n ? n : 1, 2 * sizeof *both);
    if (!both)
        return -ENOMEM;
    double *x = both, *y = both + n;
    for (size_t i = 0; i < n; i++)
        if (isfinite(a[i]) && isfinite(b[i])) {
            x[pair.n] = a[i];
            y[pair.n++] = b[i];
        }
    int rc = correlate_pearson(x, y, pair.n, CONFIDENCE, &pair.pearson);
    if (rc == 0)
        rc = correlate_spearman(x, y, pair.n, CONFIDENCE, &pair.spearman);
    pair.known = rc == 0;
    free(both);
    if (rc < 0 && rc != -EINVAL)
        return rc;
    *ret_pair = pair;
    return 0;
}

/* ---- Over time ---------------------------------------------------------------------- */

struct moment {
    double time, value;
    size_t at;
};

static int earliest_first(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Many experiments become at most TRENDS_POINTS medians of neighbours: a jump stays a
 * jump, an outlier does not become one. */
static int make_points(const struct moment *all, struct trends_course *c)
{
    c->per_point = (c->n + TRENDS_POINTS - 1) / TRENDS_POINTS;
    if (c->per_point == 0)
        return 0;
    double *block = calloc(c->per_point, sizeof *block);
    if (!block)
        return -ENOMEM;
    for (size_t i = 0; i < c->n; i += c->per_point) {
        const size_t n = c->n - i < c->per_point ? c->n - i : c->per_point;
        for (size_t k = 0; k < n; k++)
            block[k] = all[i + k].value;
        c->points[c->point_count] = median_of(block, n);
        c->times[c->point_count] = all[i].time;
        c->first[c->point_count++] = all[i].at;
    }
    free(block);
    return 0;
}

static int find_changes(struct trends_course *c)
{
    static const struct change_limits limits = { .p = 0.001, .ratio = 0.02, .part = 4 };
    int rc = trend_fit(c->times, c->points, c->point_count, CONFIDENCE, &c->slope);
    c->has_slope = rc == 0;
    if (rc < 0 && rc != -EINVAL)
        return rc;
    if (c->point_count < 2 * limits.part)
        return 0;
    rc = change_find(c->points, c->point_count, &limits, c->changes, TRENDS_CHANGES,
                     &c->change_count);
    return rc == -EINVAL ? 0 : rc;
}

int trends_course(const double *times_s, const double *values, size_t n,
                  struct trends_course *ret_course)
{
    struct moment *all = calloc(n ? n : 1, sizeof *all);
    struct trends_course *c = calloc(1, sizeof *c);
    int rc = all && c ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (isfinite(times_s[i]) && isfinite(values[i]))
            all[c->n++] = (struct moment){ times_s[i], values[i], i };
    if (rc == 0) {
        qsort(all, c->n, sizeof *all, earliest_first);
        rc = make_points(all, c);
    }
    if (rc == 0)
        rc = find_changes(c);
    if (rc == 0)
        *ret_course = *c;
    free(all);
    free(c);
    return rc;
}

size_t trends_top(const double *values, size_t n, size_t *ret_best, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            continue;
        size_t at = count < most ? count : most;
        while (at > 0 && values[ret_best[at - 1]] < values[i])
            at--;
        if (at == most)
            continue;
        const size_t last = count < most ? count++ : most - 1;
        memmove(&ret_best[at + 1], &ret_best[at], (last - at) * sizeof *ret_best);
        ret_best[at] = i;
    }
    return count;
}
