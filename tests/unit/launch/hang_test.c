/* Progress and its absence, second by second. */
#include "launch/hang.h"

#include "unit.h"

static const uint64_t S = 1000000000;

static enum hang_change at(struct hang *h, uint64_t second, uint64_t steps,
                           uint64_t cpu_ticks)
{
    const struct hang_signs signs = { .now_ns = second * S,
                                      .steps = steps,
                                      .cpu_ticks = cpu_ticks };
    return hang_look(h, &signs);
}

static void no_step_for_a_minute_is_a_hang(void **state)
{
    struct hang h;
    (void)state;
    hang_init(&h, 0, 0);
    for (uint64_t t = 1; t <= 100; t++)
        assert_int_equal(at(&h, t, t, t * 100), HANG_NONE);
    for (uint64_t t = 101; t < 160; t++) /* busy, but without steps */
        assert_int_equal(at(&h, t, 100, t * 100), HANG_NONE);
    assert_int_equal(at(&h, 160, 100, 16000), HANG_BEGINS);
    assert_true(h.hanging);
    assert_int_equal(at(&h, 170, 100, 17000), HANG_NONE);
    assert_int_equal(at(&h, 171, 101, 17100), HANG_ENDS);
    assert_false(h.hanging);
    assert_int_equal(h.count, 1);
}

static void slow_steps_are_given_ten_times_as_long(void **state)
{
    struct hang h;
    (void)state;
    hang_init(&h, 0, 0);
    for (uint64_t t = 1; t <= 300; t++)
        assert_int_equal(at(&h, t, t / 20, t), HANG_NONE); /* one in 20 s */
    assert_near((double)hang_patience_ns(&h) / 1e9, 200, 4);
    assert_int_equal(at(&h, 480, 15, 480), HANG_NONE);
    assert_int_equal(at(&h, 510, 15, 510), HANG_BEGINS);
}

static void without_steps_silence_is_only_suspected(void **state)
{
    struct hang h;
    (void)state;
    hang_init(&h, 10 * S, 0);
    for (uint64_t t = 1; t <= 20; t++)
        assert_int_equal(at(&h, t, 0, t * 100), HANG_NONE); /* computes */
    for (uint64_t t = 21; t < 30; t++)
        assert_int_equal(at(&h, t, 0, 2000), HANG_NONE);
    assert_int_equal(at(&h, 30, 0, 2001), HANG_SUSPECTED);
    hang_confirm(&h, 30 * S, false); /* no zone open: sleeps as it likes */
    assert_false(h.hanging);
    assert_int_equal(at(&h, 31, 0, 2001), HANG_NONE);
    assert_int_equal(at(&h, 41, 0, 2001), HANG_SUSPECTED);
    hang_confirm(&h, 41 * S, true);
    assert_true(h.hanging);
    assert_int_equal(at(&h, 50, 0, 2900), HANG_ENDS);
}

static void a_watchdog_thread_is_no_progress(void **state)
{
    struct hang h;
    (void)state;
    hang_init(&h, 60 * S, 0);
    enum hang_change last = HANG_NONE;
    for (uint64_t t = 1; t <= 61 && last == HANG_NONE; t++)
        last = at(&h, t, 0, t / 20); /* 10 ms in 20 s */
    assert_int_equal(last, HANG_SUSPECTED);
}

static void a_stopped_program_does_not_hang(void **state)
{
    struct hang h;
    (void)state;
    hang_init(&h, 5 * S, 0);
    for (uint64_t t = 1; t < 60; t++) {
        const struct hang_signs signs = { .now_ns = t * S,
                                          .steps = 1,
                                          .stopped = true };
        assert_int_equal(hang_look(&h, &signs), HANG_NONE);
    }
    assert_int_equal(at(&h, 61, 1, 0), HANG_NONE);
}

static void off_is_off(void **state)
{
    struct hang h;
    (void)state;
    hang_init(&h, UINT64_MAX, 0);
    assert_int_equal(at(&h, 1, 1, 0), HANG_NONE);
    assert_int_equal(at(&h, 100000, 1, 0), HANG_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_step_for_a_minute_is_a_hang),
        cmocka_unit_test(slow_steps_are_given_ten_times_as_long),
        cmocka_unit_test(without_steps_silence_is_only_suspected),
        cmocka_unit_test(a_watchdog_thread_is_no_progress),
        cmocka_unit_test(a_stopped_program_does_not_hang),
        cmocka_unit_test(off_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
