/* loaders.h: the data loaders of a run: who waited for whom, and what made them slow.
 *
 * Read from the files of tables of the kind "loader" (trace/loader_rows.h) that the
 * Python layer leaves, one per process: the one that iterates (the consumer) and each
 * worker. A worker is joined to its loader by the pid the consumer started it with.
 *
 * The path of a batch, with the fields that hold its times:
 *
 *     sampler ─ index queue ─►  worker: sample × n ─ collate ─ pickle ─ send ─ pipe ─►
 *                               └──────── make ────────┘└────── put ──────┘
 *     main:   wait ─ receive ─ (pin) ─ the program's step ─ next fetch
 *             └────── fetch ────────┘  └──── consume ────┘
 *
 * Without workers (num_workers 0) sample, collate and make are times of the main thread
 * inside `fetch`, and put, wait and receive are empty (count 0).
 *
 * All distributions are nanoseconds of wall time unless they say cpu. count 0: nobody
 * measured it; look before you divide. Times are of this run, slowed by nothing but the
 * recording itself (≤ 1 µs a sample).
 */
#ifndef SONDE_ANALYSE_LOADERS_H
#define SONDE_ANALYSE_LOADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/distribution.h"

struct report;

/* Settled; distribution_std() and distribution_quantile() work (quantiles within 4 %).
 * The sum is mean * count. `every` tells a count of all from a systematic sample. */
struct loader_times {
    struct distribution d;
    bool every; /* false: one batch in so many was looked into sample by sample */
};

struct loader_transform {
    const char *name; /* "RandomCrop", "<lambda>"; never "" */
    int place;        /* in its Compose, from 0 */
    bool random;      /* its name says so (Random…, …Jitter): augmentation */
    struct loader_times wall;
    double total_s; /* of all samples: scaled up where only some were looked into */
    double share;   /* of the time to make samples (`sample`); NaN unknown */
};

/* All processes that were worker N of the loader, one after the other (one per epoch
 * unless they are persistent). */
struct loader_worker {
    int number;
    uint32_t pid;       /* of the last */
    uint32_t processes; /* how many there were, … */
    uint32_t unheard;   /* … of them that left no file: nothing below is of those */
    uint64_t batches, samples;
    double busy_s;  /* making batches: samples and collate */
    double put_s;   /* pickling and sending, on a thread of its own */
    double idle_s;  /* waiting for an index: the worker was ahead of the consumer */
    double alive_s; /* from its first look for work to its last sign of life */
    double cpu_s;   /* CPU of the thread that makes batches; NaN unknown */
    struct loader_times sample;
    /* Forked: pages of its parent that it copied, from its first batch to its last sign;
     * all that was its own then. Of the process that copied most; NaN unknown. */
    double copied_mb, private_mb;
};

struct loader_epoch {
    uint64_t number; /* from 0, of this loader */
    int64_t start_ns;
    double iter_s;        /* inside iter(loader): starting the workers */
    double first_batch_s; /* from iter(loader) to the first batch; NaN: none came */
    double wait_s;        /* inside next(), the first batch too */
    double end_s;         /* inside the next() that found the end: stopping workers */
    double duration_s;    /* until it was exhausted or dropped, or the last sign */
    uint64_t batches;
    bool exhausted; /* false: left in the middle, or the run ended */
    bool under_way; /* when the process ended, or was killed */
    uint64_t steps,
        samples; /* that its batches began, and of those; samples 0 unknown */
};

struct loader_slow_sample {
    int64_t index;          /* in the data set under any Subset; −1: iterable */
    uint64_t number;        /* of an iterable: the how-manieth of its worker */
    const char *path;       /* redacted; "" unknown */
    double wall_ns, cpu_ns; /* cpu NaN unknown */
    const char *slowest;    /* the transform that took longest; "" none: the data set */
    double slowest_ns;
    int worker; /* −1: the main process */
    uint64_t epoch, batch;
    int64_t start_ns;
    double times_median; /* wall over the median of all samples; NaN unknown */
};

/* One batch of the newest: the timeline. Moments since the epoch, 0 unknown. */
struct loader_batch {
    uint64_t epoch, number;     /* number in its epoch, from 0 */
    uint64_t step;              /* steps begun in the process when it was handed over */
    int worker;                 /* −1: made in the main process */
    int64_t asked_ns, given_ns; /* next() began, next() returned */
    int64_t sent_index_ns;      /* its indices were put into the worker's queue */
    int64_t begun_ns, made_ns;  /* in the worker */
    int64_t put_ns;             /* … handed to the thread that pickles */
    int64_t sent_ns;            /* … the last byte was in the pipe */
    int64_t arrived_ns;         /* taken from the pipe by the main process */
    double collate_ns;          /* NaN unknown */
    uint32_t samples;
    uint64_t bytes;
    uint32_t in_flight, queued; /* when it was asked for: on their way; arrived */
    bool ready;                 /* was there when it was asked for */
    bool early;                 /* came before its turn */
    int64_t slowest_index;      /* the sample that took longest; −1 unknown */
    uint64_t high, card_high;   /* bytes: most that was held until the next was asked */
    uint64_t card_reserved;     /* for, on the heap, on the card; 0 unknown */
    double slowest_ns;
};

