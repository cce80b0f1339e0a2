/* store_test.c: experiments go in and come out; many writers; kills; damage. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "num/prng.h"
#include "store/store.h"

static char root[64];
static char dir[96];

static int setup(void **state)
{
    (void)state;
    if (!unit_temp_dir(root))
        return -1;
    (void)snprintf(dir, sizeof dir, "%s/.sonde", root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return file_remove_tree(root);
}

static struct store *open_store(unsigned flags)
{
    struct store *store = NULL;
    struct buf why = BUF_INIT;
    if (store_open(dir, flags, &store, &why) < 0)
        fail_msg("%s", why.data);
    buf_release(&why);
    return store;
}

static int put_json(struct store *store, const char *json, unsigned flags)
{
    struct arena arena = ARENA_INIT;
    struct buf message = BUF_INIT;
    struct experiment e;
    int rc = experiment_parse(json, strlen(json), &arena, &e, &message);
    if (rc == 0)
        rc = store_put(store, &e, flags);
    arena_release(&arena);
    buf_release(&message);
    return rc;
}

static int count_one(void *arg, const struct experiment *e)
{
    (void)e;
    ++*(int64_t *)arg;
    return 0;
}

static int64_t count_all(struct store *store)
{
    int64_t n = 0;
    assert_int_equal(store_each(store, 0, 0, count_one, &n), 0);
    return n;
}

/* ---- In and out --------------------------------------------------------------------- */

static void what_goes_in_comes_out(void **state)
{
    (void)state;
    struct store *store = open_store(STORE_WRITE);
    struct arena arena = ARENA_INIT;
    struct experiment e;
    assert_int_equal(
        put_json(store,
                 "{\"id\":\"a1\",\"name\":\"first\",\"params\":{\"lr\":1e-3,\"n\":3,"
                 "\"deep\":{\"x\":true},\"list\":[1,2]},\"metrics\":{\"accuracy\":0.5},"
                 "\"tags\":{\"api_key\":\"geheim\"},\"duration_s\":2,"
                 "\"memory_peak_mb\":10,\"series\":{\"loss\":[[1,0.5],[2,0.25]]}}",
                 0),
        0);
    assert_int_equal(store_get(store, "a1", &arena, &e), 0);
    assert_string_equal(e.name, "first");
    assert_true(facts_get(&e, FACT_PARAM, "lr", &arena).number == 1e-3);
    assert_int_equal(facts_get(&e, FACT_PARAM, "lr", &arena).type, VALUE_FLOAT);
    assert_int_equal(facts_get(&e, FACT_PARAM, "n", &arena).type, VALUE_INT);
    assert_int_equal(facts_get(&e, FACT_PARAM, "deep.x", &arena).type, VALUE_BOOL);
    assert_memory_equal(facts_get(&e, FACT_PARAM, "list", &arena).text, "[1,2]", 5);
    assert_memory_equal(facts_get(&e, FACT_TAG, "api_key", &arena).text, "[redacted]",
                        10);
    assert_near(e.core[CORE_EFFICIENCY], 0.5 / 20, 1e-12);
    assert_near(e.core[CORE_ACCURACY_PER_S], 0.25, 1e-12);
    assert_true(isnan(e.core[CORE_ENERGY_J]));
    assert_string_equal(e.series, "{\"loss\":[[1,0.5],[2,0.25]]}");
    assert_int_equal(put_json(store, "{\"id\":\"a1\"}", 0), -EEXIST);
    assert_int_equal(put_json(store, "{\"id\":\"a1\",\"name\":\"x\"}", PUT_REPLACE), 0);
    assert_int_equal(store_get(store, "a1", &arena, &e), 0);
    assert_string_equal(e.name, "x");
    assert_null(e.series);
    assert_int_equal(store_get(store, "b", &arena, &e), SONDE_E_NOTFOUND);
    assert_int_equal(count_all(store), 1);
    store_close(store);
    arena_release(&arena);
}

