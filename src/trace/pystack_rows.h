/* pystack_rows.h: sampled Python stacks, kind "pystacks".
 *
 * The supervisor looks at the Python stack of every thread at a steady rate. A thread that
 * used no CPU since the last look still has the stack it had, and is not read again. For
 * each call path: how much time passed while a thread was in it (wall) and how much of it
 * the thread ran (CPU, from the scheduler). Tables:
 *
 *     info     one row: rate, what was invalid
 *     codes    functions, each once
 *     frames   a function and a line in it, each pair once
 *     nodes    call paths, each linked to that of its caller
 *     tasks    threads of processes
 *     counts   time by node and task; a node is counted where it is innermost
 */
#ifndef SONDE_TRACE_PYSTACK_ROWS_H
#define SONDE_TRACE_PYSTACK_ROWS_H

#include <stdint.h>

#define PYSTACKS_KIND "pystacks"

enum {
    PYSTACKS_INFO = 1, /* numbers of the tables */
    PYSTACKS_CODES,
    PYSTACKS_FRAMES,
    PYSTACKS_NODES,
    PYSTACKS_TASKS,
    PYSTACKS_COUNTS,
    PYSTACKS_MAX_CODES = 65536,
    PYSTACKS_MAX_FRAMES = 131072,
    PYSTACKS_MAX_NODES = 262144,
    PYSTACKS_MAX_TASKS = 4096,
    PYSTACKS_MAX_COUNTS = 262144,
};

struct pystack_info_row {
    uint64_t key; /* 1 */
    uint64_t period_ns;
    uint64_t rounds;    /* looks at a process */
    uint64_t samples;   /* of threads, read or known to be unchanged */
    uint64_t unchanged; /* of them, not read again */
    uint64_t invalid;   /* stacks that changed while they were copied, twice */
    uint64_t cut;       /* deeper than we follow */
    uint64_t other;     /* no room for their path: nodes[0] */
    uint64_t cost_ns;   /* CPU time spent on all of it */
    uint64_t processes; /* Python processes looked into */
    uint64_t unknown;   /* Python processes of a version without a layout */
    uint32_t minor;     /* of the program's Python 3; 0 none */
    uint32_t why;       /* text: why processes could not be looked into; 0 none */
};

enum pystack_code_flags {
    PYSTACK_CODE_KNOWN =
        1, /* the names it uses were looked at: the rest is so or not */
    PYSTACK_CODE_WRITES =
        2, /* it calls something that writes records, by those names */
};

struct pystack_code_row {
    uint64_t key; /* 1 */
    uint32_t name, file;
    uint32_t first_line;
    uint32_t flags; /* enum pystack_code_flags; 0 in older files, and of libraries */
};

struct pystack_frame_row {
    uint64_t key; /* 1 */
    uint32_t code, line;
};

struct pystack_node_row {
    uint64_t key; /* 1 */
    uint32_t frame;
    uint32_t parent; /* number of the caller's node; 0: it is the outermost */
};

enum pystack_task_flags {
    PYSTACK_TASK_FORKED =
        1, /* its process was forked, and has executed nothing since */
};

struct pystack_task_row {
    uint64_t key; /* 1 */
    uint32_t pid, tid;
    uint32_t thread; /* text: name */
    uint32_t flags;  /* enum pystack_task_flags; 0 in older files */
    /* Time of this thread while it was looked at, in ns. */
    uint64_t wall_ns, cpu_ns;
    uint64_t gil_ns;      /* wall time it was seen holding the lock */
    uint64_t gil_wait_ns; /* … asleep until another thread gives it up */
    uint64_t gc_ns;       /* … holding it while the collector ran */
    uint64_t invalid_ns;  /* wall time whose stack is not known */
};

struct pystack_count_row {
    uint64_t key; /* 1 */
    uint32_t node, task;
    uint64_t samples;
    uint64_t wall_ns, cpu_ns;
};

#endif
