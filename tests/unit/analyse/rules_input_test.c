/* Rules about how data reach the step: at their limits, below them, without data. */
#include "rules_rows.h"

static const struct rule_row rows[] = {
    { "data_loading_bound",
      { { FACT_STEADY_SHARE, 0.9 } },
      FACT_INPUT_SHARE,
      0.15,
      0.149 },
    { "data_loading_bound",
      { { FACT_INPUT_SHARE, 0.5 }, { FACT_WORKERS, 0 }, { FACT_WORKERS_BEST, 2 } },
      FACT_WORKERS_GAIN,
      0.10,
      0.099 },
    { "preprocessing_bound",
      { { FACT_INPUT_SHARE, 0.4 } },
      FACT_TRANSFORM_OF_SAMPLE,
      0.5,
      0.499 },
    { "preprocessing_bound",
      { { FACT_TRANSFORM_OF_SAMPLE, 0.9 }, { FACT_SAMPLE_CPU_SHARE, 0.95 } },
      FACT_INPUT_SHARE,
      0.15,
      0.149 },
    { "preprocessing_bound",
      { { FACT_TRANSFORM_OF_SAMPLE, 0.9 }, { FACT_INPUT_SHARE, 0.5 } },
      FACT_SAMPLE_CPU_SHARE,
      0.5,
      0.49 },
    { "preprocessing_bound",
      { { FACT_INPUT_SHARE, 0.4 } },
      FACT_PREPROCESSING_SHARE,
      0.2,
      0.19 },
    { "collate_bound", /* batches are there in time, but made with the step's cores */
      { { FACT_INPUT_SHARE, 0.05 },
        { FACT_COLLATE_OF_BATCH, 0.9 },
        { FACT_QUEUE_EMPTY_SHARE, 0 } },
      FACT_CROWDED_SHARE,
      0.3,
      0.29 },
    { "preprocessing_bound",
      { { FACT_INPUT_SHARE, 0.05 },
        { FACT_TRANSFORM_OF_SAMPLE, 0.9 },
        { FACT_SAMPLE_CPU_SHARE, 1 },
        { FACT_QUEUE_EMPTY_SHARE, 0 } },
      FACT_CROWDED_SHARE,
      0.3,
      0.29 },
    { "collate_bound",
      { { FACT_INPUT_SHARE, 0.5 } },
      FACT_COLLATE_OF_BATCH,
      0.40,
      0.39 },
    { "collate_bound", { { FACT_INPUT_SHARE, 0.5 } }, FACT_COLLATE_SHARE, 0.2, 0.19 },
    { "transfer_bound",
      { { FACT_STEADY_SHARE, 1 } },
      FACT_TRANSFER_SHARE,
      0.15,
      0.149 },
    { "metadata_bound",
      { { FACT_READ_SHARE, 0.05 }, { FACT_INPUT_SHARE, 0.5 } },
      FACT_OPEN_SHARE,
      0.10,
      0.099 },
    { "metadata_bound",
      { { FACT_READ_SHARE, 0.05 }, { FACT_OPEN_SHARE, 0.5 } },
      FACT_INPUT_SHARE,
      0.15,
      0.149 },
    { "small_reads",
      { { FACT_READ_SHARE, 0.3 },
        { FACT_READS_PER_STEP, 500 },
        { FACT_INPUT_SHARE, 0.5 } },
      FACT_SMALL_READ_SHARE,
      0.5,
      0.49 },
    { "small_reads",
      { { FACT_SMALL_READ_SHARE, 0.9 }, { FACT_READS_PER_STEP, 500 } },
      FACT_READ_SHARE,
      0.10,
      0.099 },
    { "io_wait", { { FACT_NONE, 0 } }, FACT_IOWAIT_SHARE, 0.20, 0.19 },
    { "slow_samples",
      { { FACT_SAMPLE_TAIL, 20 }, { FACT_INPUT_SHARE, 0.4 } },
      FACT_SLOW_SAMPLE_SHARE,
      0.20,
      0.19 },
    { "slow_samples",
      { { FACT_SLOW_SAMPLE_SHARE, 0.5 }, { FACT_INPUT_SHARE, 0.4 } },
      FACT_SAMPLE_TAIL,
      5,
      4.9 },
    { "slow_samples",
      { { FACT_SLOW_SAMPLE_SHARE, 0.9 },
        { FACT_SAMPLE_TAIL, 50 },
        { FACT_INPUT_SHARE, 0.9 } },
      FACT_SLOW_STEP_SHARE,
      0.05,
      0.049 },
    { "slow_samples", /* two workers take turns: steps are uneven, batches are not */
      { { FACT_SLOW_SAMPLE_SHARE, 0.9 },
        { FACT_SAMPLE_TAIL, 50 },
        { FACT_INPUT_SHARE, 0.9 },
        { FACT_SLOW_STEP_SHARE, 0.3 } },
      FACT_SLOW_BATCH_SHARE,
      0.05,
      0.049 },
    { "too_many_workers",
      { { FACT_WORKERS, 16 },
        { FACT_WORKERS_BEST, 4 },
        { FACT_FEWER_WORKERS_LOSS, 0 },
        { FACT_LOOP_S, 95 } },
      FACT_WORKER_START_S,
      5,
      4.9 },
    { "too_many_workers",
      { { FACT_WORKERS, 8 }, { FACT_WORKERS_BEST, 2 } },
      FACT_FEWER_WORKERS_LOSS,
      -0.05,
      -0.04 },
    /* Half of them are as bad; none are better. */
    { "too_many_workers",
      { { FACT_WORKERS, 8 }, { FACT_WORKERS_BEST, 0 }, { FACT_FEWER_WORKERS_LOSS, 0 } },
      FACT_WORKERS_GAIN,
      0.05,
      0.04 },
    { "epoch_boundary_stall",
      { { FACT_EPOCHS, 10 }, { FACT_WORKERS, 4 }, { FACT_PERSISTENT, 0 } },
      FACT_EPOCH_SHARE,
      0.05,
      0.049 },
    { "shm_pressure", { { FACT_SHM_MB, 60 } }, FACT_SHM_SHARE, 0.80, 0.79 },
    { "padding_waste",
      { { FACT_FORWARD_SHARE, 0.3 }, { FACT_BACKWARD_SHARE, 0.5 } },
      FACT_PADDING_SHARE,
      0.30,
      0.29 },
};

