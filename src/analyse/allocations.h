/* allocations.h: what the processes of a run allocated, and what they kept.
 *
 * Counts and bytes are exact and summed over all processes that were captured. Sites are
 * estimates from samples (trace/heap_rows.h), joined over processes by the place in the
 * program that called the allocator.
 *
 * A leak is a site whose blocks are still live at the end and come from all over the
 * run: the life of the process is cut into windows, of steps where it has them, else of
 * time, and nearly every one must have left blocks behind. A cache that grew and then
 * stood still has survivors in its first windows only; one that replaces its entries, in
 * its last.
 */
#ifndef SONDE_ANALYSE_ALLOCATIONS_H
#define SONDE_ANALYSE_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/heap_rows.h"

enum { LEAK_WINDOWS = 8 };

struct alloc_place {
    const char *function, *file; /* "" unknown */
    uint32_t line;               /* 0 unknown */
    const char *module;          /* path; "" unknown */
    uint64_t offset;             /* in the module's file */
};

struct alloc_site {
    struct alloc_place at;     /* the innermost frame that is not the allocator's */
    struct alloc_place *stack; /* of the path with most bytes, innermost first */
    unsigned depth;
    const char *zone; /* of that path; "" none */
    uint64_t samples, live_samples;
    double count, bytes, live_count, live_bytes;
    double peak_bytes;              /* live when its process was at its highest */
    double freed_count, lifetime_s; /* sum over freed blocks */
    bool leak;
    double growth_per_s;         /* of a leak: live bytes over the time they took */
    double growth_per_step;      /* NaN without steps */
    double path_bytes;           /* ours: of `stack` */
    double window[LEAK_WINDOWS]; /* ours: live bytes by when they were allocated */
    double span_s, span_steps;   /* ours: of the windows */
};

struct alloc_zone {
    const char *name; /* "" outside of zones */
    uint64_t count, bytes, frees, freed_bytes;
};

struct alloc_process {
    uint32_t pid;
    const char *exe;
    uint64_t count, bytes, peak_bytes;
    double live_bytes; /* NaN: not known */
};

struct alloc_difference {
    struct alloc_place at;
    double live_bytes, difference; /* since the snapshot before */
};

struct alloc_snapshot {
    const char *name;
    uint32_t pid;
    int64_t time_ns;
    uint64_t step, count, bytes, frees;
    int64_t live_bytes;
    int64_t
        difference; /* of live bytes to the snapshot before; its own for the first */
    struct alloc_difference *sites; /* the largest differences first */
    size_t site_count;
};

struct allocations {
    bool known;       /* at least one process was captured */
    bool counts_only; /* of some process, nothing but calls and bytes asked for */
    bool in_spells;   /* of some thread: counts by zone and size are estimates */
    uint64_t count, bytes, frees, freed_bytes, reallocs, failed;
    double live_bytes;   /* at the end, of all processes; NaN: not known */
    uint64_t peak_bytes; /* of the process that held most */
    uint32_t peak_pid;
    int64_t peak_ns; /* 0 unknown */
    uint64_t map_count, mapped_bytes, unmap_count, unmapped_bytes;
    uint64_t samples, samples_lost, events, events_lost;
    struct heap_count sizes[HEAP_CLASSES];
    struct alloc_zone *zones; /* most bytes first */
    size_t zone_count, zone_cap;
    struct alloc_site *sites; /* most bytes first; leaks among them */
    size_t site_count, site_cap;
    struct alloc_process *processes; /* most bytes first */
    size_t process_count, process_cap;
    struct alloc_snapshot *snapshots;
    size_t snapshot_count, snapshot_cap;
    const char **unseen; /* what could not be seen, in words */
    size_t unseen_count, unseen_cap;
};

struct report;
/* Reads every file of kind "heap" of the run. Damaged ones are noted as unseen. */
int allocations_read(struct report *report);
void allocations_release(struct allocations *allocations);

#endif
