/* heap_snapshot.c: what is live now, by site, kept under a name.
 *
 * The report shows each snapshot beside the one before it.
 */
#include <errno.h>
#include <string.h>

#include "capture/interpose/heap.h"
#include "trace/clock.h"

static void sum_counters(struct heap_snapshot_row *row)
{
    const uint64_t rows = tables_head(&heap->tables)->table[HEAP_COUNTERS].count;
    for (uint64_t i = 0; i < rows; i++) {
        const struct heap_counter_row *c = tables_row(&heap->tables, HEAP_COUNTERS,
                                                      (uint32_t)i);
        row->frees += c->frees;
        for (unsigned k = 0; k < HEAP_CLASSES; k++) {
            row->count += c->size[k].count;
            row->bytes += c->size[k].bytes;
        }
    }
}

static uint32_t copy_sites(uint64_t number)
{
    const uint64_t count = tables_head(&heap->tables)->table[HEAP_SITES].count;
    uint32_t copied = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct heap_site_row *site = tables_row(&heap->tables, HEAP_SITES,
                                                      (uint32_t)i);
        uint32_t index;
        struct heap_snapsite_row *row = site->live_samples
                                            ? tables_append(&heap->tables,
                                                            HEAP_SNAPSITES, &index)
                                            : NULL;
        if (!row)
            continue;
        row->live_count = site->live_count;
        row->live_bytes = site->live_bytes;
        row->count = site->count;
        row->bytes = site->bytes;
        __atomic_store_n(&row->key, number << 32 | (i + 1), __ATOMIC_RELEASE);
        copied++;
    }
    return copied;
}

static void take(const char *name)
{
    uint32_t index;
    struct heap_snapshot_row *row = tables_append(&heap->tables, HEAP_SNAPSHOTS,
                                                  &index);
    if (!row)
        return;
    row->name = tables_text(&heap->tables, name, strlen(name));
    row->ticks = ticks_now();
    row->step = inside_step();
    row->live = heap->process->live + heap_untold(&heap->tables);
    sum_counters(row);
    row->site_count = copy_sites(index + 1ULL);
    __atomic_store_n(&row->number, index + 1ULL, __ATOMIC_RELEASE);
}

/* Found by sonde_heap_snapshot() of whichever libsonde the program has. */
EXPORTED void sonde_heap_take_(const char *name);

void sonde_heap_take_(const char *name)
{
    const int error = errno;
    struct heap_cell *c = heap_join();
    if (c && !heap_is_shared(c))
        heap_tell(c); /* a busy thread keeps some of its bytes for itself */
    if (c && inside_lock(&heap->lock)) {
        take(name ? name : "");
        inside_unlock(&heap->lock);
    }
    errno = error;
}
