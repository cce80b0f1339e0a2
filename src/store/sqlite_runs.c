/* sqlite_runs.c: experiments in and out of the table `runs` and what hangs on it. */
#include "store/sqlite.h"

#ifdef SONDE_HAVE_SQLITE

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "base/error.h"
#include "base/files.h"
#include "store/jread.h"

/* The columns of STMT_PUT and of reading, in this order. */
enum column {
    COL_SEQ,
    COL_ID,
    COL_KIND,
    COL_NAME,
    COL_PARENT,
    COL_COMMAND,
    COL_DOCUMENT,
    COL_DIRECTORY,
    COL_CAUSE,
    COL_STARTED,
    COL_EXIT,
    COL_BYTES,
    COL_PARTIAL,
    COL_CORE,
    COL_FACTS = COL_CORE + CORE_FIELDS,
    COLUMNS = COL_FACTS + FACT_KINDS
};

#define COLUMN_CORE(upper, lower) #lower ","
#define COLUMN_NAMES                                                                   \
    "seq,id,kind,name,parent,command,document,directory,cause,started_ns,exit_code,"   \
    "bytes,partial," CORE_FIELDS_LIST(COLUMN_CORE) "params,metrics,tags"

static const char *const kept_sql[STMT_COUNT] = {
    [STMT_PUT] = "INSERT INTO runs (" COLUMN_NAMES ") VALUES (NULL,?,?,?,?,?,?,?,?,?,"
                 "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STMT_DELETE] = "DELETE FROM runs WHERE id = ?1",
    [STMT_PUT_PROFILE] = "INSERT OR REPLACE INTO profiles (run, json, file) "
                         "VALUES (?1, ?2, ?3)",
    [STMT_PUT_SERIES] = "INSERT OR REPLACE INTO series (run, key, points) "
                        "SELECT ?1, j.key, j.value FROM json_each(?2) AS j "
                        "WHERE j.type = 'array'",
};
_Static_assert(COLUMNS == 32, "as many question marks as columns, but seq");

static int keep(struct sqlite_store *s, enum sqlite_statement which,
                sqlite3_stmt **ret_stmt)
{
    if (!s->kept[which]) {
        const int code = sqlite3_prepare_v3(s->db, kept_sql[which], -1,
                                            SQLITE_PREPARE_PERSISTENT, &s->kept[which],
                                            NULL);
        if (code != SQLITE_OK)
            return sqlite_result(code);
    }
    *ret_stmt = s->kept[which];
    return 0;
}

static int step_and_reset(sqlite3_stmt *stmt)
{
    const int code = sqlite3_step(stmt);
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return sqlite_result(code);
}

/* ---- Putting ------------------------------------------------------------------------ */

static void bind_text(sqlite3_stmt *stmt, int at, const char *text, size_t len)
{
    if (text && len <= INT32_MAX)
        (void)sqlite3_bind_text(stmt, at, text, (int)len, SQLITE_STATIC);
}

static void bind_word(sqlite3_stmt *stmt, int at, const char *text)
{
    if (text)
        bind_text(stmt, at, text, strlen(text));
}

static int insert(struct sqlite_store *s, const struct experiment *e)
{
    sqlite3_stmt *stmt = NULL;
    int rc = keep(s, STMT_PUT, &stmt);
    if (rc < 0)
        return rc;
    bind_word(stmt, COL_ID, e->id);
    bind_word(stmt, COL_KIND, e->kind);
    bind_word(stmt, COL_NAME, e->name);
    bind_word(stmt, COL_PARENT, e->parent);
    bind_word(stmt, COL_COMMAND, e->command);
    bind_word(stmt, COL_DOCUMENT, e->document);
    bind_word(stmt, COL_DIRECTORY, e->directory);
    bind_word(stmt, COL_CAUSE, e->cause);
    if (e->started_ns)
        (void)sqlite3_bind_int64(stmt, COL_STARTED, e->started_ns);
    if (e->exit_code >= 0)
        (void)sqlite3_bind_int(stmt, COL_EXIT, e->exit_code);
    if (e->bytes >= 0)
        (void)sqlite3_bind_int64(stmt, COL_BYTES, e->bytes);
    (void)sqlite3_bind_int(stmt, COL_PARTIAL, e->partial);
    for (int i = 0; i < CORE_FIELDS; i++)
        if (isfinite(e->core[i]))
            (void)sqlite3_bind_double(stmt, COL_CORE + i, e->core[i]);
    for (int i = 0; i < FACT_KINDS; i++)
        bind_text(stmt, COL_FACTS + i, e->facts[i], e->facts_len[i]);
    return step_and_reset(stmt);
}

