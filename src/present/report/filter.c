/* filter.c: which operations a report lists. */
#include "present/report/filter.h"

#include <errno.h>
#include <stdlib.h>

static bool passes(const struct op *op, const struct report_style *style)
{
    if (style->depth && op->depth > style->depth)
        return false;
    return op->total_ns >= (double)style->min_time_ns;
}

/* Longest first; at equal length the outer one, which must stay with the inner. */
static int longest_first(const void *a, const void *b, void *arg)
{
    const struct op *x = (const struct op *)arg + *(const uint32_t *)a;
    const struct op *y = (const struct op *)arg + *(const uint32_t *)b;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return (x > y) - (x < y);
}

static void cut(struct op_filter *f, const struct op_table *t, uint32_t *chosen,
                size_t count, size_t limit)
{
    if (limit && count > limit) {
        qsort_r(chosen, count, sizeof(*chosen), longest_first, t->ops);
        count = limit;
    }
    for (size_t i = 0; i < count; i++)
        f->shown[chosen[i]] = true;
    f->shown_count = count;
}

int op_filter_init(struct op_filter *ret_filter, const struct op_table *table,
                   const struct report_style *style, size_t limit)
{
    struct op_filter f = { .shown = calloc(table->count + 1, sizeof(*f.shown)) };
    uint32_t *chosen = malloc((table->count + 1) * sizeof(*chosen));
    size_t count = 0;
    if (!f.shown || !chosen) {
        free(f.shown);
        free(chosen);
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->order_count; i++)
        if (passes(&table->ops[table->order[i]], style))
            chosen[count++] = table->order[i];
    cut(&f, table, chosen, count, limit);
    free(chosen);

    f.left_out = table->order_count - f.shown_count;
    for (size_t i = 0; i < table->order_count; i++) {
        const struct op *op = &table->ops[table->order[i]];
        if (!f.shown[table->order[i]] && op->kind == OP_ZONE)
            f.left_out_ns += op->self_ns;
    }
    *ret_filter = f;
    return 0;
}

void op_filter_release(struct op_filter *filter)
{
    free(filter->shown);
    filter->shown = NULL;
}
