/* References: scipy 1.1x stats.theilslopes; Pettitt's K by counting signs of all pairs,
 * p by its formula. */
#include "num/trend.h"

#include <errno.h>
#include <math.h>

#include "base/error.h"
#include "num/prng.h"
#include "unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void slopes_agree_with_scipy(void **state)
{
    (void)state;
    static const double y[] = { -0.802, -1.024, 0.352, 1.32,  2.336, 1.61,
                                1.247,  41.315, 3.149, 4.335, 3.273, 2.067 };
    static const double x2[] = { 43.49, 97.42, 89.77, 84.42, 39.24, 49.3,  67.67, 6.08,
                                 55.56, 27.15, 87.97, 6.42,  67.92, 87.01, 22.73, 89.54,
                                 87.22, 1.85,  70.75, 0.12,  50.34, 43.67, 20.33, 32.49,
                                 80.62, 31.65, 14.9,  69.85, 44.85, 79.89 };
    static const double y2[] = { -1.649, -2.772, -1.594, -0.048, 3.089,  1.271,
                                 2.542,  6.726,  3.488,  2.127,  -0.053, 4.748,
                                 2.004,  -1.194, 3.469,  -0.298, -1.767, 7.656,
                                 -0.459, 5.436,  0.489,  0.714,  3.57,   2.696,
                                 -1.212, 0.553,  3.075,  -1.375, 1.453,  -0.413 };
    double x[COUNT(y)];
    struct trend t;
    for (size_t i = 0; i < COUNT(y); i++)
        x[i] = (double)i;
    assert_int_equal(trend_fit(x, y, COUNT(y), 0.95, &t), 0);
    assert_near(t.slope, 0.43676666666666664, 1e-12);
    assert_near(t.low, 0.1561666666666667, 1e-12);
    assert_near(t.high, 0.6812499999999999, 1e-12);
    assert_int_equal(trend_fit(x2, y2, COUNT(y2), 0.90, &t), 0);
    assert_near(t.slope, -0.0760887822435513, 1e-12);
    assert_near(t.low, -0.08435765673175745, 1e-12);
    assert_near(t.high, -0.059311926605504585, 1e-12);
}

static void a_straight_line_is_found_exactly(void **state)
{
    (void)state;
    double x[20], y[20];
    struct trend t;
    for (int i = 0; i < 20; i++) {
        x[i] = 3 * i;
        y[i] = 7 + 0.25 * x[i];
    }
    assert_int_equal(trend_fit(x, y, 20, 0.95, &t), 0);
    assert_near(t.slope, 0.25, 1e-12);
    assert_near(t.intercept, 7, 1e-12);
    assert_near(t.high - t.low, 0, 1e-12);
}

static void a_slope_needs_points(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 3, 4 };
    const double same[] = { 1, 1, 1, 1 };
    const double bad[] = { 1, 2, NAN, 4 };
    struct trend t;
    assert_int_equal(trend_fit(x, x, 3, 0.95, &t), -EINVAL);
    assert_int_equal(trend_fit(same, x, 4, 0.95, &t), -EINVAL);
    assert_int_equal(trend_fit(x, bad, 4, 0.95, &t), -EINVAL);
    assert_int_equal(trend_fit(x, x, TREND_MAX_N + 1, 0.95, &t), SONDE_E_LIMIT);
}

static void the_likeliest_jump_agrees_with_counting_pairs(void **state)
{
    (void)state;
    static const double v[] = { 10.1,  11.9,  10.48, 8.42,  11.73, 10.35, 9.06,
                                10.91, 10.02, 9.38,  9.37,  9.01,  10.05, 11.07,
                                9.67,  12.42, 13.88, 10.79, 12.26, 11.69, 10.94,
                                10.97, 11.98, 12.43, 11.47 };
    size_t at;
    double p;
    assert_int_equal(change_most_likely(v, COUNT(v), &at, &p), 0);
    assert_int_equal(at, 15);
    assert_near(p, 0.00820933310290112, 1e-12);
}

static const struct change_limits usual = { .p = 0.001, .ratio = 0.1, .part = 8 };

static double noise(struct prng *prng)
{
    return prng_double(prng) - 0.5;
}

static void two_jumps_are_found_where_they_are(void **state)
{
    (void)state;
    struct prng prng;
    double v[240];
    struct change found[8];
    size_t count;
    prng_init(&prng, 7);
    for (int i = 0; i < 240; i++)
        v[i] = (i < 80 ? 10 : i < 170 ? 14 : 11) + noise(&prng);
    assert_int_equal(change_find(v, 240, &usual, found, 8, &count), 0);
    assert_int_equal(count, 2);
    assert_true(found[0].at >= 79 && found[0].at <= 81);
    assert_true(found[1].at >= 169 && found[1].at <= 171);
    assert_near(found[0].before, 10, 0.2);
    assert_near(found[0].after, 14, 0.2);
    assert_near(found[1].after, 11, 0.2);
}

static void noise_has_no_jumps(void **state)
{
    (void)state;
    struct prng prng;
    double v[256];
    struct change found[8];
    size_t count, wrong = 0;
    for (unsigned seed = 0; seed < 100; seed++) {
        prng_init(&prng, seed);
        for (int i = 0; i < 256; i++)
            v[i] = 10 + noise(&prng) + (i % 37 == 5 ? 60 : 0);
        assert_int_equal(change_find(v, 256, &usual, found, 8, &count), 0);
        wrong += count;
    }
    assert_int_equal(wrong, 0);
}

static void a_sure_but_tiny_jump_is_left_alone(void **state)
{
    (void)state;
    double v[100];
    struct change found[4];
    size_t count;
    for (int i = 0; i < 100; i++)
        v[i] = i < 50 ? 10 : 10.5;
    assert_int_equal(change_find(v, 100, &usual, found, 4, &count), 0);
    assert_int_equal(count, 0);
    for (int i = 50; i < 100; i++)
        v[i] = 11.1;
    assert_int_equal(change_find(v, 100, &usual, found, 4, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(found[0].at, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_agree_with_scipy),
        cmocka_unit_test(a_straight_line_is_found_exactly),
        cmocka_unit_test(a_slope_needs_points),
        cmocka_unit_test(the_likeliest_jump_agrees_with_counting_pairs),
        cmocka_unit_test(two_jumps_are_found_where_they_are),
        cmocka_unit_test(noise_has_no_jumps),
        cmocka_unit_test(a_sure_but_tiny_jump_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
