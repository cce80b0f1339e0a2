/* Which of several findings comes first, and what is worth a word only. */
#include "rules_rows.h"

/* The first finding's id; it lives in the arena. */
static const char *first(struct trial *c)
{
    struct diagnosis *d = arena_alloc(&c->arena, sizeof *d);
    assert_non_null(d);
    assert_int_equal(findings_make(&c->f, &c->t, &c->arena, d), 0);
    return d->finding_count ? d->findings[0].id : "none";
}

/* 16 samples of 1.7 ms each, made in the main process of two cores. */
static struct trial slow_transform(void)
{
    return TRIAL({ FACT_INPUT_SHARE, 0.73 }, { FACT_TRANSFORM_OF_SAMPLE, 0.99 },
                 { FACT_SAMPLE_CPU_SHARE, 1 }, { FACT_SAMPLE_MS, 1.7 },
                 { FACT_BATCH_MS, 27 }, { FACT_BATCH_CPU_MS, 27 },
                 { FACT_BATCH_SIZE, 16 }, { FACT_STEP_MS, 37 }, { FACT_CORES, 2 },
                 { FACT_IDLE_CORES, 0.1 }, { FACT_FREE_CORES, 0.9 },
                 { FACT_WORKERS, 0 }, { FACT_WORKERS_BEST, 2 },
                 { FACT_WORKERS_GAIN, 0.26 }, { FACT_TRANSFORM_GAIN, 0.72 },
                 { FACT_TRANSFORM_GAIN_LOW, 0.4 }, { FACT_TRANSFORM_GAIN_HIGH, 0.76 });
}

/* Logging waits for a disk that others keep busy too. */
static void the_worst_symptom_stays_behind_what_explains_it(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_IOWAIT_SHARE, 0.6 }, { FACT_LOG_SHARE, 0.22 },
                           { FACT_STEPS, 500 });
    assert_string_equal(first(&c), "logging_stall");
    assert_int_equal(judged(&c, "io_wait")->severity, SEVERITY_CRITICAL);
    assert_int_equal(judged(&c, "logging_stall")->severity, SEVERITY_HIGH);
    trial_release(&c);
}

static void workers_nobody_has_tried_come_before_a_rewrite(void **state)
{
    (void)state;
    struct trial c = slow_transform();
    assert_string_equal(first(&c), "data_loading_bound");
    assert_non_null(judged(&c, "preprocessing_bound"));
    const struct finding *n = judged(&c, "data_loading_bound");
    assert_non_null(strstr(n->recommendation, "num_workers=2"));
    assert_non_null(strstr(n->recommendation, "0.9 of 2 cores have no work"));
    /* Every core has work: workers would only take turns. */
    c.f.v[FACT_FREE_CORES] = 0.49;
    assert_string_equal(first(&c), "preprocessing_bound");
    c.f.v[FACT_FREE_CORES] = 0.5;
    assert_string_equal(first(&c), "data_loading_bound");
    /* Others have work for them: that is not the program's doing. */
    c.f.v[FACT_FREE_CORES] = 0.2;
    c.f.v[FACT_FOREIGN_CORES] = 0.3;
    assert_string_equal(first(&c), "data_loading_bound");
    c.f.v[FACT_FOREIGN_CORES] = 0.29;
    assert_string_equal(first(&c), "preprocessing_bound");
    /* Nobody looked at the cores. */
    c.f.v[FACT_FREE_CORES] = NAN;
    assert_string_equal(first(&c), "preprocessing_bound");
    trial_release(&c);
}

/* Twenty files a step are opened, unpacked and only then trained on. */
static void reading_ahead_comes_before_a_rewrite_where_the_loop_reads_itself(
    void **state)
{
    (void)state;
    struct trial c = TRIAL(
        { FACT_INPUT_SHARE, 0.72 }, { FACT_TRANSFORM_OF_SAMPLE, 0.98 },
        { FACT_SAMPLE_CPU_SHARE, 1 }, { FACT_STEP_MS, 50 }, { FACT_OPENS_PER_STEP, 20 },
        { FACT_CORES, 2 }, { FACT_FREE_CORES, 0.9 });
    assert_string_equal(first(&c), "data_loading_bound");
    assert_non_null(judged(&c, "preprocessing_bound"));
    c.f.v[FACT_FREE_CORES] = 0.4; /* nobody could do it meanwhile */
    assert_string_equal(first(&c), "preprocessing_bound");
    trial_release(&c);
}

static void workers_that_are_there_must_bring_half_of_it(void **state)
{
    (void)state;
    struct trial c = slow_transform();
    c.f.v[FACT_WORKERS] = 1;
    c.f.v[FACT_QUEUE_EMPTY_SHARE] = 1;
    assert_string_equal(first(&c), "preprocessing_bound");
    c.f.v[FACT_WORKERS_GAIN] = 0.4;
    assert_string_equal(first(&c), "data_loading_bound");
    trial_release(&c);
}

