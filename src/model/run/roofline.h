/* roofline.h: how near to what the machine can do each part of a model comes.
 *
 * A part's operations and bytes are the formulas', its time is measured, the roof is
 * measured (peaks.h). A part whose operations per byte lie below peak FLOP/s ÷ peak
 * bytes/s cannot be faster than memory lets it.
 */
#ifndef SONDE_MODEL_RUN_ROOFLINE_H
#define SONDE_MODEL_RUN_ROOFLINE_H

#include "model/run/measure.h"

struct roof_part {
    enum part part;
    double ms, share;    /* of the training step */
    double flops, bytes; /* forward and backward, by formula */
    double flops_per_s, bytes_per_s;
    double intensity; /* FLOP per byte */
    bool memory_bound;
    double of_roof; /* achieved ÷ what the roof allows; may exceed 1 when data
                                stay in a cache that the formula counts as memory */
};

struct roofline {
    struct peaks peaks;
    double ridge; /* FLOP per byte where the two roofs meet */
    size_t count;
    struct roof_part parts[PART_COUNT];
    double mfu;         /* matrix FLOPs of a training step ÷ its time ÷ peak */
    double flops_per_s; /* achieved in the whole step */
};

/* False without measured peaks. */
bool roofline_compute(const struct sonde_estimate *estimate, int optimizer,
                      const struct measurement *m, struct roofline *ret_roofline);

#endif
