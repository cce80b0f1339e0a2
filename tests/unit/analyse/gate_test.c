/* gate_test.c: the gate's judgement: what it promises, simulated; and its corners. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/gatepairs.h"
#include "num/prng.h"

static double noisy(struct prng *r, double factor, double noise)
{
    const double u = 1 - prng_double(r), v = prng_double(r);
    return factor * exp(noise * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

struct kind {
    double noise, drift, tail;
};

static double run_time(struct prng *r, const struct kind *k, double factor, int turn)
{
    const double t = noisy(r, factor, k->noise) * (1 + k->drift * turn / 40);
    return k->tail > 0 && prng_double(r) < k->tail ? t * (1 + 2 * prng_double(r)) : t;
}

/* One gate as `sonde check` runs it. */
static enum gate_verdict gate(struct prng *r, double effect, const struct kind *kind)
{
    static struct gate_pairs pairs;
    size_t pair;
    int first, turn = 0;
    pairs = (struct gate_pairs){ 0 };
    for (int look = 0; look < GATE_LOOKS; look++) {
        while (gate_pairs_next(&pairs, look, &pair, &first)) {
            double values[2][GATE_METRICS];
            values[first][0] = run_time(r, kind, first ? 1 + effect : 1, turn++);
            values[!first][0] = run_time(r, kind, first ? 1 : 1 + effect, turn++);
            gate_pairs_add(&pairs, pair, 1, values);
        }
        struct gate_metric m = { .name = "wall", .threshold = 0.2 };
        struct gate_result result;
        gate_pairs_fold(&pairs, 0, &m);
        gate_judge(&m, 1, look, &result);
        if (result.verdict != GATE_INCONCLUSIVE)
            return result.verdict;
    }
    return GATE_INCONCLUSIVE;
}

static double share_of(enum gate_verdict wanted, double effect, struct kind kind)
{
    enum { GATES = 1000 };
    struct prng random;
    int count = 0;
    prng_init(&random, 17);
    for (int i = 0; i < GATES; i++)
        count += gate(&random, effect, &kind) == wanted;
    return (double)count / GATES;
}

/* The worst kind of machine that docs/gate.md has. */
static const struct kind disturbed = { .noise = 0.15, .drift = 0.3, .tail = 0.1 };

static void false_alarms_are_rare(void **state)
{
    (void)state;
    assert_true(share_of(GATE_FAIL, 0, (struct kind){ .noise = 0.05 }) <= 0.002);
    assert_true(share_of(GATE_FAIL, 0, disturbed) <= 0.01);
    assert_true(share_of(GATE_PASS, 0, (struct kind){ .noise = 0.05 }) >= 0.99);
    assert_true(share_of(GATE_PASS, 0, disturbed) >= 0.95);
}

static void a_slowdown_of_thirty_percent_is_found(void **state)
{
    (void)state;
    assert_true(share_of(GATE_FAIL, 0.3, (struct kind){ .noise = 0.05 }) >= 0.99);
    assert_true(share_of(GATE_FAIL, 0.3, disturbed) >= 0.97);
    assert_true(share_of(GATE_PASS, 0.3, disturbed) <= 0.005);
}

static void the_looks_share_five_percent(void **state)
{
    (void)state;
    double sum = 0;
    for (int look = 0; look < GATE_LOOKS; look++)
        sum += gate_alpha(look);
    assert_near(sum, 0.05, 1e-12);
    assert_near(gate_alpha(-1), 0.05, 0);
}

static void judge_one(const double *before, size_t nb, const double *after, size_t na,
                      struct gate_metric m, struct gate_result *ret)
{
    m.baseline = before;
    m.now = after;
    m.baseline_count = nb;
    m.now_count = na;
    gate_judge(&m, 1, -1, ret);
}

static void counts_are_compared_as_they_are(void **state)
{
    (void)state;
    const double a[] = { 1000, 1000 }, b[] = { 1001, 1001 }, zero[] = { 0, 0 };
    struct gate_result r;
    judge_one(a, 2, a, 2, (struct gate_metric){ .threshold = 0 }, &r);
    assert_true(r.exact && r.verdict == GATE_PASS && r.ratio == 1);
    judge_one(a, 2, b, 2, (struct gate_metric){ .threshold = 0 }, &r);
    assert_true(r.exact && r.verdict == GATE_FAIL);
    judge_one(a, 2, b, 2, (struct gate_metric){ .threshold = 0.01 }, &r);
    assert_int_equal(r.verdict, GATE_PASS);
    judge_one(zero, 2, a, 2, (struct gate_metric){ .threshold = 0.2 }, &r);
    assert_true(r.verdict == GATE_FAIL && isinf(r.ratio));
    judge_one(zero, 2, zero, 2, (struct gate_metric){ .threshold = 0 }, &r);
    assert_int_equal(r.verdict, GATE_PASS);
    judge_one(b, 2, a, 2,
              (struct gate_metric){ .threshold = 0, .more_is_better = true }, &r);
    assert_int_equal(r.verdict, GATE_FAIL);
}

