/* export.h: runs in other tools' formats.
 *
 * An exporter is a function in its own file and a line in exporters.c; skeleton.c is
 * one to copy. It reads the traces of a run one by one and writes as it goes: memory
 * does not grow with the trace.
 */
#ifndef SONDE_PRESENT_EXPORT_EXPORT_H
#define SONDE_PRESENT_EXPORT_EXPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "store/run.h"

/* What was written, for a line to the person who asked. */
struct export_totals {
    uint64_t zones, events;
    uint64_t samples;   /* of stacks */
    uint64_t truncated; /* zones that were open at the end */
    uint64_t left_out;  /* ends without begin and the like */
    unsigned traces, unreadable;
    unsigned incomplete; /* traces whose older events were recycled */
};

/* 0 or negative. A trace that cannot be read is counted, not fatal. */
typedef int export_fn(const struct run *run, FILE *out,
                      struct export_totals *ret_totals);

struct exporter {
    const char *name;
    const char *extension; /* without the dot */
    export_fn *write;
    const char *help;
};

extern const struct exporter exporters[];
extern const size_t exporter_count;

/* NULL when there is none of that name. */
const struct exporter *exporter_find(const char *name);

export_fn export_chrome;
export_fn export_folded;
export_fn export_jsonl;
export_fn export_skeleton;

/* ---- For exporters ---- */

/* The moment all times of an export count from: the start of the run. */
int64_t export_origin_ns(const struct run *run);

/* Calls `each` for every trace that opens and counts the others. */
int export_each(const struct run *run, struct export_totals *totals,
                int (*each)(void *arg, const struct trace *trace), void *arg);

#endif
