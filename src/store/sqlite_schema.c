/* sqlite_schema.c: the tables of sonde.db and how older ones become them.
 *
 * PRAGMA user_version says which schema a file has. Step N of `steps` takes a file from
 * N to N + 1; nothing in a step ever changes again once released, for files in that
 * state exist. tests/unit/store/migrate_test.c keeps the files of every version.
 *
 * One row of `runs` is one experiment. Its parameters, metrics and tags are JSON
 * objects in that row and not rows of their own tables: an experiment is written with
 * one insert (fifty thousand a second), is whole or absent, and types survive. The
 * views params, metrics and tags show them as rows to people who ask with SQL.
 *
 * seq only grows (AUTOINCREMENT) and a changed experiment gets a new one, so that the
 * search index knows what is new from one number, and what is gone from `tombstones`.
 */
#include "store/sqlite.h"

#ifdef SONDE_HAVE_SQLITE

#include <sqlite3.h>

#include "base/error.h"

static const char step_0[] =
    "PRAGMA application_id = 0x536e6465;"
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "INSERT INTO settings VALUES ('identity', lower(hex(randomblob(8))));"
    "CREATE TABLE runs ("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  id TEXT NOT NULL UNIQUE,"
    "  kind TEXT NOT NULL,"
    "  name TEXT, parent TEXT, command TEXT, document TEXT, directory TEXT,"
    "  cause TEXT, started_ns INTEGER, exit_code INTEGER, bytes INTEGER,"
    "  partial INTEGER NOT NULL DEFAULT 0,"
    "  duration_s REAL, memory_peak_mb REAL, memory_avg_mb REAL,"
    "  gpu_memory_peak_mb REAL, gpu_memory_avg_mb REAL, gpu_percent_peak REAL,"
    "  gpu_percent_avg REAL, cpu_percent_avg REAL, energy_j REAL, step_ms REAL,"
    "  samples_per_s REAL, data_loading_s REAL, model_creation_s REAL,"
    "  training_s REAL, efficiency REAL, accuracy_per_s REAL,"
    "  params TEXT, metrics TEXT, tags TEXT);"
    "CREATE INDEX runs_name ON runs (name) WHERE name IS NOT NULL;"
    "CREATE INDEX runs_directory ON runs (directory) WHERE directory IS NOT NULL;"
    "CREATE TABLE tombstones (n INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER);"
    "CREATE TABLE profiles (run TEXT PRIMARY KEY, json TEXT, file TEXT) WITHOUT ROWID;"
    "CREATE TABLE series (run TEXT NOT NULL, key TEXT NOT NULL, points TEXT NOT NULL,"
    "  PRIMARY KEY (run, key)) WITHOUT ROWID;"
    "CREATE TABLE phases (run TEXT NOT NULL, phase TEXT NOT NULL, total_s REAL,"
    "  share REAL, count INTEGER, mem_peak_mb REAL, PRIMARY KEY (run, phase))"
    "  WITHOUT ROWID;"
    "CREATE TABLE operations (run TEXT NOT NULL, path TEXT, name TEXT, component TEXT,"
    "  category TEXT, phase TEXT, file TEXT, line INTEGER, count INTEGER,"
    "  total_s REAL, self_s REAL, mean_ms REAL, p50_ms REAL, p95_ms REAL,"
    "  p99_ms REAL, cpu_s REAL, mem_peak_mb REAL);"
    "CREATE INDEX operations_run ON operations (run);"
    "CREATE TABLE findings (run TEXT NOT NULL, id TEXT, severity TEXT, score REAL,"
    "  description TEXT, recommendation TEXT);"
    "CREATE INDEX findings_run ON findings (run);"
    "CREATE TRIGGER runs_removed AFTER DELETE ON runs BEGIN"
    "  INSERT INTO tombstones (seq) VALUES (old.seq);"
    "  DELETE FROM profiles WHERE run = old.id;"
    "  DELETE FROM series WHERE run = old.id;"
    "  DELETE FROM phases WHERE run = old.id;"
    "  DELETE FROM operations WHERE run = old.id;"
    "  DELETE FROM findings WHERE run = old.id; END;"
    "CREATE VIEW params AS SELECT runs.id AS run, j.key, j.value, j.type"
    "  FROM runs, json_each(runs.params) AS j;"
    "CREATE VIEW metrics AS SELECT runs.id AS run, j.key, j.value, j.type"
    "  FROM runs, json_each(runs.metrics) AS j;"
    "CREATE VIEW tags AS SELECT runs.id AS run, j.key, j.value"
    "  FROM runs, json_each(runs.tags) AS j;"
    "CREATE VIEW metric_points AS SELECT s.run, s.key,"
    "  CASE j.type WHEN 'array' THEN json_extract(j.value, '$[0]') ELSE j.key END"
    "    AS step,"
    "  CASE j.type WHEN 'array' THEN json_extract(j.value, '$[1]') ELSE j.value END"
    "    AS value FROM series AS s, json_each(s.points) AS j;"
    "CREATE VIEW experiments AS SELECT id AS experiment_id, kind, name, command,"
    "  strftime('%Y-%m-%dT%H:%M:%fZ', started_ns / 1e9, 'unixepoch') AS started,"
    "  exit_code, duration_s AS duration, memory_peak_mb, memory_avg_mb,"
    "  gpu_memory_peak_mb, gpu_percent_peak, gpu_percent_avg, cpu_percent_avg,"
    "  energy_j, step_ms, samples_per_s, data_loading_s, model_creation_s, training_s,"
    "  json_extract(metrics, '$.accuracy') AS accuracy, efficiency, accuracy_per_s,"
    "  params AS parameters, metrics, tags FROM runs;";

