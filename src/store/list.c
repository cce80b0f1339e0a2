/* list.c: the runs of a store, and which of them a person means. */
#include "store/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files.h"
#include "store/bundle.h"
#include "base/parse.h"
#include "store/experiment.h"
#include "store/run.h"

/* Enough for years of runs; beyond it the list is cut, not the memory. */
enum { MAX_RUNS = 100000, SHOWN_CANDIDATES = 5 };

const char *store_directory(void)
{
    const char *dir = getenv("SONDE_DIR");
    return dir && dir[0] ? dir : ".sonde";
}

/* ---- The list ------------------------------------------------------------------- */

static int64_t changed_ns(const char *dir)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static int fill_row(struct run_list *list, const char *dir, struct run_row *row)
{
    *row = (struct run_row){ .dir = arena_strdup(&list->arena, dir) };
    if (!row->dir)
        return -ENOMEM;
    run_meta_init(&row->meta);
    const int rc = run_meta_read(dir, &list->arena, &row->meta);
    if (rc == -ENOMEM)
        return rc;
    run_meta_release(&row->meta);
    row->id = row->meta.id[0] ? row->meta.id : path_base(row->dir);
    row->started_ns = row->meta.started_ns ? row->meta.started_ns : changed_ns(dir);
    row->live = run_meta_alive(&row->meta);
    row->top_level = row->meta.parent_run[0] == '\0';
    return 0;
}

static int grow_rows(struct run_list *list)
{
    const size_t more = list->cap ? list->cap * 2 : 64;
    struct run_row *rows = realloc(list->rows, more * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    list->rows = rows;
    list->cap = more;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct run_row *x = a;
    const struct run_row *y = b;
    if (x->started_ns != y->started_ns)
        return x->started_ns < y->started_ns ? 1 : -1;
    return strcmp(y->dir, x->dir);
}

int run_list_add_directory(struct run_list *list, const char *dir)
{
    int rc = list->count == MAX_RUNS    ? SONDE_E_LIMIT
             : list->count == list->cap ? grow_rows(list)
                                        : 0;
    if (rc == 0)
        rc = fill_row(list, dir, &list->rows[list->count]);
    if (rc == 0)
        list->count++;
    return rc;
}

static int read_rows(struct run_list *list, const char *runs_dir)
{
    int rc = 0;
    struct buf path = BUF_INIT;
    DIR *dir = opendir(runs_dir);
    if (!dir)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;

    for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || list->count == MAX_RUNS)
            continue;
        buf_clear(&path);
        path_join(&path, runs_dir, entry->d_name);
        if (path.error == 0 && !run_is_directory(path.data))
            continue;
        rc = path.error ? path.error : run_list_add_directory(list, path.data);
    }
    (void)closedir(dir);
    buf_release(&path);
    return rc;
}

int run_list_read(const char *sonde_dir, struct run_list *ret_list)
{
    struct run_list list = { .arena = ARENA_INIT };
    struct buf runs = BUF_INIT;
    path_join(&runs, sonde_dir, "runs");
    int rc = runs.error;
    if (rc == 0)
        rc = read_rows(&list, runs.data);
    buf_release(&runs);
    if (rc < 0) {
        run_list_release(&list);
        return rc;
    }
    run_list_sort(&list);
    *ret_list = list;
    return 0;
}

void run_list_sort(struct run_list *list)
{
    if (list->count)
        qsort(list->rows, list->count, sizeof(*list->rows), newest_first);
}

static const char *keep(struct run_list *list, const char *text, int *rc)
{
    const char *copy = arena_strdup(&list->arena, text ? text : "");
    if (!copy)
        *rc = -ENOMEM;
    return copy;
}

int run_list_add(struct run_list *list, const struct experiment *e)
{
    int rc = list->count == list->cap ? grow_rows(list) : 0;
    if (rc < 0)
        return rc;
    struct run_row row = { .dir = "", .started_ns = e->started_ns };
    const double duration = e->core[CORE_DURATION_S];
    run_meta_init(&row.meta);
    row.id = row.meta.id = keep(list, e->id, &rc);
    row.meta.name = keep(list, e->name, &rc);
    row.meta.parent_run = keep(list, e->parent, &rc);
    row.meta.exit.cause = keep(list, e->cause, &rc);
    row.meta.exit.code = e->exit_code;
    row.meta.exit.known = e->exit_code >= 0;
    row.meta.started_ns = e->started_ns;
    if (duration >= 0 && duration < 1e8)
        row.meta.ended_ns = e->started_ns + (int64_t)(duration * 1e9);
    row.top_level = !e->parent && strcmp(e->kind, "run") == 0;
    row.meta.command = arena_alloc(&list->arena, sizeof *row.meta.command);
    if (!row.meta.command || rc < 0)
        return -ENOMEM;
    row.meta.command[0] = keep(list, e->command ? e->command : e->document, &rc);
    row.meta.command_count = 1;
    if (rc == 0)
        list->rows[list->count++] = row;
    return rc;
}

void run_list_release(struct run_list *list)
{
    free(list->rows);
    list->rows = NULL;
    list->count = 0;
    arena_release(&list->arena);
}

/* ---- Resolving ---------------------------------------------------------------------- */

