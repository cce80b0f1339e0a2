/* ranksum_test.c: against R's wilcox.test and its own promises.
 *
 * The two data sets are those of R's example(wilcox.test), from Hollander & Wolfe:
 * W = 35, p = 0.1272 and V = 40, p = 0.01953. */
#include "unit.h"

#include <errno.h>
#include <math.h>

#include "num/prng.h"
#include "num/ranksum.h"

static void unpaired_p_is_rs(void **state)
{
    (void)state;
    static const double x[] = { 0.80, 0.83, 1.89, 1.04, 1.45,
                                1.38, 1.91, 1.64, 0.73, 1.46 };
    static const double y[] = { 1.15, 0.88, 0.90, 0.74, 1.21 };
    assert_near(ranksum_p(y, 5, x, 10), 0.1272, 5e-5);
    assert_near(ranksum_cdf(5, 10, 15), 0.1272, 5e-5);
    struct ranktest t;
    assert_int_equal(ranksum_shift(y, 5, x, 10, 0.95, &t), 0);
    assert_near(t.estimate, 0.305, 1e-12); /* of the 50 differences */
    assert_true(t.low < 0 && t.high > t.estimate && t.confidence >= 0.95);
}

static void paired_p_is_rs(void **state)
{
    (void)state;
    static const double x[] = { 1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30 };
    static const double y[] = {
        0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29
    };
    double d[9];
    for (int i = 0; i < 9; i++)
        d[i] = x[i] - y[i];
    assert_near(ranktest_p(d, 9), 0.01953125, 1e-12);
    const double zeros[] = { 0, 0, 0 };
    assert_near(ranktest_p(zeros, 3), 1, 0);
}

/* By counting all ways to choose 3 of 7 places. */
static void the_distribution_is_the_count_of_all_ways(void **state)
{
    (void)state;
    int ways[13] = { 0 }, all = 0;
    for (unsigned set = 0; set < 128; set++) {
        if (__builtin_popcount(set) != 3)
            continue;
        int u = 0;
        for (int i = 0; i < 7; i++)
            for (int j = 0; j < i; j++)
                u += (set >> i & 1) && !(set >> j & 1);
        ways[u]++;
        all++;
    }
    int sum = 0;
    for (size_t u = 0; u <= 12; u++) {
        sum += ways[u];
        assert_near(ranksum_cdf(3, 4, u), (double)sum / all, 1e-12);
    }
    assert_near(ranksum_cdf(40, 40, 1600), 1, 1e-9);
    assert_near(ranksum_cdf(40, 40, 799) + ranksum_cdf(40, 40, 800), 1, 1e-9);
}

static double skewed(struct prng *r)
{
    return -log(1 - prng_double(r));
}

static void intervals_hold_what_they_promise(void **state)
{
    (void)state;
    enum { ROUNDS = 3000 };
    struct prng random;
    int held = 0;
    prng_init(&random, 8);
    for (int round = 0; round < ROUNDS; round++) {
        double x[10], y[12];
        struct ranktest t;
        for (int i = 0; i < 10; i++)
            x[i] = skewed(&random);
        for (int i = 0; i < 12; i++)
            y[i] = skewed(&random) + 0.7;
        assert_int_equal(ranksum_shift(x, 10, y, 12, 0.95, &t), 0);
        held += t.low <= 0.7 && t.high >= 0.7;
    }
    assert_true(held >= 0.945 * ROUNDS && held <= 0.97 * ROUNDS);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct ranktest t;
    const double x[] = { 1, 2 }, bad[] = { 1, NAN };
    assert_int_equal(ranksum_shift(x, 0, x, 2, 0.9, &t), -EINVAL);
    assert_int_equal(ranksum_shift(x, 2, bad, 2, 0.9, &t), -EINVAL);
    assert_int_equal(ranksum_shift(x, 2, x, 2, 1, &t), -EINVAL);
    assert_true(isnan(ranksum_p(x, 2, bad, 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpaired_p_is_rs),
        cmocka_unit_test(paired_p_is_rs),
        cmocka_unit_test(the_distribution_is_the_count_of_all_ways),
        cmocka_unit_test(intervals_hold_what_they_promise),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