static const struct rule_row more_rows[] = {
    { "data_loading_bound", { { FACT_INPUT_SHARE, 0.5 } }, FACT_BATCH_MS, 1, 0.99 },
    { "slow_samples",
      { { FACT_SLOW_SAMPLE_SHARE, 0.5 },
        { FACT_SAMPLE_TAIL, 50 },
        { FACT_BATCH_MS, 9 },
        { FACT_SAMPLE_CPU_SHARE, 1 } },
      FACT_BATCH_CPU_MS,
      1,
      0.99 },
    { "data_loading_bound",
      { { FACT_INPUT_SHARE, 0.5 }, { FACT_WORKERS_GAIN, 0.3 }, { FACT_WORKERS, 2 } },
      FACT_QUEUE_EMPTY_SHARE,
      0.10,
      0.09 },
    { "collate_bound",
      { { FACT_INPUT_SHARE, 0.5 }, { FACT_COLLATE_OF_BATCH, 0.8 } },
      FACT_QUEUE_EMPTY_SHARE,
      0.10,
      0.09 },
    { "metadata_bound",
      { { FACT_READ_SHARE, 0.05 }, { FACT_OPEN_SHARE, 0.5 } },
      FACT_OPENS_PER_STEP,
      2,
      1.9 },
    { "small_reads",
      { { FACT_SMALL_READ_SHARE, 0.9 },
        { FACT_READ_SHARE, 0.5 },
        { FACT_OPENS_PER_STEP, 10 } },
      FACT_READS_PER_STEP,
      80,
      79 },
};

static void each_fires_at_its_limit_and_not_below(void **state)
{
    (void)state;
    CHECK_ROWS(rows);
    CHECK_ROWS(more_rows);
}

