/* distributions.c: histograms of steps and of the operations that took longest.
 *
 * The report's buckets are 0.1 % wide; a picture has some hundred pixels. Neighbours
 * are joined on a logarithmic grid until at most BARS are left.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "present/html/parts.h"

enum { BARS = 120, OPERATIONS = 60 };

struct bar {
    double low_ms, high_ms;
    uint64_t count;
};

static size_t join(const struct distribution *d, struct bar bars[BARS])
{
    size_t used = 0;
    if (d->bucket_count == 0)
        return 0;
    const double low = fmax(distribution_middle(d, 0), 0.1);
    const double high = fmax(distribution_middle(d, d->bucket_count - 1), low);
    /* Narrow distributions keep the resolution they have. */
    const double step = fmax(log(high / low) / (BARS - 1), 0.002);
    long last = 0;
    for (size_t i = 0; i < d->bucket_count; i++) {
        const double at = fmax(distribution_middle(d, i), low);
        const long place = lround(floor(log(at / low) / step));
        if (used == 0 || (place != last && used < BARS)) {
            bars[used++] = (struct bar){ low * exp((double)place * step) / 1e6,
                                         low * exp((double)(place + 1) * step) / 1e6,
                                         0 };
            last = place;
        }
        bars[used - 1].count += d->buckets[i].count;
    }
    return used;
}

static void put_bars(struct json_writer *w, const struct distribution *d)
{
    struct bar bars[BARS];
    const size_t count = join(d, bars);
    json_key(w, "bars");
    json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        json_array_begin(w);
        json_put_fixed(w, bars[i].low_ms, 6);
        json_put_fixed(w, bars[i].high_ms, 6);
        json_put_uint(w, bars[i].count);
        json_array_end(w);
    }
    json_array_end(w);
}

static void put_quantiles(struct json_writer *w, const struct distribution *d)
{
    static const double q[] = { 0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1 };
    json_key(w, "quantiles_ms");
    json_array_begin(w);
    json_put_fixed(w, d->min / 1e6, 6);
    for (size_t i = 1; i + 1 < sizeof(q) / sizeof(q[0]); i++)
        json_put_fixed(w, distribution_quantile(d, q[i]) / 1e6, 6);
    json_put_fixed(w, d->max / 1e6, 6);
    json_array_end(w);
}

static void put_distribution(struct json_writer *w, const struct distribution *d)
{
    json_key(w, "count");
    json_put_uint(w, d->count);
    json_key(w, "mean_ms");
    json_put_fixed(w, d->mean / 1e6, 6);
    put_quantiles(w, d);
    put_bars(w, d);
}

static void put_op_path(struct json_writer *w, const struct op_table *t, uint32_t index,
                        struct site_names *sites)
{
    uint32_t chain[256];
    size_t n = 0;
    for (uint32_t at = index; at && n < 256; at = t->ops[at].parent)
        chain[n++] = at;
    json_key(w, "path");
    json_array_begin(w);
    while (n > 0) {
        const struct op *op = &t->ops[chain[--n]];
        const struct site_name site = { op->name, op->file,
                                        op->line > 0 ? (uint32_t)op->line : 0,
                                        op->phase };
        json_put_uint(w, site_number(sites, &site));
    }
    json_array_end(w);
}

static int longest_first(const void *a, const void *b, void *arg)
{
    const struct op *ops = arg;
    const double x = ops[*(const uint32_t *)a].total_ns;
    const double y = ops[*(const uint32_t *)b].total_ns;
    return (x < y) - (x > y);
}

static void put_operations(struct json_writer *w, const struct op_table *t,
                           struct site_names *sites)
{
    uint32_t *order = malloc((t->order_count + 1) * sizeof(*order));
    size_t count = 0;
    for (size_t i = 0; order && i < t->order_count; i++)
        if (t->ops[t->order[i]].durations.count > 0)
            order[count++] = t->order[i];
    if (!order)
        sites->error = -ENOMEM;
    else
        qsort_r(order, count, sizeof(*order), longest_first, t->ops);
    for (size_t i = 0; i < count && i < OPERATIONS; i++) {
        json_object_begin(w);
        put_op_path(w, t, order[i], sites);
        put_distribution(w, &t->ops[order[i]].durations);
        json_object_end(w);
    }
    free(order);
}

void html_distributions(struct json_writer *w, const struct report *report,
                        struct site_names *sites)
{
    json_key(w, "distributions");
    json_array_begin(w);
    if (report->steps.durations.count > 0) {
        json_object_begin(w);
        json_key(w, "path"); /* null: the steps */
        json_put_null(w);
        put_distribution(w, &report->steps.durations);
        json_object_end(w);
    }
    put_operations(w, &report->ops, sites);
    json_array_end(w);
}
