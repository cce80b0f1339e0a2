/* heap.h: what the files of the allocation half share.
 *
 *     heap.c           the malloc family, and counting
 *     heap_state.c     the functions behind it, the file, threads' cells
 *     heap_pace.c      how closely a busy thread is counted
 *     heap_sample.c    call sites and sampled blocks
 *     heap_snapshot.c  sonde_heap_snapshot()
 *     heap_events.c    every event
 *     heap_kept.c      in a trial: large blocks are kept and used again
 *
 * A thread counts in a cell. The cell is in wiped memory and points into the file, so
 * the child of a fork finds a zeroed cell (no row) and takes the slow way, where it gets
 * a file of its own. Counting is plain stores: one writer per row.
 */
#ifndef SONDE_CAPTURE_INTERPOSE_HEAP_H
#define SONDE_CAPTURE_INTERPOSE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/interpose/inside.h"
#include "trace/heap_rows.h"
#include "trace/tables.h"

enum heap_table {
    HEAP_PROCESS = 1,
    HEAP_THREADS,
    HEAP_COUNTERS,
    HEAP_SITES,
    HEAP_LIVE,
    HEAP_MODULES,
    HEAP_SNAPSHOTS,
    HEAP_SNAPSITES,
    HEAP_EVENT_ROWS,
    HEAP_FRAME_ROWS,
};

enum {
    HEAP_ZONE_CACHE = 64,
    HEAP_SITE_CACHE = 256,
    HEAP_EVENT_BLOCKS = 512,
    HEAP_MAX_COUNTERS = 16384,
    HEAP_MAX_SITES = 16384,
    HEAP_MAX_LIVE = 262144,
    HEAP_FILTER = 65536,
    HEAP_PAGES = 65536, /* 256 MiB, then they begin again */
    HEAP_MAX_FRAMES = 65536,
    HEAP_MAX_MODULES = 4096,
};

enum { HEAP_SMALL = 1024 }; /* bytes: sizes whose class is looked up */

/* How closely a thread's calls are counted: heap_pace.c. */
enum heap_gear {
    HEAP_EVERY,   /* each, in the row of its zone */
    HEAP_BETWEEN, /* bytes alone, until the next spell */
    HEAP_SPELL,   /* each, for HEAP_SPELLS of its kind */
};

/* A training program leaves little in the caches and the TLB from one call to the next, and
 * each line and page more was felt there, not in a loop of mallocs. So all that a thread
 * between two spells needs lies in one line, in the page of its other thread variables;
 * who counts touches the first line of its cell, and the row, besides.
 *
 * Thread variables are not wiped in the child of a fork. fork() sets the gear back
 * (heap_state.c); in a child of clone() `until` runs out, and who then finds no row in its
 * cell begins anew. Until there no row is written to. */
struct heap_mine {
    _Alignas(64) struct heap_cell *cell;
    int64_t until; /* bytes to allocate to the next thing to do besides counting */
    int64_t until_freed; /* bytes to free likewise */
    const uint64_t *any; /* heap->any */
    /* heap_real's, which lies in another page; while the gear is not HEAP_EVERY. */
    void (*free)(void *);
    uint32_t gear; /* enum heap_gear */
};
_Static_assert(sizeof(struct heap_mine) == 64, "one line");

struct heap_cell {
    _Alignas(64) struct heap_counter_row *row; /* NULL: no cell yet */
    /* Where the thread was (heap.c, whereabouts()) when the row was that of its zone, in
     * the one of the two that tells the way calls are counted: one comparison tells that
     * there is a cell, that it is the zone's, and what to do. Both 0, which is nowhere:
     * the long way. */
    uint64_t usual, counts;
    int64_t enough;           /* bytes after which the process row is told */
    int64_t span, span_freed; /* what `until` and `until_freed` began with */
    int64_t sample_in;        /* bytes from there to the next sample */
    uint64_t mean;            /* with which that was drawn */
    uint64_t random;
    uint64_t paced_ms, paced_calls; /* when that was, and the calls so far */
    uint32_t zone;                  /* whose row it is */
    uint32_t number;                /* of the thread */
    uint32_t events;                /* since the pace was looked at */
    /* Where in the row sizes up to 16, 32 … HEAP_SMALL are counted, from size[0], in
     * bytes. Counting leading zeros without LZCNT, which not every x86-64 has, takes
     * eight operations on AMD's. Here rather than among the constants: a page less. */
    uint8_t small_at[HEAP_SMALL / 16 + 1];
    struct {
        struct heap_counter_row *row;
        uint32_t zone;
    } cache[HEAP_ZONE_CACHE];
    /* With every event only: */
    uint64_t event_at, event_end; /* addresses in the block of the file it fills */
    uint32_t event_block;         /* number + 1 */
    /* Of stacks: */
    struct inside_walks *walks;
    struct {
        uint64_t key;
        uint32_t site; /* row + 1 */
    } sites[HEAP_SITE_CACHE];
};

