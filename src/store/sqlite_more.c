/* sqlite_more.c: baselines, receipts, artefacts, settings; SQL, checks, copies. */
#include "store/sqlite.h"

#ifdef SONDE_HAVE_SQLITE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/error.h"
#include "base/files.h"
#include "base/moment.h"

static struct sqlite3 *db_of(struct store *store)
{
    return ((struct sqlite_store *)store)->db;
}

/* A statement of up to four texts (NULL: null) and a number as ?5. */
static int run_bound(struct sqlite3 *db, const char *sql, const char *const texts[4],
                     int64_t number)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, sql, NULL, &stmt);
    if (rc < 0)
        return rc;
    for (int i = 0; i < 4; i++)
        if (texts[i])
            (void)sqlite3_bind_text(stmt, i + 1, texts[i], -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 5, number);
    rc = sqlite_result(sqlite3_step(stmt));
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- Baselines, receipts, artefacts, settings --------------------------------------- */

int sqlite_each_baseline(struct store *store, const char *name,
                         int (*each)(void *arg, const struct baseline *b), void *arg)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db_of(store),
                            name ? "SELECT name, run, created_ns, json FROM baselines "
                                   "WHERE name = ?1"
                                 : "SELECT name, run, created_ns, json FROM baselines "
                                   "ORDER BY name",
                            name, &stmt);
    if (rc < 0)
        return rc;
    int code;
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        const struct baseline b = {
            .name = (const char *)sqlite3_column_text(stmt, 0),
            .run = (const char *)sqlite3_column_text(stmt, 1),
            .created_ns = sqlite3_column_int64(stmt, 2),
            .json = (const char *)sqlite3_column_text(stmt, 3),
        };
        rc = each(arg, &b);
    }
    if (rc == 0)
        rc = sqlite_result(code);
    (void)sqlite3_finalize(stmt);
    return rc;
}

int sqlite_put_baseline(struct store *store, const struct baseline *b)
{
    const char *const texts[4] = { b->name, b->run, b->json, NULL };
    return run_bound(db_of(store),
                     "INSERT OR REPLACE INTO baselines (name, run, json, created_ns) "
                     "VALUES (?1, ?2, ?3, ?5)",
                     texts, b->created_ns);
}

int sqlite_remove_baseline(struct store *store, const char *name)
{
    const char *const texts[4] = { name, NULL, NULL, NULL };
    const int rc = run_bound(db_of(store), "DELETE FROM baselines WHERE name = ?1",
                             texts, 0);
    return rc < 0 ? rc : sqlite3_changes(db_of(store)) ? 0 : SONDE_E_NOTFOUND;
}

int sqlite_put_receipt(struct store *store, const char *id, const char *run,
                       const char *json)
{
    const char *const texts[4] = { id, run, json, NULL };
    return run_bound(db_of(store),
                     "INSERT OR REPLACE INTO receipts (id, run, json, created_ns) "
                     "VALUES (?1, ?2, ?3, ?5)",
                     texts, (int64_t)moment_ns(CLOCK_REALTIME));
}

int sqlite_put_artefact(struct store *store, const char *run, const char *path,
                        const char *kind, int64_t bytes)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)bytes);
    const char *const texts[4] = { run, path, kind, number };
    return run_bound(db_of(store),
                     "INSERT OR REPLACE INTO artefacts (run, path, kind, bytes, "
                     "added_ns) VALUES (?1, ?2, ?3, ?4, ?5)",
                     texts, (int64_t)moment_ns(CLOCK_REALTIME));
}

