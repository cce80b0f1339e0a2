/* heap.c: the malloc family.
 *
 * A call goes to the function behind ours, then is counted: class of its size in the row
 * of the thread and its zone, live bytes of the thread, bytes to the next sample. No
 * locked instruction, no system call. A thread without a cell (its first call, child of
 * a fork, capture off) takes the slow way, *_slow().
 *
 * operator new and delete are not here: those of libstdc++ and libc++ come by malloc and
 * free, and standing in front of them would break programs that get them from a library
 * loaded later. Where an allocator brings its own, the report says so (HEAP_OWN_NEW).
 */
#include "capture/interpose/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

EXPORTED void *reallocarray(void *p, size_t count, size_t size);
EXPORTED void *memalign(size_t alignment, size_t size);
EXPORTED void *pvalloc(size_t size);

/* ---- Counting ---------------------------------------------------------------------
 *
 * What a call costs in a training program is not its instructions but the lines of code
 * and data it must fetch again, because millions of other instructions ran since the last
 * one: a line of code takes longer to come than all of it to run. So the usual way is
 * straight and short, three lines for an allocation and three for a free, side by side
 * and shared by the family. The rare cases are calls in tail position, which save no
 * registers and take what they need themselves. */

#define RARE          __attribute__((noinline, cold))
#define HOT           __attribute__((noinline, hot, aligned(64)))
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Whether the thread is where it was when it last looked up its zone: every event it records
 * moves the cursor of its lane, so one that stands still is in the same zone. One word to
 * ask instead of the zone itself, three loads that wait for one another. (The cursor
 * comes by the same place again after a lap of the whole trace. Who records exactly that
 * much between two calls has the next ones counted for the zone before.) */
static ALWAYS_INLINE uint64_t whereabouts(void)
{
    enum { NO_LANE = 3 };
    const struct sonde_lane *lane = sonde_lane_;
    return LIKELY(lane) ? __atomic_load_n(&lane->cursor, __ATOMIC_RELAXED) | 1
                        : NO_LANE;
}

/* Its events go no further, or by another way than the cursor's (record/lanes.c): zones
 * change unseen. */
static bool is_nowhere(void)
{
    const struct sonde_lane *lane = sonde_lane_;
    return lane && !(__atomic_load_n(&lane->cursor, __ATOMIC_RELAXED) >> 16);
}

static RARE void *alloc_slow(void *p, size_t size);

/* So many bytes were allocated that the process is told, or this block is sampled. Or it
 * is the child of a clone(), which has a gear but no row. */
static RARE void *alloc_rare(void *p, size_t size)
{
    struct heap_cell *c = heap_mine.cell;
    if (UNLIKELY(!c->row))
        return alloc_slow(p, size);
    heap_tell(c);
    if (c->sample_in < 0) {
        heap_sample(c, p, size);
        heap_restart(c);
    }
    heap_pace(c);
    return p;
}

static inline struct heap_count *count_of(const struct heap_cell *c,
                                          struct heap_counter_row *row, size_t size)
{
    const size_t n = (size + 15) / 16;
    if (UNLIKELY(n > HEAP_SMALL / 16))
        return &row->size[heap_class(size)];
    return (struct heap_count *)((char *)row->size + c->small_at[n]);
}

static inline void *count_alloc_in(struct heap_cell *c, struct heap_counter_row *row,
                                   void *p, size_t size, size_t usable)
{
    struct heap_count *k = count_of(c, row, size);
    k->count++;
    k->bytes += size;
    row->untold += (int64_t)usable;
    heap_mine.until -= (int64_t)usable;
    return UNLIKELY(heap_mine.until < 0) ? alloc_rare(p, size) : p;
}

/* Between two spells. */
static inline void *pass_alloc(void *p, size_t size, size_t usable)
{
    heap_mine.until -= (int64_t)usable;
    return UNLIKELY(heap_mine.until < 0) ? alloc_rare(p, size) : p;
}

static void *count_alloc_spell(struct heap_cell *c, struct heap_counter_row *row,
                               void *p, size_t size, size_t usable)
{
    struct heap_count *k = count_of(c, row, size);
    k->count += HEAP_SPELLS;
    k->bytes += HEAP_SPELLS * size;
    return pass_alloc(p, size, usable);
}

static inline void *count_alloc_only(const struct heap_cell *c,
                                     struct heap_counter_row *row, void *p, size_t size)
{
    struct heap_count *k = count_of(c, row, size);
    k->count++;
    k->bytes += size;
    return p;
}

static struct heap_counter_row *row_now(struct heap_cell *c)
{
    /* Before the zone: a handler may come between. */
    const uint64_t here = is_nowhere() ? 0 : whereabouts();
    const uint32_t zone = inside_zone();
    if (zone != c->zone)
        return heap_zone_row(c, zone, here);
    heap_stand(c, here);
    return c->row;
}

