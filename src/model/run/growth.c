/* growth.c: see growth.h. */
#include "model/run/growth.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "num/nnls.h"

double growth_at(const double mixture[MIXTURE], double x)
{
    double sum = 0;
    for (int i = MIXTURE - 1; i >= 0; i--)
        sum = sum * x + mixture[i];
    return sum;
}

static struct curve *add_curve(struct scaling *s, const char *name)
{
    struct curve *c = &s->curves[s->curve_count++];
    *c = (struct curve){ .exponent = { .value = NAN } };
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    for (size_t i = 0; i < SCALE_POINTS; i++)
        c->ms[i] = NAN;
    return c;
}

/* ---- Fits of one curve ----------------------------------------------------------------- */

struct samples {
    double x[SCALE_POINTS * MEASURE_KEPT], y[SCALE_POINTS * MEASURE_KEPT];
    size_t count;
};

static void add_sample(struct samples *all, double x, double y)
{
    if (x > 0 && y > 0 && isfinite(y)) {
        all->x[all->count] = x;
        all->y[all->count++] = y;
    }
}

/* Relative errors count: a point of 1 ms is as good a witness as one of 1 s. */
static void fit_mixture(const struct scaling *s, struct curve *c)
{
    double a[SCALE_POINTS * MIXTURE], y[SCALE_POINTS], weights[SCALE_POINTS];
    size_t rows = 0;
    for (size_t i = 0; i < s->count; i++) {
        const double x = (double)s->points[i].at.size;
        if (!(c->ms[i] > 0))
            continue;
        for (int k = 0; k < MIXTURE; k++)
            a[rows * MIXTURE + (size_t)k] = pow(x, k);
        weights[rows] = 1 / (c->ms[i] * c->ms[i]);
        y[rows++] = c->ms[i];
    }
    c->has_mixture = rows >= 3 &&
                     nnls_solve(a, y, weights, rows, MIXTURE, c->mixture) == 0;
}

/* Between neighbours, with the spread of their repeats where there are any. */
static void fit_local(const struct scaling *s, struct curve *c, int pass)
{
    for (size_t i = 1; i < s->count; i++) {
        struct exponent *e = &c->local[i];
        const double dx = log((double)s->points[i].at.size /
                              (double)s->points[i - 1].at.size);
        if (!(c->ms[i] > 0 && c->ms[i - 1] > 0) || dx == 0)
            continue;
        *e = (struct exponent){ .value = log(c->ms[i] / c->ms[i - 1]) / dx,
                                .low = NAN,
                                .high = NAN,
                                .points = 2 };
        if (pass < 0)
            continue;
        double variance = 0;
        for (size_t k = i - 1; k <= i; k++) {
            const struct summary *m = &s->points[k].m.passes[pass];
            variance += m->std * m->std / (m->mean * m->mean) / (double)m->n;
        }
        const double half = 1.96 * sqrt(variance) / fabs(dx);
        e->low = e->value - half;
        e->high = e->value + half;
    }
}

/* One time per size, the least: interference only ever slows down. */
static void fit_beyond(const struct samples *all, struct curve *c)
{
    double x[SCALE_POINTS], y[SCALE_POINTS];
    size_t n = 0;
    for (size_t i = 0; i < all->count; i++) {
        size_t at = 0;
        while (at < n && x[at] != all->x[i])
            at++;
        y[at] = at < n ? fmin(y[at], all->y[i]) : all->y[i];
        x[at] = all->x[i];
        n += at == n;
    }
    c->has_beyond = offset_fit(x, y, n, &c->beyond) == 0;
}

static void finish(const struct scaling *s, struct curve *c, const struct samples *all,
                   int pass)
{
    c->has_exponent = loglog_fit(all->x, all->y, all->count, &c->exponent) == 0;
    if (!c->has_exponent)
        return;
    fit_mixture(s, c);
    fit_beyond(all, c);
    fit_local(s, c, pass);
}

/* ---- Curves ------------------------------------------------------------------------------- */

static void pass_curve(struct scaling *s, enum pass pass)
{
    struct samples all = { .count = 0 };
    struct curve *c = add_curve(s,
                                s->axis == AXIS_MATMUL ? "product" : pass_name(pass));
    for (size_t i = 0; i < s->count; i++) {
        const struct scale_point *p = &s->points[i];
        if (!p->measured)
            continue;
        c->ms[i] = p->m.passes[pass].mean;
        /* Interference only ever slows down: the quieter half of the repeats is fitted. */
        for (size_t k = 0; s->axis != AXIS_PE && k < p->m.kept_count; k++)
            if (p->m.kept[pass][k] <= p->m.passes[pass].median)
                add_sample(&all, (double)p->at.size, p->m.kept[pass][k]);
    }
    finish(s, c, &all, (int)pass);
}

