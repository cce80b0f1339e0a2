/* correlate_test.c: against R 4.2: cor.test(x, y), cor(x, y, method = "spearman"). */
#include "unit.h"

#include <errno.h>
#include <math.h>

#include "num/correlate.h"
#include "num/prng.h"

/* Anscombe's first pair, and its ranks' correlation. */
static const double x[] = { 10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5 };
static const double y[] = { 8.04, 6.95, 7.58,  8.81, 8.33, 9.96,
                            7.24, 4.26, 10.84, 4.82, 5.68 };

static void pearson_is_rs(void **state)
{
    (void)state;
    struct correlation c;
    assert_int_equal(correlate_pearson(x, y, 11, 0.95, &c), 0);
    assert_near(c.r, 0.8164205163448399, 1e-12);
    assert_near(c.p, 0.002169628873078783, 1e-9);
    assert_near(c.low, 0.4243912, 1e-6);
    assert_near(c.high, 0.9506933, 1e-6);
}

static void spearman_is_rs(void **state)
{
    (void)state;
    struct correlation c;
    assert_int_equal(correlate_spearman(x, y, 11, 0.95, &c), 0);
    assert_near(c.r, 0.8181818181818182, 1e-12);
    const double half = 1.959963984540054 * sqrt((1 + c.r * c.r / 2) / 8);
    assert_near(c.low, tanh(atanh(c.r) - half), 1e-9);
}

static void ties_share_their_rank(void **state)
{
    (void)state;
    static const double values[] = { 3, 1, 3, 2, 3 };
    static const double right[] = { 4, 1, 4, 2, 4 };
    double ranks[5];
    assert_int_equal(rank_values(values, 5, ranks), 0);
    for (int i = 0; i < 5; i++)
        assert_near(ranks[i], right[i], 0);
}

static void what_does_not_vary_has_no_correlation(void **state)
{
    (void)state;
    static const double flat[] = { 1, 1, 1, 1 };
    static const double odd[] = { 1, 2, NAN, 4 };
    struct correlation c;
    assert_int_equal(correlate_pearson(flat, x, 4, 0.95, &c), -EINVAL);
    assert_int_equal(correlate_spearman(x, flat, 4, 0.95, &c), -EINVAL);
    assert_int_equal(correlate_pearson(odd, x, 4, 0.95, &c), -EINVAL);
    assert_int_equal(correlate_pearson(x, x, 1, 0.95, &c), -EINVAL);
    assert_int_equal(correlate_pearson(x, x, 5, 0.95, &c), 0);
    assert_near(c.r, 1, 1e-12);
}

/* Of intervals of independent pairs, as many hold 0 as they promise. */
static void intervals_hold_what_they_promise(void **state)
{
    (void)state;
    enum { ROUNDS = 2000, N = 20 };
    struct prng random;
    int pearson = 0, spearman = 0;
    prng_init(&random, 4);
    for (int i = 0; i < ROUNDS; i++) {
        double a[N], b[N];
        struct correlation c;
        for (int k = 0; k < N; k++) {
            a[k] = prng_double(&random);
            b[k] = prng_double(&random);
        }
        assert_int_equal(correlate_pearson(a, b, N, 0.95, &c), 0);
        pearson += c.low <= 0 && c.high >= 0;
        assert_int_equal(correlate_spearman(a, b, N, 0.95, &c), 0);
        spearman += c.low <= 0 && c.high >= 0;
    }
    assert_true(pearson > 0.93 * ROUNDS && pearson < 0.97 * ROUNDS);
    assert_true(spearman > 0.93 * ROUNDS && spearman < 0.975 * ROUNDS);
}

static void the_front_is_what_nobody_beats(void **state)
{
    (void)state;
    enum { N = 300, GOALS = 3 };
    static const bool bigger[GOALS] = { true, false, false };
    static double values[GOALS * N];
    static bool front[N];
    struct prng random;
    prng_init(&random, 6);
    for (int i = 0; i < GOALS * N; i++)
        values[i] = (double)prng_below(&random, 12);
    values[7] = NAN;
    assert_int_equal(pareto_front(values, N, bigger, GOALS, front), 0);
    for (int i = 0; i < N; i++) {
        bool beaten = isnan(values[i]);
        for (int k = 0; k < N && !beaten; k++) {
            bool no_worse = !isnan(values[k]), better = false;
            for (int g = 0; g < GOALS; g++) {
                const double sign = bigger[g] ? 1 : -1;
                const double d = sign * (values[g * N + k] - values[g * N + i]);
                no_worse &= d >= 0;
                better |= d > 0;
            }
            beaten = no_worse && better;
        }
        assert_int_equal(front[i], !beaten);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pearson_is_rs),
        cmocka_unit_test(spearman_is_rs),
        cmocka_unit_test(ties_share_their_rank),
        cmocka_unit_test(what_does_not_vary_has_no_correlation),
        cmocka_unit_test(intervals_hold_what_they_promise),
        cmocka_unit_test(the_front_is_what_nobody_beats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