/* Keys of sonde.report/1 become rows; what is not there becomes no row. */
static const char *const profile_sql[] = {
    "INSERT OR IGNORE INTO phases SELECT ?1, json_extract(j.value, '$.phase'),"
    " json_extract(j.value, '$.total_s'), json_extract(j.value, '$.share'),"
    " json_extract(j.value, '$.count'), json_extract(j.value, '$.mem_peak_mb')"
    " FROM json_each(?2, '$.phases') AS j"
    " WHERE json_extract(j.value, '$.phase') IS NOT NULL",
    "INSERT INTO operations SELECT ?1,"
    " (SELECT group_concat(p.value, ' > ') FROM json_each(j.value, '$.path') AS p),"
    " json_extract(j.value, '$.name'), json_extract(j.value, '$.component'),"
    " json_extract(j.value, '$.category'), json_extract(j.value, '$.phase'),"
    " json_extract(j.value, '$.file'), json_extract(j.value, '$.line'),"
    " json_extract(j.value, '$.count'), json_extract(j.value, '$.total_s'),"
    " json_extract(j.value, '$.self_s'), json_extract(j.value, '$.mean_ms'),"
    " json_extract(j.value, '$.p50_ms'), json_extract(j.value, '$.p95_ms'),"
    " json_extract(j.value, '$.p99_ms'), json_extract(j.value, '$.cpu_s'),"
    " json_extract(j.value, '$.mem_peak_mb')"
    " FROM json_each(?2, '$.operations') AS j LIMIT 500",
    "INSERT INTO findings SELECT ?1, json_extract(j.value, '$.id'),"
    " json_extract(j.value, '$.severity'), json_extract(j.value, '$.score'),"
    " json_extract(j.value, '$.description'),"
    " json_extract(j.value, '$.recommendation')"
    " FROM json_each(?2, '$.bottlenecks') AS j",
};

static int insert_parts(struct sqlite_store *s, const struct experiment *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof profile_sql / sizeof *profile_sql; i++) {
        sqlite3_stmt *stmt;
        rc = sqlite_prepare(s->db, profile_sql[i], e->id, &stmt);
        if (rc < 0)
            break;
        bind_text(stmt, 2, e->profile, e->profile_len);
        rc = sqlite_result(sqlite3_step(stmt));
        (void)sqlite3_finalize(stmt);
    }
    return rc;
}

/* A8: one file per experiment instead, for those who want to read them with a pager. */
static int write_profile_file(struct sqlite_store *s, const struct experiment *e,
                              struct buf *ret_path)
{
    struct buf dir = BUF_INIT;
    struct buf name = BUF_INIT;
    path_join(&dir, s->base.dir, "profiles");
    buf_printf(&name, "%s.json", e->id);
    path_join(ret_path, dir.data, name.data);
    int rc = dir.error ? dir.error : name.error ? name.error : ret_path->error;
    const bool new_dir = rc == 0 && !path_is_dir(dir.data);
    if (rc == 0)
        rc = dir_make(dir.data, 0700);
    if (rc == 0 && new_dir)
        (void)chmod(dir.data, 0700); /* whatever the umask */
    if (rc == 0)
        rc = file_replace(ret_path->data, e->profile, e->profile_len, 0600);
    buf_release(&dir);
    buf_release(&name);
    return rc;
}

static int insert_profile(struct sqlite_store *s, const struct experiment *e)
{
    struct buf path = BUF_INIT;
    sqlite3_stmt *stmt = NULL;
    int rc = s->profiles_in_files ? write_profile_file(s, e, &path) : 0;
    if (rc == 0)
        rc = keep(s, STMT_PUT_PROFILE, &stmt);
    if (rc == 0) {
        bind_word(stmt, 1, e->id);
        if (s->profiles_in_files)
            bind_text(stmt, 3, path.data, path.len);
        else
            bind_text(stmt, 2, e->profile, e->profile_len);
        rc = step_and_reset(stmt);
    }
    buf_release(&path);
    /* A profile that is no JSON is kept as it is, without rows. */
    struct jread r;
    jread_init(&r, e->profile, e->profile_len);
    if (rc == 0 && jread_next(&r) == JREAD_OBJECT_BEGIN && jread_skip(&r))
        rc = insert_parts(s, e);
    return rc;
}

