/* io.c: files and sockets of a run, all processes together. */
#include "analyse/io.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/io_parts.h"
#include "analyse/parts.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/redact.h"
#include "base/strmap.h"
#include "trace/tablefiles.h"

#include <jansson.h>

/* More paths than anybody reads; the rest is one. */
enum { MAX_PATHS = 4096, GROWS_FROM = 16 };
static const char other_files[] = "(other files)";

struct reading {
    struct report *report;
    struct io_report *io;
    struct strmap paths, zones; /* entry i: paths[i], zones[i] */
    size_t path_cap, zone_cap;
    double ns_per_tick;
    bool redact;
    struct io_image *images;
    size_t image_count, image_cap;
};

/* ---- Growing lists ------------------------------------------------------------------ */

static int grow(struct reading *g, void **list, size_t *cap, size_t count, size_t size)
{
    if (count < *cap)
        return 0;
    const size_t more = *cap ? *cap * 2 : 64;
    void *next = arena_alloc_array(&g->report->arena, more, size);
    if (!next)
        return -ENOMEM;
    if (count)
        memcpy(next, *list, count * size);
    *list = next;
    *cap = more;
    return 0;
}

static int new_histogram(struct reading *g, struct io_sum *sum)
{
    sum->latency = arena_alloc_array(&g->report->arena, IO_BUCKETS,
                                     sizeof *sum->latency);
    return sum->latency ? 0 : -ENOMEM;
}

static int new_path(struct reading *g, const char *text, unsigned io_class)
{
    struct io_report *io = g->io;
    int rc = grow(g, (void **)&io->paths, &g->path_cap, io->path_count,
                  sizeof *io->paths);
    if (rc < 0)
        return rc;
    struct io_path *p = &io->paths[io->path_count];
    p->path = arena_strdup(&g->report->arena, text);
    p->io_class = io_class < IO_CLASS_COUNT ? (enum io_class)io_class
                                            : IO_CLASS_UNKNOWN;
    rc = p->path ? 0 : -ENOMEM;
    for (int d = 0; rc == 0 && d < 2; d++)
        rc = new_histogram(g, &p->side[d]);
    io->path_count += rc == 0;
    return rc;
}

static int find_path(struct reading *g, const char *text, unsigned io_class,
                     struct io_path **ret_path)
{
    bool added;
    struct buf clean = BUF_INIT;
    if (g->redact)
        redact_text(&clean, text);
    else
        buf_puts(&clean, text);
    const char *name = clean.error || !clean.len ? "?" : clean.data;
    if (g->io->path_count >= MAX_PATHS &&
        !strmap_get(&g->paths, name, strlen(name), &(uint64_t){ 0 })) {
        name = other_files;
        io_class = IO_CLASS_OTHER;
    }
    struct strmap_entry *e = strmap_enter(&g->paths, name, strlen(name), &added);
    int rc = e ? 0 : -ENOMEM;
    if (e && added) {
        e->value = g->io->path_count;
        rc = new_path(g, name, io_class);
    }
    if (rc == 0)
        *ret_path = &g->io->paths[e->value];
    buf_release(&clean);
    return rc;
}

/* ---- Rows --------------------------------------------------------------------------- */

static void add_side(const struct reading *g, struct io_sum *sum,
                     const struct io_side *side)
{
    sum->bytes += side->bytes;
    sum->ns += (double)side->ticks * g->ns_per_tick;
    sum->sequential += side->sequential;
    sum->errors += side->errors;
    sum->again += side->again;
    for (int i = 0; i < IO_SIZES; i++) {
        sum->sizes[i] += side->sizes[i];
        sum->calls += side->sizes[i];
    }
    for (int i = 0; i < IO_BUCKETS; i++) {
        sum->latency[i] += side->latency[i];
        sum->timed += side->latency[i];
    }
}

static bool row_is_empty(const struct io_file_row *row)
{
    return !row->ways && !row->opens && !row->side[0].errors && !row->side[1].errors;
}

