/* heap_rows.h: the tables of a process's allocations, heap-<start>-<pid>-<rand>.tables.
 *
 *     process    one row: what was captured and how; live bytes; high-water mark
 *     threads    one per thread number
 *     counters   one per thread number and zone: exact counts by size, and what the
 *                thread has not told the process row yet
 *     sites      one per sampled call path and zone: estimates
 *     live       one per sampled block that is still allocated
 *     snapshots  one per sonde_heap_snapshot(); snapsites: what each site held then
 *     events     every allocation and free, when asked (--trace=alloc)
 *     modules    module_rows.h
 *     frames     every return address in sites, once (struct frame_row)
 *
 * Exact: counts, bytes asked for, frees, freed bytes, live bytes (as the allocator
 * rounds them, malloc_usable_size). Of threads that make hundreds of thousands of calls a
 * second the first four become estimates after ten seconds (HEAP_IN_SPELLS), live bytes
 * stay what they are. A realloc is an allocation of the new size and a
 * free of the old. The high-water mark is within HEAP_UNTOLD bytes, or
 * 1/HEAP_UNTOLD_PART of what is live, per thread: that is how much a thread may allocate
 * before it looks how high the water is.
 *
 * Estimated: sites. Allocations are chosen by a Poisson process over bytes, so that one
 * of `size` bytes, as the allocator rounds them, is taken with probability
 * p = 1 - exp(-size / mean) and stands for 1 / p
 * of its kind; sums of these weights have the right mean whatever the sizes. The mean
 * grows with the number of samples from HEAP_MEAN_FIRST to HEAP_MEAN_LAST: short
 * programs get a close look, long ones pay little. One that allocates gigabytes a second
 * has more samples than anybody needs: there it grows to HEAP_MEAN_MOST.
 */
#ifndef SONDE_TRACE_HEAP_ROWS_H
#define SONDE_TRACE_HEAP_ROWS_H

#include <stdint.h>

#define HEAP_KIND "heap"

enum {
    HEAP_CLASSES = 28, /* class k: sizes up to 16 << k; the last one: all above */
    HEAP_FRAMES = 32,
    HEAP_UNTOLD = 64 << 10,  /* a thread tells the process row after so many bytes, */
    HEAP_UNTOLD_PART = 1024, /* … or this part of what is live, if that is more, */
    HEAP_UNTOLD_BUSY = 8, /* … and so many times as much where it counts in spells */
    HEAP_MEAN_FIRST = 8 << 10,
    HEAP_MEAN_LAST = 512 << 10,
    HEAP_MEAN_MOST = 16 << 20,
    HEAP_MEAN_SAMPLES = 512, /* then the mean doubles */
    HEAP_SPELLS = 32,        /* of so many stretches one is counted, for all */
};

enum heap_state {
    HEAP_CAPTURED = 1,
    HEAP_STAYED_OUT, /* `why` says why */
};

enum heap_flags {
    HEAP_OWN_MALLOC = 1,    /* the program has a malloc of its own, in front of ours */
    HEAP_OWN_NEW = 2,       /* operator new does not go through malloc */
    HEAP_NO_USABLE = 4,     /* sizes of freed blocks are not known: no live bytes */
    HEAP_EVENTS = 8,        /* every event was asked for */
    HEAP_FORKED = 16,       /* began as a fork: has inherited live bytes */
    HEAP_EVENT_STACKS = 32, /* … with the site of each */
    HEAP_EVENT_ZONES = 64,  /* … and with the zone, where there is no site */
    HEAP_COUNTS_ONLY = 128, /* calls and bytes asked for: no freed or live bytes, no
                             * sites */
    HEAP_IN_SPELLS = 256,   /* of some thread: counts are estimates from then on */
};

struct heap_process_row {
    uint64_t state; /* the key: enum heap_state */
    uint64_t flags;
    uint32_t why, allocator; /* texts; allocator: the file whose malloc this is */
    uint64_t start_ticks;
    uint64_t
        inherited; /* live bytes at the fork, within what the parent did meanwhile */
    int64_t live;  /* without what threads have not told; with `inherited` */
    uint64_t peak;
    uint64_t peak_ticks, peak_step;
    uint64_t held_at; /* live bytes when sites' peak_bytes were taken */
    uint64_t held_ticks;
    uint64_t map_count, mapped_bytes; /* anonymous, by the program itself */
    uint64_t unmap_count, unmapped_bytes;
    uint64_t samples;
    uint64_t samples_lost; /* no room for their site or block */
    uint64_t failed;       /* allocations that returned NULL */
    uint64_t events_lost;  /* there was no room; those kept are in the table */
    uint64_t last_ticks;   /* of the latest sample */
    uint64_t exit_ticks;   /* when it ran its exit handlers; 0: not yet, or killed */
};

