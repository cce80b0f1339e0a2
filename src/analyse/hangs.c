/* hangs.c: see hangs.h. */
#include "analyse/hangs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyse/report.h"
#include "base/buf.h"
#include "base/files.h"
#include "trace/hang_rows.h"
#include "trace/tablefiles.h"

/* No hang of an honest clock is longer. */
static const uint64_t LONGEST_NS = 1000000000ULL * 86400 * 3650;

static const char *copy(struct report *r, const char *text)
{
    const char *kept = *text ? arena_strdup(&r->arena, text) : "";
    return kept ? kept : "";
}

const char *hang_waiter_place(const struct hang_waiter *w)
{
    if (w->python[0])
        return w->python;
    return w->native[0] ? w->native : w->running ? "running" : w->kernel;
}

/* ---- Threads ------------------------------------------------------------------------------ */

static int by_process(const void *a, const void *b)
{
    const struct hang_waiter *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->is_main != y->is_main)
        return x->is_main ? -1 : 1;
    return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void take_waiter(struct report *r, const struct tablefile *file,
                        const struct hang_thread_row *row, struct hang_waiter *ret)
{
    *ret = (struct hang_waiter){
        .pid = row->pid,
        .tid = row->tid,
        .is_main = row->flags & HANG_MAIN,
        .has_gil = row->flags & HANG_HAS_GIL,
        .waits_gil = row->flags & HANG_WAITS_GIL,
        .running = row->flags & HANG_RUNNING,
        .process = copy(r, tablefile_text(file, row->process)),
        .thread = copy(r, tablefile_text(file, row->thread)),
        .zone = copy(r, tablefile_text(file, row->zone)),
        .python = copy(r, tablefile_text(file, row->python)),
        .native = copy(r, tablefile_text(file, row->native)),
        .kernel = copy(r, tablefile_text(file, row->kernel)),
    };
}

/* Counted first, then taken: the file is the same in memory both times. */
static size_t visit_waiters(struct report *r, const struct tablefile *file,
                            uint64_t number, struct hang_waiter *into)
{
    struct hang_thread_row row;
    size_t found = 0;
    const int table = tablefile_find(file, HANG_THREADS);
    const uint32_t count = table < 0 ? 0 : tablefile_count(file, table);
    for (uint32_t i = 0; i < count && found < HANG_THREAD_ROWS; i++) {
        if (!tablefile_get(file, table, i, &row, sizeof row) || row.key != number)
            continue;
        if (into)
            take_waiter(r, file, &row, &into[found]);
        found++;
    }
    return found;
}

static int read_waiters(struct report *r, const struct tablefile *file,
                        struct hang_event *e)
{
    const size_t count = visit_waiters(r, file, e->number, NULL);
    if (count == 0)
        return 0;
    e->waiters = arena_alloc_array(&r->arena, count, sizeof *e->waiters);
    if (!e->waiters)
        return -ENOMEM;
    e->waiter_count = visit_waiters(r, file, e->number, e->waiters);
    qsort(e->waiters, e->waiter_count, sizeof *e->waiters, by_process);
    return 0;
}

/* ---- Hangs -------------------------------------------------------------------------------- */

static const char *find_file(struct report *r, unsigned number)
{
    struct buf path = BUF_INIT;
    char name[32];
    (void)snprintf(name, sizeof name, "hang-%u.txt", number);
    path_join(&path, r->run->dir, name);
    const bool there = path.error == 0 && access(path.data, F_OK) == 0;
    const char *kept = there ? copy(r, path.data) : "";
    buf_release(&path);
    return kept;
}

static double seconds(uint64_t ns)
{
    return ns && ns <= LONGEST_NS ? (double)ns / 1e9 : NAN;
}

static int read_hangs(struct report *r, const struct tablefile *file)
{
    struct hang_row row;
    struct hang_report *h = &r->hangs;
    const int table = tablefile_find(file, HANG_HANGS);
    const uint32_t count = table < 0 ? 0 : tablefile_count(file, table);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count && h->count < HANG_ROWS; i++) {
        if (!tablefile_get(file, table, i, &row, sizeof row) || row.key > HANG_ROWS)
            continue;
        struct hang_event *e = &h->hangs[h->count++];
        *e = (struct hang_event){ .number = (unsigned)row.key,
                                  .waited_s = seconds(row.waited_ns),
                                  .lasted_s = seconds(row.lasted_ns),
                                  .why = copy(r, tablefile_text(file, row.why)),
                                  .file = find_file(r, (unsigned)row.key) };
        rc = read_waiters(r, file, e);
    }
    return rc;
}

static int read_file(void *arg, const char *name, struct tablefile *file, int rc)
{
    struct report *r = arg;
    (void)name;
    if (!r->hangs.hangs)
        r->hangs.hangs = arena_alloc_array(&r->arena, HANG_ROWS,
                                           sizeof *r->hangs.hangs);
    if (!r->hangs.hangs)
        return -ENOMEM;
    return rc < 0 ? 0 : read_hangs(r, file);
}

int hangs_read(struct report *r)
{
    return tablefiles_each(r->run->dir, HANG_KIND, read_file, r);
}
