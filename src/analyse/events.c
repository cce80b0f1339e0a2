/* events.c: see events.h. */
#include "analyse/events.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "analyse/event_parts.h"
#include "trace/io_rows.h"
#include "trace/tablefiles.h"

int64_t event_time_ns(const struct event_reader *r, uint64_t ticks)
{
    return r->run->clock.count ? clock_real_ns(&r->run->clock, ticks) : 0;
}

const char *event_zone(const struct event_reader *r, uint32_t zone)
{
    if (zone == 0)
        return "";
    return r->trace ? trace_site(r->trace, zone)->name : "?";
}

static int by_key(const void *a, const void *b)
{
    const struct event_order *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

int event_sort(const struct event_reader *r, int table, struct event_order **ret_order,
               size_t *ret_count)
{
    const uint32_t rows = table < 0 ? 0 : tablefile_count(r->file, table);
    struct event_order *order = malloc((rows + 1ULL) * sizeof *order);
    size_t count = 0;
    if (!order)
        return -ENOMEM;
    /* Blocks that a thread had not filled have rows without a key. */
    for (uint32_t i = 0; i < rows; i++)
        if (tablefile_get(r->file, table, i, &order[count].key, 8))
            order[count++].row = i;
    qsort(order, count, sizeof *order, by_key);
    *ret_order = order;
    *ret_count = count;
    return 0;
}

/* The trace of the same process; after an exec the one that began about then. */
static void open_trace(struct event_reader *r)
{
    const struct tables_head *h = tablefile_head(r->file);
    double nearest = INFINITY;
    for (size_t i = 0; i < r->run->file_count; i++) {
        struct trace *trace;
        if (run_trace_open(r->run, i, &trace) < 0)
            continue;
        const double far = fabs((double)trace_info(trace)->start_ns -
                                (double)h->start.real_ns);
        if (trace_info(trace)->pid == h->pid && far < nearest) {
            trace_free(r->trace);
            r->trace = trace;
            nearest = far;
        } else {
            trace_free(trace);
        }
    }
}

static int read_file(struct event_reader *r, const char *name, struct tablefile *file,
                     int (*read)(struct event_reader *))
{
    if (tablefile_count(file, tablefile_find(file, IO_TABLE_EVENTS)) == 0)
        return 0;
    r->name = name;
    r->file = file;
    open_trace(r);
    const int rc = read(r);
    trace_free(r->trace);
    r->trace = NULL;
    return rc;
}

static int heap_file(void *arg, const char *name, struct tablefile *file, int rc)
{
    return rc < 0 ? 0 : read_file(arg, name, file, alloc_events_read);
}

static int io_file(void *arg, const char *name, struct tablefile *file, int rc)
{
    return rc < 0 ? 0 : read_file(arg, name, file, io_events_read);
}

int events_walk(const struct run *run, const struct event_visitor *visitor,
                struct event_totals *ret_totals)
{
    struct event_reader r = {
        .run = run,
        .visitor = visitor,
        .redact = !json_is_false(
            json_object_get(json_object_get(run->meta.root, "options"), "redact")),
    };
    (void)symbols_open(run->dir, &r.symbols); /* without: modules, offsets */
    int rc = 0;
    if (visitor->allocation)
        rc = tablefiles_each(run->dir, HEAP_KIND, heap_file, &r);
    if (rc == 0 && visitor->call)
        rc = tablefiles_each(run->dir, IO_KIND, io_file, &r);
    symbols_free(r.symbols);
    if (rc == 0 && ret_totals)
        *ret_totals = r.totals;
    return rc;
}
