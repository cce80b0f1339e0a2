/* bottlenecks.c: what the main thread's time went to: phases, then the operations that
 * took most of it themselves. */
#include <errno.h>
#include <stdlib.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/human.h"
#include "present/plot/bars.h"
#include "present/plot/plot.h"

enum { OPERATIONS = 10 };

static double heading(struct svg *svg, double y, const char *text)
{
    static const struct svg_face face = { .size = 14, .bold = true };
    svg_text(svg, SVG_MARGIN, y + 14, &face, text);
    return y + 24;
}

static void make_number(struct bar *bar, double ns, double share)
{
    char time[HUMAN_LEN], percent[HUMAN_LEN];
    (void)snprintf(bar->number, sizeof(bar->number), "%s \xc2\xb7 %s",
                   human_percent(percent, share), human_duration(time, ns));
}

static int largest_first(const void *a, const void *b)
{
    const double x = ((const struct bar *)a)->value, y = ((const struct bar *)b)->value;
    return (x < y) - (x > y);
}

static double draw_phases(struct svg *svg, double y, const struct report *r)
{
    struct bar bars[SONDE_PHASE_COUNT];
    size_t count = 0;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++) {
        if (!(r->phases.share[p] >= 0.0005))
            continue;
        struct bar *b = &bars[count++];
        *b = (struct bar){ .name = sonde_phase_name(p),
                           .more = "",
                           .value = r->phases.share[p],
                           .color = svg_phase_color(p) };
        make_number(b, r->phases.total_ns[p], r->phases.share[p]);
    }
    qsort(bars, count, sizeof(bars[0]), largest_first);
    return bars_draw(svg, heading(svg, y, "Phases of the main thread"), bars, count);
}

static void keep(struct bar bars[OPERATIONS], size_t *count, const struct bar *bar)
{
    size_t at = *count;
    while (at > 0 && bars[at - 1].value < bar->value)
        at--;
    if (at == OPERATIONS)
        return;
    if (*count < OPERATIONS)
        ++*count;
    for (size_t i = *count - 1; i > at; i--)
        bars[i] = bars[i - 1];
    bars[at] = *bar;
}

static double draw_operations(struct svg *svg, double y, const struct report *r)
{
    struct bar bars[OPERATIONS];
    size_t count = 0;
    for (size_t i = 0; i < r->ops.order_count; i++) {
        const struct op *op = &r->ops.ops[r->ops.order[i]];
        if (!(op->main_self_ns > 0) || op->kind != OP_ZONE)
            continue;
        struct bar b = { .name = op->name,
                         .more = op->parent ? r->ops.ops[op->parent].name : "",
                         .value = op->main_self_ns,
                         .color = svg_op_color(&r->ops, op) };
        make_number(&b, op->main_self_ns, op->main_self_ns / r->phases.wall_ns);
        keep(bars, &count, &b);
    }
    if (count == 0)
        return y;
    return bars_draw(svg, heading(svg, y + 8, "Operations, time of their own"), bars,
                     count);
}

int plot_bottlenecks(struct svg *svg, const struct report *const *reports, size_t count)
{
    static const struct svg_face verdict = { .size = 14, .most = 110 };
    const struct report *r = reports[0];
    (void)count;
    if (!(r->phases.wall_ns > 0))
        return SONDE_E_NOTFOUND;
    double y = svg_title(svg, "Where the time went", r);
    svg_text(svg, SVG_MARGIN, y + 8, &verdict, r->verdict);
    y = draw_phases(svg, y + 20, r);
    svg->height = draw_operations(svg, y, r);
    return 0;
}