static void lines_with_mistakes_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words;
    } bad[] = {
        { "{\"metric\":{\"a\":1}}", "unknown key \"metric\"" },
        { "{\"metrics\":{\"a\":\"good\"}}", "not a number" },
        { "{\"metrics\":{\"a\":{\"b\":\"good\"}}}", "not a number" },
        { "{\"params\":[1]}", "must be an object" },
        { "{\"duration_s\":\"long\"}", "must be a number" },
        { "{\"id\":\"a/b\"}", "\"id\" may not be" },
        { "{\"name\":\"\"}", "\"name\" may not be empty" },
        { "{\"started\":\"yesterday\"}", "ISO 8601" },
        { "{\"params\":{\"a\":1}", "not JSON" },
        { "[1]", "JSON object" },
        { "{\"series\":{\"a\":1}}", "object of lists" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena = ARENA_INIT;
        struct buf message = BUF_INIT;
        struct experiment e;
        assert_true(experiment_parse(bad[i].line, strlen(bad[i].line), &arena, &e,
                                     &message) < 0);
        if (!strstr(message.data, bad[i].words))
            fail_msg("%s: '%s'", bad[i].line, message.data);
        buf_release(&message);
        arena_release(&arena);
    }
}

static void a_metric_may_be_not_a_number(void **state)
{
    (void)state;
    struct store *store = open_store(STORE_WRITE);
    struct arena arena = ARENA_INIT;
    struct experiment e;
    assert_int_equal(
        put_json(store, "{\"id\":\"n\",\"metrics\":{\"loss\":\"NaN\"}}", 0), 0);
    assert_int_equal(store_get(store, "n", &arena, &e), 0);
    const struct value v = facts_get(&e, FACT_METRIC, "loss", &arena);
    assert_int_equal(v.type, VALUE_FLOAT);
    assert_true(isnan(v.number));
    store_close(store);
    arena_release(&arena);
}

static void files_are_their_owners_alone(void **state)
{
    (void)state;
    static const char *const names[] = { "", "/sonde.db", "/sonde.db-wal",
                                         "/sonde.db-shm" };
    const mode_t before = umask(0);
    struct store *store = open_store(STORE_WRITE);
    assert_int_equal(put_json(store, "{\"id\":\"x\"}", 0), 0);
    for (size_t i = 0; i < 4; i++) {
        char path[160];
        struct stat st;
        (void)snprintf(path, sizeof path, "%s%s", dir, names[i]);
        if (stat(path, &st) == 0)
            assert_int_equal(st.st_mode & 077, 0);
        else
            assert_true(i >= 2);
    }
    store_close(store);
    (void)umask(before);
}

static void removals_are_remembered(void **state)
{
    (void)state;
    struct store *store = open_store(STORE_WRITE);
    int64_t seq, removed, seq_after, removed_after;
    assert_int_equal(put_json(store, "{\"id\":\"x\"}", 0), 0);
    assert_int_equal(store_last_seq(store, &seq, &removed), 0);
    assert_int_equal(store_remove(store, "x"), 0);
    assert_int_equal(store_remove(store, "x"), SONDE_E_NOTFOUND);
    assert_int_equal(store_last_seq(store, &seq_after, &removed_after), 0);
    assert_int_equal(seq_after, seq);
    assert_int_equal(removed_after, removed + 1);
    store_close(store);
}

struct sql_seen {
    int rows;
    char text[64];
};

static int see_sql(void *arg, int columns, const char *const *names,
                   const char *const *texts, const char *types)
{
    struct sql_seen *seen = arg;
    (void)names, (void)types;
    assert_true(columns > 0);
    seen->rows++;
    (void)snprintf(seen->text, sizeof seen->text, "%s", texts[0] ? texts[0] : "");
    return 0;
}