static int found(const struct run_row *row, struct buf *ret_path)
{
    buf_puts(ret_path, row->dir);
    return ret_path->error;
}

static int no_runs(const char *sonde_dir, struct buf *ret_note)
{
    buf_printf(ret_note,
               "no runs in '%s' yet (record one with `sonde run -- COMMAND`, or set "
               "SONDE_DIR)",
               sonde_dir);
    return SONDE_E_NOTFOUND;
}

static int by_age(const struct run_list *list, const char *sonde_dir, const char *ref,
                  struct buf *ret_path, struct buf *ret_note)
{
    uint64_t back = 0;
    if (strcmp(ref, "@last") != 0 && parse_uint(ref + 1, &back) < 0) {
        buf_printf(ret_note, "'%s' is no run (use @last, @0, @1 …)", ref);
        return SONDE_E_USAGE;
    }
    uint64_t seen = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!list->rows[i].top_level)
            continue;
        if (seen++ == back)
            return found(&list->rows[i], ret_path);
    }
    if (seen == 0)
        return no_runs(sonde_dir, ret_note);
    buf_printf(ret_note, "there is no run %s: '%s' has %llu (see `sonde list`)", ref,
               sonde_dir, (unsigned long long)seen);
    return SONDE_E_NOTFOUND;
}

static const struct run_row *with_id(const struct run_list *list, const char *ref)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].id, ref) == 0 ||
            strcmp(path_base(list->rows[i].dir), ref) == 0)
            return &list->rows[i];
    return NULL;
}

static const struct run_row *with_name(const struct run_list *list, const char *ref,
                                       struct buf *ret_note)
{
    const struct run_row *newest = NULL;
    size_t others = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->rows[i].meta.name, ref) != 0)
            continue;
        if (newest)
            others++;
        else
            newest = &list->rows[i];
    }
    if (others)
        buf_printf(ret_note, "%zu runs are called '%s'; this is the newest, %s",
                   others + 1, ref, newest->id);
    return newest;
}

static bool has_prefix(const struct run_row *row, const char *ref)
{
    return strncmp(row->id, ref, strlen(ref)) == 0;
}

static int by_prefix(const struct run_list *list, const char *sonde_dir,
                     const char *ref, struct buf *ret_path, struct buf *ret_note)
{
    const struct run_row *match = NULL;
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (has_prefix(&list->rows[i], ref) && count++ == 0)
            match = &list->rows[i];
    if (count == 1)
        return found(match, ret_path);
    if (count == 0) {
        buf_printf(ret_note, "no run '%s' in '%s' (see `sonde list`)", ref, sonde_dir);
        return SONDE_E_NOTFOUND;
    }
    buf_printf(ret_note, "'%s' is the beginning of %zu runs:", ref, count);
    size_t shown = 0;
    for (size_t i = 0; i < list->count && shown < SHOWN_CANDIDATES; i++)
        if (has_prefix(&list->rows[i], ref) && shown++ < SHOWN_CANDIDATES)
            buf_printf(ret_note, " %s", list->rows[i].id);
    buf_printf(ret_note, "%s (give more letters)", count > shown ? " …" : "");
    return SONDE_E_AMBIGUOUS;
}

static int in_list(const struct run_list *list, const char *sonde_dir, const char *ref,
                   struct buf *ret_path, struct buf *ret_note)
{
    if (ref[0] == '@')
        return by_age(list, sonde_dir, ref, ret_path, ret_note);
    const struct run_row *row = with_id(list, ref);
    if (!row)
        row = with_name(list, ref, ret_note);
    if (row)
        return found(row, ret_path);
    if (list->count == 0)
        return no_runs(sonde_dir, ret_note);
    return by_prefix(list, sonde_dir, ref, ret_path, ret_note);
}

/* A directory that merely has the name of a run is not taken for it. */
static bool is_run_path(const char *ref)
{
    struct stat st;
    if (stat(ref, &st) < 0)
        return false;
    if (S_ISDIR(st.st_mode))
        return run_is_directory(ref);
    const size_t len = strlen(ref);
    return S_ISREG(st.st_mode) &&
           ((len > 6 && strcmp(ref + len - 6, ".sonde") == 0) || bundle_is(ref));
}

int run_resolve(const char *sonde_dir, const char *ref, struct buf *ret_path,
                struct buf *ret_note)
{
    if (!ref)
        ref = "@last";
    if (ref[0] == '\0') {
        buf_puts(ret_note, "an empty name is no run (see `sonde list`)");
        return SONDE_E_USAGE;
    }
    if (ref[0] != '@' && is_run_path(ref)) {
        buf_puts(ret_path, ref);
        return ret_path->error;
    }
    if (ref[0] != '@' && strchr(ref, '/')) {
        buf_printf(ret_note,
                   "'%s' is no run directory, trace or bundle (see `sonde list`)", ref);
        return SONDE_E_NOTFOUND;
    }
    struct run_list list;
    int rc = run_list_read(sonde_dir, &list);
    if (rc < 0) {
        buf_printf(ret_note, "cannot read the runs in '%s': %s", sonde_dir,
                   error_text(rc));
        return rc;
    }
    rc = in_list(&list, sonde_dir, ref, ret_path, ret_note);
    run_list_release(&list);
    return rc;
}