static void first_is(struct facts *f, const char *id, const char *second)
{
    struct arena arena = ARENA_INIT;
    struct thresholds t;
    struct diagnosis d;
    thresholds_init(&t);
    assert_int_equal(findings_make(f, &t, &arena, &d), 0);
    assert_true(d.finding_count >= 1);
    assert_string_equal(d.findings[0].id, id);
    if (second)
        assert_non_null(finding_by_id(&d, second));
    arena_release(&arena);
}

/* Idle cores and a slow transform: workers are the first thing to change. */
static void where_workers_hide_a_slow_transform_they_come_first(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_INPUT_SHARE] = 0.7;
    f.v[FACT_TRANSFORM_OF_SAMPLE] = 0.9;
    f.v[FACT_SAMPLE_CPU_SHARE] = 1;
    f.v[FACT_WORKERS] = 0;
    f.v[FACT_WORKERS_BEST] = 8;
    f.v[FACT_WORKERS_GAIN] = 0.6;
    first_is(&f, "data_loading_bound", "preprocessing_bound");
    f.v[FACT_WORKERS_GAIN] = 0.02;
    first_is(&f, "preprocessing_bound", NULL);
}

/* Each has at stake what its cure saves: of files, the calls and as much again. */
static void of_opens_and_slow_samples_the_one_that_takes_more_leads(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_INPUT_SHARE] = 0.7;
    f.v[FACT_SAMPLE_TAIL] = 100;
    f.v[FACT_SLOW_SAMPLE_SHARE] = 0.6;
    f.v[FACT_OPEN_SHARE] = 0.2;
    f.v[FACT_READ_SHARE] = 0.05;
    f.v[FACT_OPENS_PER_STEP] = 16;
    first_is(&f, "slow_samples", "metadata_bound");
    f.v[FACT_OPEN_SHARE] = 0.4;
    first_is(&f, "metadata_bound", "slow_samples");
}

static void looks_at_names_are_told_and_count_without_opens(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.9 }, { FACT_OPEN_SHARE, 0.8 },
                           { FACT_READ_SHARE, 0.01 }, { FACT_OPENS_PER_STEP, 1 },
                           { FACT_LOOKS_PER_STEP, 1.9 });
    assert_null(judged(&c, "metadata_bound"));
    c.f.v[FACT_LOOKS_PER_STEP] = 9600;
    c.f.source[FACT_INPUT_SHARE] = "stacks, no loader";
    const struct finding *found = judged(&c, "metadata_bound");
    assert_non_null(found);
    assert_non_null(strstr(found->description, "9600 looks at names"));
    assert_non_null(strstr(found->recommendation, "list a folder once"));
    bool told = false; /* where a number came from goes with it */
    for (size_t i = 0; i < found->evidence_count; i++)
        told |= strcmp(found->evidence[i].source, "stacks, no loader") == 0;
    assert_true(told);
    trial_release(&c);
}

/* Batches made by hand of data in memory: to read ahead is no setting that comes first. */
static void what_is_made_of_memory_is_made_cheaper_first(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.9 }, { FACT_TRANSFORM_OF_SAMPLE, 1 },
                           { FACT_SAMPLE_CPU_SHARE, 1 }, { FACT_FREE_CORES, 1 },
                           { FACT_CORES, 2 }, { FACT_OPENS_PER_STEP, 0.01 });
    const double memory = judged(&c, "preprocessing_bound")->score;
    assert_true(memory > judged(&c, "data_loading_bound")->score);
    c.f.v[FACT_OPENS_PER_STEP] = 16;
    assert_true(judged(&c, "preprocessing_bound")->score < memory);
    trial_release(&c);
}

/* 30 ms of a step of 32 ms by hand, 1600 files and 8000 looks: three quarters are calls, and
 * what Python does around so many is the rest. Left are 2 ms, the bytes, and less of them
 * since caches stay warm. */
