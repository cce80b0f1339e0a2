/* alloc_snapshots.c: snapshots of a process, each beside the one before. */
#include <math.h>
#include <stdlib.h>

#include "analyse/alloc_parts.h"

enum { SHOWN = 20 };

static int by_size_of_difference(const void *a, const void *b)
{
    const double x = fabs(((const struct alloc_difference *)a)->difference);
    const double y = fabs(((const struct alloc_difference *)b)->difference);
    return (x < y) - (x > y);
}

/* Live bytes by alloc_site at a snapshot, added to `bytes`. */
static void read_sites(const struct alloc_reader *r, uint64_t number, double *bytes)
{
    const int table = tablefile_find(r->file, "snapsites");
    const uint32_t rows = table < 0 ? 0 : tablefile_count(r->file, table);
    for (uint32_t i = 0; i < rows; i++) {
        struct heap_snapsite_row row;
        if (!tablefile_get(r->file, table, i, &row, sizeof row) ||
            row.key >> 32 != number)
            continue;
        const uint32_t site = (uint32_t)row.key - 1;
        if (site < r->site_rows && r->site_of[site])
            bytes[r->site_of[site] - 1] += row.live_bytes;
    }
}

static int fill_sites(struct alloc_reader *r, uint64_t number, struct alloc_snapshot *s)
{
    const size_t count = r->all->site_count;
    double *now = calloc(2 * count + 1, sizeof *now),
           *before = now ? now + count : NULL;
    struct alloc_difference *d = calloc(count + 1, sizeof *d);
    int rc = now && d ? 0 : -1;
    size_t n = 0;
    if (rc == 0) {
        read_sites(r, number, now);
        if (number > 1)
            read_sites(r, number - 1, before);
    }
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (now[i] != 0 || before[i] != 0)
            d[n++] = (struct alloc_difference){ r->all->sites[i].at, now[i],
                                                now[i] - before[i] };
    if (rc == 0 && n) {
        qsort(d, n, sizeof *d, by_size_of_difference);
        s->site_count = n < SHOWN ? n : SHOWN;
        s->sites = arena_alloc_array(&r->report->arena, s->site_count, sizeof *d);
        rc = s->sites ? 0 : -1;
        for (size_t i = 0; rc == 0 && i < s->site_count; i++)
            s->sites[i] = d[i];
    }
    free(now);
    free(d);
    return rc;
}

int alloc_snapshots_add(struct alloc_reader *r)
{
    const int table = tablefile_find(r->file, "snapshots");
    const uint32_t rows = table < 0 ? 0 : tablefile_count(r->file, table);
    struct allocations *all = r->all;
    int64_t before = 0;
    for (uint32_t i = 0; i < rows; i++) {
        struct heap_snapshot_row row;
        if (!tablefile_get(r->file, table, i, &row, sizeof row))
            continue;
        if (alloc_grow((void **)&all->snapshots, &all->snapshot_cap,
                       all->snapshot_count, sizeof *all->snapshots) < 0)
            return -1;
        struct alloc_snapshot *s = &all->snapshots[all->snapshot_count++];
        *s = (struct alloc_snapshot){
            .name = alloc_keep(r, tablefile_text(r->file, row.name)),
            .pid = tablefile_head(r->file)->pid,
            .time_ns = r->report->run->clock.count
                           ? clock_real_ns(&r->report->run->clock, row.ticks)
                           : 0,
            .step = row.step,
            .count = row.count,
            .bytes = row.bytes,
            .frees = row.frees,
            .live_bytes = row.live,
            .difference = (int64_t)((uint64_t)row.live - (uint64_t)before),
        };
        before = row.live;
        if (fill_sites(r, row.number, s) < 0)
            return -1;
    }
    return 0;
}
