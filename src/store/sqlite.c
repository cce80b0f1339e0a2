/* sqlite.c: the database file: opening, transactions, errors.
 *
 * WAL lets readers go on while one writes; on network file systems, where its shared
 * memory does not work, the rollback journal. Writers queue: BEGIN IMMEDIATE with a
 * busy timeout, so that a transaction never fails half way for want of a lock.
 * synchronous = NORMAL: a kill at any instant loses nothing, a power failure at most
 * the last transactions, never consistency.
 */
#include "store/sqlite.h"

#include "base/error.h"

#ifndef SONDE_HAVE_SQLITE

static int open_nothing(const char *dir, unsigned flags, struct store **ret_store,
                        struct buf *ret_why)
{
    (void)dir, (void)flags, (void)ret_store;
    buf_puts(ret_why, "this sonde was built without SQLite: there is no store");
    return SONDE_E_UNSUPPORTED;
}

const struct store_ops sqlite_ops = { .name = "none", .open = open_nothing };

#else

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/files.h"
#include "launch/place.h"

enum { BUSY_MS = 60000, OPEN_TRIES = 200 };

int sqlite_result(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return SONDE_E_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return SONDE_E_FORMAT;
    case SQLITE_CONSTRAINT:
        return -EEXIST;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_TOOBIG:
        return SONDE_E_LIMIT;
    case SQLITE_ERROR:
        return SONDE_E_FORMAT; /* a table is missing: not what we made */
    default:
        return -EIO;
    }
}

int sqlite_run(struct sqlite3 *db, const char *sql)
{
    return sqlite_result(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int sqlite_prepare(struct sqlite3 *db, const char *sql, const char *text,
                   struct sqlite3_stmt **ret_stmt)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK && text)
        code = sqlite3_bind_text(stmt, 1, text, -1, SQLITE_TRANSIENT);
    if (code != SQLITE_OK) {
        (void)sqlite3_finalize(stmt);
        return sqlite_result(code);
    }
    *ret_stmt = stmt;
    return 0;
}

int64_t sqlite_number(struct sqlite3 *db, const char *sql, int *rc)
{
    sqlite3_stmt *stmt = NULL;
    int64_t value = 0;
    if (*rc < 0 || (*rc = sqlite_prepare(db, sql, NULL, &stmt)) < 0)
        return 0;
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        value = sqlite3_column_int64(stmt, 0);
    else
        *rc = sqlite_result(code);
    (void)sqlite3_finalize(stmt);
    return value;
}

/* ---- Opening ------------------------------------------------------------------------ */

/* SQLite would give it the umask's mode; its -wal and -shm follow the file's. */
static int make_file(const char *dir, const char *path)
{
    const bool new_dir = !path_is_dir(dir);
    int rc = dir_make(dir, 0700);
    if (rc < 0)
        return rc;
    if (new_dir)
        (void)chmod(dir, 0700); /* a umask may take even that */
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno == EEXIST ? 0 : -errno;
    rc = fchmod(fd, 0600) < 0 ? -errno : 0;
    (void)close(fd);
    return rc;
}

static int open_file(const char *path, bool writing, struct sqlite3 **ret_db)
{
    sqlite3 *db = NULL;
    int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    if (code != SQLITE_OK && !writing) {
        (void)sqlite3_close(db);
        code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);
    }
    if (code != SQLITE_OK) {
        (void)sqlite3_close(db);
        return sqlite_result(code);
    }
    (void)sqlite3_extended_result_codes(db, 1);
    (void)sqlite3_busy_timeout(db, BUSY_MS);
    *ret_db = db;
    return 0;
}

static int first_look(struct sqlite3 *db, const char *dir)
{
    struct place place = { .remote = false };
    (void)place_of(dir, &place);
    int rc = sqlite_run(db, place.remote ? "PRAGMA journal_mode = DELETE"
                                         : "PRAGMA journal_mode = WAL");
    if (rc == 0)
        rc = sqlite_run(db, "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -32768;"
                            "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = 1");
    if (rc == 0)
        rc = sqlite_schema_update(db);
    return rc;
}

/* The switch to WAL wants the file for itself and does not wait for it by itself. */
static int prepare_file(struct sqlite3 *db, const char *dir)
{
    int rc = SONDE_E_BUSY;
    for (int i = 0; i < OPEN_TRIES && rc == SONDE_E_BUSY; i++) {
        rc = first_look(db, dir);
        const struct timespec pause = { .tv_nsec = 5000000 + (i % 7) * 3000000 };
        if (rc == SONDE_E_BUSY)
            (void)nanosleep(&pause, NULL);
    }
    return rc;
}

