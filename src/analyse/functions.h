/* functions.h: which functions and lines the CPU time went to. */
#ifndef SONDE_ANALYSE_FUNCTIONS_H
#define SONDE_ANALYSE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/teams.h"
#include "trace/stack_rows.h"
#include "base/arena.h"

struct hot_function {
    const char *name, *module;
    const char *file; /* where it is defined; "" unknown */
    uint32_t line;
    uint64_t self, total; /* samples in it; in it or in what it called */
    double self_ns, total_ns;
    double share, total_share; /* of all sampled CPU time */
};

struct hot_line {
    const char *file, *function;
    uint32_t line;
    uint64_t self;
    double self_ns, share;
};

struct hot_functions {
    bool sampled;    /* somebody tried; else all is empty */
    const char *why; /* "" or why there is nothing */
    uint64_t samples, lost, other, cut, shallow;
    uint64_t taken;           /* stacks: some stand for several samples */
    double period_ns, cpu_ns; /* cpu_ns: all samples together, those lost included */
    double tight_share; /* of it, in tight loops of code made at run time: waiting */
    double own_share;   /* of it, in Sonde's own code inside the program */
    unsigned method;    /* enum stack_method */
    double
        coverage; /* cpu_ns over the CPU time the program used; NaN unknown. Small with
                      * a window, and when processes live for less than a period */
    uint64_t addresses, named, with_line;
    struct hot_function *functions; /* most self time first */
    size_t function_count;
    struct hot_line *lines; /* hottest first */
    size_t line_count;
    struct teams teams; /* by process; count 0: not known */
    bool has_merged; /* stacks were to be merged with Python's; else `merge` is empty */
    struct stack_merge_row merge;
};

/* From this share on a line is named as hot. */
#define HOT_LINE_SHARE 0.10

/* Never fails for a run without samples: then nothing is in it. `used_s` is the CPU time
 * the kernel accounts for, NaN unknown. */
int functions_read(const char *dir, double used_s, struct arena *arena,
                   struct hot_functions *ret_hot);

#endif
