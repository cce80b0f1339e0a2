/* heap_sample.c: call sites and sampled blocks. See trace/heap_rows.h for the estimates.
 *
 * A sampled block is kept in a row of the file until it is freed; a hash in private
 * memory finds the row by address, and two filters, by page and by hash, tell nearly all
 * frees that theirs is not one, without a lock.
 *
 * One lock for sites and blocks: it is taken once per sample and per freed sample,
 * some hundred nanoseconds in half a megabyte.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "capture/interpose/heap.h"
#include "trace/clock.h"
#include "trace/module_rows.h"

/* ---- Choosing --------------------------------------------------------------------- */

uint64_t heap_random(struct heap_cell *c)
{
    uint64_t z = (c->random += 0x9E3779B97F4A7C15ULL); /* splitmix64 */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
}

static uint64_t mean_now(void)
{
    const uint64_t doublings = heap->process->samples / HEAP_MEAN_SAMPLES;
    const uint64_t mean = doublings < 16 ? (uint64_t)HEAP_MEAN_FIRST << doublings
                                         : HEAP_MEAN_LAST;
    return mean < HEAP_MEAN_LAST ? mean : (uint64_t)HEAP_MEAN_LAST << heap->hurry;
}

/* Under the lock, once in HEAP_MEAN_SAMPLES: between 64 and 256 samples a second are
 * enough to know where gigabytes come from, and half as many in a process that is older
 * than ten seconds. Each takes a microsecond and a half with its free, in caches that a
 * training step leaves cold. */
static void pace(void)
{
    enum { QUICK_MS = 2000, SLOW_MS = 8000, YOUNG_MS = 10000 };
    const uint64_t now = inside_now_ms(), took = now - heap->paced_ms;
    const uint64_t times = now - heap->began_ms < YOUNG_MS ? 1 : 2;
    heap->paced_ms = now;
    if (mean_now() < HEAP_MEAN_LAST)
        return;
    if (took < times * QUICK_MS && mean_now() < HEAP_MEAN_MOST)
        heap->hurry++;
    else if (took > times * SLOW_MS && heap->hurry > 0)
        heap->hurry--;
}

void heap_draw(struct heap_cell *c)
{
    const uint64_t mean = mean_now();
    const double u = ((double)(heap_random(c) >> 11) + 0.5) * 0x1p-53;
    c->mean = mean;
    c->sample_in = (int64_t)(-log(u) * (double)mean);
}

/* ---- Sites ------------------------------------------------------------------------ */

static uint64_t key_of(const uint64_t *frames, unsigned depth, uint32_t zone)
{
    uint64_t h = 0x9E3779B97F4A7C15ULL ^ zone;
    for (unsigned i = 0; i < depth; i++) {
        h = (h ^ frames[i]) * 0xBF58476D1CE4E5B9ULL;
        h ^= h >> 29;
    }
    return h ? h : 1;
}

static bool same_site(const struct heap_site_row *row, uint64_t key,
                      const uint64_t *frames, unsigned depth, uint32_t zone)
{
    return row->key == key && row->zone == zone && row->depth == depth &&
           memcmp(row->frame, frames, depth * sizeof *frames) == 0;
}

static struct heap_site_row *site_at(uint32_t index)
{
    return tables_row(&heap->tables, HEAP_SITES, index);
}

/* For whoever names addresses when the run is over. */
static void keep_frame(uint64_t address)
{
    const uint32_t mask = 2 * HEAP_MAX_FRAMES - 1;
    uint32_t at = (uint32_t)(address * 0x9E3779B97F4A7C15ULL >> 40) & mask;
    for (; heap->frame_hash[at]; at = (at + 1) & mask) {
        const struct frame_row *known = tables_row(&heap->tables, HEAP_FRAME_ROWS,
                                                   heap->frame_hash[at] - 1);
        if (known->address == address)
            return;
    }
    uint32_t index;
    struct frame_row *row = tables_append(&heap->tables, HEAP_FRAME_ROWS, &index);
    if (!row)
        return;
    heap->frame_hash[at] = index + 1;
    __atomic_store_n(&row->address, address, __ATOMIC_RELEASE);
}

