/* pylines.h: which lines of the user's own program the sampled Python time belongs to,
 * by what it was spent on.
 *
 * A stack is judged by the libraries on it: under torch/utils/data it loads, under
 * logging it logs. Its line is the innermost one outside of libraries: the one a person
 * can change. Main thread: wall time; others: CPU time.
 */
#ifndef SONDE_ANALYSE_PYLINES_H
#define SONDE_ANALYSE_PYLINES_H

#include <stdbool.h>
#include <stdint.h>

struct report;

enum py_use {
    PY_ANY,
    PY_LOADING, /* torch's data loader, in the main process or a worker */
    PY_COLLATE,
    PY_LOGGING,
    PY_IMPORT,
    PY_COMPILE,
    PY_OPTIMIZER,
    PY_CHECKPOINT,
    PY_MODEL, /* inside a module, or backward */
    PY_PLAIN, /* none of these: the program's own code */
    PY_LOCK,  /* of PY_PLAIN: it waits for a lock of its own, without running */
    PY_USES
};

struct py_place {
    const char *file, *function; /* "" none */
    uint32_t line;
    double ns;
};

struct py_lines {
    bool present;
    double main_ns;          /* the main thread's wall time */
    double used_ns[PY_USES]; /* of it */
    double import_cpu_ns;    /* CPU time of its imports */
    double log_function_ns; /* all of the function that logs most, itself and below … */
    double save_function_ns;      /* … and of the one that writes checkpoints */
    struct py_place top[PY_USES]; /* main thread */
    struct py_place worker;       /* of other processes, by CPU time, while loading */
    struct py_place thread; /* of other threads of the main process, by CPU time */
    double thread_ns;
};

/* A run without Python stacks is none the worse. Texts go into the report's arena. */
int pylines_read(struct report *report, struct py_lines *ret_lines);

/* What a file says about the stacks it is on: bits of enum py_use. */
unsigned pylines_uses(const char *file);
bool pylines_is_library(const char *file);

#endif
