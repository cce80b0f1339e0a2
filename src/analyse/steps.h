/* steps.h: how long training iterations took, and how that went over the run. */
#ifndef SONDE_ANALYSE_STEPS_H
#define SONDE_ANALYSE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/distribution.h"
#include "trace/reader.h"

enum { STEP_POINTS = 256 };

struct step_stats {
    struct distribution durations; /* of steps that ended */
    uint64_t calls;                /* sonde_step() calls that were recorded */
    uint64_t samples;              /* 0: not told */
    double total_ns;
    int64_t first_ns, last_ns;
};

/* Steps in order, several to a point when there are many. */
struct step_series {
    struct {
        int64_t time_ns; /* of its first step's end */
        double mean_ns;
    } points[STEP_POINTS];
    size_t count;
    uint64_t steps;     /* behind all points */
    uint64_t per_point; /* a power of two */
    bool partial;       /* older steps are no longer on the timeline */
};

int step_stats_read(const struct trace *trace, struct step_stats *ret_stats);
void step_stats_release(struct step_stats *stats);
/* NaN when unknown. */
double step_rate_per_s(const struct step_stats *stats);
double step_samples_per_s(const struct step_stats *stats);

/* From the retained events; stops looking after some tens of millions of them. */
int step_series_read(const struct trace *trace, struct step_series *ret_series);

#endif