/* Under the lock. *ret_new: its frames have not been looked up. */
static struct heap_site_row *find_site(const uint64_t *frames, unsigned depth,
                                       uint32_t zone, uint32_t *ret_index,
                                       bool *ret_new)
{
    const uint32_t mask = 2 * HEAP_MAX_SITES - 1;
    const uint64_t key = key_of(frames, depth, zone);
    uint32_t at = (uint32_t)(key >> 20) & mask;
    for (; heap->site_hash[at]; at = (at + 1) & mask) {
        struct heap_site_row *row = site_at(heap->site_hash[at] - 1);
        if (same_site(row, key, frames, depth, zone)) {
            *ret_index = heap->site_hash[at] - 1;
            *ret_new = false;
            return row;
        }
    }
    *ret_new = true;
    struct heap_site_row *row = tables_append(&heap->tables, HEAP_SITES, ret_index);
    if (!row)
        return NULL;
    row->zone = zone;
    row->depth = depth;
    memcpy(row->frame, frames, depth * sizeof *frames);
    for (unsigned i = 0; i < depth; i++)
        keep_frame(frames[i]);
    heap->site_hash[at] = *ret_index + 1;
    __atomic_store_n(&row->key, key, __ATOMIC_RELEASE);
    return row;
}

uint32_t heap_site(struct heap_cell *c, const uint64_t *frames, unsigned depth,
                   uint32_t zone)
{
    const uint64_t key = key_of(frames, depth, zone);
    const uint32_t at = (uint32_t)(key >> 13) % HEAP_SITE_CACHE;
    if (c->sites[at].key == key)
        return c->sites[at].site;
    uint32_t index = UINT32_MAX;
    if (!inside_lock(&heap->lock))
        return 0;
    bool is_new;
    const bool found = find_site(frames, depth, zone, &index, &is_new) != NULL;
    inside_unlock(&heap->lock);
    if (is_new || inside_modules_missed(&heap->modules))
        inside_modules(&heap->modules, frames, depth);
    if (!found)
        return 0;
    c->sites[at].key = 0; /* a handler must not meet a wrong pair */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    c->sites[at].site = index + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    c->sites[at].key = key;
    return index + 1;
}

/* Zone and site in one word, as the answer to a stack met before. */
static uint64_t answer_of(uint32_t zone, uint32_t site)
{
    return (uint64_t)zone << 32 | site;
}

uint32_t heap_site_now(struct heap_cell *c)
{
    uint64_t frames[HEAP_FRAMES];
    unsigned depth;
    if (inside_busy)
        return 0;
    const uint32_t zone = inside_zone();
    if (!c->walks && (inside_sealed || !(c->walks = inside_wiped(sizeof *c->walks))))
        return heap_site(c, frames, inside_stack(frames, HEAP_FRAMES), zone);
    inside_busy = 1; /* a handler must not change the walks meanwhile */
    struct inside_walk *walk = inside_stack_again(c->walks, frames, HEAP_FRAMES,
                                                  &depth);
    const uint64_t answer = walk ? walk->answer : 0, sp = walk ? walk->sp : 0;
    inside_busy = 0;
    if (!walk || (answer && answer >> 32 == zone))
        return (uint32_t)answer;
    if (depth == 0) /* known in another zone */
        depth = inside_stack(frames, HEAP_FRAMES);
    const uint32_t site = heap_site(c, frames, depth, zone);
    if (walk->sp == sp) /* still ours: a handler's would be another */
        walk->answer = answer_of(zone, site);
    return site;
}

/* Who holds the memory at a new high: taken again when it is 2 % higher than last time,
 * so that steady growth costs a logarithm of its size. */
