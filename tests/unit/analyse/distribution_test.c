/* distribution_test.c: merged statistics against brute force. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "fake_trace.h"

#include "analyse/distribution.h"

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t random_bits(void)
{
    static uint64_t s = 88172645463325252u;
    s ^= s << 13;
    s ^= s >> 7;
    return s ^= s << 17;
}

static double uniform(void)
{
    return (double)(random_bits() >> 11) / 9007199254740992.0;
}

enum { PARTS = 7, EACH = 3000, ALL = PARTS * EACH };

typedef double shape_fn(int part, int i);

static double narrow(int part, int i)
{
    (void)part, (void)i;
    return 1e6 + uniform() * 10;
}
static double wide(int part, int i)
{
    (void)part, (void)i;
    return pow(10, 1 + 9 * uniform());
}
static double two_peaks(int part, int i)
{
    (void)part;
    return i % 20 == 0 ? 5e8 * (1 + uniform() / 100) : 200 + uniform();
}
static double each_part_its_own(int part, int i)
{
    (void)i;
    return pow(20, part + 1) * (1 + uniform() / 10);
}
static double short_ones(int part, int i)
{
    (void)part, (void)i;
    return floor(uniform() * 40) * 0.4;
}

/* Parts with slightly different clocks, as processes of several hosts would have. */
static void check(shape_fn *shape)
{
    static double all[ALL];
    static double part[EACH];
    struct distribution merged = { 0 };
    for (int p = 0; p < PARTS; p++) {
        struct trace *t = fake_trace("x.sonde", 1);
        t->info.ns_per_tick = 0.4 * (1 + p * 1e-4);
        for (int i = 0; i < EACH; i++) {
            const double ticks = floor(shape(p, i) / t->info.ns_per_tick);
            all[p * EACH + i] = part[i] = ticks * t->info.ns_per_tick;
        }
        fake_durations(t, NODE_STEP, part, EACH);
        assert_int_equal(distribution_add_node(&merged, t, NODE_STEP), 0);
    }
    qsort(all, ALL, sizeof(all[0]), ascending);
    long double sum = 0;
    long double squares = 0;
    for (int i = 0; i < ALL; i++)
        sum += (long double)all[i];
    for (int i = 0; i < ALL; i++)
        squares += ((long double)all[i] - sum / ALL) *
                   ((long double)all[i] - sum / ALL);
    const double mean = (double)(sum / ALL);
    const double std = (double)sqrtl(squares / (ALL - 1));

    assert_int_equal(merged.count, ALL);
    assert_near(merged.mean, mean, mean * 1e-12);
    assert_near(distribution_std(&merged), std, std * 1e-9 + 1e-9);
    assert_near(merged.min, all[0], 0);
    assert_near(merged.max, all[ALL - 1], 0);
    static const double qs[] = { 0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1 };
    for (size_t i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
        const int rank = qs[i] > 0 ? (int)ceil(qs[i] * ALL) - 1 : 0;
        assert_near(distribution_quantile(&merged, qs[i]), all[rank],
                    all[rank] * 0.01 + 1e-9);
    }
    distribution_release(&merged);
    fake_forget();
}

static void merged_statistics_agree_with_brute_force(void **state)
{
    (void)state;
    check(narrow);
    check(wide);
    check(two_peaks);
    check(each_part_its_own);
    check(short_ones);
}

static void the_order_of_merging_does_not_matter(void **state)
{
    (void)state;
    struct distribution a = { 0 };
    struct distribution b = { 0 };
    struct trace *one = fake_trace("1.sonde", 1);
    struct trace *two = fake_trace("2.sonde", 2);
    fake_durations(one, NODE_STEP, (double[]){ 10, 20, 3000 }, 3);
    fake_durations(two, NODE_STEP, (double[]){ 15, 1e9 }, 2);
    (void)distribution_add_node(&a, one, NODE_STEP);
    (void)distribution_add_node(&a, two, NODE_STEP);
    (void)distribution_add_node(&b, two, NODE_STEP);
    (void)distribution_add_node(&b, one, NODE_STEP);
    assert_near(a.mean, b.mean, a.mean * 1e-15);
    assert_near(a.m2, b.m2, a.m2 * 1e-12);
    assert_int_equal(a.bucket_count, b.bucket_count);
    for (size_t i = 0; i < a.bucket_count; i++) {
        assert_int_equal(a.buckets[i].key, b.buckets[i].key);
        assert_int_equal(a.buckets[i].count, b.buckets[i].count);
    }
    distribution_release(&a);
    distribution_release(&b);
    fake_forget();
}

static void nothing_gives_nothing(void **state)
{
    (void)state;
    struct distribution d = { 0 };
    assert_true(isnan(distribution_std(&d)));
    assert_true(isnan(distribution_quantile(&d, 0.5)));
    distribution_add(&d, 1, 5, 0, 5, 5);
    assert_true(isnan(distribution_std(&d)));
    distribution_release(&d);
}

static void memory_does_not_grow_with_the_number_of_processes(void **state)
{
    (void)state;
    struct distribution d = { 0 };
    for (int p = 0; p < 2000; p++)
        for (int i = 0; i < 10; i++) {
            assert_int_equal(distribution_add_bucket(&d, 100.0 + i, 1), 0);
            if (i == 9)
                distribution_settle(&d);
        }
    assert_true(d.bucket_cap <= 64);
    distribution_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_statistics_agree_with_brute_force),
        cmocka_unit_test(the_order_of_merging_does_not_matter),
        cmocka_unit_test(nothing_gives_nothing),
        cmocka_unit_test(memory_does_not_grow_with_the_number_of_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
