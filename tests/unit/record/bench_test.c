/* bench_test.c: sonde_bench() calls a function as often as it says, and its numbers
 * belong together. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include <sonde/sonde.h>

#include "unit.h"

struct calls {
    unsigned count, slow; /* the call with this number sleeps */
};

static void count_call(void *arg)
{
    struct calls *calls = arg;
    const struct timespec ts = { 0, 50000000 };
    if (++calls->count == calls->slow)
        (void)nanosleep(&ts, NULL);
}

static void sleep_a_little(void *arg)
{
    const struct timespec ts = { 0, 2000000 };
    (void)arg;
    (void)nanosleep(&ts, NULL);
}

static void the_function_runs_as_often_as_asked(void **state)
{
    (void)state;
    static const struct {
        int warmup, runs;
        unsigned warm, measured;
    } cases[] = {
        { 3, 7, 3, 7 },    { 0, 0, 10, 100 }, { -1, 5, 0, 5 },
        { -1, 0, 0, 100 }, { 2, 1, 2, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct calls calls = { 0, 0 };
        struct sonde_bench_result r;
        assert_int_equal(
            sonde_bench(count_call, &calls, cases[i].warmup, cases[i].runs, &r), 0);
        assert_int_equal(calls.count, cases[i].warm + cases[i].measured);
        assert_int_equal(r.warmup, cases[i].warm);
        assert_int_equal(r.runs, cases[i].measured);
    }
}

static void the_numbers_belong_together(void **state)
{
    (void)state;
    struct sonde_bench_result r;
    assert_int_equal(sonde_bench(sleep_a_little, NULL, -1, 25, &r), 0);
    assert_true(r.min_s >= 0.002); /* a sleep is never shorter */
    assert_true(r.min_s <= r.median_s && r.median_s <= r.p95_s && r.p95_s <= r.max_s);
    assert_true(r.min_s <= r.mean_s && r.mean_s <= r.max_s);
    assert_true(r.ci_low_s <= r.mean_s && r.mean_s <= r.ci_high_s);
    assert_true(r.min_s <= r.ci_low_s && r.ci_high_s <= r.max_s);
    assert_true(r.std_s >= 0 && r.std_s <= r.max_s - r.min_s);
    assert_near(r.total_s, r.mean_s * 25, 1e-9);
}

static void a_slow_run_is_an_outlier_and_the_note_says_so(void **state)
{
    (void)state;
    struct calls calls = { 0, 20 };
    struct sonde_bench_result r;
    assert_int_equal(sonde_bench(count_call, &calls, 10, 40, &r), 0);
    assert_true(r.outliers >= 1);
    assert_true(r.max_s >= 0.05);
    assert_non_null(strstr(r.note, "of 40 runs"));
    assert_non_null(strstr(r.note, "disturbed"));
    assert_true(r.median_s < r.max_s);
}

static void warm_up_runs_do_not_count(void **state)
{
    (void)state;
    struct calls calls = { 0, 5 };
    struct sonde_bench_result with, without;
    assert_int_equal(sonde_bench(count_call, &calls, 10, 20, &without), 0);
    calls = (struct calls){ 0, 5 };
    assert_int_equal(sonde_bench(count_call, &calls, -1, 20, &with), 0);
    assert_true(with.max_s >= 0.05 && with.total_s >= 0.05);
    assert_true(without.total_s < with.total_s);
}

static void one_run_has_no_spread(void **state)
{
    (void)state;
    struct calls calls = { 0, 0 };
    struct sonde_bench_result r;
    assert_int_equal(sonde_bench(count_call, &calls, -1, 1, &r), 0);
    assert_true(isnan(r.std_s)); /* missing is not zero */
    assert_true(r.mean_s == r.min_s && r.mean_s == r.max_s && r.mean_s == r.median_s);
    assert_int_equal(r.outliers, 0);
    assert_string_equal(r.note, "");
}

static void senseless_calls_are_refused_and_change_nothing(void **state)
{
    (void)state;
    struct calls calls = { 0, 0 };
    struct sonde_bench_result r, before;
    memset(&r, 0x5a, sizeof r);
    before = r;
    assert_int_equal(sonde_bench(NULL, NULL, 1, 1, &r), -EINVAL);
    assert_int_equal(sonde_bench(count_call, &calls, 1, -1, &r), -EINVAL);
    assert_int_equal(sonde_bench(count_call, &calls, 1, 1, NULL), -EINVAL);
    assert_memory_equal(&r, &before, sizeof r);
    assert_int_equal(calls.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_function_runs_as_often_as_asked),
        cmocka_unit_test(the_numbers_belong_together),
        cmocka_unit_test(a_slow_run_is_an_outlier_and_the_note_says_so),
        cmocka_unit_test(warm_up_runs_do_not_count),
        cmocka_unit_test(one_run_has_no_spread),
        cmocka_unit_test(senseless_calls_are_refused_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