static void note_holders(uint64_t now)
{
    struct heap_process_row *p = heap->process;
    const int64_t live = __atomic_load_n(&p->live, __ATOMIC_RELAXED);
    if (live < 0 || (uint64_t)live < p->held_at + p->held_at / 50 + HEAP_UNTOLD)
        return;
    const uint64_t count = tables_head(&heap->tables)->table[HEAP_SITES].count;
    for (uint64_t i = 0; i < count; i++) {
        struct heap_site_row *row = site_at((uint32_t)i);
        row->peak_bytes = row->live_bytes;
    }
    p->held_at = (uint64_t)live;
    p->held_ticks = now;
}

/* ---- Blocks ----------------------------------------------------------------------- */

static uint32_t live_slot(const void *p)
{
    return (uint32_t)(heap_hash(p) >> 44) & (2 * HEAP_MAX_LIVE - 1);
}

static struct heap_live_row *live_at(uint32_t index)
{
    return tables_row(&heap->tables, HEAP_LIVE, index);
}

static struct heap_live_row *take_live_row(uint32_t *ret_index)
{
    if (!heap->live_free)
        return tables_append(&heap->tables, HEAP_LIVE, ret_index);
    *ret_index = heap->live_free - 1;
    heap->live_free = heap->live_next[*ret_index];
    return live_at(*ret_index);
}

/* Where the address is in the hash, or the free place where it would be. */
static uint32_t find_live(uint64_t address, uint32_t *ret_index)
{
    const uint32_t mask = 2 * HEAP_MAX_LIVE - 1;
    uint32_t at = live_slot((void *)(uintptr_t)address);
    for (; heap->live_hash[at]; at = (at + 1) & mask)
        if (live_at(heap->live_hash[at] - 1)->address == address) {
            *ret_index = heap->live_hash[at] - 1;
            return at;
        }
    *ret_index = UINT32_MAX;
    return at;
}

/* Closes the gap, so that no probe stops short of what it looks for. */
static void unhash(uint32_t at)
{
    const uint32_t mask = 2 * HEAP_MAX_LIVE - 1;
    for (uint32_t next = (at + 1) & mask; heap->live_hash[next];
         next = (next + 1) & mask) {
        const uint64_t address = live_at(heap->live_hash[next] - 1)->address;
        const uint32_t home = live_slot((void *)(uintptr_t)address);
        if (((next - home) & mask) >= ((next - at) & mask)) {
            heap->live_hash[at] = heap->live_hash[next];
            at = next;
        }
    }
    heap->live_hash[at] = 0;
}

/* Under the lock. Whoever frees a block came by its address after this. A count that is
 * full stays so: it costs time, never a block. */
static void filter_add(const void *p, int by)
{
    const uint32_t page = heap_page_of(p);
    uint8_t *n = &heap->filter[heap_filter_of(p)];
    uint16_t *on_page = &heap->pages[page];
    uint64_t *word = &heap->any[page / 64];
    const uint64_t bit = 1ULL << page % 64;
    if (*n < UINT8_MAX)
        __atomic_store_n(n, (uint8_t)(*n + by), __ATOMIC_RELAXED);
    if (*on_page < UINT16_MAX)
        *on_page = (uint16_t)(*on_page + by);
    __atomic_store_n(word, *on_page ? *word | bit : *word & ~bit, __ATOMIC_RELAXED);
}

static void drop_live(uint32_t at, uint32_t index, struct heap_live_row *row)
{
    const void *p = (void *)(uintptr_t)row->address;
    unhash(at);
    __atomic_store_n(&row->address, 0, __ATOMIC_RELEASE);
    heap->live_next[index] = heap->live_free;
    heap->live_free = index + 1;
    heap->live_used--;
    filter_add(p, -1);
}

static void site_loses(const struct heap_live_row *block, bool freed)
{
    struct heap_site_row *site = site_at(block->site);
    site->live_samples--;
    site->live_count -= block->weight;
    site->live_bytes -= block->weight * (double)block->size;
    if (site->live_samples == 0)
        site->live_count = site->live_bytes = 0; /* no rounding left behind */
    if (!freed)
        return;
    site->freed_count += block->weight;
    site->lifetime_ticks += block->weight * (double)(ticks_now() - block->ticks);
}

