/* stacks.h: the sampled native stacks of a run, with names.
 *
 * Joins the counts of the sampler (trace/stack_rows.h) with the names the symboliser
 * found (trace/symbols.h). Calls that the compiler inlined are frames of their own. Code
 * without a name is summed up by module, "[libx.so]".
 */
#ifndef SONDE_ANALYSE_STACKS_H
#define SONDE_ANALYSE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "trace/stack_rows.h"
#include "trace/symbols.h"

struct stack_function {
    const char *name, *module; /* name is never "" */
    const char *file;          /* "" unknown */
    uint32_t line;
};

/* One function of a stack. */
struct stack_entry {
    uint32_t function; /* index */
    const char *file;  /* where in it the place is; "" unknown */
    uint32_t line;
    uint32_t flags; /* enum stack_frame_flag: Python's, the interpreter's */
};

struct stack_task {
    uint32_t pid;
    const char *process, *thread;
};

struct stacks {
    struct arena arena;
    struct stack_info_row info;
    bool has_merged; /* --merge-stacks */
    struct stack_merge_row merge;
    const char *merge_why; /* "" or why none was merged */
    const char *why;       /* "" or why nothing was sampled */
    struct symbols_totals symbols;
    struct stack_function *functions;
    size_t function_count, function_cap;
    struct stack_task *tasks;
    size_t task_count;
    void *inside; /* of stacks.c */
};

/* −ENOENT: nobody sampled. */
int stacks_open(const char *dir, struct stacks **ret_stacks);
void stacks_free(struct stacks *stacks);

/* Calls `each` for every stack that was counted: the innermost entry first; none for
 * "(other stacks)". A negative result ends the walk and is returned. */
enum { STACK_ENTRIES = 512 };
int stacks_walk(const struct stacks *stacks,
                int (*each)(void *arg, const struct stack_task *task,
                            const struct stack_entry *entries, unsigned count,
                            uint64_t samples),
                void *arg);

/* The same for stacks of Python and native functions, where they were recorded. What the
 * interpreter does to call a function is left out (glue.h). Returns SONDE_E_NOTFOUND when
 * none were. */
int stacks_walk_merged(const struct stacks *stacks,
                       int (*each)(void *arg, const struct stack_task *task,
                                   const struct stack_entry *entries, unsigned count,
                                   uint64_t samples),
                       void *arg);

/* Samples in loops of code without names (a JIT's) so tight that half of all its samples
 * fall into 64 bytes: nothing is computed there, a thread waits for another. Kernels made
 * at run time spread theirs over hundreds of such lines: at most a twentieth in one. */
int stacks_tight_loops(const struct stacks *stacks, uint64_t *ret_samples);

#endif
