/* quantile_test.c: p50, p95 and p99 are within 1 % of exact, whatever the durations.
 *
 * Durations go the whole way: words in sealed blocks of a file, the reader's fold, the
 * reader's answer. Exact means: the smallest duration that at least a share q of all
 * durations do not exceed. */
#include <math.h>

#include "handmade.h"
#include "num/loghist.h"
#include "num/prng.h"
#include "trace/reader.h"

enum { COUNT = 20000 };

struct sample {
    uint64_t ticks[COUNT];
    size_t count;
    struct prng random;
};

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* One zone of the site after another, in as many blocks as it takes. */
static void write_zones(struct handmade *t, unsigned site, const struct sample *s)
{
    struct words w = { 0 };
    uint64_t now = 1ULL << 40, base = now;
    for (size_t i = 0; i < s->count; i++) {
        words_zone(&w, site, now, now + s->ticks[i]);
        now += s->ticks[i];
        if (w.count + 2 <= EVENTS_WORDS && i + 1 < s->count)
            continue;
        (void)handmade_block(t, 0, STATE_SEALED, &w, base);
        w.count = 0;
        base = now;
    }
    words_release(&w);
}

static unsigned only_node(const struct trace *trace)
{
    for (unsigned i = FIRST_NODE; i < MAX_NODES; i++)
        if (trace_node(trace, i))
            return i;
    fail_msg("no path");
    return 0;
}

static void check_quantiles(const char *name, struct sample *s)
{
    static const unsigned per_mille[] = { 0, 10, 250, 500, 900, 950, 990, 999, 1000 };
    struct handmade t;
    struct trace *trace;
    handmade_init(&t, 256);
    write_zones(&t, handmade_site(&t, "zone"), s);
    assert_int_equal(trace_open(t.file.path, NULL, &trace), 0);
    const unsigned node = only_node(trace);
    const double ns_per_tick = trace_info(trace)->ns_per_tick;
    assert_int_equal(trace_node(trace, node)->count, s->count);

    qsort(s->ticks, s->count, sizeof s->ticks[0], compare);
    for (size_t i = 0; i < sizeof per_mille / sizeof per_mille[0]; i++) {
        const double q = per_mille[i] / 1000.0;
        const size_t rank = (per_mille[i] * s->count + 999) / 1000;
        const double exact = (double)s->ticks[rank ? rank - 1 : 0];
        const double answer = trace_node_quantile(trace, node, q) / ns_per_tick;
        if (!(fabs(answer - exact) <= 0.01 * exact + 1e-9 * exact))
            fail_msg("%s: p%g is %.17g ticks, exactly %.17g", name, 100 * q, answer,
                     exact);
    }
    trace_free(trace);
    handmade_release(&t);
}

static struct sample *new_sample(uint64_t seed)
{
    struct sample *s = calloc(1, sizeof *s);
    prng_init(&s->random, seed);
    return s;
}

static void put(struct sample *s, uint64_t ticks)
{
    if (s->count < COUNT)
        s->ticks[s->count++] = ticks;
}

/* ---- Distributions ---------------------------------------------------------------- */

static void constants(void **state)
{
    (void)state;
    static const uint64_t values[] = {
        0, 1, 63, 64, 127, 129, 12345, (1ULL << 33) + 1
    };
    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        struct sample *s = new_sample(v);
        for (int i = 0; i < 500; i++)
            put(s, values[v]);
        check_quantiles("constant", s);
        free(s);
    }
}

static void a_single_duration(void **state)
{
    (void)state;
    struct sample *s = new_sample(1);
    put(s, 987654321);
    check_quantiles("single", s);
    free(s);
}

static void point_masses_at_the_edges_of_buckets(void **state)
{
    (void)state;
    struct sample *s = new_sample(2);
    while (s->count < COUNT) {
        const unsigned octave = 1 + (unsigned)prng_below(&s->random, 38);
        const uint64_t edge = (64 + prng_below(&s->random, 64)) << (octave - 1);
        put(s, edge - prng_below(&s->random, 2)); /* an edge, or just below it */
    }
    check_quantiles("edges", s);
    free(s);
}

