/* whatif.h: how long would a step take with other settings of the loader?
 *
 * A model of the recorded pipeline. Batches are made by W workers, in turns and in
 * order, at most W × prefetch ahead of the consumer, as torch does it; making takes as
 * long as it was measured to take, tails included; shipping a batch between processes
 * costs its worker and the main process time for every MiB (fresh shared mappings);
 * the main thread computes as long as it did. That is played through, step by step. What
 * all of them together need of the cores is a second bound.
 *
 * So it knows when workers do not help: when shipping costs more than making, when the
 * cores are taken, when one process has to wait for another's turn; and that waits for
 * storage scale beyond the number of cores.
 *
 * The model is scaled so that the settings of the run give the step time of the run.
 */
#ifndef SONDE_ANALYSE_WHATIF_H
#define SONDE_ANALYSE_WHATIF_H

#include <stdbool.h>

#include "analyse/distribution.h"

struct report;

/* One loader as it was measured. Times are nanoseconds per batch; NaN: not known. */
struct pipeline {
    bool known;
    int workers, prefetch; /* prefetch ≥ 1; of 0 workers it means nothing */
    double cores;
    double step_ns;           /* measured, mean: of steady steps, or of all where epochs
                             * are no longer than what workers keep ahead */
    double compute_ns;        /* main thread, outside of fetching */
    double compute_cpu_ns;    /* of the main process, all threads, without receiving and
                             * without spinning; NaN: one thread */
    double make_ns;           /* samples and collate, in one process */
    double make_cpu_ns;       /* NaN: all of it */
    double transform_share;   /* of make_ns; NaN: all of it */
    double collate_share;     /* of make_ns; NaN: not known */
    double ship_ns;           /* in the worker; NaN: from batch_mb */
    double receive_ns;        /* in the main process; NaN: from batch_mb */
    double receive_idle_ns;   /* … from a worker with nothing else to do; NaN or 0: as
                             * receive_ns */
    double batch_mb;          /* NaN: shipping is not counted */
    double shared_collate_ns; /* of make_cpu_ns: putting batches together in shared
                               * memory; NaN or 0: they are not */
    const struct distribution *make; /* its spread; NULL: none */
    double compute_wait_ns; /* of compute_ns: for cores that its own workers had */
    double foreign_cores;   /* that other programs take; NaN or 0: none */
    double spinning_cores;  /* taken by threads that spin for work; NaN or 0: none */
    bool by_hand;           /* the loop loads by itself */
};

struct settings {
    int workers, prefetch;
    double transform_speed; /* 2: twice as fast */
    double collate_speed;   /* … the collate function; 0: as it is */
    bool data_free;         /* batches are always there */
    double make_part;       /* of the time to make a batch that is left; 0: all */
    bool even;              /* every batch takes as long as the mean one */
    double compute_less_ns; /* of the main thread's own work that goes */
    /* Of the loop around it (habits.h): so many times more seldom; 0: as it is. */
    double evaluation, checkpoint, logging, gc, exchange;
    double optimizer; /* its step takes so many times less; 0: as it is */
    double batch;     /* so many times as large; 0: as it is */
    bool loader;      /* a setting of the loader was named */
    int threads;      /* that each process computes with (threads.h); 0: as it is */
};

enum forecast_limit {
    LIMIT_COMPUTE, /* the main thread's own work */
    LIMIT_MAKING,  /* workers, or the main thread while it makes batches itself */
    LIMIT_SHIPPING,
    LIMIT_CORES,
};

struct forecast {
    double step_ns, low_ns, high_ns;
    double wait_ns; /* of step_ns: waiting for a batch */
    enum forecast_limit limit;
};

/* The settings the run had. */
struct settings whatif_now(const struct pipeline *pipeline);
struct forecast whatif_predict(const struct pipeline *pipeline,
                               const struct settings *settings);
/* The fewest workers that come within 3 % of the best; prefetch as it is, at least 2. */
struct settings whatif_best(const struct pipeline *pipeline);

/* What a batch of MiB costs to put together in one copy into fresh pages, with the calls
 * around it; 0 for NaN. */
double whatif_copy_ns(double mb);
/* Of a step's computing: what it takes longer since it begins with cold caches, `idle_ns`
 * after the last. */
double whatif_cold_ns(double compute_ns, double idle_ns);

/* How many times as long, or as short, as predicted a step may well turn out to be when
 * `gain` of it is predicted to go. Chosen, not fitted: half of the cures of six exams
 * (docs/guide-diagnosis.md) were off by more than 10 to 21 %, those that take most of the
 * step away by more than others; of errors with such a median that are spread evenly in
 * their logarithm, nine of ten are within a third. */
double forecast_unsure(double gain);

const char *forecast_limit_name(enum forecast_limit limit);

/* "workers=4,prefetch=2,transform=3" or "data=free", "evaluation=10,checkpoint=5",
 * "logging=50", "gc=100", "exchange=8", "batch=8", "collate=10", "optimizer=4", "threads=1",
 * blanks or commas between; what is not named stays as it is. −EINVAL: ret_error says what
 * is wrong. */
enum { WHATIF_ERROR_LEN = 256 };
int whatif_parse(const char *text, struct settings *settings,
                 char ret_error[WHATIF_ERROR_LEN]);

/* What the report knows of its training loader; known false without one. */
void pipeline_of(const struct report *report, struct pipeline *ret_pipeline);

#endif