struct heap_thread_row {
    uint64_t number; /* the key: thread number + 1 */
    int64_t untold;  /* as in a counter row: in files from before those had them */
    int64_t high;
    uint64_t tid; /* of the latest thread with that number */
    uint64_t pad[4];
};
_Static_assert(sizeof(struct heap_thread_row) == 64, "a cache line");

struct heap_count {
    uint64_t count, bytes;
};

struct heap_counter_row {
    uint64_t key; /* (thread number + 1) << 32 | zone: see the two below */
    uint64_t frees, freed_bytes;
    uint64_t reallocs; /* among the allocations */
    /* Of the thread: in the row of the zone it was last in, 0 in its others. Here because
     * an allocation or a free then writes to this row alone. */
    int64_t untold; /* bytes live beyond what the process row has */
    int64_t high;   /* the most `untold` was since it was last told; in older files */
    uint64_t pad[2];
    struct heap_count size[HEAP_CLASSES];
};
_Static_assert(sizeof(struct heap_counter_row) == 512, "whole cache lines");

static inline uint64_t heap_counter_key(uint32_t thread, uint32_t zone)
{
    return ((uint64_t)thread + 1) << 32 | zone;
}
static inline uint32_t heap_counter_zone(uint64_t key)
{
    return (uint32_t)key;
}

static inline unsigned heap_class(uint64_t size)
{
    const uint64_t n = (size - (size != 0)) | 15;
    const unsigned k = 60 - (unsigned)__builtin_clzll(n);
    return k < HEAP_CLASSES ? k : HEAP_CLASSES - 1;
}
/* The largest size in a class; the last one has none. */
static inline uint64_t heap_class_limit(unsigned k)
{
    return k + 1 < HEAP_CLASSES ? 16ULL << k : UINT64_MAX;
}

struct heap_site_row {
    uint64_t key;  /* of zone and frames; not 0 */
    uint32_t zone; /* site number in the process's trace, 0 none */
    uint32_t depth;
    uint64_t samples, live_samples;
    double count, bytes; /* estimates, since the start */
    double live_count, live_bytes;
    double peak_bytes; /* live_bytes when the process was at its highest */
    double freed_count, lifetime_ticks; /* sum over freed blocks, weighted by count */
    uint64_t first_ticks, last_ticks;   /* of samples */
    uint64_t frame[HEAP_FRAMES];        /* return addresses, innermost first */
};

struct heap_live_row {
    uint64_t address; /* the key; 0 again once it is freed */
    uint32_t site;    /* index of its row */
    uint32_t thread;
    uint64_t size;
    double weight; /* how many of its kind it stands for */
    uint64_t ticks;
    uint64_t step;
};
_Static_assert(sizeof(struct heap_live_row) == 48, "on-disk layout");

struct heap_snapshot_row {
    uint64_t number; /* the key: 1, 2 … */
    uint32_t name;   /* a text */
    uint32_t site_count;
    uint64_t ticks, step;
    int64_t live;
    uint64_t count, bytes, frees; /* exact, so far */
};

struct heap_snapsite_row {
    uint64_t key; /* snapshot number << 32 | index of the site's row + 1 */
    double live_count, live_bytes;
    double count, bytes;
};

enum heap_event_kind { HEAP_EVENT_ALLOC = 1, HEAP_EVENT_FREE = 2 };

/* In a thread's order within a block of the file. */
struct heap_event_row {
    uint64_t word;    /* the key: ticks << 8 | kind */
    uint64_t address; /* thread number << 48 | address */
    uint64_t size; /* where << 40 | bytes, of frees: usable. Where: of allocations with
                    * HEAP_EVENT_STACKS the site's row + 1, else with HEAP_EVENT_ZONES
                    * the zone; 0 none */
};

enum { HEAP_EVENT_SIZE_BITS = 40 };

static inline uint64_t heap_event_size(uint64_t size, uint32_t where)
{
    const uint64_t most = (1ULL << HEAP_EVENT_SIZE_BITS) - 1;
    return (uint64_t)where << HEAP_EVENT_SIZE_BITS | (size < most ? size : most);
}

#endif
