/* keep.c: runs go into the store, and the store is brought up to date. */
#include "cli/keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/experiment_of.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "present/report/report.h"
#include "store/elsewhere.h"
#include "store/list.h"
#include "store/retain.h"

bool cli_store_open(unsigned flags, struct store **ret_store)
{
    struct buf why = BUF_INIT;
    const int rc = store_open(store_directory(), flags, ret_store, &why);
    if (rc < 0)
        cli_error("%s", why.len ? why.data : error_text(rc));
    buf_release(&why);
    return rc == 0;
}

/* ---- One run ------------------------------------------------------------------------ */

static int profile_text(const struct report *report, char **ret_text, size_t *ret_len)
{
    const struct report_style style = { .format = REPORT_JSON };
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    if (!file)
        return -errno;
    int rc = report_json(report, &style, file);
    if (fclose(file) != 0 && rc == 0)
        rc = -errno;
    if (rc < 0) {
        free(text);
        return rc;
    }
    *ret_text = text;
    *ret_len = len;
    return 0;
}

int keep_report(struct store *store, const struct report *report)
{
    struct arena arena = ARENA_INIT;
    struct experiment e;
    char *profile = NULL;
    int rc = experiment_of(report, &arena, &e);
    if (rc == 0)
        rc = profile_text(report, &profile, &e.profile_len);
    if (rc == 0) {
        e.profile = profile;
        e.bytes = (int64_t)directory_bytes(report->run->dir);
        rc = store_put(store, &e, PUT_REPLACE);
    }
    free(profile);
    arena_release(&arena);
    return rc;
}

static int keep_directory(struct store *store, const char *dir)
{
    struct run *run = NULL;
    struct report *report = NULL;
    int rc = run_open(dir, &run);
    if (rc == 0)
        rc = report_build(run, &report);
    if (rc == 0)
        rc = keep_report(store, report);
    report_free(report);
    run_free(run);
    return rc;
}

static int keep_meta(struct store *store, const char *dir)
{
    struct arena arena = ARENA_INIT;
    struct run_meta meta;
    struct experiment e;
    run_meta_init(&meta);
    int rc = run_meta_read(dir, &arena, &meta);
    if (rc == 0)
        rc = experiment_of_meta(meta.id[0] ? meta.id : path_base(dir), dir, &meta,
                                &arena, &e);
    if (rc == 0)
        rc = store_put(store, &e, PUT_REPLACE);
    run_meta_release(&meta);
    arena_release(&arena);
    return rc;
}

/* ---- After `sonde run` -------------------------------------------------------------- */

/* Runs that went elsewhere (-o) are their owner's; the store keeps its own. */
static bool is_ours(const char *dir)
{
    struct buf runs = BUF_INIT, parent = BUF_INIT;
    path_join(&runs, store_directory(), "runs");
    path_parent(&parent, dir);
    char *a = realpath(runs.data, NULL);
    char *b = realpath(parent.data, NULL);
    const bool same = a && b && strcmp(a, b) == 0;
    free(a);
    free(b);
    buf_release(&runs);
    buf_release(&parent);
    return same;
}

/* A quiet run has its meta data in the store and no profile yet: that is made when
 * somebody looks, and at the latest before the directory goes. */
static void keep_before_removal(void *arg, const char *id, uint64_t bytes)
{
    struct store *store = arg;
    struct buf runs = BUF_INIT, dir = BUF_INIT;
    (void)bytes;
    path_join(&runs, store_directory(), "runs");
    path_join(&dir, runs.data, id);
    if (store && store_state(store, id) != STORE_WHOLE && !runs.error && !dir.error)
        (void)keep_directory(store, dir.data);
    buf_release(&runs);
    buf_release(&dir);
}

/* While the store cannot be opened, directories are all there is of older runs, and what
 * --repair reads them from: none goes. (Without SQLite there is no store to wait for.) */
static void retain(struct store *store, int opened)
{
    struct retain_limits limits;
    struct retain_result result;
    if (opened < 0 && opened != SONDE_E_UNSUPPORTED)
        return;
    retain_defaults(&limits);
    (void)retain_apply(store_directory(), &limits, store, false, keep_before_removal,
                       store, &result);
}

