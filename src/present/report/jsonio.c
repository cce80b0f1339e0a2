/* jsonio.c: files and sockets in report.json. */
#include <math.h>

#include "present/report/jsonparts.h"

/* Enough for any tool; the text report shows a handful. */
enum { MAX_FILES = 1000, MAX_BRIEF = 200 };

static void put_percentiles(struct json_writer *w, const char *key,
                            const struct io_sum *sum)
{
    json_key(w, key);
    json_object_begin(w);
    field_ms(w, "p50", sum->timed ? sum->p50_ns : NAN);
    field_ms(w, "p95", sum->timed ? sum->p95_ns : NAN);
    field_ms(w, "p99", sum->timed ? sum->p99_ns : NAN);
    json_object_end(w);
}

static void put_sizes(struct json_writer *w, const char *key, const struct io_sum *sum)
{
    static const char *const names[IO_SIZES] = { "0",     "<512",   "<4Ki", "<16Ki",
                                                 "<64Ki", "<256Ki", "<1Mi", ">=1Mi" };
    json_key(w, key);
    json_object_begin(w);
    for (int i = 0; i < IO_SIZES; i++)
        field_uint(w, names[i], sum->sizes[i]);
    json_object_end(w);
}

static void put_side(struct json_writer *w, const char *const key[5],
                     const struct io_sum *sum, bool placed)
{
    put_percentiles(w, key[0], sum);
    put_sizes(w, key[1], sum);
    field_number(w, key[2], placed ? io_sequential_share(sum) : NAN, 6);
    field_uint(w, key[3], sum->errors);
    field_uint(w, key[4], sum->again);
}

/* How it was read and written. */
static void put_ways(struct json_writer *w, uint64_t ways)
{
    static const char *const names[IO_WAY_COUNT] = { "read",    "pread",    "stdio",
                                                     "message", "sendfile", "splice",
                                                     "mmap",    "sync",     "open",
                                                     "close",   "seek",     "connect" };
    json_key(w, "ways");
    json_array_begin(w);
    for (int i = 0; i < IO_WAY_COUNT; i++)
        if (ways & 1u << i)
            json_put_string(w, names[i]);
    json_array_end(w);
}

static void put_file(struct json_writer *w, const struct io_path *p)
{
    static const char *const read[] = { "read_ms", "read_sizes",
                                        "read_sequential_share", "read_errors",
                                        "read_again" };
    static const char *const write[] = { "write_ms", "write_sizes",
                                         "write_sequential_share", "write_errors",
                                         "write_again" };
    const struct io_sum *r = &p->side[IO_READ], *x = &p->side[IO_WRITE];
    const bool placed = p->io_class == IO_CLASS_FILE || p->io_class == IO_CLASS_DEVICE;
    json_object_begin(w);
    field_text(w, "path", p->path);
    field_text(w, "class", io_class_name(p->io_class));
    field_uint(w, "reads", r->calls);
    field_uint(w, "writes", x->calls);
    field_uint(w, "read_bytes", r->bytes);
    field_uint(w, "write_bytes", x->bytes);
    field_seconds(w, "read_s", r->ns);
    field_seconds(w, "write_s", x->ns);
    put_side(w, read, r, placed);
    put_side(w, write, x, placed);
    field_uint(w, "syncs", p->syncs);
    field_seconds(w, "sync_s", p->sync_ns);
    field_uint(w, "connects", p->connects);
    field_seconds(w, "connect_s", p->connect_ns);
    field_uint(w, "mapped_bytes", p->mapped_bytes);
    field_number(w, "mapped_read_bytes",
                 p->mapped_bytes ? (double)p->touched_bytes : NAN, 0);
    field_number(w, "warm_share", io_warm_share(p), 6);
    field_number(w, "file_bytes",
                 p->io_class == IO_CLASS_FILE ? (double)p->file_bytes : NAN, 0);
    field_uint(w, "opens", p->opens);
    field_uint(w, "open_at_end", p->open_at_end);
    field_uint(w, "processes", p->processes);
    put_ways(w, p->ways);
    json_object_end(w);
}

static void put_zone(struct json_writer *w, const struct io_by_zone *z)
{
    json_object_begin(w);
    field_text(w, "zone", z->zone);
    field_uint(w, "reads", z->calls[IO_READ]);
    field_uint(w, "writes", z->calls[IO_WRITE]);
    field_uint(w, "read_bytes", z->bytes[IO_READ]);
    field_uint(w, "write_bytes", z->bytes[IO_WRITE]);
    field_seconds(w, "read_s", z->ns[IO_READ]);
    field_seconds(w, "write_s", z->ns[IO_WRITE]);
    json_object_end(w);
}

static void put_total(struct json_writer *w, const char *key, const struct io_sum *sum)
{
    json_key(w, key);
    json_object_begin(w);
    field_uint(w, "calls", sum->calls);
    field_uint(w, "bytes", sum->bytes);
    field_seconds(w, "total_s", sum->ns);
    put_percentiles(w, "ms", sum);
    put_sizes(w, "sizes", sum);
    field_uint(w, "errors", sum->errors);
    json_object_end(w);
}

static void put_descriptors(struct json_writer *w, const struct io_report *io)
{
    json_key(w, "descriptors");
    json_object_begin(w);
    field_uint(w, "opened", io->opens);
    field_uint(w, "closed", io->closes);
    field_uint(w, "failed", io->open_errors);
    field_seconds(w, "open_s", io->open_ns);
    field_uint(w, "open_at_end", io->open_at_end);
    field_uint(w, "most", io->open_most);
    json_key(w, "growing");
    json_put_bool(w, io->open_grows);
    json_object_end(w);
}

static void put_captured(struct json_writer *w, const struct io_report *io)
{
    static const char *const read_write[] = { "read", "write" };
    field_text(w, "coverage_why", io->coverage_why);
    for (int d = 0; d < 2; d++)
        put_total(w, read_write[d], &io->total[d]);
    field_uint(w, "seen_bytes", io->seen[0] + io->seen[1]);
    field_uint(w, "kernel_bytes", io->kernel[0] + io->kernel[1]);
    json_key(w, "zones");
    json_array_begin(w);
    for (size_t i = 0; i < io->zone_count; i++)
        put_zone(w, &io->zones[i]);
    json_array_end(w);
    put_descriptors(w, io);
    field_number(
        w, "small_read_share",
        io->file_reads ? (double)io->small_reads / (double)io->file_reads : NAN, 6);
    field_uint(w, "processes", io->processes);
    field_uint(w, "events", io->events);
    field_uint(w, "events_dropped", io->events_dropped);
    field_uint(w, "paths_beyond_limit", io->files_refused);
}

void fields_of_io(struct json_writer *w, const struct report *r)
{
    const struct io_report *io = &r->io;
    json_key(w, "io");
    json_object_begin(w);
    json_key(w, "files");
    json_array_begin(w);
    const size_t most = w->brief ? MAX_BRIEF : MAX_FILES;
    for (size_t i = 0; i < io->path_count && i < most; i++)
        put_file(w, &io->paths[i]);
    json_array_end(w);
    field_uint(w, "file_count", io->path_count);
    field_number(w, "coverage", io->captured ? io->coverage : NAN, 6);
    if (io->captured)
        put_captured(w, io);
    json_object_end(w);
}