/* The quantile falls on the last of the low ones, or on the first of the high ones. */
static void two_points_that_meet_at_the_quantile(void **state)
{
    (void)state;
    enum { ODD = 9973 };
    static const unsigned per_mille[] = { 500, 950, 990 };
    for (int v = 0; v < 9; v++) {
        struct sample *s = new_sample(3);
        const int rank = (int)(per_mille[v / 3] * ODD + 999) / 1000;
        for (int i = 0; i < ODD; i++)
            put(s, i < rank + v % 3 - 1 ? 1000 : 7777777);
        check_quantiles("two points", s);
        free(s);
    }
}

static void powers_of_two_and_their_neighbours(void **state)
{
    (void)state;
    struct sample *s = new_sample(4);
    while (s->count < COUNT)
        put(s,
            (1ULL << (1 + prng_below(&s->random, 40))) + prng_below(&s->random, 3) - 1);
    check_quantiles("powers of two", s);
    free(s);
}

static void uniform_in_the_logarithm(void **state)
{
    (void)state;
    struct sample *s = new_sample(5);
    while (s->count < COUNT)
        put(s, (uint64_t)exp2(40 * prng_double(&s->random)));
    check_quantiles("log-uniform", s);
    free(s);
}

static void a_heavy_tail(void **state)
{
    (void)state;
    struct sample *s = new_sample(6);
    while (s->count < COUNT) { /* Pareto with exponent 1/2: no mean */
        const double u = 1 - prng_double(&s->random);
        put(s, (uint64_t)fmin(1000 / (u * u), 0x1p45));
    }
    check_quantiles("heavy tail", s);
    free(s);
}

static void tiny_durations(void **state)
{
    (void)state;
    for (uint64_t limit = 2; limit <= 200; limit += 11) {
        struct sample *s = new_sample(limit);
        for (int i = 0; i < 3000; i++)
            put(s, prng_below(&s->random, limit + 1));
        check_quantiles("tiny", s);
        free(s);
    }
}

/* Half of the counter's 48 bits: what a step forward can tell from one back. */
static void the_longest_durations_there_are(void **state)
{
    (void)state;
    struct sample *s = new_sample(8);
    while (s->count < COUNT)
        put(s, (1ULL << 47) - 1 - prng_below(&s->random, 1ULL << 46));
    check_quantiles("near 2^47", s);
    free(s);
}

/* ---- Buckets ---------------------------------------------------------------------- */

static void check_bucket(uint64_t value)
{
    const struct loghist_slot slot = loghist_slot(value);
    assert_true(slot.chunk < LOGHIST_CHUNKS && slot.sub < LOGHIST_SUBS);
    const double middle = loghist_middle(slot.chunk, slot.sub);
    if (!(fabs(middle - (double)value) <= (double)value / 128))
        fail_msg("%llu is in a bucket whose middle is %g", (unsigned long long)value,
                 middle);
}

static void the_middle_of_a_bucket_is_near_all_in_it(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 1 << 18; value++)
        check_bucket(value);
    for (unsigned octave = 18; octave < 48; octave++)
        for (uint64_t sub = 64; sub < 128; sub++) {
            const uint64_t edge = sub << (octave - 6);
            check_bucket(edge - 1);
            check_bucket(edge);
            check_bucket(edge + 1);
        }
}

static void buckets_are_in_order(void **state)
{
    (void)state;
    unsigned before = 0;
    for (uint64_t value = 1; value < 1 << 18; value++) {
        const struct loghist_slot slot = loghist_slot(value);
        const unsigned at = slot.chunk * LOGHIST_SUBS + slot.sub;
        assert_true(at == before || at == before + 1);
        before = at;
    }
    const struct loghist_slot beyond = loghist_slot(UINT64_MAX);
    assert_int_equal(beyond.chunk, LOGHIST_CHUNKS - 1);
    assert_int_equal(beyond.sub, LOGHIST_SUBS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants),
        cmocka_unit_test(a_single_duration),
        cmocka_unit_test(point_masses_at_the_edges_of_buckets),
        cmocka_unit_test(two_points_that_meet_at_the_quantile),
        cmocka_unit_test(powers_of_two_and_their_neighbours),
        cmocka_unit_test(uniform_in_the_logarithm),
        cmocka_unit_test(a_heavy_tail),
        cmocka_unit_test(tiny_durations),
        cmocka_unit_test(the_longest_durations_there_are),
        cmocka_unit_test(the_middle_of_a_bucket_is_near_all_in_it),
        cmocka_unit_test(buckets_are_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
