/* offset.c: see offset.h. */
#include "num/offset.h"

#include <errno.h>
#include <math.h>

#include "num/loglog.h"
#include "num/nnls.h"
#include "num/student.h"

enum { POINTS_MAX = 64, STEPS = 190 };

/* What is looked through: p from 0.2 (below, a power is no different from a constant) to
 * 4 in steps of 0.02, then refined. */
static const double P_FIRST = 0.2, P_STEP = 0.02, GROWTH_LEAST = 0.2;

struct points {
    const double *x, *y;
    size_t n;
    double largest; /* x is divided by it: numbers of one size */
};

/* The rest at exponent p: the sum of squared relative errors of the best a and b. */
static double rest(const struct points *s, double p, double ret_ab[2])
{
    double columns[2 * POINTS_MAX], ones[POINTS_MAX], sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        columns[2 * i] = 1 / s->y[i];
        columns[2 * i + 1] = pow(s->x[i] / s->largest, p) / s->y[i];
        ones[i] = 1;
    }
    if (nnls_solve(columns, ones, NULL, s->n, 2, ret_ab) < 0)
        return INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        const double off = ret_ab[0] * columns[2 * i] + ret_ab[1] * columns[2 * i + 1] -
                           1;
        sum += off * off;
    }
    return sum;
}

static double best_p(const struct points *s)
{
    double ab[2], best = P_FIRST, least = INFINITY;
    for (int i = 0; i <= STEPS; i++) {
        const double p = P_FIRST + i * P_STEP, r = rest(s, p, ab);
        if (r < least) {
            least = r;
            best = p;
        }
    }
    double low = best - P_STEP, high = best + P_STEP;
    for (int i = 0; i < 60; i++) { /* thirds: it is smooth and has one valley there */
        const double a = low + (high - low) / 3, b = high - (high - low) / 3;
        if (rest(s, a, ab) < rest(s, b, ab))
            high = b;
        else
            low = a;
    }
    return (low + high) / 2;
}

/* From the best p outwards until the rest is above `limit`; NaN when it never is. */
static double border(const struct points *s, double p, double direction, double limit)
{
    double ab[2], inside = p, outside = p;
    while (rest(s, outside, ab) <= limit) {
        inside = outside;
        outside += direction * P_STEP;
        if (outside < P_FIRST || outside > P_FIRST + STEPS * P_STEP)
            return NAN;
    }
    for (int i = 0; i < 40; i++) {
        const double middle = (inside + outside) / 2;
        if (rest(s, middle, ab) <= limit)
            inside = middle;
        else
            outside = middle;
    }
    return (inside + outside) / 2;
}

int offset_fit(const double *x, const double *y, size_t n, struct offset_power *ret)
{
    struct points s = { x, y, n, 0 };
    double ab[2];
    if (n > POINTS_MAX || loglog_sizes(x, n) < 3)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0 && y[i] > 0 && isfinite(x[i]) && isfinite(y[i])))
            return -EINVAL;
        s.largest = fmax(s.largest, x[i]);
    }
    const double p = best_p(&s), least = rest(&s, p, ab);
    if (!(ab[1] >= GROWTH_LEAST * (ab[0] + ab[1])))
        return -ENODATA;
    struct offset_power found = {
        .exponent = { .value = p, .low = NAN, .high = NAN, .points = n },
        .constant = ab[0],
        .factor = ab[1] / pow(s.largest, p),
    };
    if (n > 3) {
        const double df = (double)n - 3, t = student_quantile(0.975, df);
        /* Clocks are not better than this: no interval is without width. */
        const double limit = fmax(least, (double)n * 1e-12) * (1 + t * t / df);
        found.exponent.low = border(&s, p, -1, limit);
        found.exponent.high = border(&s, p, 1, limit);
        if (isnan(found.exponent.low) && isnan(found.exponent.high))
            return -ENODATA; /* any exponent would do */
    }
    *ret = found;
    return 0;
}
