/* sqlite_salvage.c: what can still be read of a damaged database.
 *
 * Runs come back from their directories; logged experiments exist nowhere else. The
 * rows are read in order; where a page is damaged, reading goes on behind it, in
 * growing jumps.
 */
#include "store/sqlite.h"

#include "base/error.h"

#ifndef SONDE_HAVE_SQLITE

int store_salvage(const char *dir, int64_t *ret_saved, struct buf *ret_note)
{
    (void)dir, (void)ret_saved, (void)ret_note;
    return SONDE_E_UNSUPPORTED;
}

#else

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

struct salvage {
    struct sqlite_store *from;
    struct store *to;
    int64_t saved;
    struct arena arena;
};

static int save_one(void *arg, const struct experiment *row)
{
    struct salvage *s = arg;
    struct experiment whole;
    const struct experiment *e = row;
    if (!row->id[0])
        return 0;
    arena_release(&s->arena);
    arena_init(&s->arena);
    if (sqlite_get(&s->from->base, row->id, &s->arena, &whole) == 0)
        e = &whole;
    if (store_put(s->to, e, PUT_REPLACE) == 0)
        s->saved++;
    return 0;
}

static int save_baseline(void *arg, const struct baseline *b)
{
    struct salvage *s = arg;
    if (b->name && b->json)
        (void)store_put_baseline(s->to, b);
    return 0;
}

static void save_rows(struct salvage *s)
{
    int64_t after = 0;
    for (int64_t jump = 1; jump < INT64_C(1) << 40; jump *= 2) {
        int64_t last = after;
        if (sqlite_each_of(s->from->db, after, 0, save_one, s, &last) == 0)
            return;
        if (last > after)
            jump = 1;
        after = last + jump;
    }
}

/* sonde.db and its companions get a name that is free. */
static int move_aside(const char *path, struct buf *ret_aside)
{
    static const char *const ends[] = { "-wal", "-shm", "-journal", "" };
    struct stat st;
    for (int n = 1; n < 1000; n++) {
        buf_clear(ret_aside);
        buf_printf(ret_aside, "%s.damaged-%d", path, n);
        if (ret_aside->error)
            return ret_aside->error;
        if (lstat(ret_aside->data, &st) < 0 && errno == ENOENT)
            break;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct buf from = BUF_INIT, to = BUF_INIT;
        buf_printf(&from, "%s%s", path, ends[i]);
        buf_printf(&to, "%s%s", ret_aside->data, ends[i]);
        const int rc = from.error || to.error                              ? -ENOMEM
                       : rename(from.data, to.data) < 0 && errno != ENOENT ? -errno
                                                                           : 0;
        buf_release(&from);
        buf_release(&to);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int store_salvage(const char *dir, int64_t *ret_saved, struct buf *ret_note)
{
    struct buf path = BUF_INIT, aside = BUF_INIT;
    struct sqlite_store damaged = { .base = { .ops = &sqlite_ops } };
    struct salvage s = { .from = &damaged, .arena = ARENA_INIT };
    store_path(&path, dir);
    int rc = path.error ? path.error : move_aside(path.data, &aside);
    if (rc == 0)
        rc = store_open(dir, STORE_WRITE, &s.to, ret_note);
    if (rc == 0 && sqlite3_open_v2(aside.data, &damaged.db, SQLITE_OPEN_READWRITE,
                                   NULL) == SQLITE_OK) {
        (void)store_begin(s.to);
        save_rows(&s);
        (void)sqlite_each_baseline(&damaged.base, NULL, save_baseline, &s);
        rc = store_commit(s.to);
    }
    (void)sqlite3_close(damaged.db);
    store_close(s.to);
    arena_release(&s.arena);
    if (rc == 0) {
        buf_printf(ret_note, "the damaged store is kept as '%s'", aside.data);
        *ret_saved = s.saved;
    }
    buf_release(&path);
    buf_release(&aside);
    return rc;
}

#endif