static int insert_series(struct sqlite_store *s, const struct experiment *e)
{
    sqlite3_stmt *stmt = NULL;
    const int rc = keep(s, STMT_PUT_SERIES, &stmt);
    if (rc < 0)
        return rc;
    bind_word(stmt, 1, e->id);
    bind_text(stmt, 2, e->series, e->series_len);
    return step_and_reset(stmt);
}

static int delete_by_id(struct sqlite_store *s, const char *id)
{
    sqlite3_stmt *stmt = NULL;
    const int rc = keep(s, STMT_DELETE, &stmt);
    if (rc < 0)
        return rc;
    bind_word(stmt, 1, id);
    return step_and_reset(stmt);
}

static int put_parts(struct sqlite_store *s, const struct experiment *e, unsigned flags)
{
    int rc = flags & PUT_REPLACE ? delete_by_id(s, e->id) : 0;
    if (rc == 0)
        rc = insert(s, e);
    if (rc == 0 && e->series)
        rc = insert_series(s, e);
    if (rc == 0 && e->profile)
        rc = insert_profile(s, e);
    return rc;
}

int sqlite_put(struct store *store, const struct experiment *e, unsigned flags)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    const bool simple = !(flags & PUT_REPLACE) && !e->series && !e->profile;
    if (s->in_transaction || simple) /* one statement is a transaction by itself */
        return put_parts(s, e, flags);
    int rc = sqlite_run(s->db, "BEGIN IMMEDIATE");
    if (rc < 0)
        return rc;
    rc = put_parts(s, e, flags);
    if (rc == 0)
        rc = sqlite_run(s->db, "COMMIT");
    if (rc < 0)
        (void)sqlite_run(s->db, "ROLLBACK");
    return rc;
}

int sqlite_remove(struct store *store, const char *id)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    const int rc = delete_by_id(s, id);
    return rc < 0 ? rc : sqlite3_changes(s->db) ? 0 : SONDE_E_NOTFOUND;
}

int sqlite_forget_directory(struct store *store, const char *id)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    sqlite3_stmt *stmt = NULL;
    const int rc = sqlite_prepare(
        s->db, "UPDATE runs SET directory = NULL, bytes = NULL WHERE id = ?1", id,
        &stmt);
    if (rc < 0)
        return rc;
    const int code = sqlite3_step(stmt);
    (void)sqlite3_finalize(stmt);
    return sqlite_result(code);
}

/* ---- Getting ------------------------------------------------------------------------ */

static const char *column_text(sqlite3_stmt *stmt, int at)
{
    return (const char *)sqlite3_column_text(stmt, at);
}

/* Texts point into the statement. */
static void read_row(sqlite3_stmt *stmt, struct experiment *ret)
{
    experiment_init(ret);
    ret->seq = sqlite3_column_int64(stmt, COL_SEQ);
    ret->id = column_text(stmt, COL_ID);
    ret->kind = column_text(stmt, COL_KIND);
    ret->name = column_text(stmt, COL_NAME);
    ret->parent = column_text(stmt, COL_PARENT);
    ret->command = column_text(stmt, COL_COMMAND);
    ret->document = column_text(stmt, COL_DOCUMENT);
    ret->directory = column_text(stmt, COL_DIRECTORY);
    ret->cause = column_text(stmt, COL_CAUSE);
    ret->started_ns = sqlite3_column_int64(stmt, COL_STARTED);
    if (sqlite3_column_type(stmt, COL_EXIT) == SQLITE_INTEGER)
        ret->exit_code = sqlite3_column_int(stmt, COL_EXIT);
    if (sqlite3_column_type(stmt, COL_BYTES) == SQLITE_INTEGER)
        ret->bytes = sqlite3_column_int64(stmt, COL_BYTES);
    ret->partial = sqlite3_column_int(stmt, COL_PARTIAL) != 0;
    for (int i = 0; i < CORE_FIELDS; i++)
        if (sqlite3_column_type(stmt, COL_CORE + i) != SQLITE_NULL)
            ret->core[i] = sqlite3_column_double(stmt, COL_CORE + i);
    for (int i = 0; i < FACT_KINDS; i++) {
        ret->facts[i] = column_text(stmt, COL_FACTS + i);
        ret->facts_len[i] = (size_t)sqlite3_column_bytes(stmt, COL_FACTS + i);
    }
    if (!ret->id)
        ret->id = "";
    if (!ret->kind)
        ret->kind = "log";
}

