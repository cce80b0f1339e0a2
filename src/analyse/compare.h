/* compare.h: several runs side by side: what differs, and what that did.
 *
 * The first run is the one the others are measured against. Differences of set-up come
 * first, because a comparison of two machines or two data sets says nothing about a change
 * of the program: on different hardware there is no verdict on speed.
 *
 * Intervals are 95 %. They come from the spread inside each run, with its autocorrelation;
 * what moves from run to run (neighbours, caches, placement) is not in them. Two runs
 * cannot tell that; `sonde check` can.
 */
#ifndef SONDE_ANALYSE_COMPARE_H
#define SONDE_ANALYSE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "analyse/report.h"
#include "base/arena.h"

enum { COMPARE_RUNS = 16 };

enum compare_unit {
    UNIT_NS,
    UNIT_BYTES,
    UNIT_COUNT,
    UNIT_RATE, /* per second */
    UNIT_SHARE,
    UNIT_PERCENT, /* of a core */
    UNIT_JOULES,
    UNIT_FLOPS,
    UNIT_PLAIN,
};

enum compare_better { BETTER_NEITHER, BETTER_LOWER, BETTER_HIGHER };

enum compare_section {
    COMPARE_SUMMARY,
    COMPARE_PHASES,
    COMPARE_OPERATIONS,
    COMPARE_METRICS,
    COMPARE_SECTIONS
};

struct compare_cell {
    double value;     /* NaN: not known */
    double ratio;     /* to the first run; NaN: one of them is not known, or is 0 */
    double low, high; /* of the ratio; NaN: one number each, nothing to tell from */
};

struct compare_row {
    enum compare_section section;
    enum compare_unit unit;
    enum compare_better better;
    const char *name;
    const char *per; /* "step", "call" or "" */
    struct compare_cell cells[COMPARE_RUNS];
};

/* One thing in which the runs were set up differently; "" unknown. */
struct compare_difference {
    const char *group, *name;
    const char *values[COMPARE_RUNS];
};

struct comparison {
    struct arena arena;
    const struct report *runs[COMPARE_RUNS]; /* borrowed */
    size_t run_count;
    const char *labels[COMPARE_RUNS]; /* names, else ids; told apart */
    struct compare_difference *differences;
    size_t difference_count, difference_cap;
    bool same_hardware;
    bool disturbed;           /* others used the processors in one of the runs */
    struct compare_row *rows; /* by section, in order of importance */
    size_t row_count, row_cap;
    const char *verdict;
    const char *since; /* what became of the first one's advice; "" nothing */
    const char *batch; /* the best batch size, in words; "" nothing to say */
};

/* quality: the metric of "… per second"; NULL: one called accuracy, if there is. The
 * reports must outlive the comparison. -EINVAL with fewer than two runs or too many. */
int compare_runs(const struct report *const *runs, size_t count, const char *quality,
                 struct comparison **ret_comparison);
void comparison_free(struct comparison *comparison);

/* Whether the interval leaves out "no difference". */
bool compare_cell_differs(const struct compare_cell *cell);

/* ---- Parts, in comparesetup.c ---- */

/* Fills in differences, same_hardware and disturbed. */
int compare_setups(struct comparison *c);

#endif
