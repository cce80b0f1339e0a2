#include "tune/repeat.h"

#include <math.h>
#include <stdio.h>

#include "unit.h"

static void add(struct repeat *r, double step_ms, double loop_s)
{
    struct trial_entry e = { .step_ns = step_ms * 1e6,
                             .low_ns = 0.8 * step_ms * 1e6,
                             .high_ns = 1.2 * step_ms * 1e6,
                             .loop_ns = loop_s * 1e9,
                             .loop_low_ns = 0.8 * loop_s * 1e9,
                             .loop_high_ns = 1.2 * loop_s * 1e9,
                             .steps = 60,
                             .median_of = 1 };
    (void)snprintf(e.asked, sizeof e.asked, "gc=40");
    (void)snprintf(e.note, sizeof e.note, "%g ms", step_ms);
    r->done[r->count++] = e;
}

static void one_that_says_what_the_model_says_is_enough(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = 10e6 };
    add(&r, 10.9, NAN);
    assert_false(repeat_is_worth(&r));
    assert_false(repeat_wants_more(&r, 1, 1000));
    r.count = 0;
    add(&r, 9.1, NAN);
    assert_false(repeat_is_worth(&r));
}

static void one_that_differs_from_the_model_or_has_none_is_run_again(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = 10e6 };
    add(&r, 11.5, NAN);
    assert_true(repeat_is_worth(&r));
    r.model_ns = 13.5e6;
    assert_true(repeat_is_worth(&r));
    r.model_ns = NAN;
    assert_true(repeat_is_worth(&r));
    r.model_ns = 0;
    assert_true(repeat_is_worth(&r));
    r.count = 0;
    assert_false(repeat_is_worth(&r)); /* nothing was measured */
}

static void the_loop_is_compared_with_the_loop(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = 5e9, .loop = true };
    add(&r, 3, 5.2);
    assert_false(repeat_is_worth(&r));
    r.loop = false;
    assert_true(repeat_is_worth(&r));
}

static void three_at_most_and_as_many_as_there_is_time_for(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = NAN };
    add(&r, 10, NAN);
    assert_true(repeat_wants_more(&r, 30, 120));
    assert_true(repeat_wants_more(&r, 60, 120));
    assert_false(repeat_wants_more(&r, 61, 120));
    add(&r, 10, NAN);
    assert_true(repeat_wants_more(&r, 80, 120));
    assert_false(repeat_wants_more(&r, 81, 120));
    add(&r, 10, NAN);
    assert_false(repeat_wants_more(&r, 3, 120));
}

static void the_median_counts_and_the_range_has_all_of_them(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = NAN };
    struct trial_entry e;
    add(&r, 8.45, NAN);
    add(&r, 4.31, NAN);
    add(&r, 6.87, NAN);
    repeat_median(&r, &e);
    assert_near(e.step_ns, 6.87e6, 1);
    assert_near(e.low_ns, 4.31e6, 1);
    assert_near(e.high_ns, 8.45e6, 1);
    assert_true(isnan(e.loop_ns));
    assert_int_equal(e.median_of, 3);
    assert_int_equal(e.steps, 60);
    assert_string_equal(e.note, "6.87 ms"); /* what is told is of that one */
    assert_string_equal(e.asked, "gc=40");
}

static void those_that_agree_have_the_usual_range(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = NAN };
    struct trial_entry e;
    add(&r, 10, 2);
    add(&r, 10.5, 2.2);
    add(&r, 10.2, 1.9);
    repeat_median(&r, &e);
    assert_near(e.low_ns, 0.8 * 10.2e6, 1);
    assert_near(e.high_ns, 1.2 * 10.2e6, 1);
    assert_near(e.loop_ns, 2e9, 1); /* each quantity has its own middle */
    assert_near(e.loop_low_ns, 1.6e9, 1);
    assert_near(e.loop_high_ns, 2.4e9, 1);
}

static void of_one_and_of_two_something_is_told_too(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = NAN };
    struct trial_entry e;
    add(&r, 10, 3);
    repeat_median(&r, &e);
    assert_near(e.step_ns, 10e6, 1);
    assert_near(e.loop_high_ns, 3.6e9, 1);
    assert_int_equal(e.median_of, 1);
    add(&r, 14, 3);
    repeat_median(&r, &e);
    assert_near(e.step_ns, 12e6, 1);
    assert_near(e.low_ns, 0.8 * 12e6, 1);
    assert_int_equal(e.median_of, 2);
    assert_string_equal(e.note, "10 ms");
}

/* drone_hover: without its log's calls 3.9 s are left, without all that is done for them 1.8. */
static void calls_alone_say_less_than_the_model(void **state)
{
    (void)state;
    struct repeat r = { .model_ns = 1.8e9, .loop = true, .calls_alone = true };
    assert_false(repeat_says_less(&r)); /* nothing was measured */
    add(&r, 10.2, 3.9);
    assert_true(repeat_says_less(&r));
    assert_false(repeat_wants_more(&r, 5, 120));
    r.calls_alone = false;
    assert_false(repeat_says_less(&r));
    assert_true(repeat_wants_more(&r, 5, 120));
    r.calls_alone = true;
    r.model_ns = 2.9e9; /* some more is what programs differ by */
    assert_false(repeat_says_less(&r));
    r.model_ns = NAN;
    assert_false(repeat_says_less(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_says_what_the_model_says_is_enough),
        cmocka_unit_test(one_that_differs_from_the_model_or_has_none_is_run_again),
        cmocka_unit_test(the_loop_is_compared_with_the_loop),
        cmocka_unit_test(three_at_most_and_as_many_as_there_is_time_for),
        cmocka_unit_test(the_median_counts_and_the_range_has_all_of_them),
        cmocka_unit_test(those_that_agree_have_the_usual_range),
        cmocka_unit_test(of_one_and_of_two_something_is_told_too),
        cmocka_unit_test(calls_alone_say_less_than_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