/* Blocks of events. */
struct heap_ring {
    uint32_t count, next;
    bool full;                        /* no more are to be had */
    uint8_t owner[HEAP_EVENT_BLOCKS]; /* 1: a thread writes there */
};

/* In wiped memory. */
struct heap {
    uint32_t state; /* 0 not open, 1 open, 2 failed; atomic */
    uint32_t open_lock;
    uint32_t lock;   /* sites, live blocks, hash of counters */
    uint32_t events; /* every one is recorded: 1; with its site: 2 */
    struct tables tables;
    struct heap_process_row *process;
    uint64_t high; /* most live bytes since sonde_heap_high_() was asked; atomic */
    struct heap_ring ring;
    bool counts_ticks; /* the tick counter is fit for use */
    uint64_t began_ms; /* when this process did */
    uint64_t exact_ms; /* for so long every call is counted, however many come */
    uint32_t hurry;    /* doublings of the mean beyond HEAP_MEAN_LAST */
    uint64_t paced_ms; /* when that was looked at */
    struct inside_modules modules;
    struct heap_cell cells[INSIDE_THREADS + 1];   /* the last: shared by the others */
    uint32_t counter_hash[2 * HEAP_MAX_COUNTERS]; /* row index + 1 */
    uint32_t site_hash[2 * HEAP_MAX_SITES];
    uint32_t frame_hash[2 * HEAP_MAX_FRAMES];
    uint32_t live_hash[2 * HEAP_MAX_LIVE];
    uint32_t live_free, live_used; /* a list of rows to use again, index + 1 */
    uint32_t live_next[HEAP_MAX_LIVE];
    uint16_t pages[HEAP_PAGES];    /* how many sampled blocks begin in this page */
    uint64_t any[HEAP_PAGES / 64]; /* a bit for each of those: any at all? */
    uint8_t filter[HEAP_FILTER];   /* how many sampled blocks have this hash */
};
/* Nobody outside has these names: no detour by the table of addresses. */
#pragma GCC visibility push(hidden)
extern struct heap *heap; /* NULL before there was a file */

extern THREAD_LOCAL struct heap_mine heap_mine;

/* ---- Behind ours ---- */
struct heap_functions {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*usable)(void *); /* never NULL once looked up */
};
extern struct heap_functions heap_real;
/* heap_real.malloc until they have been looked up: does that, or gives early memory. */
void *heap_malloc_first(size_t size);

/* How large a block really is. glibc keeps that in the word before it, in a form that
 * has not changed in twenty years; it is read directly when a test at start-up has shown
 * that it gives what malloc_usable_size() gives. A call less, twice per pair. */
extern bool heap_sizes_in_front;
/* How calls are counted. Two have short ways through heap.c, by a cell's keys. */
enum heap_way {
    HEAP_IN_DETAIL, /* every event, or sizes that must be asked for */
    HEAP_USUAL,
    HEAP_COUNTS, /* calls and bytes asked for: sizes of blocks are not looked at */
};
extern uint32_t heap_way;
static inline bool heap_has_mapping(const void *p) /* of its own */
{
    return ((const size_t *)p)[-1] & 2;
}
static inline size_t heap_usable_unmapped(const void *p)
{
    return (((const size_t *)p)[-1] & ~(size_t)7) - 8;
}
static inline size_t heap_usable_in_front(const void *p)
{
    return heap_usable_unmapped(p) - (heap_has_mapping(p) ? 8 : 0);
}
static inline size_t heap_usable(void *p)
{
    return __builtin_expect(heap_sizes_in_front, 1) ? heap_usable_in_front(p)
                                                    : heap_real.usable(p);
}