static void around_many_files_python_goes_with_them(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_STEP_MS, 32 }, { FACT_INPUT_SHARE, 30.0 / 32 },
                           { FACT_WAIT_SHARE, 0 }, { FACT_PREPROCESSING_SHARE, 0 },
                           { FACT_COLLATE_SHARE, 0 }, { FACT_OTHER_SHARE, 0 },
                           { FACT_OPEN_SHARE, 0.68 }, { FACT_READ_SHARE, 0.07 },
                           { FACT_OPENS_PER_STEP, 1600 }, { FACT_LOOKS_PER_STEP, 8000 },
                           { FACT_READS_PER_STEP, 1600 }, { FACT_READ_KB, 0.25 });
    const double left = 1 - judged(&c, "metadata_bound")->gain.mid;
    assert_near(left * 32, 2 + 0.2 - 0.75, 0.05);
    /* A hundred files: what is around them is mostly something else, and half stays. */
    c.f.v[FACT_OPENS_PER_STEP] = c.f.v[FACT_READS_PER_STEP] = 100;
    c.f.v[FACT_LOOKS_PER_STEP] = 0;
    const double few = 1 - judged(&c, "metadata_bound")->gain.mid;
    assert_near(few * 32, 2 + 0.01 + 0.5 * (7.5 - 0.525) - 0.75, 0.05);
    trial_release(&c);
}

static void the_gain_is_what_the_model_of_the_loader_says(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct thresholds t;
    struct facts f;
    thresholds_init(&t);
    facts_init(&f);
    f.v[FACT_INPUT_SHARE] = 0.8;
    f.v[FACT_TRANSFORM_OF_SAMPLE] = 0.9;
    f.v[FACT_SAMPLE_CPU_SHARE] = 1;
    assert_near(judge_facts(&f, &t, "preprocessing_bound", &arena)->gain.mid,
                0.8 * 0.9 * 0.95, 1e-9);
    f.v[FACT_TRANSFORM_GAIN] = 0.3;
    f.v[FACT_TRANSFORM_GAIN_LOW] = 0.1;
    f.v[FACT_TRANSFORM_GAIN_HIGH] = 0.5;
    const struct gain g = judge_facts(&f, &t, "preprocessing_bound", &arena)->gain;
    assert_near(g.low, 0.1, 1e-9);
    assert_near(g.mid, 0.3, 1e-9);
    assert_near(g.high, 0.5, 1e-9);
    /* Others on the machine: the range is wider, the middle stays. */
    f.v[FACT_CORES] = 2;
    f.v[FACT_FOREIGN_CORES] = 1;
    const struct gain w = judge_facts(&f, &t, "preprocessing_bound", &arena)->gain;
    assert_true(w.low < g.low && w.high > g.high && w.low >= 0 && w.high < 1);
    assert_near(w.mid, 0.3, 1e-9);
    arena_release(&arena);
}

static void the_reason_for_waiting_comes_before_the_waiting(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_INPUT_SHARE] = 0.6;
    f.v[FACT_OPEN_SHARE] = 0.6;
    f.v[FACT_READ_SHARE] = 0.1;
    f.v[FACT_IOWAIT_SHARE] = 0.5;
    first_is(&f, "metadata_bound", "data_loading_bound");
    f.v[FACT_OPEN_SHARE] = 0.01;
    f.v[FACT_READ_SHARE] = 0.7;
    f.v[FACT_SMALL_READ_SHARE] = 0.99;
    f.v[FACT_READS_PER_STEP] = 5000;
    first_is(&f, "small_reads", "data_loading_bound");
}

static void a_symptom_alone_is_low_and_names_its_cause_otherwise(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_IOWAIT_SHARE, 0.8 });
    const struct finding *alone = judged(&c, "io_wait");
    assert_non_null(alone);
    assert_int_equal(alone->severity, SEVERITY_LOW);
    c.f.v[FACT_INPUT_SHARE] = 0.8;
    const struct finding *found = judged(&c, "io_wait");
    const struct finding *cause = judged(&c, "data_loading_bound");
    assert_non_null(cause);
    assert_int_equal(found->because_count, 1);
    assert_string_equal(found->because[0], "data_loading_bound");
    assert_true(found->score < cause->score);
    trial_release(&c);
}

