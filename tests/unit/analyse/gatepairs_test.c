/* gatepairs_test.c: which run is next, what a pair counts as, and that the test is exact. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/gatepairs.h"
#include "num/prng.h"

static void enter(struct gate_pairs *p, size_t pair, double before, double after)
{
    double values[2][GATE_METRICS] = { { before }, { after } };
    gate_pairs_add(p, pair, 1, values);
}

static void looks_want_more_and_deeper_pairs(void **state)
{
    (void)state;
    static struct gate_pairs p;
    size_t pair, sides[2] = { 0, 0 };
    int first;
    p = (struct gate_pairs){ 0 };
    static const size_t runs[GATE_LOOKS] = { 8, 24, 80 };
    for (int look = 0; look < GATE_LOOKS; look++) {
        while (gate_pairs_next(&p, look, &pair, &first)) {
            sides[first]++;
            enter(&p, pair, 1, 1);
        }
        assert_int_equal(gate_pairs_count(&p), gate_looks[look]);
        assert_int_equal(gate_pairs_runs(&p), runs[look]);
        assert_int_equal(sides[0], sides[1]); /* neither goes first more often */
        for (size_t i = 0; i < gate_looks[look]; i++)
            assert_int_equal(p.rounds[i], gate_rounds[look]);
    }
}

static void the_better_half_counts(void **state)
{
    (void)state;
    double one[] = { 5 }, two[] = { 9, 4 }, four[] = { 8, 3, 100, 5 };
    double lost[] = { 1, NAN, 2, 3 };
    assert_true(gate_better_half(one, 1, false) == 5);
    assert_true(gate_better_half(two, 2, false) == 4);
    assert_true(gate_better_half(two, 2, true) == 9);
    assert_true(gate_better_half(four, 4, false) == 4);
    assert_true(gate_better_half(four, 4, true) == 54);
    assert_true(isnan(gate_better_half(lost, 4, false)));
}

static void folding_points_the_metric_at_its_pairs(void **state)
{
    (void)state;
    static struct gate_pairs p;
    struct gate_metric m = { .threshold = 0.2 };
    p = (struct gate_pairs){ 0 };
    for (size_t i = 0; i < 8; i++)
        enter(&p, i, 10, 20);
    gate_pairs_fold(&p, 0, &m);
    assert_true(m.paired && !m.varies && m.baseline_count == 8 && m.now_count == 8);
    enter(&p, 0, 11, 19); /* the budget may end between two rounds */
    gate_pairs_fold(&p, 0, &m);
    assert_true(m.varies && m.baseline[0] == 10 && m.now[0] == 19 && m.now[1] == 20);
}

/* With threshold 0 a gate fails when it finds any slowdown: of equal sides, however wild
 * and lopsided their noise, at most half of the looks' 5 %. */
static void equal_sides_are_called_slower_at_most_as_often_as_promised(void **state)
{
    (void)state;
    enum { GATES = 3000 };
    static struct gate_pairs p;
    struct prng random;
    int alarms = 0;
    prng_init(&random, 5);
    for (int g = 0; g < GATES; g++) {
        bool failed = false;
        p = (struct gate_pairs){ 0 };
        for (int look = 0; look < GATE_LOOKS; look++) {
            size_t pair;
            int first;
            while (gate_pairs_next(&p, look, &pair, &first))
                enter(&p, pair, 1 / (1 - prng_double(&random)),
                      1 / (1 - prng_double(&random)));
            struct gate_metric m = { .threshold = 0 };
            struct gate_result r;
            gate_pairs_fold(&p, 0, &m);
            gate_judge(&m, 1, look, &r);
            failed |= r.verdict == GATE_FAIL;
        }
        alarms += failed;
    }
    /* 2.5 % and three standard deviations. */
    assert_true(alarms <= 0.025 * GATES + 3 * sqrt(0.025 * 0.975 * GATES));
    assert_true(alarms > 0.01 * GATES); /* and not for want of power */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_want_more_and_deeper_pairs),
        cmocka_unit_test(the_better_half_counts),
        cmocka_unit_test(folding_points_the_metric_at_its_pairs),
        cmocka_unit_test(equal_sides_are_called_slower_at_most_as_often_as_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
