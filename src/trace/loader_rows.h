/* loader_rows.h: what one process knows of data loaders: rows of "loader-….tables".
 *
 * Written by the Python extension (python/src/loader*.c), read by src/analyse/loaders.c.
 * Every process that iterates a loader leaves a file, and every worker one. Times are
 * ticks of the run's clock. Each field is right by itself at every instant, a sum over
 * several may be one batch apart.
 *
 *     table      rows
 *     loaders    one per loader iterated in this process
 *     epochs     one per iter(loader), the first LOADER_MAX_EPOCHS
 *     workers    one per worker process this process started
 *     self       in a worker: one row, which says so
 *     sums       times of one kind: exact count, sum, squares, least, most; a histogram
 *     batches    ring: batches handed to the program
 *     made       ring: batches made here (in workers, or without any)
 *     samples    ring: samples made here
 *     slowest    the slowest samples made here, in no order
 *
 * A row of a ring or of `slowest` is taken back (key 0) before it is written again.
 */
#ifndef SONDE_TRACE_LOADER_ROWS_H
#define SONDE_TRACE_LOADER_ROWS_H

#include <stdint.h>

#define LOADER_KIND "loader"

enum loader_table { /* numbers of the tables */
                    LOADER_LOADERS = 1,
                    LOADER_EPOCHS,
                    LOADER_WORKERS,
                    LOADER_SELF,
                    LOADER_SUMS,
                    LOADER_BATCHES,
                    LOADER_MADE,
                    LOADER_SAMPLES,
                    LOADER_SLOWEST,
                    LOADER_TABLE_END
};

enum {
    LOADER_MAX_LOADERS = 256, /* further ones are counted in the last */
    LOADER_MAX_EPOCHS = 1024,
    LOADER_MAX_WORKERS = 16384,
    LOADER_MAX_SUMS = 1024,
    LOADER_RING_BATCHES = 2048,
    LOADER_RING_MADE = 1024,
    LOADER_RING_SAMPLES = 2048,
    LOADER_SLOWEST_KEPT = 16,
    LOADER_BUCKETS = 624,
};

enum loader_flag {
    LOADER_PIN = 1,
    LOADER_PERSISTENT = 2,
    LOADER_SHUFFLE = 4,
    LOADER_ITERABLE = 8,
    LOADER_UNORDERED = 16,
    LOADER_UNTIMED = 32,  /* samples cannot be told apart: DataPipes, __getitems__ */
    LOADER_BY_BATCH = 64, /* samples are too quick to be timed one by one */
    LOADER_TRAINS = 128,  /* something was trained between its fetches */
    LOADER_EVALUATES =
        256, /* models were only asked, without gradients, between them */
};

struct loader_row {
    uint64_t key;  /* 1 + number */
    uint32_t file; /* texts */
    int32_t line;
    uint32_t kind, dataset, sampler, collate, start_method;
    uint32_t flags;
    int64_t dataset_length;                           /* −1 unknown */
    int32_t num_workers, prefetch_factor, batch_size; /* −1: none */
    uint32_t objects; /* text: its data set's largest container of Python objects */
    double timeout_s;
    uint64_t epochs, batches, samples;
    uint64_t fetch_ticks; /* inside next(), first batches too; the end is not */
    uint64_t fetches;     /* second batches of an epoch and later; of them … */
    uint64_t ready;       /* … were there when they were asked for */
    uint64_t early;       /* batches that came before their turn */
    uint64_t early_ticks; /* waiting for one while another was there */
    uint64_t failed;
    uint64_t stepped; /* fetches that began a step */
    uint64_t last_ticks;
    uint64_t evaluation_ticks; /* of fetch_ticks: for evaluations */
};

struct loader_epoch_row {
    uint64_t key; /* 1 */
    uint32_t loader, number;
    uint64_t start, iter_done, first_batch, last, ended; /* ticks; 0: not yet */
    uint64_t batches, fetch_ticks;
    uint64_t exhausted;
    uint64_t end_ticks; /* inside the next() that found the end: workers are stopped */
    uint64_t stepped;   /* of its batches: began a step */
    uint64_t samples;   /* of them; 0 unknown */
};

struct loader_worker_row {
    uint64_t key; /* 1 */
    uint32_t loader, number, epoch, pid;
    uint64_t started; /* ticks: it is not older */
};

/* Of the process: pages that nobody else has and that were written to; its resident
 * pages without those of files; its minor faults as so many pages. */
struct loader_look {
    uint64_t ticks, private_kb, resident_kb, faulted_kb;
};

struct loader_self_row {
    uint64_t key; /* 1 + number of the worker */
    uint32_t workers, flags;
    uint64_t first, last; /* ticks: first look for work, last sign of life */
    uint64_t batches, samples;
    uint64_t cpu_ns; /* of the thread that makes batches, at `last` */
    uint64_t epochs; /* persistent workers have several */
    uint64_t exceptions;
    uint64_t idle_ticks; /* all waiting, also for what never came */
    /* What it looked at of its own memory: before its first batch, and last. */
    uint64_t looks; /* how often; stored last, so below 2 there is no `last_look` */
    struct loader_look first_look, last_look;
};

