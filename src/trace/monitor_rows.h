/* monitor_rows.h: rows of a file of tables of the kind "monitors".
 *
 *     info       1 row: when and how often
 *     series     one per metric and subject: statistics, where its points are
 *     points     MONITOR_POINTS of them per row
 *     processes  one per process that was seen
 *     gaps       what could not be measured, and why
 *
 * Whatever the length of a run, a series has MONITOR_POINTS points at most: point i is
 * about the samples of [i, i + 1) × (base_ns << shift) after the start. When they are
 * full, pairs are merged into another row and the series is pointed at that one by one
 * store, so that a kill at any instant leaves the old points or the new ones.
 * Statistics are kept twice for the same reason.
 *
 * Averages are weighted by the time a sample stands for: a rate by the time it was
 * measured over, anything else by the time since the sample before.
 */
#ifndef SONDE_TRACE_MONITOR_ROWS_H
#define SONDE_TRACE_MONITOR_ROWS_H

#include <stdint.h>
#include <string.h>

#define MONITOR_KIND "monitors"

/* In the order of tables_create(). */
enum {
    MONITOR_TABLE_INFO = 1,
    MONITOR_TABLE_SERIES,
    MONITOR_TABLE_POINTS,
    MONITOR_TABLE_PROCESSES,
    MONITOR_TABLE_GAPS,
};

enum { MONITOR_POINTS = 126 }; /* 16 rows fit into a block */

struct monitor_info_row {
    uint64_t key;
    uint64_t start_ns;     /* CLOCK_MONOTONIC of the first round */
    int64_t start_real_ns; /* the same moment since the epoch */
    uint64_t interval_ns;  /* planned */
    uint64_t base_ns;      /* width of a point at shift 0 */
    uint64_t rounds;
    uint64_t last_ns; /* of the last round, after the start */
    uint64_t cost_ns; /* time spent in rounds */
    uint32_t pid;     /* who was started or samples itself */
    uint32_t inside;  /* 1: sampled by a thread of the program itself */
    uint64_t series_lost, processes_lost;
};

struct monitor_stats {
    uint64_t count;
    double weight_s, sum; /* sum of value × weight */
    double min, max, last;
    uint64_t last_ns;
};

struct monitor_series_row {
    uint64_t key;
    uint32_t metric, subject, unit; /* texts; subject 0: the run or the machine */
    uint32_t pad;
    uint64_t state;     /* bit 0: which stats; bit 1: which points; from bit 8: shift */
    uint32_t points[2]; /* row + 1 of table points; 0: none */
    struct monitor_stats stats[2];
};

struct monitor_points_row {
    uint64_t key;
    uint64_t point[MONITOR_POINTS]; /* 0: no sample fell there */
};

/* Mean and maximum as floats in one word, never 0: a mean of 0 is kept as −0. */
static inline uint64_t monitor_point(double mean, double max)
{
    float f[2] = { (float)mean, (float)max };
    uint32_t bits[2];
    memcpy(bits, f, sizeof bits);
    if (bits[0] == 0)
        bits[0] = 0x80000000u;
    return (uint64_t)bits[1] << 32 | bits[0];
}

static inline void monitor_point_read(uint64_t point, double *ret_mean, double *ret_max)
{
    const uint32_t bits[2] = { (uint32_t)point, (uint32_t)(point >> 32) };
    float f[2];
    memcpy(f, bits, sizeof f);
    *ret_mean = (double)f[0] + 0.0;
    *ret_max = (double)f[1];
}

/* Bits of `set`: which totals have a value; the order is enum monitor_total's. */
enum { MONITOR_ROW_TOTALS = 12 };
enum { MONITOR_EXIT_KNOWN = 1u << 31 };
struct monitor_process_row {
    uint64_t key;
    uint32_t pid, ppid; /* its first parent known */
    uint64_t start_ticks;
    uint32_t exe, command;      /* texts; secrets are taken out of the command */
    uint64_t first_ns, last_ns; /* after the start */
    uint64_t end;               /* status as from wait() | MONITOR_EXIT_KNOWN, or 0 */
    uint64_t set;
    double total[MONITOR_ROW_TOTALS];
};

struct monitor_gap_row {
    uint64_t key;
    uint32_t metric, why;
};

_Static_assert(sizeof(struct monitor_info_row) == 88 &&
                   sizeof(struct monitor_series_row) == 152 &&
                   sizeof(struct monitor_points_row) == 1016 &&
                   sizeof(struct monitor_process_row) == 160 &&
                   sizeof(struct monitor_gap_row) == 16,
               "on-disk layout");

#endif
