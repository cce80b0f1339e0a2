/* References: numpy 2 and scipy 1.17.1 (stats.t.interval, stats.bootstrap with
 * 200,000 resamples, method "percentile"). */
#include "num/summary.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "unit.h"

static const double times[] = { 12.1, 11.8, 12.4, 12.0, 11.9, 12.2,
                                12.3, 11.7, 12.0, 12.1, 19.5, 12.05 };

static const double normal[] = {
    91.98,  86.76,  97.52,  104.2,  111.36, 101.1,  94.47,  92.15,  107.49, 116.35,
    102.73, 87.67,  90.42,  116.0,  102.03, 82.68,  99.16,  88.37,  93.71,  95.12,
    92.87,  105.53, 99.37,  94.11,  104.1,  108.3,  83.57,  97.43,  90.19,  98.27,
    87.11,  100.21, 99.62,  96.96,  89.52,  96.04,  89.09,  86.45,  102.25, 88.91,
    111.7,  107.17, 80.02,  102.72, 88.98,  100.33, 100.44, 80.12,  97.67,  97.44,
    109.62, 88.19,  107.38, 89.01,  96.69,  91.6,   114.49, 105.68, 124.32, 106.42,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void every_statistic_agrees_with_numpy(void **state)
{
    (void)state;
    struct summary s;
    assert_int_equal(summary_compute(times, COUNT(times), 1, &s), 0);
    assert_int_equal(s.n, 12);
    assert_near(s.mean, 12.670833333333334, 1e-12);
    assert_near(s.std, 2.159593641630225, 1e-12);
    assert_near(s.min, 11.7, 0);
    assert_near(s.max, 19.5, 0);
    assert_near(s.median, 12.075, 1e-12);
    assert_near(s.p95, 15.595, 1e-12);
    assert_near(s.p99, 18.719, 1e-12);
    assert_near(s.mean_t.low, 11.298692996489502, 1e-9);
    assert_near(s.mean_t.high, 14.042973670177167, 1e-9);
}

/* The bound leaves room for the chance of 2,000 resamples. */
static void bootstrap_intervals_agree_with_scipy(void **state)
{
    (void)state;
    struct summary s;
    assert_int_equal(summary_compute(normal, COUNT(normal), 1, &s), 0);
    assert_near(s.mean_boot.low, 95.4968, 0.25);
    assert_near(s.mean_boot.high, 100.2725, 0.25);
    assert_int_equal(summary_compute(times, COUNT(times), 1, &s), 0);
    assert_near(s.mean_boot.low, 11.9667, 0.05);
    assert_near(s.mean_boot.high, 13.9583, 0.3);

    struct interval many;
    assert_int_equal(
        summary_bootstrap_mean(normal, COUNT(normal), 100000, 0.95, 9, &many), 0);
    assert_near(many.low, 95.4968, 0.04);
    assert_near(many.high, 100.2725, 0.04);
}

static void the_same_seed_gives_the_same_digits_in_any_order(void **state)
{
    (void)state;
    double reversed[COUNT(normal)];
    for (size_t i = 0; i < COUNT(normal); i++)
        reversed[i] = normal[COUNT(normal) - 1 - i];
    struct summary a;
    struct summary b;
    assert_int_equal(summary_compute(normal, COUNT(normal), 5, &a), 0);
    assert_int_equal(summary_compute(reversed, COUNT(normal), 5, &b), 0);
    assert_memory_equal(&a, &b, sizeof(a));
}

static void a_small_spread_on_a_large_mean_keeps_its_digits(void **state)
{
    (void)state;
    const double values[] = { 1e9 + 1, 1e9 + 2, 1e9 + 3 };
    struct summary s;
    assert_int_equal(summary_compute(values, 3, 1, &s), 0);
    assert_near(s.std, 1, 1e-12);
    assert_near(s.mean, 1e9 + 2, 0);
}

static void one_value_has_no_spread(void **state)
{
    (void)state;
    const double value = 3;
    struct summary s;
    assert_int_equal(summary_compute(&value, 1, 1, &s), 0);
    assert_near(s.mean, 3, 0);
    assert_near(s.p99, 3, 0);
    assert_true(isnan(s.std) && isnan(s.mean_t.low) && isnan(s.mean_boot.high));
}

static void unusable_values_are_refused(void **state)
{
    (void)state;
    const double bad[] = { 1, NAN };
    struct summary s = { .n = 77 };
    assert_int_equal(summary_compute(bad, 2, 1, &s), -EINVAL);
    assert_int_equal(summary_compute(bad, 0, 1, &s), -EINVAL);
    assert_int_equal(s.n, 77);
}

static void many_values_are_summed_up_quickly(void **state)
{
    (void)state;
    enum { N = 300000 };
    double *values = malloc(N * sizeof(*values));
    for (int i = 0; i < N; i++)
        values[i] = i;
    struct summary s;
    assert_int_equal(summary_compute(values, N, 1, &s), 0);
    assert_near(s.mean, (N - 1) / 2.0, 1e-6);
    assert_near(s.median, (N - 1) / 2.0, 1e-6);
    assert_near(s.mean_boot.low, s.mean_t.low, 0);
    free(values);
}

static void expect_note(const double *values, size_t n, const char *expected)
{
    struct summary s;
    char note[SUMMARY_NOTE_LEN];
    assert_int_equal(summary_compute(values, n, 1, &s), 0);
    assert_string_equal(summary_note(&s, note), expected);
}

static void outliers_are_named(void **state)
{
    (void)state;
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = 100 + i % 10;
    expect_note(values, 100, "");
    values[0] = 300;
    expect_note(values, 100,
                "1 of 100 runs is an outlier (high): the machine was disturbed");
    values[1] = values[2] = 250;
    expect_note(values, 100,
                "3 of 100 runs are outliers (high): the machine was disturbed");
    values[3] = 1;
    expect_note(
        values, 100,
        "4 of 100 runs are outliers (3 high, 1 low): the machine was disturbed");
    values[0] = values[1] = values[2] = 100;
    expect_note(values, 100,
                "1 of 100 runs is an outlier (low): a few runs were unusually fast");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_statistic_agrees_with_numpy),
        cmocka_unit_test(bootstrap_intervals_agree_with_scipy),
        cmocka_unit_test(the_same_seed_gives_the_same_digits_in_any_order),
        cmocka_unit_test(a_small_spread_on_a_large_mean_keeps_its_digits),
        cmocka_unit_test(one_value_has_no_spread),
        cmocka_unit_test(unusable_values_are_refused),
        cmocka_unit_test(many_values_are_summed_up_quickly),
        cmocka_unit_test(outliers_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
