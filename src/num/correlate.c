/* correlate.c: correlations, ranks, the Pareto front. */
#include "num/correlate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "num/student.h"

static int check(const double *x, const double *y, size_t n, double confidence)
{
    if (n < 2 || !(confidence > 0 && confidence < 1))
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]))
            return -EINVAL;
    return 0;
}

static double mean_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* NaN when one of them does not vary. */
static double plain_r(const double *x, const double *y, size_t n)
{
    const double mx = mean_of(x, n), my = mean_of(y, n);
    double xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        const double dx = x[i] - mx, dy = y[i] - my;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    if (!(xx > 0) || !(yy > 0))
        return NAN;
    const double r = xy / (sqrt(xx) * sqrt(yy));
    return r > 1 ? 1 : r < -1 ? -1 : r;
}

static void set_interval(struct correlation *c, double variance, double confidence)
{
    c->low = c->high = c->p = NAN;
    if (c->n > 2) {
        const double left = 1 - c->r * c->r;
        const double df = (double)c->n - 2;
        c->p = left <= 0 ? 0 : 2 * student_cdf(-fabs(c->r) * sqrt(df / left), df);
    }
    if (c->n < 4)
        return;
    if (fabs(c->r) == 1) {
        c->low = c->high = c->r;
        return;
    }
    const double half = student_quantile(0.5 + confidence / 2, INFINITY) *
                        sqrt(variance / ((double)c->n - 3));
    c->low = tanh(atanh(c->r) - half);
    c->high = tanh(atanh(c->r) + half);
}

int correlate_pearson(const double *x, const double *y, size_t n, double confidence,
                      struct correlation *ret_correlation)
{
    const int rc = check(x, y, n, confidence);
    struct correlation c = { .n = n };
    if (rc < 0)
        return rc;
    c.r = plain_r(x, y, n);
    if (isnan(c.r))
        return -EINVAL;
    set_interval(&c, 1, confidence);
    *ret_correlation = c;
    return 0;
}

struct ranked {
    double value;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct ranked *)a)->value;
    const double y = ((const struct ranked *)b)->value;
    return (x > y) - (x < y);
}

int rank_values(const double *values, size_t n, double *ret_ranks)
{
    struct ranked *sorted = calloc(n ? n : 1, sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct ranked){ values[i], i };
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && sorted[end].value == sorted[i].value)
            end++;
        for (size_t k = i; k < end; k++)
            ret_ranks[sorted[k].at] = (double)(i + 1 + end) / 2;
        i = end;
    }
    free(sorted);
    return 0;
}

int correlate_spearman(const double *x, const double *y, size_t n, double confidence,
                       struct correlation *ret_correlation)
{
    int rc = check(x, y, n, confidence);
    if (rc < 0)
        return rc;
    struct correlation c = { .n = n };
    double *ranks = calloc(2 * n, sizeof *ranks);
    rc = ranks ? rank_values(x, n, ranks) : -ENOMEM;
    if (rc == 0)
        rc = rank_values(y, n, ranks + n);
    if (rc == 0) {
        c.r = plain_r(ranks, ranks + n, n);
        rc = isnan(c.r) ? -EINVAL : 0;
    }
    free(ranks);
    if (rc < 0)
        return rc;
    set_interval(&c, 1 + c.r * c.r / 2, confidence);
    *ret_correlation = c;
    return 0;
}

/* ---- Pareto ------------------------------------------------------------------------- */

struct point {
    const double *values;
    const bool *bigger;
    size_t n, goals, at;
};

static double goodness(const struct point *p, size_t goal, size_t at)
{
    const double v = p->values[goal * p->n + at];
    return p->bigger[goal] ? v : -v;
}

static bool beats(const struct point *p, size_t a, size_t b)
{
    bool better = false;
    for (size_t g = 0; g < p->goals; g++) {
        const double x = goodness(p, g, a), y = goodness(p, g, b);
        if (x < y)
            return false;
        better |= x > y;
    }
    return better;
}

static bool is_whole(const struct point *p, size_t at)
{
    for (size_t g = 0; g < p->goals; g++)
        if (isnan(p->values[g * p->n + at]))
            return false;
    return true;
}

static int best_first(const void *a, const void *b, void *arg)
{
    const struct point *p = arg;
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    for (size_t g = 0; g < p->goals; g++) {
        const double gx = goodness(p, g, x), gy = goodness(p, g, y);
        if (gx != gy)
            return gx < gy ? 1 : -1;
    }
    return 0;
}

/* Sorted by the first goal, a point can only be beaten by one before it, and then by
 * one of the front: what beats a beaten point beats what that one beats. */
int pareto_front(const double *values, size_t n, const bool *bigger, size_t goals,
                 bool *ret_front)
{
    struct point p = { values, bigger, n, goals, 0 };
    size_t *order = calloc(n ? n : 1, 2 * sizeof *order);
    if (!order)
        return -ENOMEM;
    size_t *front = order + n;
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        ret_front[i] = false;
        if (is_whole(&p, i))
            order[count++] = i;
    }
    qsort_r(order, count, sizeof *order, best_first, &p);
    for (size_t i = 0; i < count; i++) {
        bool beaten = false;
        for (size_t k = kept; !beaten && k-- > 0;)
            beaten = beats(&p, front[k], order[i]);
        if (!beaten) {
            front[kept++] = order[i];
            ret_front[order[i]] = true;
        }
    }
    free(order);
    return 0;
}