/* Few asks find nothing, but those wait so long that a step in five is waiting. */
static void few_long_waits_are_waits_too(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_INPUT_SHARE, 0.25 }, { FACT_SAMPLE_TAIL, 400 },
                           { FACT_SLOW_SAMPLE_SHARE, 0.9 }, { FACT_WORKERS, 2 },
                           { FACT_QUEUE_EMPTY_SHARE, 0.05 }, { FACT_BATCH_MS, 110 },
                           { FACT_QUEUE_WAIT_SHARE, 0.15 },
                           { FACT_TRANSFORM_OF_SAMPLE, 0.9 },
                           { FACT_SAMPLE_CPU_SHARE, 1 }, { FACT_CROWDED_SHARE, 0.43 });
    assert_string_equal(first(&c), "slow_samples");
    assert_non_null(judged(&c, "preprocessing_bound"));
    c.f.v[FACT_QUEUE_WAIT_SHARE] = 0.149;
    assert_null(judged(&c, "slow_samples"));
    trial_release(&c);
}

/* Records out of a list: the calls are all there is to it. */
static void samples_that_take_what_any_takes_are_no_transform(void **state)
{
    (void)state;
    struct trial c = TRIAL(
        { FACT_INPUT_SHARE, 0.15 }, { FACT_TRANSFORM_OF_SAMPLE, 0.84 },
        { FACT_SAMPLE_CPU_SHARE, 1 }, { FACT_SAMPLE_MS, 0.029 },
        { FACT_BATCH_SIZE, 256 }, { FACT_CROWDED_SHARE, 0.42 },
        { FACT_BATCH_CPU_MS, 6 }, { FACT_BATCH_MS, 8 }, { FACT_WORKERS, 2 },
        { FACT_WORKER_GROWTH_MB, 270 }, { FACT_WORKER_COPIED_MB, 270 },
        { FACT_MEMORY_LIMIT_MB, 1.3e5 });
    assert_string_equal(first(&c), "worker_memory_growth");
    const struct finding *n = judged(&c, "preprocessing_bound");
    assert_int_equal(n->severity, SEVERITY_LOW);
    assert_non_null(strstr(n->recommendation, "__getitems__"));
    /* A real transform. */
    c.f.v[FACT_SAMPLE_MS] = 0.3;
    c.f.v[FACT_BATCH_CPU_MS] = 60;
    assert_string_equal(first(&c), "preprocessing_bound");
    assert_null(
        strstr(judged(&c, "preprocessing_bound")->recommendation, "__getitems__"));
    /* The machine is busy: the wall time is long, the work is not. */
    c.f.v[FACT_BATCH_CPU_MS] = 6;
    assert_string_equal(first(&c), "worker_memory_growth");
    trial_release(&c);
}

/* Every batch has to be shipped, by however few: half of the workers saves nothing. */
static void shipping_by_any_worker_at_all_may_be_too_many(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_WORKERS, 8 }, { FACT_WORKERS_BEST, 0 },
                           { FACT_FEWER_WORKERS_LOSS, 0 }, { FACT_WORKERS_GAIN, 0.05 },
                           { FACT_WORKERS_GAIN_LOW, 0 }, { FACT_CORES, 7 },
                           { FACT_INPUT_SHARE, 0.37 }, { FACT_QUEUE_EMPTY_SHARE, 0 });
    assert_string_equal(first(&c), "too_many_workers");
    c.f.v[FACT_WORKERS_GAIN] = 0.049;
    assert_null(judged(&c, "too_many_workers"));
    /* A core for each: what may be is not enough. */
    c.f.v[FACT_CORES] = 8;
    c.f.v[FACT_WORKERS_GAIN] = 0.2;
    assert_null(judged(&c, "too_many_workers"));
    c.f.v[FACT_WORKERS_GAIN_LOW] = 0.05;
    assert_int_equal(judged(&c, "too_many_workers")->severity, SEVERITY_LOW);
    trial_release(&c);
}

/* ore_cubes: eight workers copy ready data on two cores. Whoever has more busy threads than
 * those has another illness. */
