/* operations.h: the call paths of a run, merged over its processes and threads.
 *
 * Two nodes are the same operation when they are the same kind of thing and agree,
 * from the outermost zone inwards, in name, component, category, phase, tags and
 * place. Time on several threads adds up, so a path can total more than the run took.
 *
 * Always: self_ns + Σ total_ns of the children = total_ns, for every operation and
 * for the root, whose children are the outermost zones.
 */
#ifndef SONDE_ANALYSE_OPERATIONS_H
#define SONDE_ANALYSE_OPERATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "analyse/distribution.h"
#include "analyse/tree.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/strmap.h"
#include "trace/reader.h"

enum op_kind {
    OP_ROOT,  /* ops[0]: holds what belongs to no zone */
    OP_ZONE,  /* has its place in the time of a thread */
    OP_SPAN,  /* wall time of its own, no thread's */
    OP_OTHER, /* "(other paths)": counted; their time is self time further out */
};

/* Numbers attached to a zone, or a counter, or a metric. */
struct op_value {
    const char *name;
    uint64_t count;
    double sum, min, max, last;
    int64_t last_ns;
    struct op_value *next;
};

struct op {
    enum op_kind kind;
    uint32_t parent; /* index; 0 for outermost ones */
    unsigned depth;  /* 1 for outermost zones */
    const char *name, *component, *category, *file, *tags; /* "" when not given */
    int line, phase;
    struct distribution durations; /* of ended calls */
    double total_ns;               /* with the time of open calls */
    double self_ns, open_ns, suspended_ns;
    double elsewhere_ns; /* of the total: in "(other paths)" of a phase, no child */
    /* Of all this, on the main thread of the main process. */
    double main_ns, main_self_ns;
    uint64_t main_count;
    int64_t first_ns, last_ns; /* 0: never ended */
    uint64_t truncated, unbalanced, open, spans_open;
    uint64_t op_count; /* calls with the fields below */
    double cpu_ns, mem_before_mb, mem_after_mb, mem_peak_mb; /* NaN: not measured */
    int64_t mem_first_ns, mem_last_ns; /* when before and after were measured */
    struct op_value *values;
    uint32_t first_child, next_sibling; /* by total, longest first; 0 ends */
};

struct op_table {
    struct arena *arena; /* borrowed */
    struct op *ops;
    size_t count, cap;
    uint32_t *order; /* tree order without the root: parents before children */
    size_t order_count;
    uint64_t over_limit; /* calls of paths beyond the table's limit */
    struct strmap index;
    struct buf key;
};

/* The arena must outlive the table. */
int op_table_init(struct op_table *table, struct arena *arena);
void op_table_release(struct op_table *table);

int op_table_add(struct op_table *table, const struct trace *trace,
                 const struct tree *tree);
/* Notes what of the operations' time was spent below `root`, the main thread of the
 * main process, whose trace was added before. */
int op_table_mark_main(struct op_table *table, const struct trace *trace,
                       const struct tree *tree, unsigned root);
/* After the last trace: self times, quantiles, order. */
int op_table_finish(struct op_table *table);

/* Merges one value into a list by name. */
int op_value_merge(struct op_value **list, struct arena *arena,
                   const struct trace_value *value);

#endif
