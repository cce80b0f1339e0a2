/* stack_rows.h: sampled native stacks, kind "stacks".
 *
 * The supervisor interrupts every running thread of the program after each period of
 * its CPU time and adds 1 to the count of the stack it finds; or, of a run that is
 * sampled for an eighth of the time, 8. Tables:
 *
 *     info     one row: rate, method, what was lost
 *     modules  struct stack_module_row: files that code was found in
 *     frames   places of code, each once
 *     nodes    call paths, each node linked to that of its caller: no stack twice
 *     tasks    processes and names of threads
 *     counts   how often a node was the innermost, by task
 *
 * With `sonde run --merge-stacks` the same samples are counted a second time, as stacks of
 * Python functions and the native ones they called, in tables that other runs do not have:
 *
 *     codes          struct stack_code_row: Python functions
 *     merged_nodes   as nodes, merged_counts as counts
 *     merge          one row: how many could be merged
 *
 * Frames of Python are rows of `frames`, too (STACK_FRAME_PYTHON).
 *
 * Only CPU time is sampled: a thread that waits is not seen. The sum of all counts times
 * the period is the CPU time seen; samples whose stack had no room any more count for
 * node STACK_OTHER of their task, those that the kernel had no room for in info.lost.
 */
#ifndef SONDE_TRACE_STACK_ROWS_H
#define SONDE_TRACE_STACK_ROWS_H

#include <stdint.h>

#include "trace/module_rows.h"

#define STACKS_KIND "stacks"

enum {
    STACKS_INFO = 1, /* numbers of the tables */
    STACKS_MODULES,
    STACKS_FRAMES,
    STACKS_NODES,
    STACKS_TASKS,
    STACKS_COUNTS,
    STACKS_CODES, /* these with --merge-stacks alone */
    STACKS_MERGED_NODES,
    STACKS_MERGED_COUNTS,
    STACKS_MERGE,
    STACKS_MAX_MODULES = 8192,
    STACKS_MAX_FRAMES = 131072,
    STACKS_MAX_NODES = 262144,
    STACKS_MAX_TASKS = 4096,
    STACKS_MAX_COUNTS = 262144,
    STACKS_MAX_CODES = 65536,
    STACK_DEPTH = 128,        /* frames of one stack; the outermost are left out */
    STACK_MERGED_DEPTH = 256, /* of one of merged_nodes */
};

#define STACK_CODES_TABLE         "codes"
#define STACK_MERGED_NODES_TABLE  "merged_nodes"
#define STACK_MERGED_COUNTS_TABLE "merged_counts"
#define STACK_MERGE_TABLE         "merge"
#define STACK_PYTHON_MODULE       "[python]" /* path of the module of Python's frames */

enum stack_method {
    STACKS_NONE,
    STACKS_BY_PERF_USER = 1,   /* perf_event, user code only */
    STACKS_BY_PERF_KERNEL = 2, /* perf_event, time in the kernel seen too */
    STACKS_BY_TIMER = 3,       /* timers inside the program */
};

struct stack_info_row {
    uint64_t key; /* 1 */
    uint64_t period_ns;
    uint32_t method;     /* enum stack_method */
    uint32_t why;        /* text: why there is no sample, and what helps */
    uint64_t samples;    /* all that arrived */
    uint64_t lost;       /* samples the kernel could not hand over */
    uint64_t lost_other; /* other records it could not, of mappings and names */
    uint64_t cut;        /* stacks whose outermost frames are not known */
    uint64_t shallow;    /* not unwound because the supervisor had used its share */
    uint64_t other;      /* counted for STACK_OTHER */
    uint64_t unwind_ns;  /* CPU time the supervisor spent on them */
    uint64_t taken;      /* stacks that were looked at: some stand for several samples.
                          * 0: as many (older runs) */
};

/* The same file at any address, of any process, is one row. Of a JIT's code each
 * process has its own. */
struct stack_module_row {
    uint64_t key; /* 1 */
    uint64_t inode;
    uint32_t path; /* "[vdso]", "[kernel]", "[unknown]", "" (of a JIT) are no files */
    uint32_t pid;  /* of a JIT; else 0 */
    uint8_t build_id_len;
    uint8_t pad[3];
    uint8_t build_id[MODULE_BUILD_ID_MAX];
};
_Static_assert(sizeof(struct stack_module_row) == 48, "on-disk layout");

struct stack_frame_row {
    uint64_t key; /* offset in the file + 1; of a JIT the address */
    uint32_t module;
    uint32_t flags; /* enum stack_frame_flag */
};
enum stack_frame_flag {
    /* A caller: the offset is that of the last byte of its call instruction. */
    STACK_FRAME_CALLER = 1,
    /* A Python function: key is its row of codes << 32, its line, and 1 more. */
    STACK_FRAME_PYTHON = 2,
    /* Native code of the interpreter itself. */
    STACK_FRAME_INTERPRETER = 4,
};

enum { STACK_OTHER = 0 }; /* nodes[0]: "(other stacks)" */

struct stack_node_row {
    uint64_t key;    /* 1 */
    uint32_t frame;  /* number of its row; of nodes[0] nothing */
    uint32_t parent; /* number of the caller's node; 0: it is the outermost */
};

struct stack_task_row {
    uint64_t key; /* 1 */
    uint32_t pid;
    uint32_t thread;  /* text: name of its threads counted here */
    uint32_t process; /* text: name of the process */
    uint32_t pad;
};

struct stack_count_row {
    uint64_t key; /* 1 */
    uint32_t node, task;
    uint64_t samples;
};

struct stack_code_row {
    uint64_t key; /* 1 */
    uint32_t name, file;
    uint32_t first_line, pad;
};
_Static_assert(sizeof(struct stack_code_row) == 24, "on-disk layout");

/* Samples, as info.samples counts them: whole + partly + unmerged + native are all. */
struct stack_merge_row {
    uint64_t key;      /* 1 */
    uint64_t whole;    /* every Python frame is known */
    uint64_t partly;   /* the callers are known; what the innermost ran is not */
    uint64_t unmerged; /* of a thread in Python, and none of it is known */
    uint64_t native;   /* no Python in the stack */
    uint64_t delay_ns; /* from the sample to the look at the frames, all together … */
    uint64_t delay_max_ns;
    uint64_t looks;   /* … so many */
    uint64_t moved;   /* of `whole`: the line had moved on, and is the sample's */
    uint64_t look_ns; /* CPU time of all this */
    uint32_t why;     /* text: why nothing was merged */
    uint32_t unknown; /* samples in Pythons of a version that is not known */
    uint64_t resumed; /* of a native stack that was cut, Python's loops were found */
    uint64_t exact;   /* of `whole`: the thread was still in the same calls then */
};
_Static_assert(sizeof(struct stack_merge_row) == 104, "on-disk layout");

#endif