int sqlite_setting(struct store *store, const char *key, const char *set,
                   struct buf *ret_value)
{
    const char *const texts[4] = { key, set, NULL, NULL };
    if (set) {
        struct sqlite_store *s = (struct sqlite_store *)store;
        if (strcmp(key, "profiles") == 0)
            s->profiles_in_files = strcmp(set, "files") == 0;
        return run_bound(s->db, "INSERT OR REPLACE INTO settings VALUES (?1, ?2)",
                         texts, 0);
    }
    sqlite3_stmt *stmt = NULL;
    const int rc = sqlite_prepare(
        db_of(store), "SELECT value FROM settings WHERE key = ?1", key, &stmt);
    if (rc < 0)
        return rc;
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        buf_puts(ret_value, (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_ROW    ? ret_value->error
           : code == SQLITE_DONE ? SONDE_E_NOTFOUND
                                 : sqlite_result(code);
}

/* ---- SQL of people ------------------------------------------------------------------ */

/* Reading, and nothing that touches another file. */
static int allow(void *arg, int action, const char *a, const char *b, const char *c,
                 const char *d)
{
    (void)arg, (void)a, (void)c, (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_PRAGMA:
        return !b || strcmp(a, "table_info") == 0 ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

enum { SQL_COLUMNS = 256 };

static int give_row(sqlite3_stmt *stmt, sql_fn each, void *arg)
{
    const char *names[SQL_COLUMNS], *texts[SQL_COLUMNS];
    char types[SQL_COLUMNS + 1] = "";
    int n = sqlite3_column_count(stmt);
    n = n < SQL_COLUMNS ? n : SQL_COLUMNS;
    for (int i = 0; i < n; i++) {
        static const char letter[] = { [SQLITE_INTEGER] = 'i',
                                       [SQLITE_FLOAT] = 'f',
                                       [SQLITE_TEXT] = 't',
                                       [SQLITE_BLOB] = 'b',
                                       [SQLITE_NULL] = 'n' };
        names[i] = sqlite3_column_name(stmt, i);
        types[i] = letter[sqlite3_column_type(stmt, i)];
        texts[i] = (const char *)sqlite3_column_text(stmt, i);
    }
    return each(arg, n, names, texts, types);
}

static int one_statement(struct sqlite3 *db, const char **text, sql_fn each, void *arg,
                         struct buf *ret_why)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, *text, -1, &stmt, text);
    if (code != SQLITE_OK) {
        buf_puts(ret_why, code == SQLITE_AUTH ? "only reading is allowed here"
                                              : sqlite3_errmsg(db));
        return SONDE_E_USAGE;
    }
    int rc = 0;
    while (stmt && rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = give_row(stmt, each, arg);
    if (stmt && rc == 0 && code != SQLITE_DONE) {
        buf_puts(ret_why, sqlite3_errmsg(db));
        rc = sqlite_result(code);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

int sqlite_sql(struct store *store, const char *text, sql_fn each, void *arg,
               struct buf *ret_why)
{
    struct sqlite3 *db = db_of(store);
    int rc = 0;
    (void)sqlite3_set_authorizer(db, allow, NULL);
    while (rc == 0 && *text)
        rc = one_statement(db, &text, each, arg, ret_why);
    (void)sqlite3_set_authorizer(db, NULL, NULL);
    return rc;
}

/* ---- Counting and checking ---------------------------------------------------------- */

static int64_t bytes_of(const char *dir)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct buf path = BUF_INIT;
        struct stat st;
        store_path(&path, dir);
        buf_puts(&path, ends[i]);
        if (stat(path.data, &st) == 0)
            sum += st.st_size;
        buf_release(&path);
    }
    return sum;
}

static const char *journal_mode(struct sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    const char *mode = "?";
    if (sqlite_prepare(db, "PRAGMA journal_mode", NULL, &stmt) < 0)
        return mode;
    if (sqlite3_step(stmt) == SQLITE_ROW)
        mode = strcmp((const char *)sqlite3_column_text(stmt, 0), "wal") == 0
                   ? "wal"
                   : "delete";
    (void)sqlite3_finalize(stmt);
    return mode;
}

int sqlite_counts(struct store *store, struct store_counts *ret_counts)
{
    struct sqlite3 *db = db_of(store);
    int rc = 0;
    struct store_counts c = {
        .experiments = sqlite_number(db, "SELECT count(*) FROM runs", &rc),
        .runs = sqlite_number(db, "SELECT count(*) FROM runs WHERE kind = 'run'", &rc),
        .logs = sqlite_number(db, "SELECT count(*) FROM runs WHERE kind = 'log'", &rc),
        .trials = sqlite_number(db, "SELECT count(*) FROM runs WHERE kind = 'trial'",
                                &rc),
        .series = sqlite_number(db, "SELECT count(*) FROM series", &rc),
        .profiles = sqlite_number(db, "SELECT count(*) FROM profiles", &rc),
        .baselines = sqlite_number(db, "SELECT count(*) FROM baselines", &rc),
        .receipts = sqlite_number(db, "SELECT count(*) FROM receipts", &rc),
        .bytes = bytes_of(store->dir),
        .journal = journal_mode(db),
    };
    if (rc == 0)
        rc = sqlite_schema_version(db, &c.schema);
    if (rc == 0)
        *ret_counts = c;
    return rc;
}

static int check_integrity(struct sqlite3 *db, struct buf *problems)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, "PRAGMA integrity_check(20)", NULL, &stmt);
    if (rc < 0)
        return rc;
    int code;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        if (text && strcmp(text, "ok") != 0)
            buf_printf(problems, "%s\n", text);
    }
    (void)sqlite3_finalize(stmt);
    return sqlite_result(code);
}

