/* times.c: how long steps and operations took, on one logarithmic axis.
 *
 * On top the histogram of the steps; below, for each of the operations that took
 * longest, a bar from p5 to p95 with the median in it and a mark at p99.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/human.h"
#include "present/plot/plot.h"
#include "present/plot/svg.h"

enum { ROWS = 12, LEFT = 230, HISTOGRAM = 170, ROW = 27, COLUMNS = 110 };

struct axis {
    double low, high; /* log10 of nanoseconds */
    double left, right;
};

static double place(const struct axis *a, double ns)
{
    const double at = log10(fmax(ns, 1e-3));
    const double share = (at - a->low) / fmax(a->high - a->low, 1e-9);
    return a->left + fmin(fmax(share, 0), 1) * (a->right - a->left);
}

static void widen(struct axis *a, double low_ns, double high_ns)
{
    a->low = fmin(a->low, log10(fmax(low_ns, 1)));
    a->high = fmax(a->high, log10(fmax(high_ns, 1)));
}

static void draw_axis(struct svg *svg, const struct axis *a, double top, double bottom)
{
    static const struct svg_face face = { .size = 11.5,
                                          .color = SVG_SOFT,
                                          .anchor = SVG_MIDDLE };
    char text[HUMAN_LEN];
    const bool narrow = a->high - a->low < 2.2;
    for (int e = 0; e <= 19; e++) /* from a nanosecond to three hundred years */
        for (int m = 1; m <= 5; m += m == 1 ? 1 : 3) { /* 1, 2, 5 */
            const double ns = pow(10, e) * m;
            if ((m > 1 && !narrow) || log10(ns) < a->low - 1e-9 ||
                log10(ns) > a->high + 1e-9)
                continue;
            const double x = place(a, ns);
            svg_line(svg, x, top, x, bottom, SVG_LINE, 1);
            svg_text(svg, x, bottom + 17, &face, human_duration(text, ns));
        }
}

/* ---- Steps ----------------------------------------------------------------------------- */

static double draw_histogram(struct svg *svg, const struct axis *a, double y,
                             const struct distribution *d)
{
    static const struct svg_face label = { .size = 13, .anchor = SVG_RIGHT };
    static const struct svg_face small = { .size = 11.5,
                                           .color = SVG_SOFT,
                                           .anchor = SVG_RIGHT };
    static const struct svg_face above = { .size = 11,
                                           .color = SVG_SOFT,
                                           .anchor = SVG_MIDDLE };
    double columns[COLUMNS] = { 0 }, most = 1;
    char text[HUMAN_LEN];
    for (size_t i = 0; i < d->bucket_count; i++) {
        const double at = (place(a, distribution_middle(d, i)) - a->left) /
                          (a->right - a->left);
        double *c = &columns[(size_t)fmin(at * COLUMNS, COLUMNS - 1)];
        *c += (double)d->buckets[i].count;
        most = fmax(most, *c);
    }
    const double wide = (a->right - a->left) / COLUMNS, bottom = y + HISTOGRAM;
    for (int i = 0; i < COLUMNS; i++)
        svg_rect(svg, a->left + i * wide, bottom - columns[i] / most * (HISTOGRAM - 20),
                 wide - 1, columns[i] / most * (HISTOGRAM - 20), SVG_ACCENT);
    svg_text(svg, LEFT - 14, bottom - 40, &label, "steps");
    svg_textf(svg, LEFT - 14, bottom - 22, &small, "%s of them",
              human_count(text, d->count));
    static const double quantiles[] = { 0.5, 0.95, 0.99 };
    static const char *const names[] = { "p50", "p95", "p99" };
    double before = -100;
    for (int i = 0; i < 3; i++) {
        const double x = place(a, distribution_quantile(d, quantiles[i]));
        svg_dashed(svg, x, y + 14, x, bottom, SVG_SOFT);
        if (x - before > 28)
            svg_text(svg, x, y + 8, &above, names[i]);
        before = x;
    }
    return bottom;
}

/* ---- Operations ------------------------------------------------------------------------ */

static int longest_first(const void *a, const void *b, void *arg)
{
    const struct op *ops = arg;
    const double x = ops[*(const uint32_t *)a].total_ns;
    const double y = ops[*(const uint32_t *)b].total_ns;
    return (x < y) - (x > y);
}

static int choose(const struct report *r, const struct op *chosen[ROWS],
                  size_t *ret_count)
{
    const struct op_table *t = &r->ops;
    uint32_t *order = malloc((t->order_count + 1) * sizeof(*order));
    size_t count = 0, n = 0;
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < t->order_count; i++)
        if (t->ops[t->order[i]].durations.count > 0)
            order[n++] = t->order[i];
    qsort_r(order, n, sizeof(*order), longest_first, t->ops);
    for (; count < n && count < ROWS; count++)
        chosen[count] = &t->ops[order[count]];
    free(order);
    *ret_count = count;
    return 0;
}

static void draw_row(struct svg *svg, const struct axis *a, double y,
                     const struct op *op, const char *color)
{
    static const struct svg_face name = { .size = 12.5,
                                          .anchor = SVG_RIGHT,
                                          .most = 30 };
    const struct distribution *d = &op->durations;
    const double p5 = place(a, distribution_quantile(d, 0.05));
    const double p95 = place(a, distribution_quantile(d, 0.95));
    const double p50 = place(a, distribution_quantile(d, 0.5));
    const double p99 = place(a, distribution_quantile(d, 0.99));
    svg_text(svg, LEFT - 14, y + 17, &name, op->name);
    svg_line(svg, p95, y + 13, p99, y + 13, color, 1.5);
    svg_rect(svg, p5, y + 6, fmax(p95 - p5, 2), 14, color);
    svg_rect(svg, p50 - 1.5, y + 3, 3, 20, SVG_INK);
    svg_line(svg, p99, y + 8, p99, y + 18, color, 2);
}

int plot_times(struct svg *svg, const struct report *const *reports, size_t count)
{
    static const struct svg_face note = { .size = 11.5, .color = SVG_SOFT };
    const struct report *r = reports[0];
    const struct distribution *steps = &r->steps.durations;
    const struct op *ops[ROWS];
    struct axis a = { INFINITY, -INFINITY, LEFT, SVG_WIDTH - SVG_MARGIN };
    (void)count;
    const int rc = choose(r, ops, &count);
    if (rc < 0)
        return rc;
    if (count == 0 && steps->count == 0)
        return SONDE_E_NOTFOUND;
    if (steps->count > 0)
        widen(&a, steps->min, steps->max);
    for (size_t i = 0; i < count; i++)
        widen(&a, distribution_quantile(&ops[i]->durations, 0.05),
              distribution_quantile(&ops[i]->durations, 0.99));
    const double top = svg_title(svg, "How long it took", r);
    double y = top + (steps->count > 0 ? HISTOGRAM + 12 : 0);
    draw_axis(svg, &a, top + 12, y + (double)count * ROW);
    if (steps->count > 0)
        (void)draw_histogram(svg, &a, top, steps);
    for (size_t i = 0; i < count; i++, y += ROW)
        draw_row(svg, &a, y, ops[i], svg_op_color(&r->ops, ops[i]));
    svg_text(svg, LEFT, y + 40, &note,
             "bars reach from p5 to p95, the dark mark is the median, the thin line "
             "ends at p99");
    svg->height = y + 44;
    return 0;
}
