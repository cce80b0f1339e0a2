/* series.h: values over time, each series bounded. Private to the sampler. */
#ifndef SONDE_CAPTURE_MONITOR_SERIES_H
#define SONDE_CAPTURE_MONITOR_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/monitor_rows.h"
#include "trace/tables.h"

/* A text that is in the file, kept once. */
struct series_text {
    char *text;
    uint32_t place;
};

struct series {
    const char *metric, *subject, *unit;
    uint32_t hash;
    struct monitor_stats stats;
    struct monitor_series_row *row;    /* NULL: memory only, or no room */
    struct monitor_points_row *points; /* of the present resolution; NULL: none */
    unsigned shift;
    uint64_t bucket; /* the one being filled … */
    double bucket_sum, bucket_weight, bucket_max;
};

struct series_store {
    struct tables *tables; /* base NULL: memory only */
    uint64_t base_ns;
    struct series *list;
    size_t count, cap;
    uint32_t *index; /* open addressing: number + 1 */
    size_t index_cap;
    struct series_text *texts; /* metrics and units: few */
    size_t text_count, text_cap;
    uint64_t lost; /* series there was no room for */
};

void series_init(struct series_store *store, struct tables *tables, uint64_t base_ns);
void series_release(struct series_store *store);
/* A value at at_ns after the start that stands for weight_s seconds. */
void series_set(struct series_store *store, const char *metric, const char *subject,
                const char *unit, double value, uint64_t at_ns, double weight_s);
const struct series *series_find(const struct series_store *store, const char *metric,
                                 const char *subject);
/* Our copy of a text, the same for the same; its place in the file or 0. */
const struct series_text *series_text(struct series_store *store, const char *text);

#endif
