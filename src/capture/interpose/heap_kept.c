/* heap_kept.c: large blocks that are used again, in a trial of that cure.
 *
 * A program that makes its buffers anew in every step has the kernel hand out and clear
 * their pages each time. `sonde report --measure` tries what it would take with buffers
 * that are kept: here large blocks are not freed but put into a store, and who asks for
 * about that size gets one of them, its pages in place.
 *
 * Only with SONDE_TRIAL_KEEP in the environment, which says how many bytes may be kept:
 * then these functions stand between heap.c and the allocator, by the table heap_real
 * that heap.c calls by anyway. Without it nothing here runs.
 *
 * Invariants: (1) a block in the store is the allocator's own and allocated: it can be
 * freed, grown and measured like any other once it is handed out  (2) the bytes in the
 * store are at most `most`; the oldest go first  (3) the store is in wiped memory: a
 * child begins with an empty one, and never touches its parent's blocks.
 * Threads: any; one lock. Who finds it held by itself (a signal handler) does without.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/interpose/heap.h"

enum {
    LEAST = 64 << 10, /* bytes; glibc's own lists keep most of what is smaller */
    BLOCKS = 4096,
    PARTS = 8, /* lists to a power of two */
    LISTS = 48 * PARTS,
};

/* In two lists by their rows' numbers: of about one size, and of all by age; the newest
 * are first. Row 0 is none. */
struct kept {
    void *p;
    size_t usable;
    uint32_t size_next, size_prev;
    uint32_t age_next, age_prev;
};

struct store {
    uint32_t lock;
    uint32_t used;   /* rows that were ever in use */
    uint32_t unused; /* a list of rows, by size_next */
    uint32_t newest, oldest;
    uint64_t bytes;
    uint64_t again; /* blocks handed out again; atomic */
    uint32_t list[LISTS];
    struct kept row[BLOCKS + 1];
};

static struct heap_functions behind;
static struct store *store;
static uint64_t most; /* bytes */

/* ---- The store, under its lock ---------------------------------------------------- */

static uint32_t list_of(size_t size)
{
    const uint32_t log = 63 - (uint32_t)__builtin_clzll(size);
    const uint32_t part = (uint32_t)(size >> (log - 3)) % PARTS;
    return log < LISTS / PARTS ? log * PARTS + part : LISTS - 1;
}

static void take_out(struct store *s, uint32_t at)
{
    struct kept *k = &s->row[at];
    *(k->size_prev ? &s->row[k->size_prev].size_next
                   : &s->list[list_of(k->usable)]) = k->size_next;
    if (k->size_next)
        s->row[k->size_next].size_prev = k->size_prev;
    *(k->age_prev ? &s->row[k->age_prev].age_next : &s->newest) = k->age_next;
    *(k->age_next ? &s->row[k->age_next].age_prev : &s->oldest) = k->age_prev;
    s->bytes -= k->usable;
    k->size_next = s->unused;
    s->unused = at;
}

static void put_in(struct store *s, uint32_t at, void *p, size_t usable)
{
    uint32_t *list = &s->list[list_of(usable)];
    s->row[at] = (struct kept){
        .p = p, .usable = usable, .size_next = *list, .age_next = s->newest
    };
    if (*list)
        s->row[*list].size_prev = at;
    *(s->newest ? &s->row[s->newest].age_prev : &s->oldest) = at;
    *list = s->newest = at;
    s->bytes += usable;
}

static bool has_row(const struct store *s)
{
    return s->unused || s->used < BLOCKS;
}

static uint32_t new_row(struct store *s)
{
    const uint32_t at = s->unused;
    if (!at)
        return ++s->used;
    s->unused = s->row[at].size_next;
    return at;
}

static bool has_room(const struct store *s, size_t usable)
{
    return s->bytes + usable <= most && has_row(s);
}

/* More than the size asked for by what an allocator rounds up, or an eighth. */
static bool fits(const struct kept *k, size_t size, size_t alignment)
{
    return k->usable >= size && k->usable - size <= size / 8 + 2 * 4096 &&
           (uintptr_t)k->p % alignment == 0;
}

