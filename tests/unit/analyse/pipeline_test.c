/* The pipeline of a recorded loader, as the what-if model gets it. */
#include "fake_training.h"

#include <math.h>

#include "analyse/facts.h"
#include "analyse/whatif.h"

/* Eight kept workers on two cores, three epochs of twelve batches: 36 ms to make one, of
 * which 11 are computing. */
static struct loader eight_kept(void)
{
    struct loader l = { .file = "",
                        .dataset = "",
                        .objects = "",
                        .collate_fn = "default_collate",
                        .num_workers = 8,
                        .prefetch_factor = 2,
                        .persistent_workers = true,
                        .epochs = 3,
                        .batches = 36 };
    distribution_add(&l.make.d, 36, 36e6, 0, 36e6, 36e6);
    distribution_add(&l.make_cpu.d, 36, 11e6, 0, 11e6, 11e6);
    distribution_add(&l.collate.d, 36, 18e6, 0, 18e6, 18e6);
    distribution_add(&l.fetch.d, 36, 1e6, 0, 1e6, 1e6);
    return l;
}

static struct pipeline pipeline_with(struct training *t, struct loader *l)
{
    struct pipeline p;
    t->report->loaders.list = l;
    t->report->loaders.count = 1;
    pipeline_of(t->report, &p);
    t->report->loaders.count = 0;
    return p;
}

static void open_run(struct training *t)
{
    char json[2048];
    (void)snprintf(json, sizeof json, training_json, "0", "null", "ok");
    training_traces(t);
    training_open(t, json);
    t->report->account.known = true;
    t->report->account.steps = 37;
    t->report->account.warmup = 1;
    t->report->account.mean_ns = 9e6;
    t->report->account.steady_ns = 36 * 9e6;
    t->report->account.epoch_ns = 3 * 72e6;
}

/* Sixteen are made ahead, an epoch has twelve: all of them while the first is waited
 * for. */
static void short_epochs_are_paid_by_their_first_step(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct loader l = eight_kept();
    open_run(&t);
    assert_near(pipeline_with(&t, &l).step_ns, 15e6, 1);
    assert_near(pipeline_with(&t, &l).compute_ns, 8e6, 1);
    l.batches = 3 * 33; /* more than twice as long */
    assert_near(pipeline_with(&t, &l).step_ns, 9e6, 1);
    l.batches = 36;
    l.persistent_workers = false; /* then it is the start of workers, too */
    assert_near(pipeline_with(&t, &l).step_ns, 9e6, 1);
    training_free(&t);
}

/* 72 ms until the first batch of an epoch: 11 of them are that batch, 2.2 its way, and the
 * others what eleven more cost. */
static void of_a_short_epochs_start_only_its_first_batch_is_lost(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    struct loader l = eight_kept();
    struct loader_epoch epochs[3];
    for (int i = 0; i < 3; i++)
        epochs[i] = (struct loader_epoch){ .first_batch_s = 0.073, .batches = 12 };
    l.epoch_list = epochs;
    l.epoch_count = 3;
    open_run(&t);
    t.report->account.wall_ns = 1e9;
    t.report->account.startup_ns = t.report->account.end_ns = 0;
    t.report->loaders.list = &l;
    t.report->loaders.count = 1;
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_near(f.v[FACT_EPOCH_SHARE], 2 * (0.011 + 0.0022), 1e-6);
    assert_near(f.v[FACT_WORKER_START_S], 0.072 + 2 * (0.011 + 0.0022), 1e-6);
    l.batches = 3 * 33; /* long ones: all of it */
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_near(f.v[FACT_EPOCH_SHARE], 1.5 * 2 * 0.072, 1e-6);
    t.report->loaders.count = 0;
    training_free(&t);
}

static void who_computes_a_third_waits_for_cores_and_not_for_data(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct loader l = eight_kept();
    l.num_workers = 64; /* more than cores */
    open_run(&t);
    assert_near(pipeline_with(&t, &l).make_ns, 1.05 * 11e6, 1);
    l.make_cpu.d.mean = 10e6; /* of 36: less than 0.3, and nobody says why */
    assert_near(pipeline_with(&t, &l).make_ns, 36e6, 1);
    /* The kernel does: for a second of computing it waited two and a half for a core. */
    struct loader_worker w = { .pid = 7 };
    struct report_series series[] = {
        { .metric = "cpu", .subject = "7", .avg = 20 },
        { .metric = "run_delay", .subject = "7", .avg = 50 },
    };
    l.workers = &w;
    l.worker_count = 1;
    struct report_monitors *m = &t.report->monitors;
    const struct report_monitors none = *m;
    m->series = series;
    m->series_count = 2;
    assert_near(pipeline_with(&t, &l).make_ns, 1.05 * 10e6, 1);
    series[1].avg = 25; /* not long enough: it waited for something else */
    assert_near(pipeline_with(&t, &l).make_ns, 36e6, 1);
    *m = none;
    training_free(&t);
}

static void only_torchs_collate_is_known_to_share(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct loader l = eight_kept();
    open_run(&t);
    assert_near(pipeline_with(&t, &l).shared_collate_ns, 18e6 * 11 / 36, 1);
    l.collate_fn = "pad_all";
    assert_true(isnan(pipeline_with(&t, &l).shared_collate_ns));
    training_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_epochs_are_paid_by_their_first_step,
                                        fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(
            of_a_short_epochs_start_only_its_first_batch_is_lost, fake_setup,
            fake_teardown),
        cmocka_unit_test_setup_teardown(
            who_computes_a_third_waits_for_cores_and_not_for_data, fake_setup,
            fake_teardown),
        cmocka_unit_test_setup_teardown(only_torchs_collate_is_known_to_share,
                                        fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