/* Has blocks kept and used again, where a trial asks for it; once, at start-up. */
void heap_keeps(void);

/* Looks all of them up; false: not now, we are in the middle of it. */
bool heap_resolve(void);

/* Memory for the time in which dlsym is being asked, zeroed. Never given back: the word
 * before it says "has a mapping of its own", which takes free() off its usual way. */
void *heap_early(size_t size, size_t alignment);
extern char heap_early_memory[];
enum { HEAP_EARLY = 64 << 10 };
static inline bool heap_is_early(const void *p)
{
    return (uintptr_t)p - (uintptr_t)heap_early_memory < HEAP_EARLY;
}

/* ---- Cells ---- */
/* The calling thread's cell, made if need be; the shared one when it cannot have its
 * own; NULL when nothing is captured. Sets errno as it was. */
struct heap_cell *heap_join(void);
static inline bool heap_is_shared(const struct heap_cell *c)
{
    return c->number == INSIDE_THREADS;
}
/* The row for a zone that the cell does not point at; the thread stands `here`. */
struct heap_counter_row *heap_zone_row(struct heap_cell *cell, uint32_t zone,
                                       uint64_t here);
/* The cell's row is right for who stands `here`: the short way, if there is one. */
void heap_stand(struct heap_cell *cell, uint64_t here);
/* Live bytes that threads have not told the process row. */
int64_t heap_untold(const struct tables *tables);
/* Tells the process row what the thread has kept for itself, and sets how many bytes may
 * come and go until the next time. */
void heap_tell(struct heap_cell *cell);
void heap_restart(struct heap_cell *cell);

/* ---- Pace ---- */
/* Now and then, after the process was told: the gear for what comes next. */
void heap_pace(struct heap_cell *cell);

/* ---- Every event ---- */
void heap_events_ended(struct heap_cell *cell);
void heap_event(struct heap_cell *cell, enum heap_event_kind kind, const void *p,
                size_t size);

/* ---- Sampling ---- */
/* The row of a call path + 1, made if need be; 0: no room. */
uint32_t heap_site(struct heap_cell *cell, const uint64_t *frames, unsigned depth,
                   uint32_t zone);
/* … of the calling thread's stack now: quick for one that came by before. */
uint32_t heap_site_now(struct heap_cell *cell);
static inline uint64_t heap_hash(const void *p)
{
    return ((uint64_t)(uintptr_t)p >> 4) * 0x9E3779B97F4A7C15ULL;
}
static inline uint32_t heap_filter_of(const void *p)
{
    return (uint32_t)(heap_hash(p) >> 48);
}
static inline uint32_t heap_page_of(const void *p)
{
    return (uint32_t)((uintptr_t)p >> 12) % HEAP_PAGES;
}
/* Asked at every free, of a program that works on large tensors and leaves little in the
 * caches. Blocks that come and go do so in few pages, whose bits lie side by side; the
 * thousands of sampled blocks that imports leave are in others. By hashes alone every
 * free fetched a line from afar: a third of what a free cost. */
static inline bool heap_page_has_samples(const uint64_t *any, const void *p)
{
    const uint32_t page = heap_page_of(p);
    return UNLIKELY(any[page / 64] >> page % 64 & 1);
}
static inline bool heap_may_be_sampled(const void *p)
{
    return heap_page_has_samples(heap->any, p) && heap->filter[heap_filter_of(p)];
}
uint64_t heap_random(struct heap_cell *cell);
void heap_draw(struct heap_cell *cell);
void heap_sample(struct heap_cell *cell, void *p, size_t size);
/* Forgets a block that may be sampled; before it is really freed. */
struct heap_taken {
    struct heap_live_row row;
    bool is;
};
void heap_forget(const void *p);
void heap_take(const void *p, struct heap_taken *ret_taken);
void heap_put_back(const struct heap_taken *taken);

/* Anonymous memory taken from and given to the kernel by the program itself (maps.c). */
void heap_mapped(size_t bytes);
void heap_unmapped(size_t bytes);
#pragma GCC visibility pop

#endif
