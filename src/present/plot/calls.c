/* calls.c: how often operations ran. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/human.h"
#include "present/plot/bars.h"
#include "present/plot/plot.h"

enum { SHOWN = 16 };

static int often_first(const void *a, const void *b, void *arg)
{
    const struct op *ops = arg;
    const uint64_t x = ops[*(const uint32_t *)a].durations.count;
    const uint64_t y = ops[*(const uint32_t *)b].durations.count;
    return (x < y) - (x > y);
}

static void make_bar(struct bar *bar, const struct report *r, const struct op *op)
{
    char count[HUMAN_LEN];
    const double rate = (double)op->durations.count / report_duration_s(r);
    *bar = (struct bar){ .name = op->name,
                         .more = op->parent ? r->ops.ops[op->parent].name : "",
                         .value = (double)op->durations.count,
                         .color = svg_op_color(&r->ops, op) };
    (void)snprintf(bar->number, sizeof(bar->number),
                   rate < 100 ? "%s \xc2\xb7 %.3g/s" : "%s \xc2\xb7 %.0f/s",
                   human_count(count, op->durations.count), rate);
}

int plot_calls(struct svg *svg, const struct report *const *reports, size_t count)
{
    const struct report *r = reports[0];
    const struct op_table *t = &r->ops;
    struct bar bars[SHOWN];
    size_t shown = 0;
    (void)count;
    if (t->order_count == 0)
        return SONDE_E_NOTFOUND;
    uint32_t *order = malloc(t->order_count * sizeof(*order));
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < t->order_count; i++)
        order[i] = t->order[i];
    qsort_r(order, t->order_count, sizeof(*order), often_first, t->ops);
    for (size_t i = 0; i < t->order_count && shown < SHOWN; i++)
        if (t->ops[order[i]].durations.count > 0)
            make_bar(&bars[shown++], r, &t->ops[order[i]]);
    free(order);
    if (shown == 0)
        return SONDE_E_NOTFOUND;
    const double y = svg_title(svg, "How often operations ran", r);
    svg->height = bars_draw(svg, y, bars, shown);
    return 0;
}