static void a_crowd_of_workers_is_too_many_workers(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_WORKERS, 8 }, { FACT_WORKERS_BEST, 0 },
                           { FACT_FEWER_WORKERS_LOSS, -0.05 },
                           { FACT_WORKERS_GAIN, 0.64 }, { FACT_CORES, 2 },
                           { FACT_BUSY_THREADS, 4.8 }, { FACT_CPU_CORES, 1.8 },
                           { FACT_THREADS, 36 }, { FACT_STEADY_SHARE, 0.45 },
                           { FACT_LOOP_S, 6 }, { FACT_WORKER_START_S, 0.7 });
    for (double busy = 4.8; busy < 9; busy += 2) {
        c.f.v[FACT_BUSY_THREADS] = busy;
        assert_int_equal(judged(&c, "oversubscribed")->severity, SEVERITY_LOW);
        assert_string_equal(first(&c), "too_many_workers");
    }
    /* Two threads of the loop spin for one another while workers have their cores. */
    c.f.v[FACT_BUSY_THREADS] = 3.6;
    c.f.v[FACT_SPIN_SHARE] = 0.6;
    assert_int_equal(judged(&c, "oversubscribed")->severity, SEVERITY_LOW);
    assert_string_equal(first(&c), "too_many_workers");
    c.f.v[FACT_BUSY_THREADS] = 9.1;
    assert_string_equal(first(&c), "oversubscribed");
    trial_release(&c);
}

static void usual_churn_is_worth_a_word_only(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_ALLOC_SHARE, 0.01 }, { FACT_FAULT_SHARE, 0.15 },
                           { FACT_TURNOVER, 1000 }, { FACT_HUGE_BLOCKS_SHARE, 0 });
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_LOW);
    c.f.v[FACT_FAULT_SHARE] = 0.19; /* 0.20 with the allocator */
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_HIGH);
    /* Blocks that the C library never keeps, or calls of it: the program's doing. */
    c.f.v[FACT_FAULT_SHARE] = 0.15;
    c.f.v[FACT_HUGE_BLOCKS_SHARE] = 0.1;
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_MEDIUM);
    c.f.v[FACT_HUGE_BLOCKS_SHARE] = 0.099;
    c.f.v[FACT_FAULT_SHARE] = 0.05;
    c.f.v[FACT_ALLOC_SHARE] = 0.1;
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_MEDIUM);
    trial_release(&c);
}

/* The cause of something that matters matters as much; nothing low stands before it. */
static void a_cause_is_as_severe_as_what_it_explains(void **state)
{
    (void)state;
    struct trial c = TRIAL(
        { FACT_EPOCH_SHARE, 0.12 }, { FACT_EPOCHS, 8 }, { FACT_WORKERS, 2 },
        { FACT_PERSISTENT, 1 }, { FACT_CORES, 2 }, { FACT_WORKERS_BEST, 0 },
        { FACT_FEWER_WORKERS_LOSS, -0.002 }, { FACT_WORKER_START_S, 0.63 },
        { FACT_WORKERS_GAIN, 0.19 }, { FACT_STEP_MS, 26 }, { FACT_LOOP_S, 2.7 });
    struct diagnosis d;
    assert_int_equal(findings_make(&c.f, &c.t, &c.arena, &d), 0);
    assert_true(d.finding_count >= 2);
    assert_string_equal(d.findings[0].id, "too_many_workers");
    assert_string_equal(d.findings[1].id, "epoch_boundary_stall");
    assert_true(d.findings[0].stake < c.t.medium);
    assert_int_equal(d.findings[1].severity, SEVERITY_MEDIUM);
    assert_int_equal(d.findings[0].severity, SEVERITY_MEDIUM);
    trial_release(&c);
}

/* A program that frees its list at the end had live blocks until then. */
static void what_was_live_until_the_end_is_no_fragmentation(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GROWTH_MB, 500 }, { FACT_RSS_MB, 900 },
                           { FACT_MEMORY_LIMIT_MB, 24000 }, { FACT_GROWTH_LATE, 1 },
                           { FACT_LEAK_MB, 0 }, { FACT_LIVE_MB, 10 },
                           { FACT_FRAGMENTATION, 90 }, { FACT_LIVE_PEAK_MB, 250 },
                           { FACT_LIVE_PEAK_AT, 0.5 });
    assert_null(strstr(judged(&c, "memory_leak")->description, "fragmented"));
    c.f.v[FACT_LIVE_PEAK_MB] = 249;
    assert_non_null(strstr(judged(&c, "memory_leak")->description, "fragmented"));
    trial_release(&c);
}

/* Small blocks of every operator's result go with the calls, which are the illness. */
static void blocks_of_operators_are_worth_a_word_only(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_ALLOC_SHARE, 0.11 }, { FACT_TURNOVER, 1000 },
                           { FACT_OVERHEAD_SHARE, 0.75 });
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_LOW);
    c.f.v[FACT_OVERHEAD_SHARE] = 0.4; /* more than calling operators takes of it */
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_MEDIUM);
    c.f.v[FACT_OVERHEAD_SHARE] = NAN;
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_MEDIUM);
    trial_release(&c);
}

/* Ten threads on two cores, a fifth of their CPU time spins while workers have the cores:
 * what they compute fills the step, and fewer threads would take as long. */
