/* References: intervals by inverting scipy 1.17.1's exact stats.wilcoxon over all
 * gaps between Walsh averages (another method than ours); the distribution by
 * counting subsets with Python's fractions. */
#include "num/ranktest.h"

#include <errno.h>
#include <math.h>

#include "base/error.h"
#include "unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void expect(const double *d, size_t n, double estimate, double low, double high)
{
    struct ranktest r;
    assert_int_equal(ranktest_paired(d, n, 0.95, &r), 0);
    assert_near(r.estimate, estimate, 1e-12);
    assert_near(r.low, low, 1e-12);
    assert_near(r.high, high, 1e-12);
    assert_true(r.confidence >= 0.95 && r.confidence < 0.97);
}

static void intervals_agree_with_the_inverted_test(void **state)
{
    (void)state;
    /* Hollander & Wolfe's depression scores, the example of R's wilcox.test. */
    static const double depression[] = { 0.952, -0.147, 1.022, 0.43, 0.62,
                                         0.59,  0.49,   -0.08, 0.01 };
    static const double d8[] = {
        8.123, -5.667, 3.254, 0.297, 0.642, 1.353, -4.06, 1.304
    };
    static const double d12[] = { -0.596, 11.969, 2.677, 0.942, 1.156, -0.004,
                                  -1.165, 0.828,  3.446, 1.284, 4.873, 1.401 };
    static const double d20[] = { 2.073, 6.637, 3.635,  0.484,  1.451,  3.622, 7.805,
                                  1.191, 1.269, 5.007,  -0.659, 1.125,  4.648, 3.741,
                                  2.275, 4.01,  -6.484, 5.064,  -0.879, -3.006 };
    static const double d40[] = {
        2.829,  4.102,  0.666,  -1.229, 2.078,  1.842,  6.217, 4.242,  2.581,  5.335,
        1.383,  -0.778, 3.752,  3.748,  1.356,  -0.348, 2.687, -5.482, 4.07,   3.474,
        -2.917, 2.184,  -0.892, 4.272,  -4.103, -0.743, 4.129, 5.469,  -4.474, 0.506,
        2.984,  0.172,  6.772,  -1.574, 3.064,  -1.145, 6.218, 1.935,  0.883,  -3.155,
    };
    expect(depression, COUNT(depression), 0.46, 0.01, 0.786);
    expect(d8, COUNT(d8), 0.899, -2.685, 4.7135);
    expect(d12, COUNT(d12), 1.37175, 0.28, 4.1595);
    expect(d20, COUNT(d20), 2.40975, 0.808, 3.741);
    expect(d40, COUNT(d40), 1.6655, 0.596, 2.729);
}

static void the_null_distribution_is_exact(void **state)
{
    (void)state;
    assert_near(ranktest_signed_rank_cdf(5, 0), 0.03125, 0);
    assert_near(ranktest_signed_rank_cdf(8, 3), 0.01953125, 0);
    assert_near(ranktest_signed_rank_cdf(8, 4), 0.02734375, 0);
    assert_near(ranktest_signed_rank_cdf(12, 13), 0.021240234375, 0);
    assert_near(ranktest_signed_rank_cdf(12, 14), 0.026123046875, 0);
    assert_near(ranktest_signed_rank_cdf(20, 52), 0.02422046661376953, 0);
    assert_near(ranktest_signed_rank_cdf(20, 53), 0.026584625244140625, 0);
    assert_near(ranktest_signed_rank_cdf(40, 820), 1, 0);
}

static void too_few_pairs_lower_the_confidence_and_say_so(void **state)
{
    (void)state;
    const double d[] = { 3, 1, 2, 5, 4 };
    struct ranktest r;
    assert_int_equal(ranktest_paired(d, 5, 0.95, &r), 0);
    assert_near(r.confidence, 0.9375, 0);
    assert_near(r.low, 1, 0);
    assert_near(r.high, 5, 0);
    assert_int_equal(ranktest_paired(d, 1, 0.95, &r), 0);
    assert_near(r.estimate, 3, 0);
    assert_near(r.confidence, 0, 0);
}

/* Above 40 pairs: compared with the exact answer for 40 nearly equal ones. */
static void the_approximation_joins_the_exact_interval(void **state)
{
    (void)state;
    double d[200];
    for (int i = 0; i < 200; i++)
        d[i] = (i % 20) - 4.5;
    struct ranktest exact;
    struct ranktest approximate;
    assert_int_equal(ranktest_paired(d, 40, 0.95, &exact), 0);
    assert_int_equal(ranktest_paired(d, 41, 0.95, &approximate), 0);
    assert_near(approximate.low, exact.low, 0.5);
    assert_near(approximate.high, exact.high, 0.5);
    assert_int_equal(ranktest_paired(d, 200, 0.95, &approximate), 0);
    assert_true(approximate.high - approximate.low < exact.high - exact.low);
}

static void equal_pairs_give_a_point(void **state)
{
    (void)state;
    const double d[10] = { 0 };
    struct ranktest r;
    assert_int_equal(ranktest_paired(d, 10, 0.95, &r), 0);
    assert_near(r.estimate, 0, 0);
    assert_near(r.low, 0, 0);
    assert_near(r.high, 0, 0);
}

static void unusable_input_is_refused(void **state)
{
    (void)state;
    const double bad[] = { 1, INFINITY };
    struct ranktest r = { .estimate = 77 };
    assert_int_equal(ranktest_paired(bad, 0, 0.95, &r), -EINVAL);
    assert_int_equal(ranktest_paired(bad, 2, 0.95, &r), -EINVAL);
    assert_int_equal(ranktest_paired(bad, 1, 1, &r), -EINVAL);
    assert_int_equal(ranktest_paired(bad, RANKTEST_MAX_N + 1, 0.9, &r), SONDE_E_LIMIT);
    assert_near(r.estimate, 77, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_agree_with_the_inverted_test),
        cmocka_unit_test(the_null_distribution_is_exact),
        cmocka_unit_test(too_few_pairs_lower_the_confidence_and_say_so),
        cmocka_unit_test(the_approximation_joins_the_exact_interval),
        cmocka_unit_test(equal_pairs_give_a_point),
        cmocka_unit_test(unusable_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
