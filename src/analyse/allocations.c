/* allocations.c: the heap files of a run, summed up. See allocations.h. */
#include "analyse/allocations.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/alloc_parts.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "trace/tablefiles.h"

/* ---- Small things ------------------------------------------------------------------ */

int alloc_grow(void **array, size_t *cap, size_t count, size_t size)
{
    if (count < *cap)
        return 0;
    const size_t more = *cap ? *cap * 2 : 16;
    void *p = realloc(*array, more * size);
    if (!p)
        return -ENOMEM;
    *array = p;
    *cap = more;
    return 0;
}

const char *alloc_keep(struct alloc_reader *r, const char *text)
{
    const char *copy = *text ? arena_strdup(&r->report->arena, text) : "";
    return copy ? copy : "";
}

void alloc_unseen(struct alloc_reader *r, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    struct allocations *all = r->all;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&b, fmt, args);
    va_end(args);
    const char *text = b.error ? "" : alloc_keep(r, b.data);
    buf_release(&b);
    for (size_t i = 0; i < all->unseen_count; i++)
        if (strcmp(all->unseen[i], text) == 0)
            return; /* once is enough for a thousand processes of a kind */
    if (*text && alloc_grow((void **)&all->unseen, &all->unseen_cap, all->unseen_count,
                            sizeof *all->unseen) == 0)
        all->unseen[all->unseen_count++] = text;
}

const char *alloc_zone_name(const struct alloc_reader *r, uint32_t zone)
{
    if (zone == 0)
        return "";
    return r->trace ? trace_site(r->trace, zone)->name : "?";
}

/* ---- The trace of the same process ------------------------------------------------- */

/* A process has one trace per exec; its heap file names the start of the process and its
 * own. The trace that began last before the heap's last sample … is the one of the same
 * program image: exec gives both a new file. */
static void open_trace(struct alloc_reader *r)
{
    const struct tables_head *h = tablefile_head(r->file);
    const struct report *report = r->report;
    for (size_t i = 0; i < report->process_count; i++) {
        const struct report_process *p = &report->processes[i];
        if (p->pid != h->pid || strcmp(p->exe, h->exe) != 0)
            continue;
        for (size_t f = 0; f < report->run->file_count; f++)
            if (report->run->files[f] == p->file && !r->trace)
                (void)run_trace_open(report->run, f, &r->trace);
        if (r->trace)
            r->last_step = p->steps;
    }
}

static bool has_zones(const struct alloc_reader *r)
{
    const int table = tablefile_find(r->file, "counters");
    const uint32_t rows = table < 0 ? 0 : tablefile_count(r->file, table);
    struct heap_counter_row row;
    for (uint32_t i = 0; i < rows; i++)
        if (tablefile_get(r->file, table, i, &row, sizeof row) &&
            heap_counter_zone(row.key))
            return true;
    return false;
}

/* ---- Counters ---------------------------------------------------------------------- */

static struct alloc_zone *enter_zone(struct alloc_reader *r, const char *name)
{
    struct strmap_entry *e = strmap_enter(&r->zones, name, strlen(name), NULL);
    struct allocations *all = r->all;
    if (!e)
        return NULL;
    if (e->value == 0) {
        if (alloc_grow((void **)&all->zones, &all->zone_cap, all->zone_count,
                       sizeof *all->zones) < 0)
            return NULL;
        all->zones[all->zone_count] = (struct alloc_zone){ .name = alloc_keep(r,
                                                                              name) };
        e->value = ++all->zone_count;
    }
    return &all->zones[e->value - 1];
}

static int add_counter(struct alloc_reader *r, const struct heap_counter_row *row,
                       struct alloc_process *p)
{
    struct allocations *all = r->all;
    struct alloc_zone *z = enter_zone(r,
                                      alloc_zone_name(r, heap_counter_zone(row->key)));
    if (!z)
        return -ENOMEM;
    for (unsigned k = 0; k < HEAP_CLASSES; k++) {
        all->sizes[k].count += row->size[k].count;
        all->sizes[k].bytes += row->size[k].bytes;
        z->count += row->size[k].count;
        z->bytes += row->size[k].bytes;
        p->count += row->size[k].count;
        p->bytes += row->size[k].bytes;
    }
    z->frees += row->frees;
    z->freed_bytes += row->freed_bytes;
    all->frees += row->frees;
    all->freed_bytes += row->freed_bytes;
    all->reallocs += row->reallocs;
    return 0;
}

static int add_counters(struct alloc_reader *r, struct alloc_process *p)
{
    const int table = tablefile_find(r->file, "counters");
    const uint32_t rows = table < 0 ? 0 : tablefile_count(r->file, table);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < rows; i++) {
        struct heap_counter_row row;
        if (tablefile_get(r->file, table, i, &row, sizeof row))
            rc = add_counter(r, &row, p);
    }
    r->all->count += p->count;
    r->all->bytes += p->bytes;
    return rc;
}