static void the_reference_set_has_the_documents_limits(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.01 }, { FACT_BATCH_MS, 101 },
                           { FACT_SAMPLE_MS, 1.1 });
    assert_null(judged(&c, "data_loading_bound"));
    assert_null(judged(&c, "preprocessing_bound"));
    assert_int_equal(thresholds_use_set(&c.t, "reference"), 0);
    assert_non_null(judged(&c, "data_loading_bound"));
    assert_non_null(judged(&c, "preprocessing_bound"));
    c.f.v[FACT_BATCH_MS] = 99;
    c.f.v[FACT_SAMPLE_MS] = 0.9;
    assert_null(judged(&c, "data_loading_bound"));
    assert_null(judged(&c, "preprocessing_bound"));
    trial_release(&c);
}

static void advice_for_stalls_between_epochs_is_what_can_be_done(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_EPOCH_SHARE, 0.4 }, { FACT_EPOCHS, 10 },
                           { FACT_WORKERS, 8 }, { FACT_PERSISTENT, 0 },
                           { FACT_CORES, 8 });
    const char *advice = judged(&c, "epoch_boundary_stall")->recommendation;
    assert_non_null(strstr(advice, "persistent_workers=True"));
    c.f.v[FACT_PERSISTENT] = 1;
    advice = judged(&c, "epoch_boundary_stall")->recommendation;
    assert_null(strstr(advice, "persistent_workers"));
    assert_non_null(strstr(advice, "a sampler that goes over the data several times"));
    assert_null(strstr(advice, "fewer workers"));
    c.f.v[FACT_CORES] = 2;
    advice = judged(&c, "epoch_boundary_stall")->recommendation;
    assert_non_null(strstr(advice, "fewer workers begin at once than 8"));
    c.f.v[FACT_WORKERS] = 0; /* torch refuses persistent workers then */
    c.f.v[FACT_PERSISTENT] = 0;
    advice = judged(&c, "epoch_boundary_stall")->recommendation;
    assert_null(strstr(advice, "workers"));
    trial_release(&c);
}

/* Eight kept workers begin every epoch at once: that they are eight is the reason. */
static void too_many_workers_explain_stalls_between_epochs(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_EPOCH_SHARE] = 0.42;
    f.v[FACT_EPOCHS] = 36;
    f.v[FACT_WORKERS] = 8;
    f.v[FACT_PERSISTENT] = 1;
    f.v[FACT_CORES] = 2;
    f.v[FACT_WORKERS_BEST] = 0;
    f.v[FACT_WORKERS_GAIN] = 0.6;
    f.v[FACT_FEWER_WORKERS_LOSS] = -0.05;
    first_is(&f, "too_many_workers", "epoch_boundary_stall");
    f.v[FACT_WORKERS_GAIN] = 0;
    f.v[FACT_FEWER_WORKERS_LOSS] = 0.2;
    first_is(&f, "epoch_boundary_stall", NULL);
}

/* The gain is that of no workers: so is the advice. */
static void where_no_workers_are_best_advice_says_so(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.6 }, { FACT_WORKERS, 2 },
                           { FACT_WORKERS_BEST, 0 }, { FACT_WORKERS_GAIN, 0.37 },
                           { FACT_STEP_MS, 10 });
    const struct finding *f = judged(&c, "data_loading_bound");
    assert_non_null(f);
    assert_true(f->gain.mid > 0.3);
    assert_non_null(strstr(f->recommendation, "use num_workers=0"));
    assert_null(strstr(f->recommendation, "would not help"));
    trial_release(&c);
}

static void advice_names_the_line_and_the_number(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.5 }, { FACT_WORKERS, 0 },
                           { FACT_WORKERS_BEST, 2 }, { FACT_WORKERS_GAIN, 0.4 },
                           { FACT_IDLE_CORES, 1.2 }, { FACT_CORES, 2 });
    c.f.place[PLACE_LOADER] = "train.py:41";
    const struct finding *n = judged(&c, "data_loading_bound");
    assert_non_null(strstr(n->recommendation, "num_workers=0 at train.py:41"));
    assert_non_null(strstr(n->recommendation, "1.2 of 2 cores are idle"));
    assert_non_null(strstr(n->recommendation, "use num_workers=2"));
    assert_near(n->gain.mid, 0.4, 1e-9);
    trial_release(&c);
}

