/* store.h: the database of experiments beside the run directories.
 *
 * `.sonde/sonde.db` remembers every run and every logged experiment: what it was, what
 * it measured, its profile. It is an index and an archive, never a condition: a run is
 * recorded, reported and listed from its directory when the database is missing,
 * damaged or read-only, and `sonde store verify --repair` builds it anew.
 *
 * Back ends stand behind one table (struct store_ops); SQLite is the first. Any number
 * of processes may write at once; a put is whole or not there.
 *
 *     struct store *store;
 *     rc = store_open(store_directory(), STORE_WRITE, &store);
 *     rc = store_put(store, &experiment, 0);
 *     store_close(store);
 */
#ifndef SONDE_STORE_STORE_H
#define SONDE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "store/experiment.h"

enum {
    STORE_SCHEMA = 3, /* what this program writes; older ones are migrated */
    STORE_WRITE = 1,  /* make it if need be; without, −ENOENT when there is none */
    /* store_put(): take the place of an experiment with this id. */
    PUT_REPLACE = 1,
};

struct store;

struct store_counts {
    int64_t experiments, runs, logs, trials, series, profiles, baselines, receipts;
    int64_t bytes; /* of the database's files */
    int schema;
    const char *journal; /* "wal", "delete" */
};

struct baseline {
    const char *name;
    const char *run; /* id; NULL: none */
    int64_t created_ns;
    const char *json; /* a sonde.baseline/1 document */
};

typedef int (*experiment_fn)(void *arg, const struct experiment *e);
typedef int (*removed_fn)(void *arg, int64_t n, int64_t seq);
/* A row of SQL's answer; texts NULL for NULL. types: i(nteger) f(loat) t(ext) b(lob)
 * n(ull) of each column. */
typedef int (*sql_fn)(void *arg, int columns, const char *const *names,
                      const char *const *texts, const char *types);

struct store_ops {
    const char *name;
    int (*open)(const char *dir, unsigned flags, struct store **ret_store,
                struct buf *ret_why);
    void (*close)(struct store *store);
    int (*begin)(struct store *store);
    int (*commit)(struct store *store);
    void (*rollback)(struct store *store);
    int (*put)(struct store *store, const struct experiment *e, unsigned flags);
    int (*remove)(struct store *store, const char *id);
    int (*forget_directory)(struct store *store, const char *id);
    int (*get)(struct store *store, const char *id, struct arena *arena,
               struct experiment *ret_experiment);
    int (*find)(struct store *store, const char *ref, struct buf *ret_id);
    int (*state)(struct store *store, const char *id);
    int (*recent)(struct store *store, bool logs, uint64_t limit, experiment_fn each,
                  void *arg);
    int (*each)(struct store *store, int64_t after_seq, int64_t up_to_seq,
                experiment_fn each, void *arg);
    int (*last_seq)(struct store *store, int64_t *ret_seq, int64_t *ret_removed);
    int (*each_removed)(struct store *store, int64_t after, removed_fn each, void *arg);
    int (*each_baseline)(struct store *store, const char *name,
                         int (*each)(void *arg, const struct baseline *b), void *arg);
    int (*put_baseline)(struct store *store, const struct baseline *b);
    int (*remove_baseline)(struct store *store, const char *name);
    int (*put_receipt)(struct store *store, const char *id, const char *run,
                       const char *json);
    int (*put_artefact)(struct store *store, const char *run, const char *path,
                        const char *kind, int64_t bytes);
    int (*sql)(struct store *store, const char *text, sql_fn each, void *arg,
               struct buf *ret_why);
    int (*counts)(struct store *store, struct store_counts *ret_counts);
    int (*verify)(struct store *store, struct buf *ret_problems);
    int (*backup)(struct store *store, const char *path);
    int (*setting)(struct store *store, const char *key, const char *set,
                   struct buf *ret_value);
};

/* What every back end begins with. */
struct store {
    const struct store_ops *ops;
    char *dir;
    unsigned flags;
};

/* −ENOENT: none there (and not STORE_WRITE); SONDE_E_FORMAT: damaged; SONDE_E_VERSION:
 * made by a newer Sonde; SONDE_E_UNSUPPORTED: built without SQLite. ret_why, unless
 * NULL, gets a sentence with what to do. */
int store_open(const char *dir, unsigned flags, struct store **ret_store,
               struct buf *ret_why);
void store_close(struct store *store);

/* One put is a transaction of its own unless store_begin() started a larger one.
 * −EEXIST: the id is taken (PUT_REPLACE replaces). */
int store_begin(struct store *store);
int store_commit(struct store *store);
void store_rollback(struct store *store);
int store_put(struct store *store, const struct experiment *e, unsigned flags);
int store_remove(struct store *store, const char *id);
/* The directory is gone; the record stays. */
int store_forget_directory(struct store *store, const char *id);

/* The whole record with profile and series. SONDE_E_NOTFOUND. */
int store_get(struct store *store, const char *id, struct arena *arena,
              struct experiment *ret_experiment);
/* Which experiment a person means: an id, a name (the newest), the beginning of one id.
 * SONDE_E_NOTFOUND, SONDE_E_AMBIGUOUS. */
int store_find(struct store *store, const char *ref, struct buf *ret_id);
/* Runs whose directory is gone, or with `logs` everything that has none; newest first. */
int store_recent(struct store *store, bool logs, uint64_t limit, experiment_fn each,
                 void *arg);
enum store_state { STORE_ABSENT, STORE_PARTIAL, STORE_WHOLE };
/* What is known of this id, or an error. */
int store_state(struct store *store, const char *id);
/* Every experiment with after < seq <= up_to (0: no end), oldest put first, without
 * profile and series. Texts live for the call. Stops at a non-zero result and returns
 * it. */
int store_each(struct store *store, int64_t after, int64_t up_to, experiment_fn each,
               void *arg);
/* How far the store has grown: the last seq given out and the last removal's number. */
int store_last_seq(struct store *store, int64_t *ret_seq, int64_t *ret_removed);
int store_each_removed(struct store *store, int64_t after, removed_fn each, void *arg);

/* name NULL: all, by name. */
int store_each_baseline(struct store *store, const char *name,
                        int (*each)(void *arg, const struct baseline *b), void *arg);
int store_put_baseline(struct store *store, const struct baseline *b);
/* SONDE_E_NOTFOUND. */
int store_remove_baseline(struct store *store, const char *name);
int store_put_receipt(struct store *store, const char *id, const char *run,
                      const char *json);
int store_put_artefact(struct store *store, const char *run, const char *path,
                       const char *kind, int64_t bytes);

/* Reads with SQL; anything that would write is refused. */
int store_sql(struct store *store, const char *text, sql_fn each, void *arg,
              struct buf *ret_why);
int store_counts(struct store *store, struct store_counts *ret_counts);
/* 0 and nothing appended when all is well; SONDE_E_FORMAT with one line per problem. */
int store_verify(struct store *store, struct buf *ret_problems);
/* A copy that is whole even while others write. */
int store_backup(struct store *store, const char *path);
/* Reads a setting of the store into ret_value (SONDE_E_NOTFOUND), or sets it. */
int store_setting(struct store *store, const char *key, const char *set,
                  struct buf *ret_value);

/* ---- Around the database ------------------------------------------------------------ */

/* DIR/sonde.db */
void store_path(struct buf *out, const char *dir);

/* Moves a damaged database aside (…damaged-N), makes a new one and copies what can
 * still be read. ret_saved experiments were. */
int store_salvage(const char *dir, int64_t *ret_saved, struct buf *ret_note);

#endif
