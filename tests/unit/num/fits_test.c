/* References worked out by hand, or by the textbook's formulas in Python. */
#include "num/loglog.h"
#include "num/nnls.h"
#include "num/offset.h"
#include "num/prng.h"

#include <errno.h>
#include <math.h>

#include "unit.h"

static void mixtures_are_taken_apart_exactly(void **state)
{
    (void)state;
    const double sizes[] = { 100, 500, 1000, 2000, 5000 };
    double a[20], y[5], x[4];
    for (int i = 0; i < 5; i++) {
        const double n = sizes[i];
        y[i] = 3 + 0.02 * n + 4e-6 * n * n;
        for (int j = 0; j < 4; j++)
            a[4 * i + j] = pow(n, j);
    }
    assert_int_equal(nnls_solve(a, y, NULL, 5, 4, x), 0);
    assert_near(x[0], 3, 1e-4);
    assert_near(x[1], 0.02, 1e-6);
    assert_near(x[2], 4e-6, 1e-9);
    assert_near(x[3], 0, 1e-12);
}

/* The line falls; without its slope the mean is best. */
static void what_would_be_negative_is_zero(void **state)
{
    (void)state;
    const double a[] = { 1, 1, 1, 2, 1, 3, 1, 4 }, y[] = { 5, 4, 3.5, 1 };
    double x[2];
    assert_int_equal(nnls_solve(a, y, NULL, 4, 2, x), 0);
    assert_near(x[0], 3.375, 1e-9);
    assert_near(x[1], 0, 0);
}

static void weights_decide_who_is_heard(void **state)
{
    (void)state;
    const double a[] = { 1, 1 }, y[] = { 1, 3 }, weights[] = { 3, 1 };
    double x[1];
    assert_int_equal(nnls_solve(a, y, weights, 2, 1, x), 0);
    assert_near(x[0], 1.5, 1e-12);
}

static void equal_columns_and_nonsense_do_no_harm(void **state)
{
    (void)state;
    const double a[] = { 1, 1, 2, 2, 3, 3 }, y[] = { 2, 4, 6 };
    double x[2];
    assert_int_equal(nnls_solve(a, y, NULL, 3, 2, x), 0);
    assert_near(x[0] + x[1], 2, 1e-9);
    const double bad[] = { NAN };
    assert_int_equal(nnls_solve(bad, y, NULL, 1, 1, x), -EINVAL);
    assert_int_equal(nnls_solve(a, y, NULL, 0, 1, x), -EINVAL);
}

static void powers_have_their_exponent(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 4, 8 }, y[] = { 3, 12, 48, 192 };
    struct exponent e;
    assert_int_equal(loglog_fit(x, y, 4, &e), 0);
    assert_near(e.value, 2, 1e-12);
    assert_near(e.low, 2, 1e-9);
    assert_near(e.high, 2, 1e-9);
    assert_int_equal(e.points, 4);
}

static void growth_is_seen_beyond_a_constant(void **state)
{
    (void)state;
    const double x[] = { 1e3, 2e3, 5e3, 1e4, 2e4, 5e4 };
    double y[6];
    struct offset_power f;
    struct exponent flat;
    for (int i = 0; i < 6; i++) /* errors of 1 %, alternating */
        y[i] = (20 + 2e-4 * x[i]) * (i % 2 ? 1.01 : 0.99);
    assert_int_equal(loglog_fit(x, y, 6, &flat), 0);
    assert_true(flat.high < 0.3);
    assert_int_equal(offset_fit(x, y, 6, &f), 0);
    assert_true(f.exponent.low < 1 && f.exponent.high > 1);
    assert_near(f.exponent.value, 1, 0.3);
    assert_near(f.constant, 20, 1);
    for (int i = 0; i < 6; i++)
        y[i] = 7 + 3e-9 * pow(x[i], 2.5);
    assert_int_equal(offset_fit(x, y, 6, &f), 0);
    assert_near(f.exponent.value, 2.5, 1e-3);
    assert_near(f.factor, 3e-9, 1e-10);
}

/* Sums of 12 uniform numbers: normal enough. */
static double noise(struct prng *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)prng_below(random, 1 << 20) / (1 << 20);
    return sum;
}

static void the_interval_beyond_a_constant_holds_the_truth_mostly(void **state)
{
    (void)state;
    enum { TRIALS = 300 };
    const double x[] = { 1e3, 2e3, 5e3, 1e4, 5e4, 1e5, 2e5 };
    struct prng random;
    int held = 0;
    prng_init(&random, 7);
    for (int t = 0; t < TRIALS; t++) {
        double y[7];
        struct offset_power f;
        for (int i = 0; i < 7; i++)
            y[i] = (8.6 + 6e-5 * x[i]) * (1 + 0.03 * noise(&random));
        if (offset_fit(x, y, 7, &f) < 0)
            continue;
        held += !(f.exponent.low > 1) && !(f.exponent.high < 1);
    }
    assert_true(held > TRIALS * 90 / 100 && held < TRIALS); /* 95 % are meant */
}

static void what_does_not_grow_has_no_exponent(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 4, 8, 16 }, y[] = { 5, 5.1, 4.9, 5.05, 5 };
    struct offset_power f;
    assert_int_equal(offset_fit(x, y, 5, &f), -ENODATA);
    const double scattered[] = { 9, 5, 12, 6, 13 }; /* any exponent would do */
    assert_int_equal(offset_fit(x, scattered, 5, &f), -ENODATA);
    assert_int_equal(offset_fit(x, y, 2, &f), -EINVAL);
    const double zero[] = { 5, 0, 5, 5, 5 };
    assert_int_equal(offset_fit(x, zero, 5, &f), -EINVAL);
}

/* Least squares of (log([1,2,3,5,9]), log([1.1,3.9,9.5,24,84])): slope 1.97255, stderr 0.035356;
 * t(0.975, 3) = 3.1824. */
static void the_interval_is_student_s(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 3, 5, 9 }, y[] = { 1.1, 3.9, 9.5, 24, 84 };
    struct exponent e;
    assert_int_equal(loglog_fit(x, y, 5, &e), 0);
    assert_near(e.value, 1.9725547610785616, 1e-9);
    assert_near(e.high - e.low, 2 * 3.18244630528 * 0.03535608279250202, 1e-6);
}

static void repeats_do_not_pretend_to_be_sizes(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 3, 5, 9, 1, 2, 3, 5, 9 },
                 y[] = { 1.1, 3.9, 9.5, 24, 84, 1.1, 3.9, 9.5, 24, 84 };
    struct exponent once, twice;
    assert_int_equal(loglog_fit(x, y, 5, &once), 0);
    assert_int_equal(loglog_fit(x, y, 10, &twice), 0);
    assert_near(twice.value, once.value, 1e-12);
    assert_true(twice.high - twice.low > 0.7 * (once.high - once.low));
    assert_int_equal(loglog_fit(x, y, 1, &once), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixtures_are_taken_apart_exactly),
        cmocka_unit_test(what_would_be_negative_is_zero),
        cmocka_unit_test(weights_decide_who_is_heard),
        cmocka_unit_test(equal_columns_and_nonsense_do_no_harm),
        cmocka_unit_test(powers_have_their_exponent),
        cmocka_unit_test(growth_is_seen_beyond_a_constant),
        cmocka_unit_test(the_interval_beyond_a_constant_holds_the_truth_mostly),
        cmocka_unit_test(what_does_not_grow_has_no_exponent),
        cmocka_unit_test(the_interval_is_student_s),
        cmocka_unit_test(repeats_do_not_pretend_to_be_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