/* Facts must be JSON: views and the search index read them as such. */
static int check_rows(struct sqlite3 *db, struct buf *problems)
{
    static const struct {
        const char *sql, *words;
    } checks[] = {
        { "SELECT count(*) FROM runs WHERE (params IS NOT NULL AND NOT json_valid(params)) "
          "OR (metrics IS NOT NULL AND NOT json_valid(metrics)) "
          "OR (tags IS NOT NULL AND NOT json_valid(tags))",
          "experiments whose parameters, metrics or tags are no JSON" },
        { "SELECT count(*) FROM profiles WHERE run NOT IN (SELECT id FROM runs)",
          "profiles without their experiment" },
        { "SELECT count(*) FROM series WHERE run NOT IN (SELECT id FROM runs)",
          "series without their experiment" },
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof checks / sizeof *checks; i++) {
        const int64_t n = sqlite_number(db, checks[i].sql, &rc);
        if (rc == 0 && n)
            buf_printf(problems, "%lld %s\n", (long long)n, checks[i].words);
    }
    return rc;
}

int sqlite_verify(struct store *store, struct buf *ret_problems)
{
    struct sqlite3 *db = db_of(store);
    int rc = check_integrity(db, ret_problems);
    if (rc == 0 && ret_problems->len == 0)
        rc = check_rows(db, ret_problems);
    if (rc < 0 && ret_problems->len == 0)
        buf_printf(ret_problems, "%s\n", sqlite3_errmsg(db));
    if (rc == 0 && ret_problems->len)
        rc = SONDE_E_FORMAT;
    return rc;
}

/* ---- Copies ------------------------------------------------------------------------- */

static int copy_pages(struct sqlite3 *from, struct sqlite3 *to)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    if (!backup)
        return sqlite_result(sqlite3_errcode(to));
    int code;
    do {
        code = sqlite3_backup_step(backup, 4096);
        if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
            (void)sqlite3_sleep(20);
    } while (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED);
    (void)sqlite3_backup_finish(backup);
    return code == SQLITE_DONE ? 0 : sqlite_result(code);
}

/* Beside its place first: an existing copy is replaced by a whole one or not at all. */
int sqlite_backup(struct store *store, const char *path)
{
    struct buf beside = BUF_INIT;
    sqlite3 *to = NULL;
    buf_printf(&beside, "%s.coming", path);
    int rc = beside.error;
    if (rc == 0) {
        (void)unlink(beside.data);
        const mode_t mask = umask(077);
        const int fd = open(beside.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        rc = fd < 0 ? -errno : 0; /* SQLite would say that it cannot, not why */
        if (fd >= 0)
            (void)close(fd);
        if (rc == 0)
            rc = sqlite_result(
                sqlite3_open_v2(beside.data, &to, SQLITE_OPEN_READWRITE, NULL));
        if (rc == 0)
            rc = copy_pages(db_of(store), to);
        if (rc == 0) /* one file that can be carried away */
            rc = sqlite_run(to, "PRAGMA journal_mode = DELETE");
        (void)umask(mask);
    }
    if (sqlite3_close(to) != SQLITE_OK && rc == 0)
        rc = -EIO;
    if (rc == 0 && rename(beside.data, path) < 0)
        rc = -errno;
    if (rc < 0 && beside.error == 0)
        (void)unlink(beside.data);
    buf_release(&beside);
    return rc;
}

#else
typedef int sqlite_more_not_built;
#endif
