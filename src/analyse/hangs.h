/* hangs.h: where the threads of a run waited when it hung (trace/hang_rows.h). */
#ifndef SONDE_ANALYSE_HANGS_H
#define SONDE_ANALYSE_HANGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

/* Texts are "" where nobody knows. */
struct hang_waiter {
    uint32_t pid, tid;
    bool is_main, has_gil, waits_gil, running;
    const char *process, *thread;
    const char *zone;   /* the innermost one open in it */
    const char *python; /* "function (file.py:12)" */
    const char *native; /* innermost function outside the C library */
    const char *kernel;
};

struct hang_event {
    unsigned number;
    double waited_s;
    double lasted_s; /* NaN: not seen to end by itself */
    const char *why;
    const char *file; /* hang-N.txt with its directory; "" when it is not there */
    struct hang_waiter *waiters; /* by process, main threads first */
    size_t waiter_count;
};

struct hang_report {
    struct hang_event *hangs; /* in their order */
    size_t count;
};

/* Fills in report->hangs. */
int hangs_read(struct report *report);

/* What tells most of where a thread waits: Python, else native, else the kernel. */
const char *hang_waiter_place(const struct hang_waiter *waiter);

#endif