static void counts_below_zero_are_no_ratio(void **state)
{
    (void)state;
    const double a[] = { -2, -2 }, b[] = { -3, -3 }, zero[] = { 0, 0 },
                 five[] = { 5, 5 };
    struct gate_result r;
    judge_one(a, 2, b, 2, (struct gate_metric){ .threshold = 0 }, &r);
    assert_true(r.verdict == GATE_PASS && isnan(r.ratio)); /* less is better */
    judge_one(b, 2, a, 2, (struct gate_metric){ .threshold = 0.2 }, &r);
    assert_true(r.verdict == GATE_FAIL && isinf(r.ratio));
    judge_one(five, 2, zero, 2, (struct gate_metric){ .threshold = 0 }, &r);
    assert_true(r.verdict == GATE_PASS && r.ratio == 0);
    judge_one(five, 2, zero, 2,
              (struct gate_metric){ .threshold = 0.2, .more_is_better = true }, &r);
    assert_int_equal(r.verdict, GATE_FAIL);
}

static void a_few_pairs_of_counts_that_differ_decide_nothing(void **state)
{
    (void)state;
    const double a[] = { 100, 100, 100, 100, 100, 100, 100, 100 };
    const double b[] = { 101, 101, 101, 101, 101, 101, 101, 101 };
    struct gate_result r;
    judge_one(a, 2, b, 2, (struct gate_metric){ .paired = true }, &r);
    assert_true(r.exact && r.verdict == GATE_INCONCLUSIVE && !r.hopeless);
    judge_one(a, 8, b, 8, (struct gate_metric){ .paired = true }, &r);
    assert_true(r.exact && r.verdict == GATE_FAIL);
    judge_one(b, 2, a, 2, (struct gate_metric){ .paired = true }, &r);
    assert_int_equal(r.verdict, GATE_PASS);
}

/* The better of two runs hides that a count varies; the runs know. */
static void counts_that_vary_are_not_exact(void **state)
{
    (void)state;
    const double a[] = { 100, 100, 100, 100, 100, 100, 100, 100 };
    struct gate_result r;
    judge_one(a, 8, a, 8, (struct gate_metric){ .paired = true, .varies = true }, &r);
    assert_false(r.exact);
    judge_one(a, 8, a, 8, (struct gate_metric){ .paired = true }, &r);
    assert_true(r.exact);
}

static void equal_times_pass_and_equal_slower_ones_fail(void **state)
{
    (void)state;
    double a[8], b[8];
    struct gate_result r;
    for (int i = 0; i < 8; i++) {
        a[i] = 0.25;
        b[i] = 0.5;
    }
    judge_one(a, 8, a, 8, (struct gate_metric){ .threshold = 0.2, .paired = true }, &r);
    assert_true(r.verdict == GATE_PASS && r.ratio == 1 && r.low == 1 && r.high == 1);
    judge_one(a, 8, b, 8, (struct gate_metric){ .threshold = 0.2, .paired = true }, &r);
    assert_true(r.verdict == GATE_FAIL);
    assert_near(r.ratio, 2, 1e-12);
}

static void what_is_missing_is_counted_and_decides_nothing(void **state)
{
    (void)state;
    double all[8], half[8], none[8];
    struct gate_result r;
    for (int i = 0; i < 8; i++) {
        all[i] = 1 + i * 0.001;
        half[i] = i % 2 ? NAN : 2;
        none[i] = NAN;
    }
    const struct gate_metric m = { .threshold = 0.2, .paired = true };
    judge_one(all, 8, half, 8, m, &r);
    assert_true(r.verdict == GATE_INCONCLUSIVE && r.hopeless);
    assert_non_null(
        strstr(r.why, "missing in 0 of 8 measurements before, 4 of 8 after"));
    judge_one(all, 8, none, 8, m, &r);
    assert_non_null(strstr(r.why, "not measured after the change"));
    judge_one(none, 8, all, 8, m, &r);
    assert_non_null(strstr(r.why, "not measured before the change"));
}

static void rates_get_worse_by_falling(void **state)
{
    (void)state;
    double fast[10], slow[10];
    struct gate_result r;
    for (int i = 0; i < 10; i++) {
        fast[i] = 200 + i * 0.37;
        slow[i] = 100 + i * 0.19;
    }
    const struct gate_metric m = { .threshold = 0.2, .more_is_better = true };
    judge_one(fast, 10, slow, 10, m, &r);
    assert_int_equal(r.verdict, GATE_FAIL);
    assert_near(r.ratio, 2, 0.02);
    judge_one(slow, 10, fast, 10, m, &r);
    assert_int_equal(r.verdict, GATE_PASS);
}

