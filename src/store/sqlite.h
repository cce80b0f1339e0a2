/* sqlite.h: the back end on SQLite. store.c alone includes it; private to the files
 * sqlite*.c below the line. */
#ifndef SONDE_STORE_SQLITE_H
#define SONDE_STORE_SQLITE_H

#include "store/store.h"

extern const struct store_ops sqlite_ops;

/* ---- Private ------------------------------------------------------------------------ */

struct sqlite3;
struct sqlite3_stmt;

enum sqlite_statement {
    STMT_PUT,
    STMT_DELETE,
    STMT_PUT_PROFILE,
    STMT_PUT_SERIES,
    STMT_COUNT
};

struct sqlite_store {
    struct store base;
    struct sqlite3 *db;
    struct sqlite3_stmt *kept[STMT_COUNT];
    bool in_transaction; /* of store_begin() */
    bool profiles_in_files;
};

/* The result of a SQLite call as one of ours. */
int sqlite_result(int code);
/* Runs statements that answer nothing. */
int sqlite_run(struct sqlite3 *db, const char *sql);
/* A statement for one use, `text` bound to ?1 unless NULL. */
int sqlite_prepare(struct sqlite3 *db, const char *sql, const char *text,
                   struct sqlite3_stmt **ret_stmt);
/* The one number that a question without parameters has for an answer; 0, and *rc set,
 * when that fails. Does nothing when *rc is negative already. */
int64_t sqlite_number(struct sqlite3 *db, const char *sql, int *rc);
/* Makes or migrates the tables. */
int sqlite_schema_update(struct sqlite3 *db);
/* PRAGMA user_version */
int sqlite_schema_version(struct sqlite3 *db, int *ret_version);

int sqlite_put(struct store *store, const struct experiment *e, unsigned flags);
int sqlite_remove(struct store *store, const char *id);
int sqlite_forget_directory(struct store *store, const char *id);
int sqlite_get(struct store *store, const char *id, struct arena *arena,
               struct experiment *ret_experiment);
int sqlite_find(struct store *store, const char *ref, struct buf *ret_id);
int sqlite_recent(struct store *store, bool logs, uint64_t limit, experiment_fn each,
                  void *arg);
int sqlite_state(struct store *store, const char *id);
int sqlite_each(struct store *store, int64_t after, int64_t up_to, experiment_fn each,
                void *arg);
/* For salvage: works on a connection alone, stops at the first unreadable row and says
 * how far it came. */
int sqlite_each_of(struct sqlite3 *db, int64_t after, int64_t up_to, experiment_fn each,
                   void *arg, int64_t *ret_last);
int sqlite_last_seq(struct store *store, int64_t *ret_seq, int64_t *ret_removed);
int sqlite_each_removed(struct store *store, int64_t after, removed_fn each, void *arg);

int sqlite_each_baseline(struct store *store, const char *name,
                         int (*each)(void *arg, const struct baseline *b), void *arg);
int sqlite_put_baseline(struct store *store, const struct baseline *b);
int sqlite_remove_baseline(struct store *store, const char *name);
int sqlite_put_receipt(struct store *store, const char *id, const char *run,
                       const char *json);
int sqlite_put_artefact(struct store *store, const char *run, const char *path,
                        const char *kind, int64_t bytes);
int sqlite_sql(struct store *store, const char *text, sql_fn each, void *arg,
               struct buf *ret_why);
int sqlite_counts(struct store *store, struct store_counts *ret_counts);
int sqlite_verify(struct store *store, struct buf *ret_problems);
int sqlite_backup(struct store *store, const char *path);
int sqlite_setting(struct store *store, const char *key, const char *set,
                   struct buf *ret_value);

#endif
