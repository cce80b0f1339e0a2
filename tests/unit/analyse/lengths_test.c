/* Batches padded to their longest sample, whose lengths and times are known: what steps
 * would take with samples of one length together. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "num/prng.h"

enum { BATCHES = 400, SAMPLES = 16 };

static struct report made; /* too large for a stack */
static struct loader loader;
static struct loader_batch batches[BATCHES];

struct world {
    double cells, filled;     /* of all batches */
    double now_ns, sorted_ns; /* a mean step: as it is, with samples of one length */
};

static double step_ns(double length, double square)
{
    return 1e6 + 0.1e6 * length + square * length * length;
}

/* Most samples are short, one in ten is long; each batch is as long as its longest. */
static struct world make_batches(double square, bool sorted)
{
    struct prng random;
    struct world w = { 0 };
    int64_t at_ns = 1000;
    prng_init(&random, 7);
    for (int i = 0; i < BATCHES; i++) {
        double longest = 0;
        for (int k = 0; k < SAMPLES; k++) {
            const bool is_long = prng_double(&random) < 0.1;
            const double length = is_long ? 150 + floor(100 * prng_double(&random))
                                          : 10 + floor(30 * prng_double(&random));
            longest = fmax(longest, length);
            w.filled += length;
            w.sorted_ns += step_ns(length, square) / BATCHES / SAMPLES;
        }
        longest = sorted ? 20 + i % 3 : longest;
        w.cells += longest * SAMPLES;
        const double ns = step_ns(longest, square);
        w.now_ns += ns / BATCHES;
        batches[i] = (struct loader_batch){ .number = (uint64_t)i,
                                            .samples = SAMPLES,
                                            .bytes = (uint64_t)(longest * SAMPLES * 8),
                                            .asked_ns = at_ns,
                                            .given_ns = at_ns + 500 };
        at_ns += 500 + (int64_t)ns;
    }
    return w;
}

static double gain_of_world(const struct world *w)
{
    struct facts f;
    memset(&made, 0, sizeof made);
    loader = (struct loader){ .training = true,
                              .batch_size = SAMPLES,
                              .recent = batches,
                              .recent_count = BATCHES };
    made.loaders = (struct loader_report){ .present = true,
                                           .list = &loader,
                                           .count = 1 };
    facts_init(&f);
    f.v[FACT_PADDING_SHARE] = 1 - w->filled / w->cells;
    facts_of_lengths(&made, &f);
    return f.v[FACT_LENGTHS_GAIN];
}

static void the_longest_of_a_batch_tell_of_all_samples(void **state)
{
    (void)state;
    const struct world w = make_batches(0, false);
    const double left = 1 - gain_of_world(&w);
    assert_near(left, w.sorted_ns / w.now_ns, 0.12 * w.sorted_ns / w.now_ns);
}

/* Attention: what is left is less than the part of the batches that is filled. */
static void time_that_goes_with_the_square_goes_faster(void **state)
{
    (void)state;
    const struct world w = make_batches(0.005e6, false);
    const double left = 1 - gain_of_world(&w);
    assert_near(left, w.sorted_ns / w.now_ns, 0.12 * w.sorted_ns / w.now_ns);
    assert_true(left < 0.8 * w.filled / w.cells);
}

/* Drawn at random there would be more of the longest than there are cells filled. */
static void batches_that_are_not_random_say_nothing(void **state)
{
    (void)state;
    struct world w = make_batches(0, true);
    w.filled = 0.2 * w.cells;
    assert_true(isnan(gain_of_world(&w)));
}

/* A weight that is repeated is an old one, and few batches are no distribution. */
static void batches_that_were_not_weighed_do_not_count(void **state)
{
    (void)state;
    const struct world w = make_batches(0, false);
    for (int i = 0; i < BATCHES; i++)
        batches[i].bytes = batches[i - i % 50].bytes;
    assert_true(isnan(gain_of_world(&w)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_of_a_batch_tell_of_all_samples),
        cmocka_unit_test(time_that_goes_with_the_square_goes_faster),
        cmocka_unit_test(batches_that_are_not_random_say_nothing),
        cmocka_unit_test(batches_that_were_not_weighed_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