static const char step_1[] =
    "CREATE TABLE baselines (name TEXT PRIMARY KEY, run TEXT, created_ns INTEGER,"
    "  json TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE receipts (id TEXT PRIMARY KEY, run TEXT, created_ns INTEGER,"
    "  json TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE artefacts (run TEXT NOT NULL, path TEXT NOT NULL, kind TEXT,"
    "  bytes INTEGER, added_ns INTEGER, PRIMARY KEY (run, path)) WITHOUT ROWID;"
    "CREATE INDEX runs_kind ON runs (started_ns) WHERE kind <> 'log';";

/* A metric that is no number is a text in the JSON ("NaN"), and SQLite counts texts as 0
 * in sums and means and sorts them above every number. In the views NaN is NULL. */
#define METRIC_NUMBER(type, value)                                                     \
    "CASE WHEN " type " IN ('integer', 'real') THEN " value " WHEN " value             \
    " IN ('Infinity', 'inf') THEN 9e999"                                               \
    " WHEN " value " IN ('-Infinity', '-inf') THEN -9e999 END"

/* clang-format off */
static const char step_2[] =
    "DROP VIEW IF EXISTS metrics;"
    "CREATE VIEW metrics AS SELECT runs.id AS run, j.key, "
    METRIC_NUMBER("j.type", "j.value") " AS value, j.type"
    "  FROM runs, json_each(runs.metrics) AS j;"
    "DROP VIEW IF EXISTS experiments;"
    "CREATE VIEW experiments AS SELECT id AS experiment_id, kind, name, command,"
    "  strftime('%Y-%m-%dT%H:%M:%fZ', started_ns / 1e9, 'unixepoch') AS started,"
    "  exit_code, duration_s AS duration, memory_peak_mb, memory_avg_mb,"
    "  gpu_memory_peak_mb, gpu_percent_peak, gpu_percent_avg, cpu_percent_avg,"
    "  energy_j, step_ms, samples_per_s, data_loading_s, model_creation_s, training_s, "
    METRIC_NUMBER("json_type(metrics, '$.accuracy')", "json_extract(metrics, '$.accuracy')")
    " AS accuracy, efficiency, accuracy_per_s,"
    "  params AS parameters, metrics, tags FROM runs;";
/* clang-format on */

static const char *const steps[STORE_SCHEMA] = { step_0, step_1, step_2 };

int sqlite_schema_version(struct sqlite3 *db, int *ret_version)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, "PRAGMA user_version", NULL, &stmt);
    if (rc < 0)
        return rc;
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        *ret_version = sqlite3_column_int(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_ROW ? 0 : sqlite_result(code);
}

static int set_version(struct sqlite3 *db, int version)
{
    char sql[48];
    (void)sqlite3_snprintf(sizeof sql, sql, "PRAGMA user_version = %d", version);
    return sqlite_run(db, sql);
}

/* Two processes may find the file new at once: whoever comes second looks again. */
int sqlite_schema_update(struct sqlite3 *db)
{
    int version = 0;
    int rc = sqlite_schema_version(db, &version);
    if (rc < 0 || version == STORE_SCHEMA)
        return rc;
    rc = sqlite_run(db, "BEGIN IMMEDIATE");
    if (rc < 0)
        return rc;
    rc = sqlite_schema_version(db, &version);
    if (rc == 0 && (version < 0 || version > STORE_SCHEMA))
        rc = SONDE_E_VERSION;
    for (int v = version; rc == 0 && v < STORE_SCHEMA; v++)
        rc = sqlite_run(db, steps[v]);
    if (rc == 0)
        rc = set_version(db, STORE_SCHEMA);
    if (rc == 0)
        rc = sqlite_run(db, "COMMIT");
    if (rc < 0)
        (void)sqlite_run(db, "ROLLBACK");
    return rc;
}

#else
typedef int sqlite_schema_not_built;
#endif