void keep_after_run(const char *dir, const struct report *report, bool quiet)
{
    struct buf why = BUF_INIT;
    struct store *store = NULL;
    if (!is_ours(dir)) {
        (void)elsewhere_note(store_directory(), dir);
        return;
    }
    const int opened = store_open(store_directory(), STORE_WRITE, &store, &why);
    int rc = opened;
    if (rc == 0)
        rc = report ? keep_report(store, report) : keep_meta(store, dir);
    retain(store, opened);
    /* A read-only or full disk has been told of elsewhere; damage has not. */
    if (!quiet && (rc == SONDE_E_FORMAT || rc == SONDE_E_VERSION))
        cli_error("%s; the run itself is kept",
                  why.len ? why.data
                          : "the store is damaged (sonde store verify --repair)");
    store_close(store);
    buf_release(&why);
}

/* ---- Catching up -------------------------------------------------------------------- */

int keep_all(struct store *store, uint64_t *ret_added)
{
    struct run_list list;
    uint64_t added = 0;
    int rc = run_list_read(store_directory(), &list);
    if (rc < 0)
        return rc;
    for (size_t i = list.count; rc >= 0 && i-- > 0;) { /* oldest first */
        const struct run_row *row = &list.rows[i];
        if (row->live)
            continue;
        const int state = store_state(store, row->id);
        if (state == STORE_WHOLE)
            continue;
        /* A run that cannot be read is no reason to keep the others out. */
        rc = state < 0 ? state : keep_directory(store, row->dir);
        if (rc == 0)
            added++;
        else if (rc != SONDE_E_BUSY && rc != -ENOSPC && rc != -EROFS && state >= 0)
            rc = 0;
    }
    run_list_release(&list);
    *ret_added = added;
    return rc;
}

bool cli_find_experiment(struct store *store, const char *ref, struct arena *arena,
                         struct experiment *ret_experiment)
{
    struct buf id = BUF_INIT, path = BUF_INIT, note = BUF_INIT;
    int rc = ref[0] == '@' ? SONDE_E_NOTFOUND : store_find(store, ref, &id);
    if (rc == SONDE_E_NOTFOUND) {
        rc = run_resolve(store_directory(), ref, &path, &note);
        buf_clear(&id);
        if (rc == 0)
            buf_puts(&id, path_base(path.data));
    }
    if (rc == 0)
        rc = store_get(store, id.data, arena, ret_experiment);
    if (rc == SONDE_E_AMBIGUOUS && !note.len)
        cli_error("'%s' is the beginning of more than one id (give more letters)", ref);
    else if (rc == SONDE_E_NOTFOUND && !strpbrk(ref, "@/"))
        cli_error("no run '%s' in '%s' and no experiment (see `sonde list`, `sonde "
                  "search`)",
                  ref, store_directory());
    else if (rc < 0)
        cli_error("%s", note.len ? note.data : error_text(rc));
    buf_release(&id);
    buf_release(&path);
    buf_release(&note);
    return rc == 0;
}

static bool any_run_directory(void)
{
    struct run_list list;
    if (run_list_read(store_directory(), &list) < 0)
        return false;
    const bool any = list.count > 0;
    run_list_release(&list);
    return any;
}

bool cli_store_ready(struct store **ret_store)
{
    struct buf why = BUF_INIT;
    struct store *store = NULL;
    struct progress progress;
    uint64_t added;
    cli_adopt_orphans(0);
    int rc = store_open(store_directory(), 0, &store, &why);
    if (rc == -ENOENT && any_run_directory()) {
        buf_clear(&why);
        rc = store_open(store_directory(), STORE_WRITE, &store, &why);
    }
    if (rc == -ENOENT)
        cli_error("no experiments in '%s' yet (record one with `sonde run -- COMMAND` "
                  "or `sonde log`)",
                  store_directory());
    else if (rc < 0)
        cli_error("%s", why.len ? why.data : error_text(rc));
    buf_release(&why);
    if (rc < 0)
        return false;
    progress_begin(&progress, "taking new runs in", false);
    rc = keep_all(store, &added);
    progress_end(&progress);
    if (rc < 0 && rc != -EROFS)
        cli_error("the store is not up to date: %s", error_text(rc));
    *ret_store = store;
    return true;
}
