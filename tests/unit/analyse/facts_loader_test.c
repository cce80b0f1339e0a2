/* Facts about slow samples and the batches they are in. */
#include "fake_training.h"

#include <math.h>

#include "analyse/facts.h"

static void add(struct distribution *d, uint64_t count, double ns)
{
    distribution_add(d, count, ns, 0, ns, ns);
    assert_int_equal(distribution_add_bucket(d, ns, count), 0);
}

/* One sample of ten takes 40 ms of CPU time, the others 4: every batch of ten has one. On a
 * busy machine one batch in ten takes three times as long by the clock. */
static void fill(struct loader *l)
{
    *l = (struct loader){ .file = "", .dataset = "", .objects = "" };
    l->batch_size = 10;
    add(&l->sample.d, 900, 4e6);
    add(&l->sample.d, 100, 41e6);
    add(&l->sample_cpu.d, 900, 4e6);
    add(&l->sample_cpu.d, 100, 40e6);
    add(&l->make_cpu.d, 100, 76e6);
    add(&l->make.d, 90, 80e6);
    add(&l->make.d, 10, 240e6);
    distribution_settle(&l->sample.d);
    distribution_settle(&l->sample_cpu.d);
    distribution_settle(&l->make_cpu.d);
    distribution_settle(&l->make.d);
}

static void release(struct loader *l)
{
    distribution_release(&l->sample.d);
    distribution_release(&l->sample_cpu.d);
    distribution_release(&l->make_cpu.d);
    distribution_release(&l->make.d);
}

static void read_with(struct training *t, struct loader *l, struct facts *ret_facts)
{
    t->report->loaders.list = l;
    t->report->loaders.count = 1;
    assert_int_equal(facts_read(t->report, ret_facts), 0);
    t->report->loaders.count = 0;
}

static void batches_are_slow_by_the_clock_that_samples_are_slow_by(void **state)
{
    (void)state;
    char json[2048];
    struct training t = { 0 };
    struct loader l;
    struct facts f;
    struct report_monitors *m;
    (void)snprintf(json, sizeof json, training_json, "0", "null", "ok");
    training_traces(&t);
    training_open(&t, json);
    fill(&l);
    /* Nobody waits for a core: the clock's tail is the heavier one. */
    read_with(&t, &l, &f);
    assert_true(f.v[FACT_SLOW_SAMPLE_SHARE] > 0.2);
    assert_near(f.v[FACT_SLOW_BATCH_SHARE], 10 * 80.0 / (90 * 80 + 10 * 240), 0.02);
    /* Half of the time it could have run and did not: CPU time tells of samples, and of
     * batches. */
    m = &t.report->monitors;
    const struct report_monitors none = *m;
    struct report_series series[] = {
        { .metric = "cpu", .subject = "7", .avg = 50 },
        { .metric = "run_delay", .subject = "7", .avg = 50 },
    };
    l.pid = 7;
    m->series = series;
    m->series_count = 2;
    read_with(&t, &l, &f);
    assert_true(f.v[FACT_SLOW_SAMPLE_SHARE] > 0.2);
    assert_near(f.v[FACT_SLOW_BATCH_SHARE], 0, 1e-6);
    *m = none;
    release(&l);
    training_free(&t);
}

/* In every epoch the same ones are slow: three different ones are named. */
static void the_slowest_samples_are_named_once(void **state)
{
    (void)state;
    char json[2048];
    struct training t = { 0 };
    struct loader l;
    struct facts f;
    struct loader_slow_sample slowest[] = {
        { .index = 77, .path = "/data/77.png", .wall_ns = 57.5e6 },
        { .index = 77, .path = "/data/77.png", .wall_ns = 57e6 },
        { .index = 12, .path = "", .wall_ns = 51e6 },
        { .index = 5, .path = "", .wall_ns = 50e6 },
        { .index = 6, .path = "", .wall_ns = 49e6 },
    };
    (void)snprintf(json, sizeof json, training_json, "0", "null", "ok");
    training_traces(&t);
    training_open(&t, json);
    fill(&l);
    read_with(&t, &l, &f);
    assert_string_equal(f.place[PLACE_SLOWEST], "");
    l.slowest = slowest;
    l.slowest_count = 5;
    read_with(&t, &l, &f);
    assert_string_equal(f.place[PLACE_SLOWEST],
                        "77 (77.png, 57.5 ms), 12 (51 ms), 5 (50 ms)");
    slowest[0].index = slowest[1].index = -1; /* of an iterable: no name */
    l.slowest_count = 2;
    f.place[PLACE_SLOWEST] = "";
    read_with(&t, &l, &f);
    assert_string_equal(f.place[PLACE_SLOWEST], "");
    release(&l);
    training_free(&t);
}

/* batch_size=None: what the data set gives may be whole batches, of 24 rows here. */
static void an_item_that_is_a_batch_is_not_one_sample(void **state)
{
    (void)state;
    char json[2048];
    struct training t = { 0 };
    struct loader l;
    struct facts f;
    (void)snprintf(json, sizeof json, training_json, "0", "null", "ok");
    training_traces(&t);
    training_open(&t, json);
    fill(&l);
    read_with(&t, &l, &f);
    assert_near(f.v[FACT_BATCH_SIZE], 10, 0);
    l.training = true;
    l.batch_size = -1;
    l.batch_samples.count = 100;
    l.batch_samples.mean = 1;
    read_with(&t, &l, &f);
    assert_true(isnan(f.v[FACT_BATCH_SIZE]));
    t.report->loaders.rows.count = 100;
    t.report->loaders.rows.mean = 24;
    read_with(&t, &l, &f);
    assert_near(f.v[FACT_BATCH_SIZE], 24, 0);
    /* A sampler of batches is known by what it gives. */
    l.batch_samples.mean = 6;
    read_with(&t, &l, &f);
    assert_near(f.v[FACT_BATCH_SIZE], 6, 0);
    release(&l);
    training_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_slowest_samples_are_named_once, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(an_item_that_is_a_batch_is_not_one_sample,
                                        fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(
            batches_are_slow_by_the_clock_that_samples_are_slow_by, fake_setup,
            fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