/* In any zone, in every detail. */
static void *count_alloc(struct heap_cell *c, void *p, size_t size)
{
    if (heap_way == HEAP_COUNTS)
        return count_alloc_only(c, row_now(c), p, size);
    if (heap->events)
        heap_event(c, HEAP_EVENT_ALLOC, p, size);
    /* tcmalloc says 0 until it has set itself up. */
    const size_t told = heap_usable(p), usable = told < size ? size : told;
    if (heap_mine.gear == HEAP_BETWEEN)
        return pass_alloc(p, size, usable);
    if (heap_mine.gear == HEAP_SPELL)
        return count_alloc_spell(c, row_now(c), p, size, usable);
    return count_alloc_in(c, row_now(c), p, size, usable);
}

/* False: there is more to do, free_rare(). */
static inline bool pass_free(const void *p, size_t usable)
{
    heap_mine.until_freed -= (int64_t)usable;
    return !UNLIKELY(heap_mine.until_freed < 0) &&
           !(heap_page_has_samples(heap_mine.any, p) &&
             heap->filter[heap_filter_of(p)]);
}

static inline bool count_free_in(struct heap_counter_row *row, const void *p,
                                 size_t usable)
{
    row->frees++;
    row->freed_bytes += usable;
    row->untold -= (int64_t)usable;
    return pass_free(p, usable);
}

static RARE void free_rare(const void *p)
{
    struct heap_cell *c = heap_mine.cell;
    if (heap_mine.until_freed < 0)
        heap_tell(c);
    if (heap_may_be_sampled(p))
        heap_forget(p);
}

/* Counts a free in every detail, in any zone. */
static void count_free(struct heap_cell *c, const void *p, size_t usable)
{
    if (heap_way == HEAP_COUNTS) {
        row_now(c)->frees++;
        return;
    }
    if (heap->events)
        heap_event(c, HEAP_EVENT_FREE, p, usable);
    if (heap_mine.gear == HEAP_SPELL) {
        struct heap_counter_row *row = row_now(c);
        row->frees += HEAP_SPELLS;
        row->freed_bytes += HEAP_SPELLS * usable;
    }
    if (!(heap_mine.gear == HEAP_EVERY ? count_free_in(row_now(c), p, usable)
                                       : pass_free(p, usable)))
        free_rare(p);
}

