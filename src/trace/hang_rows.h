/* hang_rows.h: hangs in short, for reports; all of it is in hang-N.txt.
 *
 * File of tables of kind "hangs": table "hangs" has a row per hang, "threads" one per
 * thread of every process that lived then. Texts are places in the file's text, 0 none.
 */
#ifndef SONDE_TRACE_HANG_ROWS_H
#define SONDE_TRACE_HANG_ROWS_H

#include <stdint.h>

#define HANG_KIND    "hangs"
#define HANG_HANGS   "hangs"
#define HANG_THREADS "threads"

enum { HANG_ROWS = 64, HANG_THREAD_ROWS = 65536 };

enum hang_flags {
    HANG_MAIN = 1,      /* the first thread of its process */
    HANG_PYTHON = 2,    /* it has a Python stack */
    HANG_HAS_GIL = 4,   /* it holds the interpreter lock */
    HANG_WAITS_GIL = 8, /* it waits for it */
    HANG_RUNNING = 16,  /* it did not sleep */
};

struct hang_row {
    uint64_t key;       /* number of the hang: from 1 */
    uint64_t waited_ns; /* until it was called a hang */
    uint64_t lasted_ns; /* it ended by itself after that; 0: not seen to end */
    uint32_t why, pad;
};
_Static_assert(sizeof(struct hang_row) == 32, "rows are shared");

struct hang_thread_row {
    uint64_t key; /* number of the hang */
    uint32_t pid, tid;
    uint32_t flags;           /* enum hang_flags */
    uint32_t process, thread; /* names */
    uint32_t zone;            /* the innermost one open */
    uint32_t python;          /* innermost line: "function (file.py:12)" */
    uint32_t native; /* innermost function outside the C library, with its line */
    uint32_t kernel; /* where it waits in the kernel */
    uint32_t pad;
};
_Static_assert(sizeof(struct hang_thread_row) == 48, "rows are shared");

#endif
