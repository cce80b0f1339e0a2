/* alloc_parts.h: one heap file while it is being read. Private to analyse/. */
#ifndef SONDE_ANALYSE_ALLOC_PARTS_H
#define SONDE_ANALYSE_ALLOC_PARTS_H

#include "analyse/allocations.h"
#include "analyse/report.h"
#include "base/strmap.h"
#include "trace/symbols.h"
#include "trace/tables.h"

struct alloc_reader {
    struct report *report;
    struct allocations *all;
    struct symbols *symbols; /* NULL: no names */
    struct strmap zones, sites; /* number of the entry + 1 */
    double ns_per_tick;
    /* Of the file at hand: */
    struct tablefile *file;
    struct strmap places; /* struct alloc_place by address */
    const char *name;
    struct trace *trace; /* of the same process; NULL: none */
    struct heap_process_row process;
    uint64_t end_ticks; /* when the process ended, as far as is known */
    uint64_t last_step;
    uint32_t *site_of; /* number of the alloc_site + 1, by site row */
    uint32_t site_rows;
};

/* Makes room for one more element; -ENOMEM. */
int alloc_grow(void **array, size_t *cap, size_t count, size_t size);
const char *alloc_keep(struct alloc_reader *reader, const char *text);
void alloc_unseen(struct alloc_reader *reader, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *alloc_zone_name(const struct alloc_reader *reader, uint32_t zone);

/* alloc_sites.c: sites and live blocks of the file; afterwards, over all files, which
 * of them leak. */
int alloc_sites_add(struct alloc_reader *reader);
void alloc_sites_finish(struct allocations *all);
/* alloc_places.c: a return address as a place; the only one who asks for names. */
void alloc_place_of(struct alloc_reader *reader, uint64_t address,
                    struct alloc_place *ret_place);
bool alloc_is_allocator(const char *module);
/* alloc_snapshots.c */
int alloc_snapshots_add(struct alloc_reader *reader);

#endif
