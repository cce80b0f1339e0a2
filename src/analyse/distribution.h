/* distribution.h: durations of one thing, brought together from many processes.
 *
 * Count, mean, spread, minimum and maximum stay exact under merging (Chan's update
 * of the second moment). Quantiles come from histogram buckets: the reader's are
 * right to 0.78 %; here they are filed on a grid eight times finer, so that buckets
 * of processes with different clocks meet, and the sum stays within 1 %.
 */
#ifndef SONDE_ANALYSE_DISTRIBUTION_H
#define SONDE_ANALYSE_DISTRIBUTION_H

#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

struct dist_bucket {
    uint32_t key; /* place on the grid, ascending with the value */
    uint64_t count;
};

/* Zero-initialised is empty. Values are nanoseconds, never negative. */
struct distribution {
    uint64_t count;
    double mean, m2;             /* m2: sum of squared distances from the mean */
    double min, max;             /* valid when count > 0 */
    struct dist_bucket *buckets; /* the first `sorted` ascending, without doubles */
    size_t bucket_count, bucket_cap, sorted;
};

void distribution_release(struct distribution *d);

/* Adds `count` values known by their moments alone. */
void distribution_add(struct distribution *d, uint64_t count, double mean, double m2,
                      double min, double max);
/* Adds `count` values near `middle` to the histogram (not to the moments). */
int distribution_add_bucket(struct distribution *d, double middle, uint64_t count);
/* Call after the last bucket of one source: files them in order. */
void distribution_settle(struct distribution *d);

/* Adds everything the trace knows about the durations of one node; settled. */
int distribution_add_node(struct distribution *d, const struct trace *trace,
                          unsigned node);

/* Of the sample (n − 1); NaN below two values. */
double distribution_std(const struct distribution *d);
/* The value at rank ⌈q·n⌉, within 1 %, inside min … max; NaN when empty. Only
 * after distribution_settle(). */
double distribution_quantile(const struct distribution *d, double q);
/* The middle of buckets[index], in nanoseconds. */
double distribution_middle(const struct distribution *d, size_t index);

#endif