/* Several threads at once: when there are more than numbers, or at their very end. */
static void add(uint64_t *to, uint64_t n)
{
    __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

static void count_shared(struct heap_cell *c, void *p, size_t size)
{
    struct heap_count *k = &c->row->size[heap_class(size)];
    add(&k->count, 1);
    add(&k->bytes, size);
    __atomic_fetch_add(&heap->process->live, (int64_t)heap_usable(p), __ATOMIC_RELAXED);
}

static void count_free_shared(struct heap_cell *c, const void *p, size_t usable)
{
    add(&c->row->frees, 1);
    add(&c->row->freed_bytes, usable);
    __atomic_fetch_sub(&heap->process->live, (int64_t)usable, __ATOMIC_RELAXED);
    if (heap_may_be_sampled(p))
        heap_forget(p);
}

/* ---- The slow way ----------------------------------------------------------------- */

static RARE void *alloc_slow(void *p, size_t size)
{
    if (!p) {
        if (heap_mine.cell->row)
            add(&heap->process->failed, 1);
        return NULL;
    }
    struct heap_cell *c = heap_join();
    if (c && heap_is_shared(c))
        count_shared(c, p, size);
    else if (c)
        (void)count_alloc(c, p, size);
    return p;
}

static RARE void free_slow(void *p)
{
    struct heap_cell *c = heap_join();
    if (c && heap_is_shared(c))
        count_free_shared(c, p, heap_usable(p));
    else if (c)
        count_free(c, p, heap_usable(p));
    heap_real.free(p);
}

static RARE void free_rare_then(void *p)
{
    if (UNLIKELY(!heap_mine.cell->row)) {
        free_slow(p);
        return;
    }
    free_rare(p);
    heap_real.free(p);
}

/* The short ways have not been taken: the zone has changed, there is no cell, the
 * allocator is not glibc's, every event is recorded. */
static __attribute__((noinline)) void *alloc_other(void *p, size_t size)
{
    struct heap_cell *c = heap_mine.cell;
    return p && c->row ? count_alloc(c, p, size) : alloc_slow(p, size);
}

static __attribute__((noinline)) void free_other(void *p)
{
    struct heap_cell *c = heap_mine.cell;
    if (heap_is_early(p) || !heap_real.free)
        return; /* without the real one nothing can have been allocated but early */
    if (!c->row) {
        free_slow(p);
        return;
    }
    count_free(c, p, heap_way == HEAP_COUNTS ? 0 : heap_usable(p));
    heap_real.free(p);
}

static HOT void *counted(void *p, size_t size)
{
    struct heap_cell *c = heap_mine.cell;
    const uint64_t here = whereabouts();
    if (UNLIKELY(!p))
        return alloc_other(p, size);
    if (LIKELY(here == c->usual)) {
        if (UNLIKELY(heap_has_mapping(p)))
            return alloc_other(p, size);
        return count_alloc_in(c, c->row, p, size, heap_usable_unmapped(p));
    }
    if (LIKELY(here == c->counts))
        return count_alloc_only(c, c->row, p, size);
    return alloc_other(p, size);
}

/* Who makes most calls goes straight on (heap_pace.c); the jump is the others'. */
static ALWAYS_INLINE void *passed_or_counted(void *p, size_t size)
{
    if (LIKELY(heap_mine.gear == HEAP_BETWEEN && p && !heap_has_mapping(p)))
        return pass_alloc(p, size, heap_usable_unmapped(p));
    return counted(p, size);
}

static inline bool resolved(const void *function)
{
    return !UNLIKELY(!function) || heap_resolve();
}

RARE void *heap_malloc_first(size_t size)
{
    return heap_resolve() ? heap_real.malloc(size) : heap_early(size, 16);
}

/* ---- The family ------------------------------------------------------------------- */

EXPORTED HOT void *malloc(size_t size)
{
    return passed_or_counted(heap_real.malloc(size), size);
}

static HOT void free_counted(void *p)
{
    struct heap_cell *c = heap_mine.cell;
    const uint64_t here = whereabouts();
    if (LIKELY(here == c->usual)) {
        if (UNLIKELY(heap_has_mapping(p))) /* early memory says so too */
            free_other(p);
        else if (LIKELY(count_free_in(c->row, p, heap_usable_unmapped(p))))
            heap_real.free(p);
        else
            free_rare_then(p);
    } else if (LIKELY(here == c->counts) && !UNLIKELY(heap_is_early(p))) {
        c->row->frees++;
        heap_real.free(p);
    } else
        free_other(p);
}

EXPORTED HOT void free(void *p)
{
    if (!p)
        return;
    if (UNLIKELY(heap_mine.gear != HEAP_BETWEEN || heap_has_mapping(p)))
        free_counted(p);
    else if (LIKELY(pass_free(p, heap_usable_unmapped(p))))
        heap_mine.free(p);
    else
        free_rare_then(p);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    if (!resolved(heap_real.calloc))
        return heap_early(count * size, 16); /* zeroed: it is used once */
    void *p = heap_real.calloc(count, size);
    return counted(p, count * size);
}

static void *realloc_early(void *p, size_t size)
{
    void *q = malloc(size);
    const size_t room = (size_t)(heap_early_memory + HEAP_EARLY - (char *)p);
    if (q)
        memcpy(q, p, size < room ? size : room);
    return q;
}

static void count_realloc(void *p, size_t old, void *q, size_t size)
{
    struct heap_cell *c = heap_mine.cell->row ? heap_mine.cell : heap_join();
    if (!c)
        return;
    if (heap_is_shared(c)) {
        count_free_shared(c, p, old);
        count_shared(c, q, size);
        add(&c->row->reallocs, 1);
        return;
    }
    count_free(c, p, old);
    if (heap_mine.gear != HEAP_BETWEEN)
        row_now(c)->reallocs += heap_mine.gear == HEAP_SPELL ? HEAP_SPELLS : 1;
    (void)count_alloc(c, q, size);
}

EXPORTED void *realloc(void *p, size_t size)
{
    if (!p)
        return malloc(size);
    if (UNLIKELY(heap_is_early(p)))
        return realloc_early(p, size);
    if (!resolved(heap_real.realloc))
        return NULL;
    const size_t old = heap_usable(p);
    struct heap_taken taken = { .is = false };
    if (heap && UNLIKELY(heap_may_be_sampled(p)))
        heap_take(p, &taken); /* while the address is still ours */
    void *q = heap_real.realloc(p, size);
    if (q) {
        count_realloc(p, old, q, size);
    } else if (size == 0) { /* that was a free */
        struct heap_cell *c = heap_mine.cell;
        if (c->row)
            count_free(c, p, old);
    } else {
        (void)alloc_slow(NULL, size);
        heap_put_back(&taken);
    }
    return q;
}

void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

/* ---- With alignment --------------------------------------------------------------- */

/* Of every tensor on the CPU. */
EXPORTED HOT int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (!resolved(heap_real.posix_memalign))
        return ENOMEM;
    const int rc = heap_real.posix_memalign(ret, alignment, size);
    if (rc == 0)
        (void)passed_or_counted(*ret, size);
    return rc;
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
    if (!resolved(heap_real.aligned_alloc))
        return heap_early(size, alignment);
    return counted(heap_real.aligned_alloc(alignment, size), size);
}

void *memalign(size_t alignment, size_t size)
{
    if (!resolved(heap_real.memalign))
        return heap_early(size, alignment);
    return counted(heap_real.memalign(alignment, size), size);
}

EXPORTED void *valloc(size_t size)
{
    if (!resolved(heap_real.valloc))
        return NULL;
    return counted(heap_real.valloc(size), size);
}

void *pvalloc(size_t size)
{
    if (!resolved(heap_real.pvalloc))
        return NULL;
    return counted(heap_real.pvalloc(size), size);
}
