#include "cli/cli.h"

#include "unit.h"

static const char *const verbs[] = { "run", "report", "recover", "list", "export" };

static const char *nearest(const char *word)
{
    return cli_nearest(word, verbs, 5);
}

static void a_slip_of_the_finger_is_forgiven(void **state)
{
    (void)state;
    assert_string_equal(nearest("rum"), "run");        /* replaced */
    assert_string_equal(nearest("lst"), "list");       /* left out */
    assert_string_equal(nearest("exxport"), "export"); /* doubled */
    assert_string_equal(nearest("reprot"), "report");  /* swapped */
    assert_string_equal(nearest("REPORT"), "report");
}

static void a_beginning_is_enough_when_it_fits_one_only(void **state)
{
    (void)state;
    assert_string_equal(nearest("exp"), "export");
    assert_string_equal(nearest("rec"), "recover");
    assert_null(nearest("r"));
}

static void what_is_far_from_everything_is_left_alone(void **state)
{
    (void)state;
    assert_null(nearest("train.py"));
    assert_null(nearest("x"));
    assert_null(nearest(""));
    assert_null(nearest("a-word-that-is-longer-than-any-verb-could-be"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_of_the_finger_is_forgiven),
        cmocka_unit_test(a_beginning_is_enough_when_it_fits_one_only),
        cmocka_unit_test(what_is_far_from_everything_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