/* Hands out every row of a statement, which it ends. */
static int give_rows(sqlite3_stmt *stmt, experiment_fn each, void *arg,
                     int64_t *ret_last)
{
    int rc = 0;
    int code = SQLITE_DONE;
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct experiment e;
        read_row(stmt, &e);
        if (ret_last)
            *ret_last = e.seq;
        rc = each(arg, &e);
    }
    if (rc == 0)
        rc = sqlite_result(code);
    (void)sqlite3_finalize(stmt);
    return rc;
}

int sqlite_each_of(struct sqlite3 *db, int64_t after, int64_t up_to, experiment_fn each,
                   void *arg, int64_t *ret_last)
{
    sqlite3_stmt *stmt = NULL;
    const int rc = sqlite_prepare(db,
                                  "SELECT " COLUMN_NAMES " FROM runs "
                                  "WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
                                  NULL, &stmt);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(stmt, 1, after);
    (void)sqlite3_bind_int64(stmt, 2, up_to ? up_to : INT64_MAX);
    return give_rows(stmt, each, arg, ret_last);
}

int sqlite_recent(struct store *store, bool logs, uint64_t limit, experiment_fn each,
                  void *arg)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    sqlite3_stmt *stmt = NULL;
    const int rc = sqlite_prepare(
        s->db,
        logs ? "SELECT " COLUMN_NAMES " FROM runs WHERE directory IS NULL "
               "ORDER BY seq DESC LIMIT ?1"
             : "SELECT " COLUMN_NAMES " FROM runs WHERE kind <> 'log' AND "
               "directory IS NULL ORDER BY started_ns DESC LIMIT ?1",
        NULL, &stmt);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(stmt, 1, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    return give_rows(stmt, each, arg, NULL);
}

int sqlite_each(struct store *store, int64_t after, int64_t up_to, experiment_fn each,
                void *arg)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    return sqlite_each_of(s->db, after, up_to, each, arg, NULL);
}

static const char *keep_text(struct arena *a, const char *text, int *rc)
{
    const char *copy = text ? arena_strdup(a, text) : NULL;
    if (text && !copy)
        *rc = -ENOMEM;
    return copy;
}

static int keep_row(struct arena *a, struct experiment *e)
{
    int rc = 0;
    const char **const texts[] = { &e->id,        &e->kind,    &e->name,
                                   &e->parent,    &e->command, &e->document,
                                   &e->directory, &e->cause,   &e->facts[0],
                                   &e->facts[1],  &e->facts[2] };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = keep_text(a, *texts[i], &rc);
    return rc;
}

/* One text column of one row; NULL when there is no such row. */
static int read_text(struct sqlite_store *s, const char *sql, const char *id,
                     struct arena *a, const char **ret_text)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(s->db, sql, id, &stmt);
    if (rc < 0)
        return rc;
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        *ret_text = keep_text(a, column_text(stmt, 0), &rc);
    else
        rc = sqlite_result(code);
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int read_profile(struct sqlite_store *s, struct arena *a, struct experiment *e)
{
    enum { PROFILE_MOST = 256 << 20 };
    const char *file = NULL;
    int rc = read_text(s, "SELECT json FROM profiles WHERE run = ?1", e->id, a,
                       &e->profile);
    if (rc == 0 && !e->profile)
        rc = read_text(s, "SELECT file FROM profiles WHERE run = ?1", e->id, a, &file);
    if (rc == 0 && file) {
        struct buf text = BUF_INIT;
        if (file_read_all(file, PROFILE_MOST, &text) == 0) /* else it is gone */
            e->profile = keep_text(a, text.data, &rc);
        buf_release(&text);
    }
    e->profile_len = e->profile ? strlen(e->profile) : 0;
    return rc;
}

