#include "num/prng.h"

#include "unit.h"

/* The first outputs for state {1, 2, 3, 4}, as published with the Rust crate
 * rand_xoshiro and computed by the authors' xoshiro256starstar.c. */
static void the_sequence_is_the_published_one(void **state)
{
    (void)state;
    struct prng r = { { 1, 2, 3, 4 } };
    static const uint64_t expected[] = {
        11520,
        0,
        1509978240,
        1215971899390074240,
        1216172134540287360,
        607988272756665600,
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_true(prng_next(&r) == expected[i]);
}

static void bounded_numbers_are_even(void **state)
{
    (void)state;
    struct prng r;
    prng_init(&r, 42);
    int hits[6] = { 0 };
    for (int i = 0; i < 60000; i++)
        hits[prng_below(&r, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_near(hits[i], 10000, 400); /* 4.4 standard deviations */
}

static void fractions_fill_the_unit_interval(void **state)
{
    (void)state;
    struct prng r;
    prng_init(&r, 7);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        const double x = prng_double(&r);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_near(sum / 100000, 0.5, 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_is_the_published_one),
        cmocka_unit_test(bounded_numbers_are_even),
        cmocka_unit_test(fractions_fill_the_unit_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
