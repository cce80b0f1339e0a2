/* measure.h: how long a reference net takes and how much memory, by running it.
 *
 * In a child process: what one size leaves behind in heap, caches and thread pools does
 * not touch the next, its peak memory is its own, and when the kernel kills it for memory
 * we are still there to say so.
 */
#ifndef SONDE_MODEL_RUN_MEASURE_H
#define SONDE_MODEL_RUN_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/config.h"
#include "model/ref/net.h"
#include "model/run/peaks.h"
#include "num/summary.h"

enum { MEASURE_KEPT = 32, MEASURE_ERROR_LEN = 192 };

enum pass { PASS_INFERENCE, PASS_FORWARD, PASS_BACKWARD, PASS_STEP, PASS_COUNT };
/* "inference", "forward", "backward", "training_step" */
const char *pass_name(enum pass pass);

struct measure_options {
    uint64_t runs, warmup;
    double budget_s;     /* stops early after this, with at least 3 runs */
    int threads;         /* 0: the library's choice */
    bool cpu_time;       /* processor time instead of wall time: for busy machines, with
                            one thread */
    double peaks_s;      /* measure the machine's peaks for so long; 0: no */
    const char *dataset; /* NULL: synthetic */
};

/* All in milliseconds; fields that could not be had are NaN. */
struct measurement {
    size_t runs;
    bool stopped; /* by the budget */
    struct summary passes[PASS_COUNT];
    double kept[PASS_COUNT][MEASURE_KEPT]; /* the first of them, for fits */
    size_t kept_count;
    double parts[PART_COUNT][2];    /* mean ms per step, forward and backward */
    double best_parts[PART_COUNT];  /* least ms of a step, both: for fits */
    double best_inner[INNER_COUNT]; /* the same */
    double encode_ms;               /* the positional encoding of the batch; once */
    double peak_bytes; /* resident memory at its highest, above that before the net */
    double tape_bytes, parameter_bytes; /* allocated */
    double first_loss, last_loss;
    struct peaks peaks; /* 0: not asked for */
    int threads;
    char blas[128];
};

/* 0, or a negative number with a sentence in ret_error: not enough memory, killed … */
int measure_in_child(const struct model_config *config,
                     const struct measure_options *options,
                     struct measurement *ret_measurement,
                     char ret_error[MEASURE_ERROR_LEN]);

/* The same in this process. */
int measure_here(const struct model_config *config,
                 const struct measure_options *options,
                 struct measurement *ret_measurement);

/* A plain n × n product, forward only: what cubic growth looks like. */
int measure_product(size_t n, const struct measure_options *options,
                    struct measurement *ret_measurement);

#endif