static int add_file(struct reading *g, const struct tablefile *file,
                    const struct io_file_row *row)
{
    struct io_path *p;
    const char *text = row->path ? tablefile_text(file, row->path) : other_files;
    if (row_is_empty(row))
        return 0;
    const int rc = find_path(g, text, row->io_class, &p);
    if (rc != 0)
        return rc;
    for (int d = 0; d < 2; d++) {
        add_side(g, &p->side[d], &row->side[d]);
        add_side(g, &g->io->total[d], &row->side[d]);
        if (g->image_count)
            g->images[g->image_count - 1].rows[d] += row->side[d].bytes -
                                                     row->side[d].uncounted;
    }
    p->ways |= row->ways;
    p->opens += row->opens;
    p->closes += row->closes;
    p->open_at_end += row->opens > row->closes ? row->opens - row->closes : 0;
    p->syncs += row->syncs;
    p->sync_ns += (double)row->sync_ticks * g->ns_per_tick;
    p->connects += row->connects;
    p->connect_ns += (double)row->connect_ticks * g->ns_per_tick;
    p->mapped_bytes += row->mapped_bytes;
    p->touched_bytes += row->touched_bytes;
    if (row->file_bytes > p->file_bytes)
        p->file_bytes = row->file_bytes;
    if (row->cache_pages && !p->cache_pages) { /* who came first saw it untouched */
        p->cache_pages = row->cache_pages;
        p->cache_warm = row->cache_warm;
    }
    p->processes += !row->shared;
    return 0;
}

static int add_files(struct reading *g, const struct tablefile *file)
{
    const int table = tablefile_find(file, IO_TABLE_FILES);
    struct io_file_row row;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && table >= 0 && i < tablefile_count(file, table); i++)
        if (tablefile_get(file, table, i, &row, sizeof row))
            rc = add_file(g, file, &row);
    return rc;
}

/* ---- Zones -------------------------------------------------------------------------- */

static int find_zone(struct reading *g, const char *name, struct io_by_zone **ret_zone)
{
    struct io_report *io = g->io;
    bool added;
    struct strmap_entry *e = strmap_enter(&g->zones, name, strlen(name), &added);
    if (!e)
        return -ENOMEM;
    if (added) {
        const int rc = grow(g, (void **)&io->zones, &g->zone_cap, io->zone_count,
                            sizeof *io->zones);
        if (rc < 0)
            return rc;
        e->value = io->zone_count++;
        io->zones[e->value].zone = arena_strdup(&g->report->arena, name);
        if (!io->zones[e->value].zone)
            return -ENOMEM;
    }
    *ret_zone = &io->zones[e->value];
    return 0;
}

/* The trace of the same process; after an exec the one that began about then. */
static size_t trace_of(const struct report *r, const struct tables_head *head)
{
    size_t best = SIZE_MAX;
    double nearest = INFINITY;
    for (size_t i = 0; i < r->process_count; i++) {
        const double far = fabs((double)r->processes[i].start_ns -
                                (double)head->start.real_ns);
        if (r->processes[i].pid != head->pid || far >= nearest)
            continue;
        nearest = far;
        best = i;
    }
    return best;
}

static int open_trace_of(const struct report *r, const struct tables_head *head,
                         struct trace **ret_trace)
{
    const size_t process = trace_of(r, head);
    for (size_t i = 0; process != SIZE_MAX && i < r->run->file_count; i++)
        if (r->run->files[i] == r->processes[process].file)
            return run_trace_open(r->run, i, ret_trace);
    return -ENOENT;
}

static int add_zone(struct reading *g, const struct trace *trace,
                    const struct io_zone_row *row)
{
    const unsigned site = (unsigned)(row->key & 0xffffffff) - 1;
    struct io_by_zone *z;
    const int rc = find_zone(g, trace ? trace_site(trace, site)->name : "?", &z);
    for (int d = 0; rc == 0 && d < 2; d++) {
        z->calls[d] += row->calls[d];
        z->bytes[d] += row->bytes[d];
        z->ns[d] += (double)row->ticks[d] * g->ns_per_tick;
    }
    if (rc < 0)
        return rc;
    if (trace)
        z->phase = trace_site(trace, site)->phase;
    z->opens += row->opens;
    z->looks += row->looks;
    z->open_ns += (double)row->open_ticks * g->ns_per_tick;
    z->look_ns += (double)row->look_ticks * g->ns_per_tick;
    return 0;
}

static int add_zones(struct reading *g, const struct tablefile *file)
{
    const int table = tablefile_find(file, IO_TABLE_ZONES);
    struct trace *trace = NULL;
    struct io_zone_row row;
    if (table < 0 || tablefile_count(file, table) == 0)
        return 0;
    int rc = open_trace_of(g->report, tablefile_head(file), &trace);
    if (rc == -ENOMEM)
        return rc;
    rc = 0;
    for (uint32_t i = 0; rc == 0 && i < tablefile_count(file, table); i++)
        if (tablefile_get(file, table, i, &row, sizeof row))
            rc = add_zone(g, trace, &row);
    trace_free(trace);
    return rc;
}