/* What threads have not told the process row, in floating point: a file that lies must
 * not overflow. */
struct untold {
    double sum, highest;
};

static void add_untold(struct untold *u, int64_t untold, int64_t high)
{
    u->sum += (double)untold;
    u->highest = fmax(u->highest, (double)high);
}

/* Threads' rows have it in older files, the rows of counters in today's. */
static struct untold untold_of(const struct alloc_reader *r)
{
    struct untold u = { 0, 0 };
    struct heap_thread_row thread;
    struct heap_counter_row counter;
    int table = tablefile_find(r->file, "threads");
    uint32_t rows = table < 0 ? 0 : tablefile_count(r->file, table);
    for (uint32_t i = 0; i < rows; i++)
        if (tablefile_get(r->file, table, i, &thread, sizeof thread))
            add_untold(&u, thread.untold, thread.high);
    table = tablefile_find(r->file, "counters");
    rows = table < 0 ? 0 : tablefile_count(r->file, table);
    for (uint32_t i = 0; i < rows; i++)
        if (tablefile_get(r->file, table, i, &counter, sizeof counter))
            add_untold(&u, counter.untold, counter.high);
    return u;
}

/* What threads have not told is part of both numbers. */
static void add_levels(struct alloc_reader *r, struct alloc_process *p)
{
    const struct untold u = untold_of(r);
    const double live = fmax(0, (double)r->process.live + u.sum);
    const double most = fmax(live, (double)r->process.live + u.highest);
    p->live_bytes = live;
    p->peak_bytes = r->process.peak;
    if (most < 0x1p63 && (uint64_t)most > p->peak_bytes)
        p->peak_bytes = (uint64_t)most;
}

/* Rows of blocks that a thread had not filled have no key. */
static uint64_t count_events(const struct alloc_reader *r)
{
    const int table = tablefile_find(r->file, "events");
    const uint32_t rows = table < 0 ? 0 : tablefile_count(r->file, table);
    struct heap_event_row row;
    uint64_t count = 0;
    for (uint32_t i = 0; i < rows; i++)
        count += tablefile_get(r->file, table, i, &row, sizeof row);
    return count;
}

static void add_process_row(struct alloc_reader *r, struct alloc_process *p)
{
    const struct heap_process_row *row = &r->process;
    struct allocations *all = r->all;
    all->failed += row->failed;
    all->map_count += row->map_count;
    all->mapped_bytes += row->mapped_bytes;
    all->unmap_count += row->unmap_count;
    all->unmapped_bytes += row->unmapped_bytes;
    all->samples += row->samples;
    all->samples_lost += row->samples_lost;
    all->events += count_events(r);
    all->events_lost += row->events_lost;
    all->counts_only |= (row->flags & HEAP_COUNTS_ONLY) != 0;
    all->in_spells |= (row->flags & HEAP_IN_SPELLS) != 0;
    if (row->flags & (HEAP_NO_USABLE | HEAP_COUNTS_ONLY)) {
        p->live_bytes = NAN;
        p->peak_bytes = 0;
        if (all->counts_only)
            all->live_bytes = NAN;
        return;
    }
    /* What a child inherited is its parent's. */
    all->live_bytes += p->live_bytes - fmin(p->live_bytes, (double)row->inherited);
    if (p->peak_bytes > all->peak_bytes) {
        all->peak_bytes = p->peak_bytes;
        all->peak_pid = p->pid;
        all->peak_ns = row->peak_ticks && r->report->run->clock.count
                           ? clock_real_ns(&r->report->run->clock, row->peak_ticks)
                           : 0;
    }
}

/* ---- What could not be seen -------------------------------------------------------- */

static void note_coverage(struct alloc_reader *r, const char *exe)
{
    const uint64_t flags = r->process.flags;
    const char *allocator = path_base(tablefile_text(r->file, r->process.allocator));
    if (flags & HEAP_OWN_MALLOC)
        alloc_unseen(r, "%s has a malloc of its own: its allocations are not seen",
                     exe);
    if (flags & HEAP_OWN_NEW)
        alloc_unseen(r,
                     "%s: operator new of %s does not go through malloc and is not "
                     "seen",
                     exe, allocator);
    if (flags & HEAP_NO_USABLE)
        alloc_unseen(r,
                     "%s: %s does not tell sizes of blocks: live bytes are not "
                     "known",
                     exe, allocator);
    const struct tables_head *h = tablefile_head(r->file);
    for (uint32_t i = 1; i < h->table_count && i < TABLES_MAX; i++)
        if (h->table[i].refused)
            alloc_unseen(r, "%s: no room for %llu rows of %.24s", exe,
                         (unsigned long long)h->table[i].refused, h->table[i].name);
}