static void a_team_that_has_nothing_to_gain_is_worth_a_word_only(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_CORES, 2 }, { FACT_BUSY_THREADS, 3.1 },
                           { FACT_RUNNABLE, 2.05 }, { FACT_THREADS, 10 },
                           { FACT_CPU_CORES, 1.93 }, { FACT_SPIN_SHARE, 0.35 },
                           { FACT_AWAIT_SHARE, 0.35 }, { FACT_WORK_CORES, 1.27 },
                           { FACT_SERIAL_CORES, 1 });
    assert_int_equal(judged(&c, "oversubscribed")->severity, SEVERITY_LOW);
    c.f.v[FACT_SERIAL_CORES] = 0.3;
    assert_int_equal(judged(&c, "oversubscribed")->severity, SEVERITY_HIGH);
    trial_release(&c);
}

/* A collector that walks over what `import torch` left copies those pages, once. */
static void objects_of_the_interpreter_are_no_growth(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_WORKER_GROWTH_MB, 254 },
                           { FACT_WORKER_COPIED_MB, 254 }, { FACT_WORKERS, 2 },
                           { FACT_MEMORY_LIMIT_MB, 1.3e5 },
                           { FACT_DATASET_OBJECTS, 0 });
    assert_null(judged(&c, "worker_memory_growth"));
    c.f.v[FACT_WORKER_GROWTH_MB] = c.f.v[FACT_WORKER_COPIED_MB] = 256;
    assert_non_null(judged(&c, "worker_memory_growth"));
    /* Many objects in the data set: what they add to those of the interpreter. */
    c.f.v[FACT_WORKER_GROWTH_MB] = c.f.v[FACT_WORKER_COPIED_MB] = 72;
    c.f.v[FACT_DATASET_OBJECTS] = 1;
    assert_null(judged(&c, "worker_memory_growth"));
    c.f.v[FACT_WORKER_GROWTH_MB] = c.f.v[FACT_WORKER_COPIED_MB] = 128;
    assert_non_null(judged(&c, "worker_memory_growth"));
    /* Their own allocations: 32 MiB each. */
    c.f.v[FACT_WORKER_GROWTH_MB] = 66;
    c.f.v[FACT_DATASET_OBJECTS] = 0;
    c.f.v[FACT_WORKER_COPIED_MB] = 10;
    assert_non_null(judged(&c, "worker_memory_growth"));
    trial_release(&c);
}

static bool shows(const struct finding *n, const char *metric)
{
    for (size_t i = 0; i < n->evidence_count; i++)
        if (strcmp(n->evidence[i].metric, metric) == 0)
            return true;
    return false;
}

static void what_says_nothing_is_no_evidence(void **state)
{
    (void)state;
    struct trial c = slow_transform();
    c.f.v[FACT_OPENS_PER_STEP] = 0.05;
    c.f.v[FACT_COLD_SHARE] = 0;
    const struct finding *n = judged(&c, "data_loading_bound");
    assert_false(shows(n, "opens_per_step") || shows(n, "cold_share"));
    assert_true(shows(n, "num_workers")); /* none is what it says */
    c.f.v[FACT_OPENS_PER_STEP] = 4;
    assert_true(shows(judged(&c, "data_loading_bound"), "opens_per_step"));
    /* What a rule rests on is shown whatever it is. */
    c.f.v[FACT_OPEN_SHARE] = 0.5;
    c.f.v[FACT_READ_SHARE] = 0;
    assert_true(shows(judged(&c, "metadata_bound"), "read_time_share"));
    trial_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worst_symptom_stays_behind_what_explains_it),
        cmocka_unit_test(workers_nobody_has_tried_come_before_a_rewrite),
        cmocka_unit_test(
            reading_ahead_comes_before_a_rewrite_where_the_loop_reads_itself),
        cmocka_unit_test(workers_that_are_there_must_bring_half_of_it),
        cmocka_unit_test(few_long_waits_are_waits_too),
        cmocka_unit_test(samples_that_take_what_any_takes_are_no_transform),
        cmocka_unit_test(shipping_by_any_worker_at_all_may_be_too_many),
        cmocka_unit_test(a_crowd_of_workers_is_too_many_workers),
        cmocka_unit_test(usual_churn_is_worth_a_word_only),
        cmocka_unit_test(blocks_of_operators_are_worth_a_word_only),
        cmocka_unit_test(a_team_that_has_nothing_to_gain_is_worth_a_word_only),
        cmocka_unit_test(what_was_live_until_the_end_is_no_fragmentation),
        cmocka_unit_test(a_cause_is_as_severe_as_what_it_explains),
        cmocka_unit_test(objects_of_the_interpreter_are_no_growth),
        cmocka_unit_test(what_says_nothing_is_no_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