/* ---- The process --------------------------------------------------------------------- */

/* More and more, in every quarter of the time since it began: programs import and set up
 * before they leak. A jump that stays is none. */
static bool series_grows(const struct io_process_row *p)
{
    const uint32_t *points = p->series_room ? p->series : p->series_old;
    const uint64_t room = p->series_room ? IO_SERIES : IO_SERIES_OLD;
    const uint64_t n = p->series_count < room ? p->series_count : room;
    if (n < 8 || p->open_now < GROWS_FROM || p->open_now * 10 < p->open_most * 9)
        return false;
    uint64_t from = 0;
    while (from < n && points[from] * 10 < p->open_now)
        from++;
    const uint64_t rest = n - from;
    for (unsigned quarter = 1; rest >= 4 && quarter < 4; quarter++)
        if (points[from + rest * quarter / 4] <=
            points[from + rest * (quarter - 1) / 4])
            return false;
    return rest >= 4;
}

static int add_image(struct reading *g, const struct tables_head *head,
                     const struct io_process_row *p)
{
    const struct io_reading *last = &p->reading[(p->readings - 1) % 2];
    const int rc = grow(g, (void **)&g->images, &g->image_cap, g->image_count,
                        sizeof *g->images);
    if (rc < 0)
        return rc;
    g->images[g->image_count++] = (struct io_image){
        .pid = head->pid,
        .ppid = head->ppid,
        .start = head->start.ticks,
        .finished = p->finished && p->readings,
        .read = p->readings > 0,
        .last = p->readings ? *last : (struct io_reading){ .ticks = head->start.ticks },
    };
    return 0;
}

static void add_hand(const struct reading *g, const struct io_by_hand *h)
{
    struct io_hand *hand = &g->io->hand;
    const uint64_t most = hand->steps > hand->write_steps ? hand->steps
                                                          : hand->write_steps;
    if (!h->counted || (hand->known && h->steps <= most && h->write_steps <= most))
        return;
    *hand = (struct io_hand){
        .known = true,
        .steps = h->steps,
        .opens = h->opens,
        .looks = h->looks,
        .reads = h->reads,
        .small_reads = h->small_reads,
        .read_bytes = h->read_bytes,
        .open_ns = (double)h->open_ticks * g->ns_per_tick,
        .look_ns = (double)h->look_ticks * g->ns_per_tick,
        .read_ns = (double)h->read_ticks * g->ns_per_tick,
        .writes_known = h->counted >= IO_HAND_WRITES,
        .write_steps = h->write_steps,
        .writes = h->writes,
        .write_bytes = h->write_bytes,
        .write_ns = (double)h->write_ticks * g->ns_per_tick,
    };
}

static int add_process(struct reading *g, const struct tables_head *head,
                       const struct io_process_row *p)
{
    struct io_report *io = g->io;
    io->processes++;
    io->opens += p->opens;
    io->closes += p->closes;
    io->open_errors += p->open_errors;
    io->open_ns += (double)p->open_ticks * g->ns_per_tick;
    io->open_at_end += p->open_now;
    if (p->open_most > io->open_most)
        io->open_most = p->open_most;
    io->open_grows |= series_grows(p);
    io->files_refused += p->files_refused;
    add_hand(g, &p->by_hand);
    return add_image(g, head, p);
}

static int add_tables(struct reading *g, const struct tablefile *file)
{
    const int process = tablefile_find(file, IO_TABLE_PROCESS);
    const int events = tablefile_find(file, IO_TABLE_EVENTS);
    struct io_process_row row;
    int rc = 0;
    g->io->captured = true;
    if (process >= 0 && tablefile_get(file, process, 0, &row, sizeof row))
        rc = add_process(g, tablefile_head(file), &row);
    if (events >= 0) {
        g->io->events += tablefile_count(file, events);
        g->io->events_dropped += tablefile_head(file)->table[events].refused;
    }
    if (rc == 0)
        rc = add_files(g, file);
    return rc < 0 ? rc : add_zones(g, file);
}

/* Damaged ones: what is left tells enough. */
static int add_named(void *arg, const char *name, struct tablefile *file, int rc)
{
    (void)name;
    return rc < 0 ? 0 : add_tables(arg, file);
}

