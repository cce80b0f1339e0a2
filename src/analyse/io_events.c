/* io_events.c: every I/O call of one process. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/event_parts.h"
#include "analyse/io.h"
#include "base/buf.h"
#include "base/redact.h"
#include "trace/io_rows.h"

static const char *const operations[IO_WAY_COUNT][2] = {
    [IO_WAY_READ] = { "read", "write" },
    [IO_WAY_PREAD] = { "pread", "pwrite" },
    [IO_WAY_STDIO] = { "stdio read", "stdio write" },
    [IO_WAY_MESSAGE] = { "recv", "send" },
    [IO_WAY_SENDFILE] = { "sendfile read", "sendfile write" },
    [IO_WAY_SPLICE] = { "splice read", "splice write" },
    [IO_WAY_MAP] = { "mmap", "mmap" },
    [IO_WAY_SYNC] = { "sync", "sync" },
    [IO_WAY_OPEN] = { "open", "open" },
    [IO_WAY_CLOSE] = { "close", "close" },
    [IO_WAY_SEEK] = { "seek", "seek" },
    [IO_WAY_CONNECT] = { "connect", "accept" },
};

/* What a call's result counts: bytes, or a descriptor. */
static bool moves_bytes(unsigned way)
{
    return way <= IO_WAY_SPLICE;
}

struct paths {
    struct event_reader *r;
    int table;
    struct buf shown; /* the last path that was asked for */
    uint32_t last;
    bool known;
    unsigned io_class;
};

static void find_path(struct paths *p, uint32_t file)
{
    struct io_file_row row;
    const char *text = "";
    if (p->known && p->last == file)
        return;
    buf_clear(&p->shown);
    p->last = file;
    p->known = true;
    p->io_class = IO_CLASS_UNKNOWN;
    if (tablefile_get(p->r->file, p->table, file, &row, sizeof row)) {
        text = row.path ? tablefile_text(p->r->file, row.path) : "(other files)";
        p->io_class = row.io_class < IO_CLASS_COUNT ? row.io_class : IO_CLASS_UNKNOWN;
    }
    if (p->r->redact)
        redact_text(&p->shown, text);
    else
        buf_puts(&p->shown, text);
}

static void count(struct event_totals *t, const struct io_event *ev, unsigned way)
{
    t->calls++;
    if (moves_bytes(way) && ev->bytes > 0)
        *(ev->is_write ? &t->written_bytes : &t->read_bytes) += (uint64_t)ev->bytes;
}

static int visit(struct paths *p, const struct io_event_row *row)
{
    struct event_reader *r = p->r;
    const unsigned way = row->way < IO_WAY_COUNT ? row->way : IO_WAY_READ;
    const bool write = row->direction == IO_WRITE;
    find_path(p, row->file);
    if (p->shown.error)
        return -ENOMEM;
    const struct io_event ev = {
        .at.time_ns = event_time_ns(r, row->key),
        .at.pid = tablefile_head(r->file)->pid,
        .at.tid = row->tid,
        .at.zone = event_zone(r, row->zone),
        .operation = operations[way][write],
        .path = p->shown.data,
        .io_class = io_class_name((enum io_class)p->io_class),
        .is_write = write,
        .bytes = row->result > 0 && (moves_bytes(way) || way == IO_WAY_MAP)
                     ? row->result
                     : 0,
        .error = row->result < 0 && row->result > -4096 ? (int)-row->result : 0,
        .offset = row->offset,
        .latency_s = r->run->clock.count && (row->ticks || moves_bytes(way))
                         ? (double)row->ticks * r->run->clock.ns_per_tick / 1e9
                         : NAN,
    };
    count(&r->totals, &ev, way);
    return r->visitor->call(r->visitor->arg, &ev);
}

int io_events_read(struct event_reader *r)
{
    const int table = tablefile_find(r->file, IO_TABLE_EVENTS);
    struct paths p = { .r = r,
                       .table = tablefile_find(r->file, IO_TABLE_FILES),
                       .shown = BUF_INIT };
    struct event_order *order;
    struct io_event_row row;
    size_t events;
    int rc = event_sort(r, table, &order, &events);
    if (rc < 0)
        return rc;
    r->totals.io_traced = true;
    r->totals.lost += tablefile_head(r->file)->table[table].refused;
    for (size_t i = 0; rc == 0 && i < events; i++)
        if (tablefile_get(r->file, table, order[i].row, &row, sizeof row))
            rc = visit(&p, &row);
    free(order);
    buf_release(&p.shown);
    return rc;
}
