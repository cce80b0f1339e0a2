/* What is taken from a report, and that missing stays missing. */
#include "fake_training.h"

#include "analyse/facts.h"
#include "analyse/thresholds.h"

static void open_run(struct training *t)
{
    char json[2048];
    (void)snprintf(json, sizeof json, training_json, "0", "null", "ok");
    training_traces(t);
    training_open(t, json);
}

/* No monitors, no samples, no loader, no files: none of their facts may have a value. */
static void what_nobody_measured_is_unknown(void **state)
{
    (void)state;
    static const enum fact known[] = {
        FACT_RUN_S,
        FACT_STEPS,
        FACT_STEP_MS,
        FACT_STEP_P99_MS,
        FACT_STEADY_SHARE,
        FACT_STARTUP_S,
        FACT_STARTUP_SHARE,
        FACT_WARMUP_SHARE,
        FACT_EPOCH_SHARE,
        FACT_EPOCHS,
        FACT_CHECKPOINT_SHARE,
        FACT_CHECKPOINTS,
        FACT_EVALUATION_SHARE,
        FACT_SLOW_STEP_SHARE,
        FACT_SLOW_STEPS,
        FACT_DRIFT,
        FACT_WAIT_SHARE,
        FACT_PREPROCESSING_SHARE,
        FACT_COLLATE_SHARE,
        FACT_INPUT_SHARE,
        FACT_TRANSFER_SHARE,
        FACT_FORWARD_SHARE,
        FACT_BACKWARD_SHARE,
        FACT_OPTIMIZER_SHARE,
        FACT_SYNC_SHARE,
        FACT_COMMUNICATION_SHARE,
        FACT_OTHER_SHARE,
        FACT_STEP_MEAN_MS,
        FACT_EVALUATIONS,
        FACT_EPOCH_IDLE_SHARE,
        FACT_CORES,
        FACT_CPU_CORES,
        FACT_RSS_MB,
        FACT_MEMORY_LIMIT_MB,
        FACT_MEMORY_SHARE,
        FACT_GPUS,
        FACT_RANKS,
    };
    struct training t = { 0 };
    struct facts f;
    open_run(&t);
    assert_int_equal(facts_read(t.report, &f), 0);
    for (int fact = 1; fact < FACT_COUNT; fact++) {
        bool may = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            may |= known[i] == (enum fact)fact;
        if (!may && fact_known(&f, (enum fact)fact))
            fail_msg("%s is %g", fact_infos[fact].metric, f.v[fact]);
    }
    training_free(&t);
}

static void steps_come_from_the_account(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct facts f;
    open_run(&t);
    assert_int_equal(facts_read(t.report, &f), 0);
    assert_near(f.v[FACT_RUN_S], 10, 1e-9);
    assert_near(f.v[FACT_STEPS], 99, 0);
    assert_near(f.v[FACT_STEP_MS], 91, 0.5);
    assert_near(f.v[FACT_STARTUP_S], 0.3, 1e-6);
    assert_near(f.v[FACT_SLOW_STEPS], 1, 0);
    assert_near(f.v[FACT_MEMORY_SHARE], 512.5 / 131072, 1e-9);
    training_free(&t);
}

/* A run of which nothing but time is known gets no finding. */
static void little_data_give_no_finding(void **state)
{
    (void)state;
    struct training t = { 0 };
    struct thresholds limits;
    open_run(&t);
    assert_int_equal(t.report->diagnosis.finding_count, 0);
    assert_true(t.report->diagnosis.unchecked_count > 20);
    thresholds_init(&limits);
    assert_int_equal(thresholds_use_set(&limits, "reference"), 0);
    assert_int_equal(report_diagnose(t.report, &limits), 0);
    assert_int_equal(t.report->diagnosis.finding_count, 0);
    training_free(&t);
}

static void every_fact_has_a_name_a_unit_and_a_source(void **state)
{
    (void)state;
    for (int i = 1; i < FACT_COUNT; i++) {
        assert_true(fact_infos[i].metric[0] && fact_infos[i].unit[0] &&
                    fact_infos[i].source[0]);
        for (int k = 1; k < i; k++)
            assert_string_not_equal(fact_infos[i].metric, fact_infos[k].metric);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_nobody_measured_is_unknown, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(steps_come_from_the_account, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(little_data_give_no_finding, fake_setup,
                                        fake_teardown),
        cmocka_unit_test(every_fact_has_a_name_a_unit_and_a_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