/* ---- What follows from it -------------------------------------------------------------- */

static double quantile(const struct reading *g, const struct io_sum *sum, double q)
{
    const double rank = ceil(q * (double)sum->timed);
    double seen = 0;
    if (sum->timed == 0)
        return NAN;
    for (unsigned i = 0; i < IO_BUCKETS; i++) {
        seen += (double)sum->latency[i];
        if (seen >= rank)
            return io_bucket_middle(i) * g->ns_per_tick;
    }
    return NAN;
}

static void set_quantiles(const struct reading *g, struct io_sum *sum)
{
    sum->p50_ns = quantile(g, sum, 0.50);
    sum->p95_ns = quantile(g, sum, 0.95);
    sum->p99_ns = quantile(g, sum, 0.99);
}

static int most_time_first(const void *a, const void *b)
{
    const struct io_path *x = a, *y = b;
    const double x_ns = x->side[0].ns + x->side[1].ns + x->sync_ns;
    const double y_ns = y->side[0].ns + y->side[1].ns + y->sync_ns;
    return x_ns != y_ns ? (x_ns < y_ns ? 1 : -1) : strcmp(x->path, y->path);
}

static int zone_most_time_first(const void *a, const void *b)
{
    const struct io_by_zone *x = a, *y = b;
    const double x_ns = x->ns[0] + x->ns[1], y_ns = y->ns[0] + y->ns[1];
    return x_ns != y_ns ? (x_ns < y_ns ? 1 : -1) : strcmp(x->zone, y->zone);
}

static void finish(struct reading *g)
{
    struct io_report *io = g->io;
    for (size_t i = 0; i < io->path_count; i++) {
        struct io_path *p = &io->paths[i];
        for (int d = 0; d < 2; d++)
            set_quantiles(g, &p->side[d]);
        if (p->io_class != IO_CLASS_FILE)
            continue;
        const uint64_t *sizes = p->side[IO_READ].sizes;
        io->small_reads += sizes[1] + sizes[2];
        io->file_reads += p->side[IO_READ].calls - sizes[0];
    }
    for (int d = 0; d < 2; d++)
        set_quantiles(g, &io->total[d]);
    if (io->path_count)
        qsort(io->paths, io->path_count, sizeof *io->paths, most_time_first);
    if (io->zone_count)
        qsort(io->zones, io->zone_count, sizeof *io->zones, zone_most_time_first);
    io_coverage(g->images, g->image_count, io);
}

/* ---- All of it ---------------------------------------------------------------------- */

int io_read(struct report *report)
{
    struct reading g = {
        .report = report,
        .io = &report->io,
        .ns_per_tick = report->run->clock.count ? report->run->clock.ns_per_tick
                                                : report->ns_per_tick,
        .redact = !json_is_false(json_object_get(
            json_object_get(report->run->meta.root, "options"), "redact")),
    };
    strmap_init(&g.paths);
    strmap_init(&g.zones);
    int rc = new_histogram(&g, &report->io.total[0]);
    if (rc == 0)
        rc = new_histogram(&g, &report->io.total[1]);
    if (rc == 0)
        rc = tablefiles_each(report->run->dir, IO_KIND, add_named, &g);
    if (rc == 0)
        finish(&g);
    strmap_release(&g.paths);
    strmap_release(&g.zones);
    return rc;
}

const char *io_class_name(enum io_class io_class)
{
    static const char *const names[IO_CLASS_COUNT] = {
        [IO_CLASS_UNKNOWN] = "unknown", [IO_CLASS_FILE] = "file",
        [IO_CLASS_PIPE] = "pipe",       [IO_CLASS_SOCKET] = "socket",
        [IO_CLASS_TTY] = "tty",         [IO_CLASS_PROC] = "proc",
        [IO_CLASS_DEVICE] = "device",   [IO_CLASS_OTHER] = "other",
    };
    return io_class < IO_CLASS_COUNT ? names[io_class] : "unknown";
}

double io_sequential_share(const struct io_sum *sum)
{
    const uint64_t moved = sum->calls - sum->sizes[0];
    return moved ? (double)sum->sequential / (double)moved : NAN;
}

double io_warm_share(const struct io_path *path)
{
    if (!path->cache_pages)
        return NAN;
    const double share = (double)path->cache_warm / (double)path->cache_pages;
    return share < 1 ? share : 1;
}
