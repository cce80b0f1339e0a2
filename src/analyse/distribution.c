/* distribution.c: durations of one thing, brought together from many processes. */
#include "analyse/distribution.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The grid: values in units of 2⁻¹⁰ ns, a key for each below 512, above it 512 per
 * octave. Half a cell is 0.1 % of the value. */
enum { SUB_BITS = 9, SUBS = 1 << SUB_BITS };
static const double unit_per_ns = 1024;
static const double top_units = 9.0e18; /* below 2⁶³ */

static uint32_t grid_key(double ns)
{
    const double units = ns * unit_per_ns;
    if (!(units > 0))
        return 0;
    const uint64_t v = units < top_units ? (uint64_t)(units + 0.5)
                                         : (uint64_t)top_units;
    if (v < SUBS)
        return (uint32_t)v;
    const unsigned top = 63u - (unsigned)__builtin_clzll(v);
    const unsigned octave = top - SUB_BITS + 1;
    return octave << SUB_BITS | (uint32_t)(v >> (top - SUB_BITS) & (SUBS - 1));
}

static double grid_middle(uint32_t key)
{
    const unsigned octave = key >> SUB_BITS;
    const double sub = key & (SUBS - 1);
    if (octave == 0)
        return sub / unit_per_ns;
    const double low = ldexp(SUBS + sub, (int)octave - 1);
    const double width = ldexp(1, (int)octave - 1);
    return (low + (width - 1) / 2) / unit_per_ns;
}

void distribution_release(struct distribution *d)
{
    free(d->buckets);
    *d = (struct distribution){ 0 };
}

void distribution_add(struct distribution *d, uint64_t count, double mean, double m2,
                      double min, double max)
{
    if (count == 0)
        return;
    if (d->count == 0) {
        d->mean = mean;
        d->m2 = m2;
        d->min = min;
        d->max = max;
    } else {
        const double a = (double)d->count;
        const double b = (double)count;
        const double delta = mean - d->mean;
        d->mean += delta * b / (a + b);
        d->m2 += m2 + delta * delta * a * b / (a + b);
        d->min = fmin(d->min, min);
        d->max = fmax(d->max, max);
    }
    d->count += count;
}

int distribution_add_bucket(struct distribution *d, double middle, uint64_t count)
{
    if (count == 0)
        return 0;
    const uint32_t key = grid_key(middle);
    if (d->bucket_count && d->buckets[d->bucket_count - 1].key == key) {
        d->buckets[d->bucket_count - 1].count += count;
        return 0;
    }
    if (d->bucket_count == d->bucket_cap) {
        const size_t cap = d->bucket_cap ? d->bucket_cap * 2 : 16;
        struct dist_bucket *more = realloc(d->buckets, cap * sizeof(*more));
        if (!more)
            return -ENOMEM;
        d->buckets = more;
        d->bucket_cap = cap;
    }
    d->buckets[d->bucket_count++] = (struct dist_bucket){ key, count };
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const uint32_t x = ((const struct dist_bucket *)a)->key;
    const uint32_t y = ((const struct dist_bucket *)b)->key;
    return (x > y) - (x < y);
}

void distribution_settle(struct distribution *d)
{
    if (d->sorted == d->bucket_count)
        return;
    qsort(d->buckets, d->bucket_count, sizeof(*d->buckets), by_key);
    size_t kept = 0;
    for (size_t i = 0; i < d->bucket_count; i++) {
        if (kept && d->buckets[kept - 1].key == d->buckets[i].key)
            d->buckets[kept - 1].count += d->buckets[i].count;
        else
            d->buckets[kept++] = d->buckets[i];
    }
    d->bucket_count = d->sorted = kept;
}

struct bucket_sink {
    struct distribution *into;
    int rc;
};

static void take_bucket(void *arg, double middle_ns, uint64_t count)
{
    struct bucket_sink *sink = arg;
    if (sink->rc == 0)
        sink->rc = distribution_add_bucket(sink->into, middle_ns, count);
}

int distribution_add_node(struct distribution *d, const struct trace *trace,
                          unsigned node)
{
    const struct trace_node *n = trace_node(trace, node);
    struct bucket_sink sink = { d, 0 };
    if (!n || n->count == 0)
        return 0;
    const double std = isfinite(n->std_ns) ? n->std_ns : 0;
    distribution_add(d, n->count, n->mean_ns, std * std * (double)(n->count - 1),
                     n->min_ns, n->max_ns);
    trace_node_histogram(trace, node, take_bucket, &sink);
    distribution_settle(d);
    return sink.rc;
}

double distribution_std(const struct distribution *d)
{
    if (d->count < 2)
        return NAN;
    return sqrt(fmax(d->m2, 0) / (double)(d->count - 1));
}

double distribution_quantile(const struct distribution *d, double q)
{
    assert(d->sorted == d->bucket_count);
    uint64_t all = 0;
    for (size_t i = 0; i < d->bucket_count; i++)
        all += d->buckets[i].count;
    if (all == 0 || d->count == 0)
        return NAN;

    const double rank = fmax(ceil(q * (double)all), 1);
    double value = d->max;
    double seen = 0;
    for (size_t i = 0; i < d->bucket_count; i++) {
        seen += (double)d->buckets[i].count;
        if (seen >= rank) {
            value = grid_middle(d->buckets[i].key);
            break;
        }
    }
    return fmin(fmax(value, d->min), d->max);
}

double distribution_middle(const struct distribution *d, size_t index)
{
    assert(index < d->bucket_count);
    return grid_middle(d->buckets[index].key);
}
