/* alloc_events.c: every allocation and free of one process. */
#include <errno.h>
#include <stdlib.h>

#include "analyse/event_parts.h"
#include "trace/heap_rows.h"

enum { THREADS_MOST = 65536 };

struct alloc_events {
    struct event_reader *r;
    struct heap_process_row process;
    struct alloc_reader names; /* for alloc_place_of() */
    struct report shelf;       /* whose arena keeps the names */
    int sites;
    uint32_t tids[THREADS_MOST]; /* by thread number */
};

/* Of several threads with one number, one after the other, the last. */
static void read_threads(struct alloc_events *e)
{
    const struct tablefile *file = e->r->file;
    const int table = tablefile_find(file, "threads");
    const uint32_t rows = table < 0 ? 0 : tablefile_count(file, table);
    struct heap_thread_row row;
    for (uint32_t i = 0; i < rows; i++)
        if (tablefile_get(file, table, i, &row, sizeof row) &&
            row.number - 1 < THREADS_MOST)
            e->tids[row.number - 1] = (uint32_t)row.tid;
}

/* The innermost frame that is not the allocator's. */
static void name_place(struct alloc_events *e, const struct heap_site_row *site,
                       struct alloc_place *ret_place)
{
    const uint32_t depth = site->depth < HEAP_FRAMES ? site->depth : HEAP_FRAMES;
    for (uint32_t i = 0; i < depth; i++) {
        struct alloc_place place;
        alloc_place_of(&e->names, site->frame[i], &place);
        if (i == 0 || !alloc_is_allocator(place.module))
            *ret_place = place;
        if (!alloc_is_allocator(place.module))
            return;
    }
}

static void name_event(struct alloc_events *e, uint32_t where, struct alloc_event *ev)
{
    struct heap_site_row site;
    const bool has_site = e->process.flags & HEAP_EVENT_STACKS && !ev->is_free;
    ev->at.zone = "";
    ev->place = (struct alloc_place){ .function = "", .file = "", .module = "" };
    if (!has_site && e->process.flags & HEAP_EVENT_ZONES)
        ev->at.zone = event_zone(e->r, where);
    if (has_site && where &&
        tablefile_get(e->r->file, e->sites, where - 1, &site, sizeof site)) {
        ev->at.zone = event_zone(e->r, site.zone);
        name_place(e, &site, &ev->place);
    }
}

static void count(struct event_totals *t, const struct alloc_event *ev)
{
    *(ev->is_free ? &t->frees : &t->allocations) += 1;
    *(ev->is_free ? &t->freed_bytes : &t->allocated_bytes) += ev->bytes;
}

static int visit(struct alloc_events *e, const struct heap_event_row *row)
{
    const uint64_t most = (1ULL << HEAP_EVENT_SIZE_BITS) - 1;
    struct alloc_event ev = {
        .at.time_ns = event_time_ns(e->r, row->word >> 8),
        .at.pid = tablefile_head(e->r->file)->pid,
        .at.tid = e->tids[row->address >> 48],
        .is_free = (row->word & 0xff) == HEAP_EVENT_FREE,
        .bytes = row->size & most,
        .address = row->address & ((1ULL << 48) - 1),
    };
    name_event(e, (uint32_t)(row->size >> HEAP_EVENT_SIZE_BITS), &ev);
    count(&e->r->totals, &ev);
    return e->r->visitor->allocation(e->r->visitor->arg, &ev);
}

static int visit_all(struct alloc_events *e)
{
    const struct tablefile *file = e->r->file;
    const int table = tablefile_find(file, "events");
    struct event_order *order;
    struct heap_event_row row;
    size_t events;
    int rc = event_sort(e->r, table, &order, &events);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < events; i++)
        if (tablefile_get(file, table, order[i].row, &row, sizeof row))
            rc = visit(e, &row);
    free(order);
    return rc;
}

int alloc_events_read(struct event_reader *r)
{
    struct alloc_events *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->r = r;
    e->sites = tablefile_find(r->file, "sites");
    (void)tablefile_get(r->file, tablefile_find(r->file, "process"), 0, &e->process,
                        sizeof e->process);
    r->totals.alloc_traced = true;
    r->totals.lost += e->process.events_lost;
    arena_init(&e->shelf.arena);
    e->names = (struct alloc_reader){
        .report = &e->shelf, .symbols = r->symbols, .file = r->file, .name = r->name
    };
    strmap_init(&e->names.places);
    read_threads(e);
    const int rc = visit_all(e);
    strmap_release(&e->names.places);
    arena_release(&e->shelf.arena);
    free(e);
    return rc;
}
