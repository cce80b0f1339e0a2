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

/* ---- Counting --------------------------------------------------------------------- */

static inline struct heap_counter_row *row_now(struct heap_cell *c)
{
    const uint32_t zone = inside_zone();
    return UNLIKELY(zone != c->zone) ? heap_zone_row(c, zone) : c->row;
}

static inline void count_alloc(struct heap_cell *c, void *p, size_t size)
{
    struct heap_counter_row *row = row_now(c);
    struct heap_count *k = &row->size[heap_class(size)];
    k->count++;
    k->bytes += size;
    struct heap_thread_row *t = c->thread;
    const int64_t untold = t->untold + (int64_t)heap_real.usable(p);
    t->untold = untold;
    if (untold > t->high) {
        t->high = untold;
        if (UNLIKELY(untold > HEAP_UNTOLD))
            heap_tell(c);
    }
    c->until -= (int64_t)size;
    if (UNLIKELY(c->until < 0))
        heap_sample(c, p, size);
}

static inline void count_free(struct heap_cell *c, const void *p, size_t usable)
{
    struct heap_counter_row *row = row_now(c);
    row->frees++;
    row->freed_bytes += usable;
    struct heap_thread_row *t = c->thread;
    t->untold -= (int64_t)usable;
    if (UNLIKELY(t->untold < -HEAP_UNTOLD))
        heap_tell(c);
    if (UNLIKELY(heap->filter[heap_filter_of(p)]))
        heap_forget(p);
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
    __atomic_fetch_add(&heap->process->live, (int64_t)heap_real.usable(p),
                       __ATOMIC_RELAXED);
}

static void count_free_shared(struct heap_cell *c, const void *p, size_t usable)
{
    add(&c->row->frees, 1);
    add(&c->row->freed_bytes, usable);
    __atomic_fetch_sub(&heap->process->live, (int64_t)usable, __ATOMIC_RELAXED);
    if (heap->filter[heap_filter_of(p)])
        heap_forget(p);
}

/* ---- The slow way ----------------------------------------------------------------- */

static __attribute__((noinline, cold)) void count_alloc_slow(void *p, size_t size)
{
    struct heap_cell *c = heap_join();
    if (!c)
        return;
    if (heap_is_shared(c))
        count_shared(c, p, size);
    else
        count_alloc(c, p, size);
}

static __attribute__((noinline, cold)) void count_free_slow(void *p)
{
    struct heap_cell *c = heap_join();
    if (!c)
        return;
    const size_t usable = heap_real.usable(p);
    if (heap_is_shared(c))
        count_free_shared(c, p, usable);
    else
        count_free(c, p, usable);
}

static __attribute__((noinline, cold)) void failed(void)
{
    if (heap_cell->row)
        add(&heap->process->failed, 1);
}

/* After any allocation but malloc itself. */
static inline void *counted(void *p, size_t size)
{
    struct heap_cell *c = heap_cell;
    if (UNLIKELY(!p))
        failed();
    else if (UNLIKELY(!c->row))
        count_alloc_slow(p, size);
    else
        count_alloc(c, p, size);
    return p;
}

static inline bool resolved(const void *function)
{
    return !UNLIKELY(!function) || heap_resolve();
}

/* ---- The family ------------------------------------------------------------------- */

EXPORTED void *malloc(size_t size)
{
    if (!resolved(heap_real.malloc))
        return heap_early(size, 16);
    return counted(heap_real.malloc(size), size);
}

EXPORTED void free(void *p)
{
    if (!p || UNLIKELY(heap_is_early(p)) || !resolved(heap_real.free))
        return;
    struct heap_cell *c = heap_cell;
    if (UNLIKELY(!c->row))
        count_free_slow(p);
    else
        count_free(c, p, heap_real.usable(p));
    heap_real.free(p);
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
    struct heap_cell *c = heap_cell->row ? heap_cell : heap_join();
    if (!c)
        return;
    if (heap_is_shared(c)) {
        count_free_shared(c, p, old);
        count_shared(c, q, size);
        add(&c->row->reallocs, 1);
        return;
    }
    count_free(c, p, old);
    row_now(c)->reallocs++;
    count_alloc(c, q, size);
}

EXPORTED void *realloc(void *p, size_t size)
{
    if (!p)
        return malloc(size);
    if (UNLIKELY(heap_is_early(p)))
        return realloc_early(p, size);
    if (!resolved(heap_real.realloc))
        return NULL;
    const size_t old = heap_real.usable(p);
    struct heap_taken taken = { .is = false };
    if (heap && UNLIKELY(heap->filter[heap_filter_of(p)]))
        heap_take(p, &taken); /* while the address is still ours */
    void *q = heap_real.realloc(p, size);
    if (q) {
        count_realloc(p, old, q, size);
    } else if (size == 0) { /* that was a free */
        struct heap_cell *c = heap_cell;
        if (c->row)
            count_free(c, p, old);
    } else {
        failed();
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

EXPORTED int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (!resolved(heap_real.posix_memalign))
        return ENOMEM;
    const int rc = heap_real.posix_memalign(ret, alignment, size);
    if (rc == 0)
        (void)counted(*ret, size);
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
