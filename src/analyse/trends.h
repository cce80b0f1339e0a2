/* trends.h: what many experiments say together.
 *
 * Works on numbers alone: who has them brings them as columns, NaN where an experiment
 * has none. Every statement counts only the experiments that have both numbers.
 */
#ifndef SONDE_ANALYSE_TRENDS_H
#define SONDE_ANALYSE_TRENDS_H

#include <stdbool.h>
#include <stddef.h>

#include "num/correlate.h"
#include "num/trend.h"

enum { TRENDS_CHANGES = 16, TRENDS_POINTS = 256 };

struct trends_pair {
    const char *name;
    size_t n; /* experiments that have both; the rest is only set when known */
    bool known;
    struct correlation pearson, spearman;
};

/* Of `a` with `b`. */
int trends_correlate(const double *a, const double *b, size_t n, const char *name,
                     struct trends_pair *ret_pair);

struct trends_course {
    size_t n;                              /* experiments with the number and a start */
    bool has_slope;                        /* there are enough */
    struct trend slope;                    /* per second, 95 % */
    struct change changes[TRENDS_CHANGES]; /* `at` counts points */
    size_t change_count;
    double points[TRENDS_POINTS]; /* medians, in the order of time */
    double times[TRENDS_POINTS];  /* seconds since the epoch, of each point's first */
    size_t first[TRENDS_POINTS];  /* the experiment a point begins with */
    size_t point_count, per_point;
};

/* A number over the starts of the experiments. */
int trends_course(const double *times_s, const double *values, size_t n,
                  struct trends_course *ret_course);

/* The `most` largest, largest first, without NaN; returns how many. */
size_t trends_top(const double *values, size_t n, size_t *ret_best, size_t most);

#endif