static void what_cannot_be_told_is_said(void **state)
{
    (void)state;
    const double few[] = { 1, 1.1, 1.05 };
    const double odd[] = { 1, 2, -1, 1, 2, 3, 4, 5.5 };
    double wild[10], other[10];
    struct gate_result r;
    judge_one(few, 3, few, 3, (struct gate_metric){ .threshold = 0.2 }, &r);
    assert_int_equal(r.verdict, GATE_INCONCLUSIVE);
    assert_non_null(strstr(r.why, "at least 8"));
    judge_one(odd, 8, odd, 8, (struct gate_metric){ .threshold = 0.2 }, &r);
    assert_non_null(strstr(r.why, "not positive"));
    judge_one(NULL, 0, few, 3, (struct gate_metric){ .threshold = 0.2 }, &r);
    assert_non_null(strstr(r.why, "not measured before"));
    for (int i = 0; i < 10; i++) {
        wild[i] = 1 + (i * 7 % 10);
        other[i] = 1.3 + (i * 3 % 10);
    }
    judge_one(wild, 10, other, 10, (struct gate_metric){ .threshold = 0.2 }, &r);
    assert_int_equal(r.verdict, GATE_INCONCLUSIVE);
    assert_non_null(strstr(r.why, "too noisy"));
    assert_true(r.smallest > 0.2);
}

/* Sixteen metrics of noise: without correction one in three gates would alarm. */
static void holm_keeps_many_metrics_honest(void **state)
{
    (void)state;
    enum { ROUNDS = 400, METRICS = 16 };
    struct prng random;
    int alarms = 0, plain = 0;
    prng_init(&random, 23);
    for (int round = 0; round < ROUNDS; round++) {
        double a[METRICS][12], b[METRICS][12];
        struct gate_metric m[METRICS];
        struct gate_result r[METRICS], alone;
        for (int k = 0; k < METRICS; k++) {
            for (int i = 0; i < 12; i++) {
                a[k][i] = noisy(&random, 1, 0.1);
                b[k][i] = noisy(&random, 1, 0.1);
            }
            m[k] = (struct gate_metric){ .baseline = a[k],
                                         .now = b[k],
                                         .baseline_count = 12,
                                         .now_count = 12,
                                         .threshold = 0 };
        }
        gate_judge(m, METRICS, -1, r);
        alarms += gate_together(r, METRICS) == GATE_FAIL;
        bool any = false;
        for (int k = 0; k < METRICS; k++) {
            gate_judge(&m[k], 1, -1, &alone);
            any |= alone.verdict == GATE_FAIL;
        }
        plain += any;
    }
    assert_true(alarms <= 0.05 * ROUNDS);
    assert_true(plain > 0.15 * ROUNDS);
}

/* What is said to be seen agrees with what fails: a slowdown beyond it would have been
 * told from none, by the corrected p too. */
static void what_it_could_see_agrees_with_what_fails(void **state)
{
    (void)state;
    struct prng random;
    prng_init(&random, 31);
    for (int round = 0; round < 200; round++) {
        enum { N = 12, METRICS = 3 };
        double a[METRICS][N], b[METRICS][N], slow[N];
        struct gate_metric m[METRICS];
        struct gate_result r[METRICS], again[METRICS];
        for (int k = 0; k < METRICS; k++) {
            for (int i = 0; i < N; i++) {
                a[k][i] = noisy(&random, 1, 0.1);
                b[k][i] = noisy(&random, 1, 0.1);
            }
            m[k] = (struct gate_metric){ .baseline = a[k],
                                         .now = b[k],
                                         .baseline_count = N,
                                         .now_count = N,
                                         .paired = true,
                                         .threshold = 0 };
        }
        gate_judge(m, METRICS, 1, r);
        for (int i = 0; i < N; i++) /* exactly as noisy, slower by a little more */
            slow[i] = b[0][i] / r[0].ratio * (1 + r[0].smallest) * 1.000001;
        m[0].now = slow;
        gate_judge(m, METRICS, 1, again);
        assert_int_equal(again[0].verdict, GATE_FAIL);
    }
}

static void together_the_worst_counts(void **state)
{
    (void)state;
    const struct gate_result results[] = { { .verdict = GATE_PASS },
                                           { .verdict = GATE_INCONCLUSIVE },
                                           { .verdict = GATE_FAIL } };
    assert_int_equal(gate_together(results, 1), GATE_PASS);
    assert_int_equal(gate_together(results, 2), GATE_INCONCLUSIVE);
    assert_int_equal(gate_together(results, 3), GATE_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(false_alarms_are_rare),
        cmocka_unit_test(a_slowdown_of_thirty_percent_is_found),
        cmocka_unit_test(the_looks_share_five_percent),
        cmocka_unit_test(counts_are_compared_as_they_are),
        cmocka_unit_test(counts_below_zero_are_no_ratio),
        cmocka_unit_test(a_few_pairs_of_counts_that_differ_decide_nothing),
        cmocka_unit_test(counts_that_vary_are_not_exact),
        cmocka_unit_test(equal_times_pass_and_equal_slower_ones_fail),
        cmocka_unit_test(what_is_missing_is_counted_and_decides_nothing),
        cmocka_unit_test(rates_get_worse_by_falling),
        cmocka_unit_test(what_cannot_be_told_is_said),
        cmocka_unit_test(holm_keeps_many_metrics_honest),
        cmocka_unit_test(what_it_could_see_agrees_with_what_fails),
        cmocka_unit_test(together_the_worst_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
