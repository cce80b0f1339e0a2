/* event_parts.h: one file of events while it is being read. Private to analyse/. */
#ifndef SONDE_ANALYSE_EVENT_PARTS_H
#define SONDE_ANALYSE_EVENT_PARTS_H

#include "analyse/alloc_parts.h"
#include "analyse/events.h"

struct event_reader {
    const struct run *run;
    const struct event_visitor *visitor;
    struct event_totals totals;
    bool redact;
    struct symbols *symbols;
    /* Of the file at hand: */
    const char *name;
    struct tablefile *file;
    struct trace *trace; /* of the same process; NULL: none */
};

int64_t event_time_ns(const struct event_reader *reader, uint64_t ticks);
const char *event_zone(const struct event_reader *reader, uint32_t zone);
/* The rows of a table in the order of their keys, freed by the caller. */
struct event_order {
    uint64_t key;
    uint32_t row;
};
int event_sort(const struct event_reader *reader, int table,
               struct event_order **ret_order, size_t *ret_count);

/* alloc_events.c, io_events.c: all of the file at hand. */
int alloc_events_read(struct event_reader *reader);
int io_events_read(struct event_reader *reader);

#endif