enum loader_sum {
    LOADER_FETCH = 1,
    LOADER_FIRST_FETCH,
    LOADER_WAIT,
    LOADER_RECEIVE,
    LOADER_SAMPLING,
    LOADER_PINNING,
    LOADER_TRANSFER,
    LOADER_CONSUME,
    LOADER_QUEUED,        /* number */
    LOADER_IN_FLIGHT,     /* number */
    LOADER_BATCH_BYTES,   /* number */
    LOADER_BATCH_SAMPLES, /* number */
    LOADER_SAMPLE,
    LOADER_SAMPLE_CPU, /* ns */
    LOADER_COLLATE,
    LOADER_MAKE,
    LOADER_MAKE_CPU, /* ns */
    LOADER_PICKLE,
    LOADER_SEND,
    LOADER_IDLE,
    LOADER_TRANSFORM,
    /* Of the process, in whose row `loader` says LOADER_OF_WORKER: numbers */
    LOADER_ROWS,         /* rows of a batch, as the model that is trained sees it */
    LOADER_CELLS,        /* places in padded batches … */
    LOADER_FILLED,       /* … that are no padding */
    LOADER_SAMPLE_BYTES, /* number; of those samples that were weighed */
    LOADER_SUM_END
};

enum loader_unit { LOADER_TICKS = 1, LOADER_NS, LOADER_NUMBER };

struct loader_sum_row {
    uint64_t key;    /* enum loader_sum */
    uint32_t loader; /* number of the loader; all ones: of the worker that this is */
    uint32_t unit;
    uint32_t name;  /* text: of a transform */
    uint32_t place; /* of a transform */
    uint64_t every; /* 1 as long as nothing was left out */
    uint64_t count;
    double sum, squares;
    uint64_t min, max; /* valid when count > 0 */
    uint32_t bucket[LOADER_BUCKETS];
};

#define LOADER_OF_WORKER UINT32_MAX

struct loader_batch_row {
    uint64_t key; /* 1 + how many before */
    uint32_t loader, epoch;
    uint32_t number; /* in the epoch */
    int32_t worker;  /* −1: none */
    uint64_t step;
    uint64_t asked, given, sent_index, arrived; /* ticks; 0 unknown */
    uint64_t bytes;
    uint32_t samples, in_flight, queued;
    uint32_t flags; /* 1 ready, 2 early */
    /* Of its process from this batch to its next fetch, bytes; 0 unknown. */
    uint64_t high;          /* most that was live on the heap */
    uint64_t card_high;     /* most that torch's allocator gave, if never more before */
    uint64_t card_reserved; /* … and most that it had from the driver */
};

struct loader_made_row {
    uint64_t key; /* 1 + how many before */
    uint32_t loader, epoch;
    uint32_t number, samples;
    uint64_t begun, made, put, pickled, sent; /* ticks; 0: not yet */
    uint64_t collate_ticks, idle_ticks;
    int64_t slowest_index;
    uint64_t slowest_ticks;
};

struct loader_sample_row {
    uint64_t key; /* 1 + how many before */
    uint32_t loader, epoch;
    uint32_t batch, cpu_us; /* cpu_us all ones: unknown */
    int64_t index;          /* −1: of an iterable */
    uint64_t begun, ticks;
};

struct loader_slow_row {
    uint64_t key; /* ticks it took, never 0 */
    uint32_t loader, epoch;
    uint32_t batch, path; /* text */
    int64_t index;
    uint64_t number; /* how many were made before */
    uint64_t begun;
    uint64_t cpu_ns;        /* all ones: unknown */
    uint32_t slowest, pad;  /* text: the transform that took longest */
    uint64_t slowest_ticks; /* 0: none */
};

_Static_assert(sizeof(struct loader_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_epoch_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_worker_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_self_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_sum_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_batch_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_made_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_sample_row) % 8 == 0, "rows are multiples of 8");
_Static_assert(sizeof(struct loader_slow_row) % 8 == 0, "rows are multiples of 8");

/* ---- Buckets -----------------------------------------------------------------------
 *
 * Below 16 one each, then 16 per octave: the middle of a bucket is within 3.2 % of any
 * value in it. The last is open: 2^42. */
static inline unsigned loader_bucket(uint64_t value)
{
    if (value < 16)
        return (unsigned)value;
    const unsigned top = 63u - (unsigned)__builtin_clzll(value);
    const unsigned bucket = (top - 3) * 16 + ((unsigned)(value >> (top - 4)) & 15);
    return bucket < LOADER_BUCKETS ? bucket : LOADER_BUCKETS - 1;
}

static inline double loader_bucket_middle(unsigned bucket)
{
    if (bucket < 16)
        return bucket;
    const unsigned shift = bucket / 16 - 1;
    const double width = (double)(1ULL << shift);
    return (double)(16 + bucket % 16) * width + (width - 1) / 2;
}

#endif