static void sql_reads_and_only_reads(void **state)
{
    (void)state;
    struct store *store = open_store(STORE_WRITE);
    struct buf why = BUF_INIT;
    struct sql_seen seen = { 0 };
    static const char *const writing[] = {
        "DELETE FROM runs",           "UPDATE runs SET id = 'y'", "DROP TABLE runs",
        "ATTACH '/tmp/x.db' AS x",    "PRAGMA user_version = 7",  "VACUUM",
        "SELECT 1; DELETE FROM runs", "CREATE TABLE t (x)",
    };
    assert_int_equal(put_json(store, "{\"id\":\"x\",\"params\":{\"lr\":0.5}}", 0), 0);
    assert_int_equal(store_sql(store, "SELECT value FROM params WHERE key = 'lr'",
                               see_sql, &seen, &why),
                     0);
    assert_int_equal(seen.rows, 1);
    assert_string_equal(seen.text, "0.5");
    for (size_t i = 0; i < sizeof writing / sizeof *writing; i++)
        if (store_sql(store, writing[i], see_sql, &seen, &why) == 0)
            fail_msg("%s was allowed", writing[i]);
    assert_int_equal(count_all(store), 1);
    store_close(store);
    buf_release(&why);
}

static void a_copy_can_be_opened(void **state)
{
    (void)state;
    struct store *store = open_store(STORE_WRITE);
    char copy[160];
    assert_int_equal(put_json(store, "{\"id\":\"x\"}", 0), 0);
    (void)snprintf(copy, sizeof copy, "%s/copy", root);
    assert_int_equal(dir_make(copy, 0700), 0);
    (void)snprintf(copy, sizeof copy, "%s/copy/sonde.db", root);
    assert_int_equal(store_backup(store, copy), 0);
    store_close(store);
    (void)snprintf(dir, sizeof dir, "%s/copy", root);
    store = open_store(0);
    assert_int_equal(count_all(store), 1);
    store_close(store);
}

/* ---- Many at once, and kills -------------------------------------------------------- */

enum { WRITERS = 16, PUTS = 40 };

static void writer(int number)
{
    struct store *store = NULL;
    if (store_open(dir, STORE_WRITE, &store, NULL) < 0)
        _exit(1);
    for (int i = 0; i < PUTS; i++) {
        char json[128];
        (void)snprintf(json, sizeof json, "{\"id\":\"w%d-%d\",\"params\":{\"i\":%d}}",
                       number, i, i);
        if (put_json(store, json, i % 2 ? PUT_REPLACE : 0) < 0)
            _exit(2);
    }
    store_close(store);
    _exit(0);
}

static void sixteen_writers_lose_nothing(void **state)
{
    (void)state;
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            writer(i);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    struct store *store = open_store(0);
    assert_int_equal(count_all(store), WRITERS * PUTS);
    struct buf problems = BUF_INIT;
    assert_int_equal(store_verify(store, &problems), 0);
    buf_release(&problems);
    store_close(store);
}

/* Says on a pipe what it has committed, until it is killed. */
static void tell_and_put(int fd)
{
    struct store *store = NULL;
    if (store_open(dir, STORE_WRITE, &store, NULL) < 0)
        _exit(1);
    for (int i = 0;; i++) {
        char json[256];
        (void)snprintf(json, sizeof json,
                       "{\"id\":\"k%d-%d\",\"params\":{\"i\":%d},\"series\":{\"loss\":"
                       "[1,2,3,4]}}",
                       (int)getpid(), i, i);
        if (put_json(store, json, 0) < 0)
            _exit(2);
        if (write(fd, &i, sizeof i) != sizeof i)
            _exit(3);
    }
}

