/* stacktab.h: sampled stacks, counted in a file of tables (trace/stack_rows.h).
 *
 * What is equal is kept once: modules, frames, call paths, tasks. The indices that find
 * them live in our memory, the rows in the mapped file: whoever reads it after our death
 * misses nothing. Memory is bounded by the sizes of the tables.
 */
#ifndef SONDE_CAPTURE_SAMPLE_STACKTAB_H
#define SONDE_CAPTURE_SAMPLE_STACKTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strmap.h"
#include "trace/control.h"
#include "trace/stack_rows.h"
#include "trace/tables.h"

/* Keys of 16 bytes to numbers of rows; linear probing, grows by doubling. */
struct pairmap {
    struct pairmap_slot {
        uint64_t a, b;
        uint32_t value; /* + 1; 0: free */
    } * slots;
    size_t count, mask;
};

/* A tree of call paths and how often each was met. */
struct stacktab_tree {
    int node_table, count_table;
    struct pairmap nodes, counts;
};

struct stacktab {
    struct tables tables;
    struct stack_info_row *info;
    struct stack_merge_row *merge; /* NULL: nothing is merged */
    struct pairmap frames;
    struct stacktab_tree native, merged;
    struct strmap modules, tasks, texts, codes;
    uint32_t python_module; /* + 1; 0: not asked for yet */
};

int stacktab_open(struct stacktab *ret_tab, const char *dir, struct control *control);
/* With room for merged stacks, too. */
int stacktab_open_merging(struct stacktab *ret_tab, const char *dir,
                          struct control *control);
void stacktab_close(struct stacktab *tab);

/* A module; equal ones get the same number. UINT32_MAX: no room. */
uint32_t stacktab_module(struct stacktab *tab, const struct stack_module_row *row,
                         const char *path);
/* Threads of a process with one name; STACKS_MAX_TASKS: no room, samples are lost. */
uint32_t stacktab_task(struct stacktab *tab, uint32_t pid, const char *process,
                       const char *thread);

struct stack_place {
    uint64_t key; /* of struct stack_frame_row */
    uint32_t module, flags;
};
/* Counts a stack, the innermost frame first, that stands for `weight` samples. */
void stacktab_count(struct stacktab *tab, uint32_t task,
                    const struct stack_place *stack, unsigned depth, uint32_t weight);

/* A place in a Python function. False: no room. */
bool stacktab_python(struct stacktab *tab, const char *name, const char *file,
                     uint32_t first_line, uint32_t line, struct stack_place *ret_place);
/* Counts a merged stack, besides; at most STACK_MERGED_DEPTH places. */
void stacktab_count_merged(struct stacktab *tab, uint32_t task,
                           const struct stack_place *stack, unsigned depth,
                           uint32_t weight);

/* A text in the file; equal ones once. */
uint32_t stacktab_text(struct stacktab *tab, const char *text);

#endif
