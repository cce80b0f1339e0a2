/* heap_events.c: every allocation and free as a row of its own (--trace=alloc).
 *
 * A thread writes into a block of the file that is its own and takes another when it is
 * full: a new one until the process has HEAP_EVENT_BLOCKS (or the run's budget is used
 * up), then the one that was filled longest ago. So the newest events are kept, some
 * 350,000 a process; those written over are counted as lost. A ring in memory that is
 * there already is also what makes an event cheap.
 */
#include <errno.h>
#include <sys/mman.h>

#include "capture/interpose/heap.h"
#include "trace/clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { ROW = sizeof(struct heap_event_row), ROWS = TABLES_BLOCK / ROW };

/* One instruction, so that a signal handler in between gets a row of its own. */
static inline uint64_t reserve(struct heap_cell *c)
{
#if defined(__x86_64__)
    uint64_t at = ROW;
    __asm__ volatile("xaddq %0, %1" : "+r"(at), "+m"(c->event_at) : : "cc");
    return at;
#else
    return __atomic_fetch_add(&c->event_at, ROW, __ATOMIC_RELAXED);
#endif
}

/* ticks_now() asks each time which clock it is. */
static inline uint64_t ticks(void)
{
    return __builtin_expect(heap->counts_ticks, 1) ? sonde_ticks_() : ticks_now();
}

static void lost(struct heap_cell *c)
{
    c->event_at = c->event_end; /* or it would run away */
    __atomic_fetch_add(&heap->process->events_lost, 1, __ATOMIC_RELAXED);
}

/* Under the lock. The block's first row; NULL: none to be had. */
static uint8_t *new_block(struct heap_ring *ring, uint32_t *ret_number)
{
    uint32_t index, rows;
    uint8_t *block = ring->count < HEAP_EVENT_BLOCKS && !ring->full
                         ? tables_append_block(&heap->tables, HEAP_EVENT_ROWS, &index,
                                               &rows)
                         : NULL;
    if (!block) {
        ring->full = true;
        return NULL;
    }
    (void)madvise(block, TABLES_BLOCK, MADV_POPULATE_WRITE);
    *ret_number = ring->count++;
    return block;
}

static uint8_t *oldest_block(struct heap_ring *ring, uint32_t *ret_number)
{
    for (uint32_t n = 0; n < ring->count; n++) {
        const uint32_t number = ring->next++ % ring->count;
        if (ring->owner[number])
            continue;
        __atomic_fetch_add(&heap->process->events_lost, ROWS, __ATOMIC_RELAXED);
        *ret_number = number;
        return tables_row(&heap->tables, HEAP_EVENT_ROWS, number * ROWS);
    }
    return NULL;
}

static __attribute__((noinline, cold)) bool next_block(struct heap_cell *c)
{
    const int error = errno;
    struct heap_ring *ring = &heap->ring;
    uint8_t *block = NULL;
    if (inside_lock(&heap->lock)) {
        uint32_t number;
        heap_events_ended(c);
        block = new_block(ring, &number);
        if (!block)
            block = oldest_block(ring, &number);
        if (block) {
            ring->owner[number] = 1;
            c->event_block = number + 1;
        }
        inside_unlock(&heap->lock);
    }
    errno = error;
    if (!block)
        return false;
    c->event_end = (uintptr_t)block + (uint64_t)ROWS * ROW;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    c->event_at = (uintptr_t)block;
    return true;
}

/* A new thread with the cell's number goes on where this one stopped; blocks are only
 * given up for others. */
void heap_events_ended(struct heap_cell *c)
{
    if (c->event_block)
        heap->ring.owner[c->event_block - 1] = 0;
    c->event_block = 0;
}

void heap_event(struct heap_cell *c, enum heap_event_kind kind, const void *p,
                size_t size)
{
    const uint32_t where = heap->events == 2 && kind == HEAP_EVENT_ALLOC
                               ? heap_site_now(c)
                               : inside_zone();
    uint64_t at = reserve(c);
    if (UNLIKELY(at + ROW > c->event_end)) {
        if (!next_block(c)) {
            lost(c);
            return;
        }
        at = reserve(c);
    }
    struct heap_event_row *row = (struct heap_event_row *)(uintptr_t)at;
    __atomic_store_n(&row->word, 0, __ATOMIC_RELAXED); /* not half old, half new */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    row->address = (uint64_t)c->number << 48 | (uint64_t)(uintptr_t)p;
    row->size = heap_event_size(size, where);
    __atomic_store_n(&row->word, ticks() << 8 | kind, __ATOMIC_RELEASE);
}
