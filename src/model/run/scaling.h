/* scaling.h: how time and memory grow along one size of a model.
 *
 * Points are measured one after another, each in its own process, smallest first. Before
 * each one memory and time are predicted: what would not fit is not started, and the note
 * says why.
 */
#ifndef SONDE_MODEL_RUN_SCALING_H
#define SONDE_MODEL_RUN_SCALING_H

#include "model/ref/plan.h"
#include "model/run/measure.h"
#include "num/offset.h"

enum axis {
    AXIS_NODES,
    AXIS_EDGES,
    AXIS_LAYERS,
    AXIS_HIDDEN,
    AXIS_HEADS,
    AXIS_BATCH,
    AXIS_TOKENS, /* of a sequence: gpt2 */
    AXIS_PE,
    AXIS_MATMUL, /* no model: n × n products */
    AXIS_COUNT
};

enum { SCALE_POINTS = 32, SCALE_CURVES = 16, SCALE_NOTE_LEN = 192, MIXTURE = 4 };

const char *axis_name(enum axis axis);
int axis_of(const char *name); /* −EINVAL */
/* What one step along the axis is called: "nodes", "edges", "layers" … */
const char *axis_unit(enum axis axis);

/* A place on the axis: a size, or for pe a kind and its dimension. */
struct scale_size {
    uint64_t size;
    int encoding;
};

/* "500"; on the pe axis "lap:16", "rwse" (16), "none". −EINVAL. */
int scale_size_parse(enum axis axis, const char *text, struct scale_size *ret_size);
/* The document's list where it has one. Returns how many. */
size_t scale_default_sizes(enum axis axis, struct scale_size ret_sizes[SCALE_POINTS]);

struct scale_point {
    struct scale_size at;
    char label[32];
    struct model_config config;
    bool measured;
    char note[SCALE_NOTE_LEN]; /* why not */
    struct measurement m;
    struct plan plan; /* predicted memory */
    double step_flops, forward_flops;
};

/* One quantity along the axis. */
struct curve {
    char name[32];
    double ms[SCALE_POINTS]; /* NaN: not measured */
    bool has_exponent, has_mixture;
    struct exponent exponent;
    struct exponent
        local[SCALE_POINTS]; /* [i]: from point i − 1 to i; points 0: none */
    double mixture[MIXTURE]; /* ms = a + bN + cN² + dN³ */
    bool has_beyond;
    struct offset_power beyond; /* ms = a + b·Nᵖ: what N costs beyond the constant */
};

struct scaling {
    enum axis axis;
    size_t count;
    struct scale_point points[SCALE_POINTS];
    size_t curve_count;
    struct curve curves[SCALE_CURVES];
    bool has_crossing, crossing_beyond; /* beyond: extrapolated from the fits */
    double crossing;                    /* where attention overtakes message passing */
    size_t
        best_batch; /* index of the point with the highest throughput, + 1; 0: none */
    double best_throughput; /* graphs, sequences or rows per second of training */
    bool has_largest;
    uint64_t largest; /* size whose predicted memory fits */
    double available; /* bytes that were free */
    double took_s;
};

struct scale_options {
    enum axis axis;
    struct model_config base;
    struct scale_size sizes[SCALE_POINTS];
    size_t count;
    struct measure_options measure;
    double budget_s;     /* for all points; 0: none */
    double memory_bytes; /* pretend so much is free; NaN: look */
    /* Told before each point; may be NULL. */
    void (*progress)(void *arg, size_t done, size_t count, const char *label);
    void *arg;
};

/* 0, −EINVAL with a sentence when a size is impossible (heads that do not divide …), or
 * the error of a point that failed for another reason than memory. `ret_scaling` is large:
 * keep it off the stack. */
int scaling_run(const struct scale_options *options, struct scaling *ret_scaling,
                char ret_error[MEASURE_ERROR_LEN]);

#endif
