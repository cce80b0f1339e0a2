#include "analyse/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "unit.h"

static char dir[64], path[128];

static int setup(void **state)
{
    (void)state;
    if (!unit_temp_dir(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/sonde.yaml", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return file_remove_tree(dir);
}

static int read_text(struct thresholds *t, const char *text, char *error)
{
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600), 0);
    return thresholds_read(t, path, error);
}

static void defaults_and_the_reference_set(void **state)
{
    (void)state;
    struct thresholds t;
    thresholds_init(&t);
    assert_near(t.data_wait, 0.15, 0);
    assert_false(t.reference);
    assert_int_equal(thresholds_use_set(&t, "reference"), 0);
    /* The documents' numbers. */
    assert_near(t.memory_mb, 16000, 0);
    assert_near(t.cpu_busy, 0.95, 0);
    assert_near(t.gpu_busy, 0.70, 0);
    assert_near(t.iowait, 0.20, 0);
    assert_near(t.leak_mb, 100, 0);
    assert_near(t.gpu_memory, 0.90, 0);
    assert_near(t.batch_ms, 100, 0);
    assert_near(t.sample_ms, 1, 0);
    /* The rest stays. */
    assert_near(t.data_wait, 0.15, 0);
    assert_int_equal(thresholds_use_set(&t, "strict"), -EINVAL);
}

static void every_threshold_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    struct thresholds t;
    thresholds_init(&t);
    for (size_t i = 0; i < threshold_count; i++) {
        const struct threshold_info *info = &threshold_infos[i];
        assert_true(info->name[0] && info->unit[0] && info->text[0]);
        assert_int_equal(thresholds_set(&t, info->name, 0.5), 0);
        assert_near(*(double *)((char *)&t + info->offset), 0.5, 0);
    }
    assert_int_equal(thresholds_set(&t, "data_wait", -1), -EINVAL);
    assert_int_equal(thresholds_set(&t, "data_wait", NAN), -EINVAL);
}

static void a_file_changes_what_it_names(void **state)
{
    (void)state;
    struct thresholds t;
    char error[THRESHOLDS_ERROR_LEN] = "";
    thresholds_init(&t);
    const int rc = read_text(&t,
                             "# mine\nname: x\nother:\n  - 1\n  - {a: [b]}\n"
                             "rules:\n  data_wait: 0.3\n  off: [gc_pauses, io_wait]\n"
                             "more: 2\n",
                             error);
    if (rc == -ENOSYS)
        skip(); /* built without libyaml */
    assert_int_equal(rc, 0);
    assert_near(t.data_wait, 0.3, 0);
    assert_near(t.gc, 0.05, 0);
    assert_true(thresholds_is_off(&t, "gc_pauses"));
    assert_true(thresholds_is_off(&t, "io_wait"));
    assert_false(thresholds_is_off(&t, "fd_leak"));
}

static void what_a_file_gets_wrong_is_told_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *told;
    } rows[] = {
        { "rules:\n  data_wiat: 1\n", "line 2" },
        { "rules:\n  data_wait: much\n", "not a number" },
        { "rules:\n  data_wait: -1\n", "a share from 0 to 1" },
        { "rules:\n  data_wait: 15\n", "a share from 0 to 1, and cannot be '15'" },
        { "rules:\n  leak_mb: -1\n", "0 or more" },
        { "rules:\n  off: [gc_pauses, nonsense]\n", "no such rule: 'nonsense'" },
        { "rules:\n  off: nonsense\n", "no such rule" },
        { "rules:\n  gc: 0.1\n  gc: 0.2\n", "line 3: stands there twice: 'gc'" },
        { "rules:\n  gc: 0.1\nrules:\n  gc: 0.2\n", "line 3: stands there twice" },
        { "a: 1\nrulez:\n  data_wait: 0.3\n", "line 2: no such section" },
        { "rules:\n  data_wait: nan\n", "not a number" },
        { "rules:\n  set: strict\n", "no such set" },
        { "rules: 5\n", "table" },
        { "rules:\n  off: {a: b}\n", "list" },
        { "rules: [\n", "line" },
        { "rules:\n\tx: 1\n", "line 2" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct thresholds t;
        char error[THRESHOLDS_ERROR_LEN] = "";
        thresholds_init(&t);
        const int rc = read_text(&t, rows[i].text, error);
        if (rc == -ENOSYS)
            skip();
        assert_int_equal(rc, SONDE_E_FORMAT);
        if (!strstr(error, rows[i].told))
            fail_msg("'%s' does not say '%s'", error, rows[i].told);
        assert_near(t.data_wait, 0.15, 0);
    }
}

static void no_file_and_an_empty_one_change_nothing(void **state)
{
    (void)state;
    struct thresholds t;
    char error[THRESHOLDS_ERROR_LEN];
    thresholds_init(&t);
    if (thresholds_read(&t, path, error) == -ENOSYS)
        skip();
    assert_int_equal(thresholds_read(&t, path, error), -ENOENT);
    assert_int_equal(read_text(&t, "", error), 0);
    assert_int_equal(read_text(&t, "# nothing\n", error), 0);
    assert_int_equal(read_text(&t, "- a list\n", error), 0);
    assert_near(t.data_wait, 0.15, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_the_reference_set),
        cmocka_unit_test(every_threshold_has_a_name_and_a_sentence),
        cmocka_unit_test_setup_teardown(a_file_changes_what_it_names, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_file_gets_wrong_is_told_with_its_line,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(no_file_and_an_empty_one_change_nothing, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
