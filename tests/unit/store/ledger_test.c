#include "store/ledger.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "unit.h"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    return unit_temp_dir(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return file_remove_tree(dir);
}

static struct ledger_entry entry(const char *kind, double mid, double measured)
{
    struct ledger_entry e = { .time_ns = 1,
                              .low = mid - 0.1,
                              .mid = mid,
                              .high = mid + 0.1,
                              .measured = measured };
    (void)snprintf(e.kind, sizeof e.kind, "%s", kind);
    (void)snprintf(e.program, sizeof e.program, "train \"x\".py");
    (void)snprintf(e.before, sizeof e.before, "aaaa");
    (void)snprintf(e.after, sizeof e.after, "bbbb");
    return e;
}

static void an_empty_ledger_knows_nothing(void **state)
{
    (void)state;
    struct ledger_record r;
    assert_int_equal(ledger_read(dir, NULL, &r), 0);
    assert_int_equal(r.tries, 0);
    assert_true(isnan(r.median_error));
    assert_false(ledger_has(dir, "aaaa", "bbbb"));
}

static void what_was_entered_comes_back_by_kind(void **state)
{
    (void)state;
    struct ledger_record r;
    const struct ledger_entry good = entry("data_loading_bound", 0.5, 0.5);
    const struct ledger_entry off = entry("data_loading_bound", 0.5, 0.2);
    const struct ledger_entry other = entry("gc_pauses", 0.1, 0.1);
    assert_int_equal(ledger_append(dir, &good), 0);
    assert_int_equal(ledger_append(dir, &off), 0);
    assert_int_equal(ledger_append(dir, &other), 0);
    assert_int_equal(ledger_read(dir, "data_loading_bound", &r), 0);
    assert_int_equal(r.tries, 2);
    assert_int_equal(r.in_range, 1);
    /* Errors 0 and |0.5 / 0.8 − 1| = 0.375. */
    assert_near(r.median_error, 0.1875, 1e-9);
    assert_int_equal(ledger_read(dir, NULL, &r), 0);
    assert_int_equal(r.tries, 3);
    assert_true(ledger_has(dir, "aaaa", "bbbb"));
    assert_false(ledger_has(dir, "bbbb", "aaaa"));
}

static void broken_lines_are_skipped(void **state)
{
    (void)state;
    struct ledger_record r;
    char path[128];
    const struct ledger_entry e = entry("x", 0.5, 0.5);
    (void)snprintf(path, sizeof path, "%s/ledger.jsonl", dir);
    assert_int_equal(ledger_append(dir, &e), 0);
    FILE *f = fopen(path, "a");
    assert_true(fputs("{\"kind\":1}\nnot json\n{\"kind\":\"x\"", f) > 0);
    assert_true(fputs("\n", f) > 0);
    (void)fclose(f);
    assert_int_equal(ledger_append(dir, &e), 0);
    assert_int_equal(ledger_read(dir, "x", &r), 0);
    assert_int_equal(r.tries, 2);
}

static void nobody_else_may_read_it(void **state)
{
    (void)state;
    char path[128];
    struct stat st;
    const struct ledger_entry e = entry("x", 0.5, 0.5);
    (void)snprintf(path, sizeof path, "%s/ledger.jsonl", dir);
    assert_int_equal(ledger_append(dir, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void numbers_that_are_no_gains_are_refused(void **state)
{
    (void)state;
    const struct ledger_entry none = entry("x", 0.5, NAN);
    const struct ledger_entry all = entry("x", 0.5, 1);
    assert_int_equal(ledger_append(dir, &none), SONDE_E_USAGE);
    assert_int_equal(ledger_append(dir, &all), SONDE_E_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_ledger_knows_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_entered_comes_back_by_kind, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(broken_lines_are_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_else_may_read_it, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_no_gains_are_refused, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
