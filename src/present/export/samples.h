/* samples.h: everything in a run that is call paths with weights, seen alike. Private to
 * export/.
 *
 *     what          a path                        values
 *     stacks        native functions              samples, CPU time
 *     python        Python functions              samples, wall and CPU time
 *     merged        both, one calling the other   samples, CPU time
 *     allocations   who asked for memory          allocations, bytes, live ones, live bytes
 *     zones         zones inside zones            calls, time of their own
 *
 * Formats of flame graphs are written from this. A walk may be made twice and gives the
 * same in the same order.
 */
#ifndef SONDE_PRESENT_EXPORT_SAMPLES_H
#define SONDE_PRESENT_EXPORT_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "present/export/export.h"

enum { SAMPLE_VALUES = 4, SAMPLE_DEPTH = 512 };

struct sample_type {
    const char *type, *unit; /* pprof's words: "count", "nanoseconds", "bytes" */
};

struct sample_frame {
    const char *name; /* never "" */
    const char *file; /* "" unknown */
    const char *module;
    uint32_t line;       /* the place in it; 0 unknown */
    uint32_t first_line; /* where it begins; 0 unknown */
    bool python;         /* in a merged stack: a Python function */
};

/* Borrowed for the call. */
struct sample {
    uint32_t pid;
    const char *process, *thread;      /* "" unknown */
    const struct sample_frame *frames; /* innermost first; at least one */
    unsigned depth;
    int64_t values[SAMPLE_VALUES];
};

typedef int sample_fn(void *arg, const struct sample *sample);

struct sample_source {
    struct sample_type types[SAMPLE_VALUES];
    unsigned type_count;
    unsigned usual; /* the value that is shown unless another is asked for */
    /* SONDE_E_NOTFOUND: the run has none of it. */
    int (*walk)(const struct export_job *job, sample_fn *each, void *arg);
};

/* How a frame of a merged stack is called where a line has no field of its own: Python's as
 * "main (train.py:12)", as other tools do; native ones, and frames of other kinds, by name. */
void sample_label(const struct sample_frame *frame, struct buf *out);

/* NULL: these are no call paths. */
const struct sample_source *sample_source(enum export_what what);

#endif
