/* stepwalk.h: steps in order, and which of them to show in full. Private to
 * present/html. */
#ifndef SONDE_PRESENT_HTML_STEPWALK_H
#define SONDE_PRESENT_HTML_STEPWALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum { STEPWALK_POINTS = 2048, SLOW_STEPS = 5, TYPICAL_STEPS = 3 };

struct step_seen {
    int64_t begin_ns, end_ns; /* end 0: none */
    uint64_t number;          /* from 1, among those on the timeline */
};

struct stepwalk {
    struct {
        int64_t end_ns;
        double mean_ns, max_ns;
    } points[STEPWALK_POINTS];
    size_t count;
    uint64_t steps, per_point;
    double typical_ns; /* the median, from the statistics; NaN without */
    int64_t start_ns, end_ns;
    struct step_seen slow[SLOW_STEPS];       /* slowest first */
    struct step_seen typical[TYPICAL_STEPS]; /* of each third of the run, the nearest */
};

void stepwalk_init(struct stepwalk *walk, int64_t start_ns, int64_t end_ns,
                   double typical_ns);
void stepwalk_add(struct stepwalk *walk, int64_t begin_ns, int64_t end_ns);
void stepwalk_put(struct json_writer *w, const struct stepwalk *walk);

#endif