/* `ms` of the first point's measurement: where to find it in the others'. The least time
 * over all runs, one sample per point. */
static void part_curve(struct scaling *s, const char *name, const double *ms)
{
    const ptrdiff_t place = (const char *)ms - (const char *)&s->points[0].m;
    struct samples all = { .count = 0 };
    struct curve *c = add_curve(s, name);
    bool any = false;
    for (size_t i = 0; i < s->count; i++) {
        const struct scale_point *p = &s->points[i];
        if (!p->measured)
            continue;
        memcpy(&c->ms[i], (const char *)&p->m + place, sizeof c->ms[i]);
        any = any || c->ms[i] > 0;
        if (s->axis != AXIS_PE)
            add_sample(&all, (double)p->at.size, c->ms[i]);
    }
    if (any)
        finish(s, c, &all, -1);
    else
        s->curve_count--;
}

static void encode_curve(struct scaling *s)
{
    struct curve *c = add_curve(s, "encoding (once)");
    bool any = false;
    for (size_t i = 0; i < s->count; i++) {
        c->ms[i] = s->points[i].measured ? s->points[i].m.encode_ms : NAN;
        any = any || c->ms[i] >= 0;
    }
    if (!any)
        s->curve_count--;
}

/* ---- The crossing ---------------------------------------------------------------------------- */

static const struct curve *find_curve(const struct scaling *s, const char *name)
{
    for (size_t i = 0; i < s->curve_count; i++)
        if (strcmp(s->curves[i].name, name) == 0)
            return &s->curves[i];
    return NULL;
}

/* The size where fit `a` overtakes fit `b`; 0 when it never does up to `end`. */
static double overtakes(const struct curve *a, const struct curve *b, double begin,
                        double end)
{
    if (growth_at(a->mixture, begin) >= growth_at(b->mixture, begin) ||
        growth_at(a->mixture, end) < growth_at(b->mixture, end))
        return 0;
    for (int i = 0; i < 200 && end / begin > 1 + 1e-6; i++) {
        const double middle = sqrt(begin * end);
        if (growth_at(a->mixture, middle) >= growth_at(b->mixture, middle))
            end = middle;
        else
            begin = middle;
    }
    return end;
}

static void find_crossing(struct scaling *s)
{
    const struct curve *attention = find_curve(s, refpart_name(PART_ATTENTION));
    const struct curve *message = find_curve(s, refpart_name(PART_MESSAGE));
    if (s->axis == AXIS_PE || !attention || !message || !attention->has_mixture ||
        !message->has_mixture)
        return;
    const double first = (double)s->points[0].at.size;
    double last = first;
    for (size_t i = 0; i < s->count; i++)
        last = s->points[i].measured ? (double)s->points[i].at.size : last;
    s->crossing = overtakes(attention, message, fmax(1, first / 100), 100 * last);
    s->has_crossing = s->crossing > 0;
    s->crossing_beyond = s->crossing < first || s->crossing > last;
}

/* Training throughput by batch size. */
static void find_best_batch(struct scaling *s)
{
    for (size_t i = 0; s->axis == AXIS_BATCH && i < s->count; i++) {
        const struct scale_point *p = &s->points[i];
        const double rate = p->measured ? (double)p->at.size /
                                              p->m.passes[PASS_STEP].median * 1e3
                                        : 0;
        if (rate > s->best_throughput) {
            s->best_throughput = rate;
            s->best_batch = i + 1;
        }
    }
}

void growth_fit(struct scaling *s)
{
    if (s->axis == AXIS_MATMUL) {
        pass_curve(s, PASS_FORWARD);
        return;
    }
    for (int p = 0; p < PASS_COUNT; p++)
        pass_curve(s, (enum pass)p);
    for (int p = 0; p < PART_COUNT; p++)
        part_curve(s, refpart_name((enum part)p), &s->points[0].m.best_parts[p]);
    for (int i = 0; i < INNER_COUNT; i++)
        part_curve(s, refinner_name((enum inner)i), &s->points[0].m.best_inner[i]);
    encode_curve(s);
    find_crossing(s);
    find_best_batch(s);
}