/* Was the program itself among the processes that were captured? */
static void check_program(struct alloc_reader *r)
{
    const uint32_t pid = r->report->run->meta.pid;
    for (size_t i = 0; i < r->all->process_count; i++)
        if (r->all->processes[i].pid == pid)
            return;
    if (pid && r->all->unseen_count == 0)
        alloc_unseen(r,
                     "the program itself was not seen: statically linked, setuid, or "
                     "started with an environment of its own");
}

/* ---- Files ------------------------------------------------------------------------- */

/* When it ended: its own word, else the run's end for the program, else the last it was
 * heard of. */
static void find_end(struct alloc_reader *r)
{
    const struct report *report = r->report;
    const struct clock_table *clock = &report->run->clock;
    r->end_ticks = r->process.exit_ticks;
    if (r->end_ticks == 0 && clock->count &&
        tablefile_head(r->file)->pid == report->run->meta.pid && report->end_ns) {
        const double since_ns = (double)(report->end_ns -
                                         clock_real_ns(clock, r->process.start_ticks));
        if (since_ns > 0)
            r->end_ticks = r->process.start_ticks +
                           (uint64_t)(since_ns / r->ns_per_tick);
    }
    if (r->end_ticks < r->process.last_ticks)
        r->end_ticks = r->process.last_ticks;
    if (r->end_ticks < r->process.start_ticks)
        r->end_ticks = r->process.start_ticks;
}

static int add_process(struct alloc_reader *r)
{
    struct allocations *all = r->all;
    const struct tables_head *h = tablefile_head(r->file);
    if (alloc_grow((void **)&all->processes, &all->process_cap, all->process_count,
                   sizeof *all->processes) < 0)
        return -ENOMEM;
    struct alloc_process *p = &all->processes[all->process_count++];
    char exe[sizeof h->exe + 1];
    snprintf(exe, sizeof exe, "%.*s", (int)sizeof h->exe, h->exe);
    *p = (struct alloc_process){ .pid = h->pid, .exe = alloc_keep(r, exe) };
    all->known = true;
    int rc = add_counters(r, p);
    add_levels(r, p);
    add_process_row(r, p);
    note_coverage(r, p->exe);
    find_end(r);
    if (rc == 0 && alloc_sites_add(r) < 0)
        rc = -ENOMEM;
    if (rc == 0 && alloc_snapshots_add(r) < 0)
        rc = -ENOMEM;
    return rc;
}

static int add_open_file(struct alloc_reader *r)
{
    const int table = tablefile_find(r->file, "process");
    if (table < 0 || !tablefile_get(r->file, table, 0, &r->process, sizeof r->process))
        return 0; /* killed while it was being made */
    if (r->process.state != HEAP_CAPTURED) {
        alloc_unseen(r, "%.127s was left alone: %s", tablefile_head(r->file)->exe,
                     tablefile_text(r->file, r->process.why));
        return 0;
    }
    if (has_zones(r))
        open_trace(r);
    return add_process(r);
}

static int add_file(void *arg, const char *name, struct tablefile *file, int rc)
{
    struct alloc_reader *r = arg;
    r->file = file;
    r->trace = NULL;
    r->site_of = NULL;
    r->name = name;
    r->last_step = 0;
    if (rc < 0) {
        alloc_unseen(r, "%s: %s", name, error_text(rc));
        return 0;
    }
    strmap_init(&r->places);
    rc = add_open_file(r);
    strmap_release(&r->places);
    free(r->site_of);
    trace_free(r->trace);
    return rc;
}

/* ---- All --------------------------------------------------------------------------- */

static int zones_by_bytes(const void *a, const void *b)
{
    const struct alloc_zone *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int processes_by_bytes(const void *a, const void *b)
{
    const struct alloc_process *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void finish(struct alloc_reader *r)
{
    struct allocations *all = r->all;
    alloc_sites_finish(all);
    if (all->zone_count)
        qsort(all->zones, all->zone_count, sizeof *all->zones, zones_by_bytes);
    if (all->process_count)
        qsort(all->processes, all->process_count, sizeof *all->processes,
              processes_by_bytes);
    if (!all->known)
        all->live_bytes = NAN;
    if (all->known)
        check_program(r);
}

int allocations_read(struct report *report)
{
    struct alloc_reader r = {
        .report = report,
        .all = &report->allocations,
        .ns_per_tick = report->run->clock.count ? report->run->clock.ns_per_tick : NAN,
    };
    strmap_init(&r.zones);
    strmap_init(&r.sites);
    (void)symbols_open(report->run->dir, &r.symbols); /* without: modules, offsets */
    const int rc = tablefiles_each(report->run->dir, HEAP_KIND, add_file, &r);
    finish(&r);
    symbols_free(r.symbols);
    strmap_release(&r.zones);
    strmap_release(&r.sites);
    return rc;
}

void allocations_release(struct allocations *all)
{
    free(all->zones);
    free(all->sites);
    free(all->processes);
    free(all->snapshots);
    free(all->unseen);
    *all = (struct allocations){ .known = false };
}