static void a_kill_at_any_instant_leaves_what_was_committed(void **state)
{
    (void)state;
    struct prng random;
    int64_t committed = 0;
    int64_t started = 0;
    prng_init(&random, 3);
    for (int round = 0; round < 25; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            (void)close(fds[0]);
            tell_and_put(fds[1]);
        }
        (void)close(fds[1]);
        (void)usleep((useconds_t)(2000 + prng_below(&random, 30000)));
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        int last = -1;
        for (int i; read(fds[0], &i, sizeof i) == sizeof i;)
            last = i;
        (void)close(fds[0]);
        committed += last + 1;
        started += last + 2; /* one more may have been under way */
    }
    struct store *store = open_store(STORE_WRITE);
    struct buf problems = BUF_INIT;
    if (store_verify(store, &problems) < 0)
        fail_msg("%s", problems.data);
    const int64_t found = count_all(store);
    if (found < committed || found > started)
        fail_msg("%lld found, %lld committed, %lld begun", (long long)found,
                 (long long)committed, (long long)started);
    buf_release(&problems);
    store_close(store);
}

/* ---- Damage ------------------------------------------------------------------------- */

static void damage_is_told_and_mended(void **state)
{
    (void)state;
    struct store *store = open_store(STORE_WRITE);
    for (int i = 0; i < 3000; i++) {
        char json[200];
        (void)snprintf(json, sizeof json,
                       "{\"id\":\"d%d\",\"params\":{\"text\":\"%0100d\"}}", i, i);
        assert_int_equal(put_json(store, json, 0), 0);
    }
    const struct baseline b = { .name = "main", .run = "d1", .json = "{}" };
    assert_int_equal(store_put_baseline(store, &b), 0);
    char path[160], copy[160];
    (void)snprintf(copy, sizeof copy, "%s/one.db", root);
    (void)snprintf(path, sizeof path, "%s/sonde.db", dir);
    assert_int_equal(store_backup(store, copy), 0); /* everything in one file */
    store_close(store);
    assert_int_equal(file_remove_tree(dir), 0);
    assert_int_equal(dir_make(dir, 0700), 0);
    assert_int_equal(rename(copy, path), 0);

    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    const int fd = open(path, O_WRONLY);
    char rubbish[4096];
    memset(rubbish, 0xa5, sizeof rubbish);
    assert_int_equal(pwrite(fd, rubbish, sizeof rubbish, st.st_size / 2 / 4096 * 4096),
                     sizeof rubbish);
    (void)close(fd);

    struct buf problems = BUF_INIT, note = BUF_INIT;
    store = open_store(0);
    assert_int_equal(store_verify(store, &problems), SONDE_E_FORMAT);
    assert_true(problems.len > 0);
    store_close(store);

    int64_t saved = 0;
    assert_int_equal(store_salvage(dir, &saved, &note), 0);
    assert_true(saved > 2000 && saved <= 3000);
    store = open_store(0);
    buf_clear(&problems);
    assert_int_equal(store_verify(store, &problems), 0);
    assert_int_equal(count_all(store), saved);
    store_close(store);
    buf_release(&problems);
    buf_release(&note);
}

static void rubbish_is_no_store(void **state)
{
    (void)state;
    char path[160];
    struct store *store = NULL;
    struct buf why = BUF_INIT;
    assert_int_equal(store_open(dir, 0, &store, &why), -ENOENT);
    assert_int_equal(dir_make(dir, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/sonde.db", dir);
    assert_int_equal(
        file_write_atomic(path, "this is no database, not at all", 31, 0600), 0);
    buf_clear(&why);
    assert_int_equal(store_open(dir, STORE_WRITE, &store, &why), SONDE_E_FORMAT);
    assert_non_null(strstr(why.data, "verify --repair"));
    buf_release(&why);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_goes_in_comes_out),
        TEST(lines_with_mistakes_are_told_apart),
        TEST(a_metric_may_be_not_a_number),
        TEST(files_are_their_owners_alone),
        TEST(removals_are_remembered),
        TEST(sql_reads_and_only_reads),
        TEST(a_copy_can_be_opened),
        TEST(sixteen_writers_lose_nothing),
        TEST(a_kill_at_any_instant_leaves_what_was_committed),
        TEST(damage_is_told_and_mended),
        TEST(rubbish_is_no_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