/* The nearest in size, in the lists where one that fits can be; 0: none. */
static uint32_t find(const struct store *s, size_t size, size_t alignment)
{
    const uint32_t last = list_of(size + size / 8 + 2 * 4096);
    uint32_t best = 0;
    for (uint32_t l = list_of(size); l <= last && !best; l++)
        for (uint32_t at = s->list[l]; at; at = s->row[at].size_next)
            if (fits(&s->row[at], size, alignment) &&
                (!best || s->row[at].usable < s->row[best].usable))
                best = at;
    return best;
}

/* ---- In the program's way --------------------------------------------------------- */

static void *again(size_t size, size_t alignment)
{
    struct store *s = store;
    if (size < LEAST || size > most || !inside_lock(&s->lock))
        return NULL;
    const uint32_t at = find(s, size, alignment);
    void *p = at ? s->row[at].p : NULL;
    if (at) {
        take_out(s, at);
        s->again++;
    }
    inside_unlock(&s->lock);
    return p;
}

/* Whether it is kept. Those who must go for it are freed with the lock released. */
static bool keep(void *p, size_t usable)
{
    enum { AT_ONCE = 8 };
    struct store *s = store;
    void *gone[AT_ONCE];
    unsigned count = 0;
    if (usable > most || !inside_lock(&s->lock))
        return false;
    while (!has_room(s, usable) && count < AT_ONCE) {
        gone[count++] = s->row[s->oldest].p;
        take_out(s, s->oldest);
    }
    const bool kept = has_room(s, usable);
    if (kept)
        put_in(s, new_row(s), p, usable);
    inside_unlock(&s->lock);
    while (count)
        behind.free(gone[--count]);
    return kept;
}

static void *kept_malloc(size_t size)
{
    void *p = again(size, 1);
    return p ? p : behind.malloc(size);
}

static void *kept_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return behind.calloc(count, size);
    void *p = again(bytes, 1);
    return p ? memset(p, 0, bytes) : behind.calloc(count, size);
}

static void kept_free(void *p)
{
    const size_t usable = heap_usable(p);
    if (usable < LEAST || !keep(p, usable))
        behind.free(p);
}

static bool is_alignment(size_t alignment)
{
    return alignment && !(alignment & (alignment - 1));
}

static void *kept_memalign(size_t alignment, size_t size)
{
    void *p = is_alignment(alignment) ? again(size, alignment) : NULL;
    return p ? p : behind.memalign(alignment, size);
}

static void *kept_aligned_alloc(size_t alignment, size_t size)
{
    void *p = is_alignment(alignment) ? again(size, alignment) : NULL;
    return p ? p : behind.aligned_alloc(alignment, size);
}

static int kept_posix_memalign(void **ret, size_t alignment, size_t size)
{
    const bool good = is_alignment(alignment) && alignment % sizeof(void *) == 0;
    void *p = good ? again(size, alignment) : NULL;
    if (!p)
        return behind.posix_memalign(ret, alignment, size);
    *ret = p;
    return 0;
}

/* ---- Whether at all --------------------------------------------------------------- */

void heap_keeps(void)
{
    const char *text = getenv("SONDE_TRIAL_KEEP");
    most = text ? strtoull(text, NULL, 10) : 0;
    if (!most || !heap_sizes_in_front)
        return;
    store = inside_wiped(sizeof *store);
    if (!store)
        return;
    behind = heap_real;
    heap_real.calloc = kept_calloc;
    heap_real.free = kept_free;
    heap_real.memalign = kept_memalign;
    heap_real.posix_memalign = kept_posix_memalign;
    heap_real.aligned_alloc = kept_aligned_alloc;
    __atomic_store_n(&heap_real.malloc, kept_malloc, __ATOMIC_RELEASE);
}

/* Found by the Python layer in a trial: blocks handed out again in this process. */
EXPORTED uint64_t sonde_heap_again_(void);

uint64_t sonde_heap_again_(void)
{
    return store ? __atomic_load_n(&store->again, __ATOMIC_RELAXED) : 0;
}