/* A file that cannot be written is read as it is, if its schema is ours. */
static int check_readable(struct sqlite3 *db)
{
    int version = 0;
    const int rc = sqlite_schema_version(db, &version);
    if (rc < 0)
        return rc;
    return version == STORE_SCHEMA ? 0 : SONDE_E_VERSION;
}

static void explain(int rc, const char *path, struct buf *why)
{
    if (rc == SONDE_E_FORMAT)
        buf_printf(why,
                   "the store '%s' is damaged (sonde store verify --repair builds it "
                   "anew from the run directories)",
                   path);
    else if (rc == SONDE_E_VERSION)
        buf_printf(why, "the store '%s' was made by a newer sonde (update this one)",
                   path);
    else if (rc == SONDE_E_BUSY)
        buf_printf(why, "the store '%s' is locked by another process", path);
    else if (rc == -ENOENT)
        buf_printf(why, "there is no store '%s' yet", path);
    else
        buf_printf(why, "cannot open the store '%s': %s", path, error_text(rc));
}

static void read_settings(struct sqlite_store *s)
{
    struct buf value = BUF_INIT;
    s->profiles_in_files = sqlite_setting(&s->base, "profiles", NULL, &value) == 0 &&
                           strcmp(value.data, "files") == 0;
    buf_release(&value);
}

static int open_at(const char *dir, const char *path, unsigned flags,
                   struct sqlite_store *s)
{
    struct stat st;
    int rc = 0;
    if (flags & STORE_WRITE)
        rc = make_file(dir, path);
    else if (stat(path, &st) < 0)
        rc = -errno;
    else if (st.st_size == 0)
        rc = -ENOENT; /* somebody is just making it */
    if (rc == 0)
        rc = open_file(path, flags & STORE_WRITE, &s->db);
    if (rc < 0)
        return rc;
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return check_readable(s->db);
    return prepare_file(s->db, dir);
}

static void sqlite_close(struct store *store)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    for (int i = 0; i < STMT_COUNT; i++)
        (void)sqlite3_finalize(s->kept[i]);
    /* A checkpoint waits for the disk; the next large write makes one anyway. */
    if (s->db)
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_close(s->db);
    free(s->base.dir);
    free(s);
}

static int sqlite_open(const char *dir, unsigned flags, struct store **ret_store,
                       struct buf *ret_why)
{
    struct buf path = BUF_INIT;
    struct sqlite_store *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    store_path(&path, dir);
    s->base = (struct store){ .ops = &sqlite_ops, .dir = strdup(dir), .flags = flags };
    int rc = path.error ? path.error : s->base.dir ? 0 : -ENOMEM;
    if (rc == 0)
        rc = open_at(dir, path.data, flags, s);
    if (rc < 0) {
        explain(rc, path.data, ret_why);
        sqlite_close(&s->base);
    } else {
        read_settings(s);
        *ret_store = &s->base;
    }
    buf_release(&path);
    return rc;
}

/* ---- Transactions ------------------------------------------------------------------- */

static int sqlite_begin(struct store *store)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    const int rc = sqlite_run(s->db, "BEGIN IMMEDIATE");
    s->in_transaction = rc == 0;
    return rc;
}

static int sqlite_commit(struct store *store)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    const int rc = sqlite_run(s->db, "COMMIT");
    if (rc == 0)
        s->in_transaction = false;
    return rc;
}

static void sqlite_rollback(struct store *store)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    (void)sqlite_run(s->db, "ROLLBACK");
    s->in_transaction = false;
}

const struct store_ops sqlite_ops = {
    .name = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .put = sqlite_put,
    .remove = sqlite_remove,
    .forget_directory = sqlite_forget_directory,
    .get = sqlite_get,
    .find = sqlite_find,
    .recent = sqlite_recent,
    .state = sqlite_state,
    .each = sqlite_each,
    .last_seq = sqlite_last_seq,
    .each_removed = sqlite_each_removed,
    .each_baseline = sqlite_each_baseline,
    .put_baseline = sqlite_put_baseline,
    .remove_baseline = sqlite_remove_baseline,
    .put_receipt = sqlite_put_receipt,
    .put_artefact = sqlite_put_artefact,
    .sql = sqlite_sql,
    .counts = sqlite_counts,
    .verify = sqlite_verify,
    .backup = sqlite_backup,
    .setting = sqlite_setting,
};

#endif