/* Under the lock. A block with that address that was never seen freed goes first. */
static bool keep_live(const struct heap_live_row *block)
{
    uint32_t index;
    uint32_t at = find_live(block->address, &index);
    if (index != UINT32_MAX) {
        struct heap_live_row *stale = live_at(index);
        site_loses(stale, true);
        drop_live(at, index, stale);
        at = find_live(block->address, &index);
    }
    struct heap_live_row *row = heap->live_used < HEAP_MAX_LIVE - 1
                                    ? take_live_row(&index)
                                    : NULL;
    if (!row)
        return false;
    row->site = block->site;
    row->thread = block->thread;
    row->size = block->size;
    row->weight = block->weight;
    row->ticks = block->ticks;
    row->step = block->step;
    __atomic_store_n(&row->address, block->address, __ATOMIC_RELEASE);
    heap->live_hash[at] = index + 1;
    heap->live_used++;
    filter_add((void *)(uintptr_t)block->address, 1);
    return true;
}

/* ---- A sample --------------------------------------------------------------------- */

static void site_gains(struct heap_site_row *site, const struct heap_live_row *block,
                       bool kept)
{
    site->samples++;
    site->count += block->weight;
    site->bytes += block->weight * (double)block->size;
    if (!site->first_ticks)
        site->first_ticks = block->ticks;
    site->last_ticks = block->ticks;
    if (!kept)
        return;
    site->live_samples++;
    site->live_count += block->weight;
    site->live_bytes += block->weight * (double)block->size;
}

/* site: its row + 1, 0: there is no room for it. */
static void record(struct heap_live_row *block, uint32_t site)
{
    struct heap_process_row *p = heap->process;
    block->site = site ? site - 1 : 0;
    const bool kept = site && keep_live(block);
    if (site)
        site_gains(site_at(block->site), block, kept);
    p->samples++;
    if (p->samples % HEAP_MEAN_SAMPLES == 0)
        pace();
    p->last_ticks = block->ticks;
    if (!kept)
        p->samples_lost++;
    note_holders(block->ticks);
}

__attribute__((noinline, cold)) void heap_sample(struct heap_cell *c, void *p,
                                                 size_t size)
{
    if (inside_busy)
        return; /* in a handler: the next allocation outside is taken instead */
    const int error = errno;
    const uint32_t site = heap_site_now(c);
    const size_t usable = heap_usable(p), taken = usable < size ? size : usable;
    struct heap_live_row block = {
        .address = (uintptr_t)p,
        .thread = c->number,
        .size = size,
        .weight = 1 / -expm1(-(double)taken / (double)c->mean),
        .ticks = ticks_now(),
        .step = inside_step(),
    };
    if (inside_lock(&heap->lock)) {
        record(&block, site);
        heap_draw(c);
        inside_unlock(&heap->lock);
    }
    errno = error;
}

/* ---- Freed ------------------------------------------------------------------------ */

static void take(const void *p, bool freed, struct heap_taken *ret_taken)
{
    ret_taken->is = false;
    if (!inside_lock(&heap->lock))
        return; /* in a handler, in the middle of a sample: its next owner removes it */
    uint32_t index;
    const uint32_t at = find_live((uintptr_t)p, &index);
    if (index != UINT32_MAX) {
        struct heap_live_row *row = live_at(index);
        ret_taken->is = true;
        ret_taken->row = *row;
        site_loses(row, freed);
        drop_live(at, index, row);
    }
    inside_unlock(&heap->lock);
}

__attribute__((noinline, cold)) void heap_forget(const void *p)
{
    struct heap_taken taken;
    take(p, true, &taken);
}

void heap_take(const void *p, struct heap_taken *ret_taken)
{
    take(p, true, ret_taken);
}

void heap_put_back(const struct heap_taken *taken)
{
    if (!taken->is || !inside_lock(&heap->lock))
        return;
    struct heap_site_row *site = site_at(taken->row.site);
    if (keep_live(&taken->row)) {
        site->live_samples++;
        site->live_count += taken->row.weight;
        site->live_bytes += taken->row.weight * (double)taken->row.size;
    }
    inside_unlock(&heap->lock);
}
