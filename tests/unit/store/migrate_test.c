/* migrate_test.c: stores of every earlier schema become today's, with what is in them.
 *
 * The texts below are what older programs made; they never change. A new schema adds
 * one here, taken from the program before it. */
#include "unit.h"

#ifndef SONDE_HAVE_SQLITE

int main(void)
{
    return 0; /* there is no store to migrate */
}

#else

#include <string.h>

#include <sqlite3.h>

#include "base/error.h"
#include "base/files.h"
#include "store/store.h"

static char root[64];

static int setup(void **state)
{
    (void)state;
    return unit_temp_dir(root) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return file_remove_tree(root);
}

/* Schema 1: experiments alone; baselines, receipts and artefacts came with 2. */
static const char schema_1[] =
    "PRAGMA application_id = 0x536e6465;"
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "INSERT INTO settings VALUES ('identity', '00112233445566aa');"
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
    "PRAGMA user_version = 1;";

/* Schema 2 beside that: in its views a NaN was a text. */
static const char schema_2[] =
    "CREATE TABLE baselines (name TEXT PRIMARY KEY, run TEXT, created_ns INTEGER,"
    "  json TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE receipts (id TEXT PRIMARY KEY, run TEXT, created_ns INTEGER,"
    "  json TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE artefacts (run TEXT NOT NULL, path TEXT NOT NULL, kind TEXT,"
    "  bytes INTEGER, added_ns INTEGER, PRIMARY KEY (run, path)) WITHOUT ROWID;"
    "CREATE INDEX runs_kind ON runs (started_ns) WHERE kind <> 'log';"
    "CREATE VIEW metrics AS SELECT runs.id AS run, j.key, j.value, j.type"
    "  FROM runs, json_each(runs.metrics) AS j;"
    "CREATE VIEW experiments AS SELECT id AS experiment_id,"
    "  json_extract(metrics, '$.accuracy') AS accuracy FROM runs;"
    "PRAGMA user_version = 2;";

static const char *const schemas[] = { "", schema_2 }; /* after schema_1 */

static void make(const char *ddl, const char *more)
{
    char path[96];
    sqlite3 *db = NULL;
    char *message = NULL;
    (void)snprintf(path, sizeof path, "%s/sonde.db", root);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, schema_1, NULL, NULL, &message) != SQLITE_OK ||
        sqlite3_exec(db, ddl, NULL, NULL, &message) != SQLITE_OK ||
        sqlite3_exec(db, more, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int no_baseline(void *arg, const struct baseline *b)
{
    (void)b;
    ++*(int *)arg;
    return 0;
}

static void every_older_schema_becomes_todays(void **state)
{
    (void)state;
    _Static_assert(sizeof schemas / sizeof *schemas == STORE_SCHEMA - 1,
                   "one text for each schema before today's");
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        struct store *store = NULL;
        struct buf why = BUF_INIT;
        struct arena arena = ARENA_INIT;
        struct store_counts counts;
        struct experiment e;
        int baselines = 0;
        make(schemas[i], "INSERT INTO runs (id, kind, duration_s, params) "
                         "VALUES ('old', 'log', 2.5, '{\"lr\":0.5}')");
        if (store_open(root, 0, &store, &why) < 0)
            fail_msg("schema %zu: %s", i + 1, why.data);
        assert_int_equal(store_counts(store, &counts), 0);
        assert_int_equal(counts.schema, STORE_SCHEMA);
        assert_int_equal(counts.experiments, 1);
        assert_int_equal(store_get(store, "old", &arena, &e), 0);
        assert_near(e.core[CORE_DURATION_S], 2.5, 0);
        assert_true(facts_get(&e, FACT_PARAM, "lr", &arena).number == 0.5);
        assert_int_equal(store_each_baseline(store, NULL, no_baseline, &baselines), 0);
        const struct baseline b = { .name = "main", .run = "old", .json = "{}" };
        assert_int_equal(store_put_baseline(store, &b), 0);
        assert_int_equal(store_put_receipt(store, "r", "old", "{}"), 0);
        store_close(store);
        arena_release(&arena);
        buf_release(&why);
        assert_int_equal(file_remove_tree(root), 0);
        assert_int_equal(dir_make(root, 0700), 0);
    }
}

static void a_newer_schema_is_left_alone(void **state)
{
    (void)state;
    struct store *store = NULL;
    struct buf why = BUF_INIT;
    make("", "PRAGMA user_version = 99");
    assert_int_equal(store_open(root, STORE_WRITE, &store, &why), SONDE_E_VERSION);
    assert_non_null(strstr(why.data, "newer"));
    buf_release(&why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_older_schema_becomes_todays, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_newer_schema_is_left_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