struct loader {
    unsigned id;              /* from 1, in the order they were first iterated */
    uint32_t pid;             /* of the consumer */
    bool training;            /* its fetches are the run's steps, or part of them */
    bool trains;              /* something was trained between its fetches */
    double evaluation_wait_s; /* of wait_s: for evaluations */
    const char *file;
    int line;                      /* where DataLoader(…) was called; 0 unknown */
    const char *kind;              /* its class: "DataLoader" */
    const char *dataset, *sampler; /* class names */
    const char *collate_fn, *start_method; /* "fork", "spawn"; "" without workers */
    const char
        *objects; /* "Records.items: list of 400,000 dict": its data set's largest
                            container of Python objects; "" none is large */
    int64_t dataset_length;           /* −1 unknown */
    int num_workers, prefetch_factor; /* prefetch_factor −1: none */
    int batch_size;                   /* −1: a batch sampler decides, or no batches */
    bool pin_memory, persistent_workers;
    bool shuffle;  /* its sampler is torch's RandomSampler */
    bool iterable; /* an IterableDataset */
    bool in_order; /* batches come in the order of their indices */
    double timeout_s;

    uint64_t batches, samples, epochs; /* that the program got, … */
    uint64_t made_samples; /* … and that were made: more when a loop is left early */
    uint64_t bytes;        /* of all batches, tensors and arrays in them */
    struct distribution batch_bytes; /* bytes, not ns; count 0 unknown */
    struct distribution batch_samples;
    struct distribution sample_bytes; /* of samples that were weighed */

    /* ---- In the consumer, per batch; the first of each epoch is in first_fetch alone,
     * since it waits for the workers to start. */
    struct loader_times fetch;       /* next(): everything inside */
    struct loader_times first_fetch; /* the first of each epoch */
    struct loader_times wait;        /* of fetch: nothing to take from the queue */
    struct loader_times receive;     /* of fetch: reading and rebuilding the batch */
    struct loader_times sampling;    /* the sampler's next(): indices of a batch */
    struct loader_times pin;         /* pin_memory, on its thread or on the main one */
    struct loader_times
        transfer;                /* .to(device) of tensors by the consumer, per batch */
    struct loader_times consume; /* from a batch to the next fetch: the step */
    double wait_s;               /* all of next(), first batches too */
    double wait_share;           /* of wait_s + consume: of the loop over this loader */
    double step_share;  /* of the steps of the run; NaN: not the training loader */
    double ready_share; /* of fetches, first ones apart; NaN without workers */
    struct distribution queued;    /* batches there when the next was asked for */
    struct distribution in_flight; /* … sent to workers and not taken yet */
    struct {
        uint64_t count; /* batches that came before their turn */
        double wait_s;  /* the consumer waited for one while another was there */
    } out_of_order;
    uint64_t failed; /* next() raised something else than StopIteration */

    /* ---- Where samples are made: workers, or the main process without any. */
    struct loader_times sample; /* one sample: __getitem__ or next() of the iterable */
    struct loader_times sample_cpu; /* CPU time of the same samples */
    struct loader_times collate;
    struct loader_times make;     /* a whole batch: samples and collate */
    struct loader_times make_cpu; /* CPU time of that thread */
    struct loader_times pickle;   /* in the worker: to bytes and shared memory */
    struct loader_times send;     /* … into the pipe, which may be full */
    struct loader_times idle;     /* waiting for an index, per batch */
    bool by_batch; /* samples are too quick to be timed one by one: see `every` */
    bool untimed_samples; /* the data set makes whole batches, or is a DataPipe */

    struct loader_transform *transforms; /* most time first */
    size_t transform_count;
    struct loader_worker *workers; /* by number */
    size_t worker_count;
    struct loader_epoch *epoch_list; /* oldest first; the first 1,024 */
    size_t epoch_count;
    struct loader_slow_sample *slowest; /* slowest first */
    size_t slowest_count;
    struct loader_batch *recent; /* oldest first */
    size_t recent_count;

    /* While reading. */
    size_t transform_cap, worker_cap, epoch_cap, slowest_cap, recent_cap;
};

struct loader_report {
    bool present; /* any process left a table */
    struct loader *list;
    size_t count;
    uint64_t refused; /* rows there was no room for */
    /* Rows of a batch as the model that is trained sees them (python/src/rows.c); count 0
     * unknown. At least as many as it has samples. */
    struct distribution rows;
    /* Places in padded batches, and those of them that are no padding; 0 unknown. */
    double cells, filled;
};

/* Fills report->loaders. A run without loaders is none the worse. */
int loaders_read(struct report *report);
/* Adds the pass over the training loader that was under way when the process ended. */
void loaders_complete_epochs(struct report *report, uint32_t pid);
void loaders_release(struct loader_report *loaders);
/* The one whose fetches are the steps; NULL without. */
const struct loader *loaders_training(const struct loader_report *loaders);
/* mean * count in seconds; 0 when empty. */
double loader_times_total_s(const struct loader_times *times);
/* Pages of the parent that all workers copied, MiB; NaN: none of them looked. */
double loader_copied_mb(const struct loader *loader);
/* … and all that was their own when they looked last. */
double loader_private_mb(const struct loader *loader);

#endif
