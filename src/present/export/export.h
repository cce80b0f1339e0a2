/* export.h: runs in other tools' formats.
 *
 * An exporter is a function in its own file and a line in exporters.c; skeleton.c is
 * one to copy. It reads the traces of a run one by one and writes as it goes: memory
 * does not grow with the trace.
 */
#ifndef SONDE_PRESENT_EXPORT_EXPORT_H
#define SONDE_PRESENT_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "store/run.h"

/* What of a run; a format can do with some of them. The names are in exporters.c. */
enum export_what {
    EXPORT_ALL, /* whatever the format has room for */
    EXPORT_ZONES,
    EXPORT_STACKS, /* native */
    EXPORT_PYTHON,
    EXPORT_MERGED,      /* both as one: --merge-stacks */
    EXPORT_ALLOCATIONS, /* sites */
    EXPORT_MONITORS,
    EXPORT_ALLOC_EVENTS, /* each single one: --trace=alloc */
    EXPORT_IO_EVENTS,
    EXPORT_WHATS
};
extern const char *const export_what_names[EXPORT_WHATS];

struct export_job {
    const struct run *run;
    FILE *out;
    enum export_what what;
    bool unredacted; /* bundles: names of people and machines and secrets stay */
    /* Called now and then on long work; may be NULL. `done` is 0 … 1. */
    void (*progress)(void *arg, double done);
    void *progress_arg;
};

/* What was written, for a line to the person who asked. */
struct export_totals {
    uint64_t zones, events;
    uint64_t samples;   /* of stacks */
    uint64_t rows;      /* of tables */
    uint64_t files;     /* of bundles */
    uint64_t truncated; /* zones that were open at the end */
    uint64_t left_out;  /* ends without begin and the like */
    uint64_t lost;      /* events that had not been kept */
    unsigned traces, unreadable;
    unsigned incomplete; /* traces whose older events were recycled */
};

/* 0 or negative. A trace that cannot be read is counted, not fatal. SONDE_E_NOTFOUND:
 * the run has nothing of that. */
typedef int export_fn(const struct export_job *job, struct export_totals *ret_totals);

struct exporter {
    const char *name;
    const char *extension; /* without the dot */
    export_fn *write;
    const char *help;
    unsigned whats; /* bits 1 << enum export_what it can do */
    enum export_what usual;
    bool binary; /* not for a terminal */
};

extern const struct exporter exporters[];
extern const size_t exporter_count;

/* What an exporter writes of a run when nobody says: merged stacks rather than native ones,
 * where they were recorded. */
enum export_what export_usual(const struct exporter *exporter, const struct run *run);

/* NULL when there is none of that name. */
const struct exporter *exporter_find(const char *name);

export_fn export_bundle;
export_fn export_chrome;
export_fn export_csv;
export_fn export_folded;
export_fn export_jsonl;
export_fn export_otlp;
export_fn export_perfetto;
export_fn export_pprof;
export_fn export_prometheus;
export_fn export_skeleton;
export_fn export_speedscope;

/* ---- For exporters ---- */

/* The moment all times of an export count from: the start of the run. */
int64_t export_origin_ns(const struct run *run);

/* Calls `each` for every trace that opens and counts the others; tells the progress. */
int export_each(const struct export_job *job, struct export_totals *totals,
                int (*each)(void *arg, const struct trace *trace), void *arg);

/* Bytes to the file: 0 or why not. */
int export_put(FILE *out, const void *bytes, size_t len);

#endif