/* torch refuses both without workers: whoever follows the advice must not run into it. */
static void advice_without_workers_says_what_goes_with_them(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.6 }, { FACT_WORKERS, 8 },
                           { FACT_CORES, 2 }, { FACT_WORKERS_BEST, 0 },
                           { FACT_WORKERS_GAIN, 0.4 },
                           { FACT_FEWER_WORKERS_LOSS, -0.3 }, { FACT_STEP_MS, 10 },
                           { FACT_PERSISTENT, 1 });
    const struct finding *f = judged(&c, "too_many_workers");
    assert_non_null(f);
    assert_non_null(strstr(f->recommendation,
                           "8 → 0, without persistent_workers and prefetch_factor"));
    assert_null(strstr(f->description, "to send"));
    c.f.v[FACT_BATCH_MS] = 0.62;
    c.f.v[FACT_SEND_MS] = 4.39;
    f = judged(&c, "too_many_workers");
    assert_non_null(strstr(f->description, "0.62 ms to make and 4.39 ms to send"));
    trial_release(&c);
    struct trial fewer = TRIAL({ FACT_INPUT_SHARE, 0.6 }, { FACT_WORKERS, 8 },
                               { FACT_CORES, 2 }, { FACT_WORKERS_BEST, 2 },
                               { FACT_WORKERS_GAIN, 0.4 },
                               { FACT_FEWER_WORKERS_LOSS, -0.3 }, { FACT_STEP_MS, 10 },
                               { FACT_PERSISTENT, 1 });
    f = judged(&fewer, "too_many_workers");
    assert_non_null(f);
    assert_null(strstr(f->recommendation, "without"));
    trial_release(&fewer);
}

/* Several workers of an iterable that is not shared out send everything several times. */
static const char *advice_for(struct trial *c, double iterable, double now, double best)
{
    c->f.v[FACT_ITERABLE] = iterable;
    c->f.v[FACT_WORKERS] = now;
    c->f.v[FACT_WORKERS_BEST] = best;
    const struct finding *f = judged(c, "data_loading_bound");
    assert_non_null(f);
    return f->recommendation;
}

static void an_iterable_is_to_be_shared_out(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.6 }, { FACT_CORES, 2 },
                           { FACT_WORKERS_GAIN, 0.4 }, { FACT_STEP_MS, 10 });
    assert_non_null(strstr(advice_for(&c, 1, 0, 3), "get_worker_info"));
    assert_non_null(strstr(advice_for(&c, 1, 0, 3), "more workers than cores"));
    assert_null(strstr(advice_for(&c, 1, 0, 1), "get_worker_info"));
    assert_null(strstr(advice_for(&c, 1, 2, 3), "get_worker_info"));
    assert_null(strstr(advice_for(&c, 0, 0, 3), "get_worker_info"));
    assert_null(strstr(advice_for(&c, 0, 0, 2), "more workers than cores"));
    trial_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fires_at_its_limit_and_not_below),
        cmocka_unit_test(where_workers_hide_a_slow_transform_they_come_first),
        cmocka_unit_test(of_opens_and_slow_samples_the_one_that_takes_more_leads),
        cmocka_unit_test(looks_at_names_are_told_and_count_without_opens),
        cmocka_unit_test(what_is_made_of_memory_is_made_cheaper_first),
        cmocka_unit_test(around_many_files_python_goes_with_them),
        cmocka_unit_test(the_gain_is_what_the_model_of_the_loader_says),
        cmocka_unit_test(the_reason_for_waiting_comes_before_the_waiting),
        cmocka_unit_test(a_symptom_alone_is_low_and_names_its_cause_otherwise),
        cmocka_unit_test(the_reference_set_has_the_documents_limits),
        cmocka_unit_test(advice_for_stalls_between_epochs_is_what_can_be_done),
        cmocka_unit_test(too_many_workers_explain_stalls_between_epochs),
        cmocka_unit_test(where_no_workers_are_best_advice_says_so),
        cmocka_unit_test(advice_names_the_line_and_the_number),
        cmocka_unit_test(advice_without_workers_says_what_goes_with_them),
        cmocka_unit_test(an_iterable_is_to_be_shared_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