static int read_rest(struct sqlite_store *s, struct arena *a, struct experiment *e)
{
    int rc = read_text(s,
                       "SELECT json_group_object(key, json(points)) FROM series "
                       "WHERE run = ?1",
                       e->id, a, &e->series);
    if (e->series && strcmp(e->series, "{}") == 0)
        e->series = NULL;
    e->series_len = e->series ? strlen(e->series) : 0;
    return rc < 0 ? rc : read_profile(s, a, e);
}

int sqlite_get(struct store *store, const char *id, struct arena *arena,
               struct experiment *ret_experiment)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    struct experiment e;
    sqlite3_stmt *stmt = NULL;
    experiment_init(&e);
    int rc = sqlite_prepare(s->db, "SELECT " COLUMN_NAMES " FROM runs WHERE id = ?1",
                            id, &stmt);
    if (rc < 0)
        return rc;
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        read_row(stmt, &e);
        rc = keep_row(arena, &e);
    } else {
        rc = code == SQLITE_DONE ? SONDE_E_NOTFOUND : sqlite_result(code);
    }
    (void)sqlite3_finalize(stmt);
    if (rc == 0)
        rc = read_rest(s, arena, &e);
    if (rc == 0)
        *ret_experiment = e;
    return rc;
}

/* The first column of the first rows; how many there are, at most two. */
static int ids_of(struct sqlite3 *db, const char *sql, const char *ref,
                  struct buf *ret_id)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, sql, ref, &stmt);
    if (rc < 0)
        return rc;
    int found = 0;
    int code;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW && found < 2)
        if (found++ == 0) {
            buf_clear(ret_id);
            buf_puts(ret_id, column_text(stmt, 0));
        }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        rc = sqlite_result(code);
    (void)sqlite3_finalize(stmt);
    return rc < 0 ? rc : found;
}

int sqlite_find(struct store *store, const char *ref, struct buf *ret_id)
{
    static const char *const ways[] = {
        "SELECT id FROM runs WHERE id = ?1",
        "SELECT id FROM runs WHERE name = ?1 ORDER BY seq DESC LIMIT 1",
        "SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || x'f48fbfbf' LIMIT 2",
    };
    struct sqlite_store *s = (struct sqlite_store *)store;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const int found = ids_of(s->db, ways[i], ref, ret_id);
        if (found < 0)
            return found;
        if (found == 1)
            return ret_id->error;
        if (found > 1)
            return SONDE_E_AMBIGUOUS;
    }
    return SONDE_E_NOTFOUND;
}

int sqlite_state(struct store *store, const char *id)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(s->db, "SELECT partial FROM runs WHERE id = ?1", id, &stmt);
    if (rc < 0)
        return rc;
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        rc = sqlite3_column_int(stmt, 0) ? STORE_PARTIAL : STORE_WHOLE;
    else
        rc = code == SQLITE_DONE ? STORE_ABSENT : sqlite_result(code);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- How far it has grown ----------------------------------------------------------- */

/* What was given out, also when its row is gone again. */
#define LAST_OF(table) "SELECT max(seq) FROM sqlite_sequence WHERE name = '" table "'"

int sqlite_last_seq(struct store *store, int64_t *ret_seq, int64_t *ret_removed)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    int rc = 0;
    const int64_t seq = sqlite_number(s->db, LAST_OF("runs"), &rc);
    const int64_t removed = sqlite_number(s->db, LAST_OF("tombstones"), &rc);
    if (rc == 0) {
        *ret_seq = seq;
        *ret_removed = removed;
    }
    return rc;
}

int sqlite_each_removed(struct store *store, int64_t after, removed_fn each, void *arg)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(
        s->db, "SELECT n, seq FROM tombstones WHERE n > ?1 ORDER BY n", NULL, &stmt);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_int64(stmt, 1, after);
    int code;
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = each(arg, sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1));
    if (rc == 0)
        rc = sqlite_result(code);
    (void)sqlite3_finalize(stmt);
    return rc;
}

#else
typedef int sqlite_runs_not_built;
#endif
