/* heap_pace.c: how closely a busy thread is counted.
 *
 * Every call is counted, in the row of its zone and size, for as long as that costs next
 * to nothing: always in the first ten seconds of a process (SONDE_ALLOC_EXACT_S), and later
 * in threads with fewer than BUSY calls a second. A training loop of small operators makes
 * half a million, and counting them took a hundredth of its time.
 *
 * From then on such a thread is counted in spells. Whenever it tells the process its
 * bytes, which is after every 512 KiB or so, a die with HEAP_SPELLS sides is cast: one of
 * them begins a spell, in which each call counts for HEAP_SPELLS of its kind, and the
 * others a stretch in which none does. What a call is has no part in the choice, so that
 * sums over many of them are right on the average, whatever zones and sizes there are. Live
 * bytes and the high-water mark are kept throughout, and so are samples: what is not known
 * exactly any more is how many calls there were, by zone and size.
 */
#include "capture/interpose/heap.h"

enum {
    BUSY = 100000,    /* allocations and frees of a thread in a second */
    LOOK_EVENTS = 64, /* the clock is asked so seldom, */
    LOOK_MS = 1000,   /* … and the calls are added up so seldom */
};

/* Of the zones the thread was in lately. Rows may have gone from the cache: then it is
 * less than last time. */
static uint64_t calls_so_far(const struct heap_cell *c)
{
    uint64_t calls = 0;
    for (unsigned i = 0; i < HEAP_ZONE_CACHE; i++) {
        const struct heap_counter_row *row = c->cache[i].row;
        if (!row)
            continue;
        calls += row->frees;
        for (unsigned k = 0; k < HEAP_CLASSES; k++)
            calls += row->size[k].count;
    }
    return calls;
}

static void look(struct heap_cell *c)
{
    const uint64_t now = inside_now_ms(), took = now - c->paced_ms;
    if (took < LOOK_MS)
        return;
    const uint64_t calls = calls_so_far(c);
    const uint64_t more = calls - c->paced_calls;
    const bool known = c->paced_ms && calls >= c->paced_calls;
    c->paced_ms = now;
    c->paced_calls = calls;
    if (!known)
        return;
    const uint64_t rate = more * 1000 / took;
    if (heap_mine.gear != HEAP_EVERY && rate < BUSY / 4) {
        heap_mine.gear = HEAP_EVERY;
    } else if (heap_mine.gear == HEAP_EVERY && rate > BUSY &&
               now - heap->began_ms >= heap->exact_ms) {
        heap_mine.free = heap_real.free;
        heap_mine.gear = HEAP_BETWEEN;
        c->usual = 0;
        __atomic_fetch_or(&heap->process->flags, HEAP_IN_SPELLS, __ATOMIC_RELAXED);
    }
}

void heap_pace(struct heap_cell *c)
{
    if (heap_way != HEAP_USUAL)
        return;
    if (++c->events % LOOK_EVENTS == 0)
        look(c);
    if (heap_mine.gear != HEAP_EVERY)
        heap_mine.gear = heap_random(c) % HEAP_SPELLS ? HEAP_BETWEEN : HEAP_SPELL;
}
