/* loader_parts.h: what the files of loaders.c share. Private to analyse/. */
#ifndef SONDE_ANALYSE_LOADER_PARTS_H
#define SONDE_ANALYSE_LOADER_PARTS_H

#include "analyse/loaders.h"
#include "analyse/report.h"
#include "trace/loader_rows.h"
#include "trace/tables.h"

/* A worker process, as the one that started it knows it. */
struct loader_start {
    uint32_t pid;
    uint64_t started; /* ticks */
    size_t loader, worker;
    uint64_t epoch;
    bool heard;
};

struct loader_reading {
    struct report *report;
    struct loader_report *out;
    double ns_per_tick;
    bool redact;
    size_t loader_cap;
    struct loader_start *starts;
    size_t start_count, start_cap;
    /* The file being read: */
    const struct tablefile *file;
    size_t first;          /* loader 0 of this file is list[first] … */
    size_t here;           /* … and so many follow */
    struct loader *worked; /* in a worker: whose; with the worker itself */
    struct loader_worker *worker;
    uint64_t epoch; /* of the worker's first */
};

/* loader_sums.c: adds a row to the times it belongs to. */
int loader_add_sum(struct loader_reading *g, struct loader *l, struct loader_worker *w,
                   const struct loader_sum_row *row);
/* Of a sum of the process itself, no loader's; false: it is none. */
bool loader_add_shapes(struct loader_reading *g, const struct loader_sum_row *row,
                       int *ret_rc);
/* Sorts transforms, derives totals and shares; after the last row. */
void loader_finish_sums(struct loader *l);
void loader_release_sums(struct loader *l);

/* loader_batches.c: rings and the slowest. */
int loader_add_batches(struct loader_reading *g);
int loader_add_made(struct loader_reading *g);
int loader_add_slowest(struct loader_reading *g);
void loader_finish_batches(struct loader *l);

/* loader_memory.c: what a worker saw of its memory. */
void loader_add_looks(struct loader_worker *w, const struct loader_self_row *row);

/* The loader that a row of this file is about; NULL: damaged. */
struct loader *loader_of_row(struct loader_reading *g, uint32_t loader);
/* Room for one more in a list of the arena. */
int loader_grow(struct loader_reading *g, void **list, size_t *cap, size_t count,
                size_t size);
const char *loader_text(struct loader_reading *g, uint32_t place);
int64_t loader_moment(const struct loader_reading *g, uint64_t ticks);

#endif
