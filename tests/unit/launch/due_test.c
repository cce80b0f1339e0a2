/* Things that share an awakening. */
#include "launch/due.h"

#include "unit.h"

static void nothing_is_never_due(void **state)
{
    (void)state;
    assert_false(is_due((struct due){ 0, 0 }, 0));
    assert_false(is_due(due_at(0, 1000), UINT64_MAX));
    assert_false(is_due(due_exactly_at(0), UINT64_MAX));
}

static void others_wake_it_a_quarter_early(void **state)
{
    (void)state;
    const struct due d = due_at(1000 + 400, 1000);
    assert_int_equal(d.at, 1400);
    assert_false(is_due(d, 1299));
    assert_true(is_due(d, 1300));
    assert_false(is_due(due_exactly_at(1400), 1399));
    assert_true(is_due(due_exactly_at(1400), 1400));
}

static void of_long_pauses_25_ms_at_most(void **state)
{
    (void)state;
    const uint64_t ms = 1000000;
    const struct due d = due_at(2000 * ms, 1000 * ms);
    assert_false(is_due(d, 1974 * ms));
    assert_true(is_due(d, 1975 * ms));
}

static void what_is_late_is_due(void **state)
{
    (void)state;
    assert_true(is_due(due_at(500, 1000), 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_never_due),
        cmocka_unit_test(others_wake_it_a_quarter_early),
        cmocka_unit_test(of_long_pauses_25_ms_at_most),
        cmocka_unit_test(what_is_late_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
