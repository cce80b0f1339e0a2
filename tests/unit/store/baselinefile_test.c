/* baselinefile_test.c: baselines as JSON; what a command runs and whether it changed. */
#include "unit.h"

#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "store/baselinefile.h"
#include "store/fingerprint.h"

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

static void what_is_written_is_read(void **state)
{
    (void)state;
    char *command[] = { "python", "train.py", "--lr=1e-3" };
    double wall[] = { 1.5, 1.25, 0.1 };
    const struct baseline_doc doc = {
        .name = "main",
        .run = "",
        .cwd = "/w",
        .machine = "cpu, 2 cores",
        .fingerprint = "abc",
        .command = command,
        .command_count = 3,
        .created_ns = INT64_C(1700000000000000000),
        .metrics = { { "wall", wall, 3 } },
        .metric_count = 1,
    };
    struct buf json = BUF_INIT, message = BUF_INIT;
    struct arena arena = ARENA_INIT;
    struct baseline_doc again;
    assert_int_equal(baseline_write(&doc, &json), 0);
    assert_int_equal(baseline_parse(json.data, json.len, &arena, &again, &message), 0);
    assert_string_equal(again.name, "main");
    assert_string_equal(again.run, "");
    assert_int_equal(again.command_count, 3);
    assert_string_equal(again.command[2], "--lr=1e-3");
    assert_null(again.command[3]);
    assert_true(again.created_ns == doc.created_ns);
    assert_non_null(baseline_find(&again, "wall"));
    assert_null(baseline_find(&again, "cpu"));
    assert_memory_equal(baseline_find(&again, "wall")->values, wall, sizeof wall);
    buf_release(&json);
    buf_release(&message);
    arena_release(&arena);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"schema\":\"sonde.baseline/2\"}",
        "{\"schema\":\"sonde.baseline/1\"",
        "{\"schema\":\"sonde.baseline/1\"} x",
        "{\"schema\":\"sonde.baseline/1\",\"metrics\":[]}",
        "{\"schema\":\"sonde.baseline/1\",\"metrics\":{\"a\":1}}",
        "{\"schema\":\"sonde.baseline/1\",\"metrics\":{\"a\":[\"x\"]}}",
        "{\"schema\":\"sonde.baseline/1\",\"metrics\":{\"a\":[1e999]}}",
        "{\"schema\":\"sonde.baseline/1\",\"command\":\"ls\"}",
        "{\"schema\":\"sonde.baseline/1\",\"command\":[1]}",
        "{\"schema\":\"sonde.baseline/1\",\"name\":\"a\\u0000b\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena = ARENA_INIT;
        struct buf message = BUF_INIT;
        struct baseline_doc doc;
        if (baseline_parse(bad[i], strlen(bad[i]), &arena, &doc, &message) == 0)
            fail_msg("%s was taken", bad[i]);
        assert_true(message.len > 0);
        arena_release(&arena);
        buf_release(&message);
    }
}

static void put(const char *name, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600), 0);
}

static void look(char ret[FINGERPRINT_LEN])
{
    char *command[] = { "sh", "run.sh" };
    assert_int_equal(fingerprint_of(command, 2, root, ret, NULL), 0);
    assert_int_equal(strlen(ret), 32);
}

static void any_source_that_changes_is_seen(void **state)
{
    (void)state;
    char first[FINGERPRINT_LEN], now[FINGERPRINT_LEN];
    char path[160];
    put("run.sh", "echo 1");
    (void)snprintf(path, sizeof path, "%s/pkg", root);
    assert_int_equal(dir_make(path, 0700), 0);
    put("pkg/model.py", "x = 1");
    put("weights.bin", "1");
    look(first);
    look(now);
    assert_string_equal(first, now);
    put("weights.bin", "2"); /* what programs write is no source */
    look(now);
    assert_string_equal(first, now);
    put("pkg/model.py", "x = 2");
    look(now);
    assert_string_not_equal(first, now);
    put("pkg/model.py", "x = 1");
    look(now);
    assert_string_equal(first, now);
    put("pkg/new.py", "");
    look(now);
    assert_string_not_equal(first, now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test_setup_teardown(any_source_that_changes_is_seen, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
