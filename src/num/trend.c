/* trend.c: Theil and Sen's slope, Pettitt's change point.
 *
 * Sen (1968): with N slopes in order and C = z·√Var(S), Var(S) = n(n−1)(2n+5)/18, the
 * interval is from the (N−C)/2-th to the (N+C)/2+1-th slope. Ties make it a little wide (scipy
 * takes them into account).
 *
 * Pettitt (1979): U(t) = 2·Σ ranks(1…t) − t(n+1), K = max |U(t)|,
 * p ≈ 2·exp(−6K² / (n³+n²)). With ties mid-ranks are taken.
 */
#include "num/trend.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "num/student.h"

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *values, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, compare);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static bool all_finite(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

/* ---- Slope ----------------------------------------------------------------------- */

static size_t pair_slopes(const double *x, const double *y, size_t n, double *slopes)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (x[k] != x[i])
                slopes[count++] = (y[k] - y[i]) / (x[k] - x[i]);
    return count;
}

static void choose_interval(const double *sorted, size_t count, size_t n,
                            double confidence, struct trend *t)
{
    const double size = (double)n;
    const double spread = sqrt(size * (size - 1) * (2 * size + 5) / 18);
    const double c = student_quantile(0.5 + confidence / 2, INFINITY) * spread;
    const double low = rint(((double)count - c) / 2) - 1;
    const double high = rint(((double)count + c) / 2);
    t->low = sorted[low > 0 ? (size_t)low : 0];
    t->high = sorted[high < (double)count ? (size_t)high : count - 1];
}

int trend_fit(const double *x, const double *y, size_t n, double confidence,
              struct trend *ret_trend)
{
    if (n > TREND_MAX_N)
        return SONDE_E_LIMIT;
    if (n < TREND_LEAST_N || !all_finite(x, n) || !all_finite(y, n) ||
        !(confidence > 0 && confidence < 1))
        return -EINVAL;
    double *slopes = malloc(n * (n - 1) / 2 * sizeof *slopes);
    if (!slopes)
        return -ENOMEM;
    struct trend t;
    const size_t count = pair_slopes(x, y, n, slopes);
    int rc = count ? 0 : -EINVAL;
    if (rc == 0) {
        t.slope = median_of(slopes, count);
        choose_interval(slopes, count, n, confidence, &t);
        for (size_t i = 0; i < n; i++)
            slopes[i] = y[i] - t.slope * x[i]; /* n ≤ pairs from 4 values on */
        t.intercept = median_of(slopes, n);
        *ret_trend = t;
    }
    free(slopes);
    return rc;
}

/* ---- Jumps ----------------------------------------------------------------------- */

struct ranked {
    double value;
    size_t place;
};

static int compare_ranked(const void *a, const void *b)
{
    return compare(&((const struct ranked *)a)->value,
                   &((const struct ranked *)b)->value);
}

/* Mid-ranks, from 1. */
static void rank_values(const double *values, size_t n, struct ranked *scratch,
                        double *ret_ranks)
{
    for (size_t i = 0; i < n; i++)
        scratch[i] = (struct ranked){ values[i], i };
    qsort(scratch, n, sizeof *scratch, compare_ranked);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && scratch[end].value == scratch[i].value)
            end++;
        for (size_t k = i; k < end; k++)
            ret_ranks[scratch[k].place] = (double)(i + end + 1) / 2;
        i = end;
    }
}

static void pettitt(const double *ranks, size_t n, size_t *ret_at, double *ret_p)
{
    const double size = (double)n;
    double sum = 0;
    double most = -1;
    for (size_t t = 1; t < n; t++) {
        sum += ranks[t - 1];
        const double u = fabs(2 * sum - (double)t * (size + 1));
        if (u > most) {
            most = u;
            *ret_at = t;
        }
    }
    *ret_p = fmin(1, 2 * exp(-6 * most * most / (size * size * size + size * size)));
}

int change_most_likely(const double *values, size_t n, size_t *ret_at, double *ret_p)
{
    if (n > TREND_MAX_N)
        return SONDE_E_LIMIT;
    if (n < 2 || !all_finite(values, n))
        return -EINVAL;
    struct ranked *scratch = malloc(n * sizeof *scratch);
    double *ranks = malloc(n * sizeof *ranks);
    int rc = scratch && ranks ? 0 : -ENOMEM;
    if (rc == 0) {
        rank_values(values, n, scratch, ranks);
        pettitt(ranks, n, ret_at, ret_p);
    }
    free(scratch);
    free(ranks);
    return rc;
}

static double median_between(const double *values, size_t from, size_t to,
                             double *scratch)
{
    memcpy(scratch, values + from, (to - from) * sizeof *scratch);
    return median_of(scratch, to - from);
}

/* One cut of [from, to), if there is one. */
static int cut(const double *values, size_t from, size_t to,
               const struct change_limits *limits, double *scratch,
               struct change *ret_change, bool *ret_found)
{
    size_t at = 0;
    double p = 1;
    *ret_found = false;
    if (to - from < 2 * limits->part)
        return 0;
    const int rc = change_most_likely(values + from, to - from, &at, &p);
    if (rc < 0 || p > limits->p || at < limits->part || to - from - at < limits->part)
        return rc;
    const double before = median_between(values, from, from + at, scratch);
    const double after = median_between(values, from + at, to, scratch);
    if (fabs(after - before) < limits->ratio * fabs(before))
        return 0;
    *ret_found = true;
    *ret_change = (struct change){ from + at, before, after, p };
    return 0;
}

static void insert(struct change *list, size_t *count, struct change one)
{
    size_t i = (*count)++;
    for (; i > 0 && list[i - 1].at > one.at; i--)
        list[i] = list[i - 1];
    list[i] = one;
}

/* What cuts leave is cut again, until none is found: each part is looked at once. */
static int segment(const double *values, size_t n, const struct change_limits *limits,
                   double *scratch, struct change *list, size_t cap, size_t *count)
{
    struct part {
        size_t from, to;
    } todo[TREND_MAX_N / 2 + 2];
    size_t waiting = 0;
    int rc = 0;
    todo[waiting++] = (struct part){ 0, n };
    while (rc == 0 && waiting > 0 && *count < cap) {
        struct change one;
        bool found;
        const struct part p = todo[--waiting];
        rc = cut(values, p.from, p.to, limits, scratch, &one, &found);
        if (rc < 0 || !found)
            continue;
        insert(list, count, one);
        todo[waiting++] = (struct part){ p.from, one.at };
        todo[waiting++] = (struct part){ one.at, p.to };
    }
    return rc;
}

/* Medians of the parts as they came out in the end. */
static void settle(const double *values, size_t n, double *scratch, struct change *list,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t from = i > 0 ? list[i - 1].at : 0;
        const size_t to = i + 1 < count ? list[i + 1].at : n;
        list[i].before = median_between(values, from, list[i].at, scratch);
        list[i].after = median_between(values, list[i].at, to, scratch);
    }
}

int change_find(const double *values, size_t n, const struct change_limits *limits,
                struct change *ret_changes, size_t cap, size_t *ret_count)
{
    size_t count = 0;
    if (n > TREND_MAX_N)
        return SONDE_E_LIMIT;
    if (!all_finite(values, n) || limits->part < 2)
        return -EINVAL;
    double *scratch = malloc((n ? n : 1) * sizeof *scratch);
    if (!scratch)
        return -ENOMEM;
    const int rc = segment(values, n, limits, scratch, ret_changes, cap, &count);
    if (rc == 0) {
        settle(values, n, scratch, ret_changes, count);
        *ret_count = count;
    }
    free(scratch);
    return rc;
}
