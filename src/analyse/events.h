/* events.h: single allocations and I/O calls, where every one was recorded
 * (`sonde run --trace alloc,io`).
 *
 * Read process by process from the files of kind "heap" and "io", hostile as everything
 * in a run directory; within a process in the order of time. Memory is that of one
 * process's events, which the capture bounds (some 350,000). Paths are redacted as the
 * report redacts them.
 */
#ifndef SONDE_ANALYSE_EVENTS_H
#define SONDE_ANALYSE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyse/allocations.h"
#include "store/run.h"

/* What both have; texts are "" when unknown or none, and borrowed for the call. */
struct event_common {
    int64_t time_ns; /* since the epoch; of a call its begin. 0: no clock */
    uint32_t pid, tid;
    const char *zone; /* innermost one open */
};

struct alloc_event {
    struct event_common at;
    bool is_free;
    uint64_t bytes; /* asked for; of a free, what the block had room for */
    uint64_t address;
    struct alloc_place place; /* who asked, with --trace=stacks */
};

struct io_event {
    struct event_common at;
    const char *operation; /* "read", "open", … */
    const char *path, *io_class;
    bool is_write;
    int64_t bytes;    /* moved; 0 for those that move none */
    int error;        /* errno; 0 */
    uint64_t offset;  /* UINT64_MAX: none or not known */
    double latency_s; /* NaN: not known */
};

struct event_totals {
    uint64_t allocations, allocated_bytes, frees, freed_bytes;
    uint64_t calls, read_bytes, written_bytes;
    uint64_t lost;     /* there was no room for them */
    bool alloc_traced; /* asked for, of any process */
    bool io_traced;
};

/* Either may be NULL. A negative result ends the walk and is returned. */
struct event_visitor {
    int (*allocation)(void *arg, const struct alloc_event *event);
    int (*call)(void *arg, const struct io_event *event);
    void *arg;
};

/* ret_totals may be NULL. */
int events_walk(const struct run *run, const struct event_visitor *visitor,
                struct event_totals *ret_totals);

#endif
