/* Rules about the step, cards and ranks. */
#include "rules_rows.h"

static const struct rule_row rows[] = {
    { "optimizer_bound",
      { { FACT_STEADY_SHARE, 1 } },
      FACT_OPTIMIZER_SHARE,
      0.40,
      0.39 },
    { "sync_stall", { { FACT_STEADY_SHARE, 1 } }, FACT_SYNC_SHARE, 0.15, 0.149 },
    { "sync_stall", { { FACT_SYNC_SHARE, 0 } }, FACT_LOCK_SHARE, 0.15, 0.149 },
    { "sync_stall", { { FACT_SYNC_SHARE, 0.1 } }, FACT_LOCK_SHARE, 0.05, 0.049 },
    { "launch_bound", { { FACT_GPU_BUSY, 0.3 } }, FACT_LAUNCH_SHARE, 0.30, 0.29 },
    { "launch_bound", { { FACT_LAUNCH_SHARE, 0.5 } }, FACT_GPU_BUSY, 0.79, 0.80 },
    { "batch_too_small", { { FACT_BATCH_SIZE, 1 } }, FACT_OVERHEAD_SHARE, 0.50, 0.49 },
    { "batch_too_small", { { FACT_OVERHEAD_SHARE, 0.8 } }, FACT_BATCH_SIZE, 16, 17 },
    { "batch_too_small",
      { { FACT_OVERHEAD_SHARE, 0.8 }, { FACT_BATCH_SIZE, 4 } },
      FACT_OTHER_SHARE,
      0.59,
      0.60 },
    /* (0.7 - 0.4) / (1 - 0.4) is a half. */
    { "batch_too_small",
      { { FACT_OVERHEAD_SHARE, 0.7 }, { FACT_BATCH_SIZE, 4 }, { FACT_OWN_SHARE, 0.4 } },
      FACT_OWN_CPU_SHARE,
      0.399,
      0.401 },
    { "precision_unused", { { FACT_NONE, 0 } }, FACT_DOUBLE_SHARE, 0.20, 0.19 },
    { "precision_unused",
      { { FACT_DOUBLE_SHARE, 0 }, { FACT_GPU_BUSY, 0.9 } },
      FACT_TENSOR_CORE_SHARE,
      0.09,
      0.10 },
    { "recompilation", { { FACT_NONE, 0 } }, FACT_COMPILE_SHARE, 0.10, 0.099 },
    { "checkpoint_stall",
      { { FACT_CHECKPOINTS, 5 } },
      FACT_CHECKPOINT_SHARE,
      0.05,
      0.049 },
    { "logging_stall", { { FACT_NONE, 0 } }, FACT_LOG_SHARE, 0.05, 0.049 },
    { "logging_stall", { { FACT_LOG_SHARE, 0 } }, FACT_SYNC_IO_SHARE, 0.05, 0.049 },
    { "evaluation_heavy", { { FACT_NONE, 0 } }, FACT_EVALUATION_SHARE, 0.35, 0.34 },
    { "startup_bound",
      { { FACT_RUN_S, 20 }, { FACT_IMPORT_S, 1 } },
      FACT_STARTUP_S,
      6,
      5.9 },
    { "startup_bound",
      { { FACT_RUN_S, 4 }, { FACT_IMPORT_S, 0 } },
      FACT_STARTUP_S,
      2,
      1.9 },
    { "gpu_unused",
      { { FACT_GPUS, 1 },
        { FACT_GPU_OWN, 0 },
        { FACT_FORWARD_SHARE, 0.4 },
        { FACT_BACKWARD_SHARE, 0.4 } },
      FACT_GPU_BUSY,
      0.01,
      0.02 },
    { "gpu_unused",
      { { FACT_GPUS, 1 },
        { FACT_GPU_BUSY, 0 },
        { FACT_FORWARD_SHARE, 0.4 },
        { FACT_BACKWARD_SHARE, 0.4 } },
      FACT_GPU_OWN,
      0,
      1 },
    { "gpu_underutilized", { { FACT_GPUS, 1 } }, FACT_GPU_BUSY, 0.49, 0.50 },
    { "gpu_throttled",
      { { FACT_GPU_CLOCK_SHARE, 0.7 } },
      FACT_GPU_THROTTLED_SHARE,
      0.10,
      0.099 },
    { "gpu_contended", { { FACT_GPU_BUSY, 0.9 } }, FACT_GPU_FOREIGN, 1, 0 },
    { "gpu_memory_high",
      { { FACT_GPU_MEMORY_MB, 1000 } },
      FACT_GPU_MEMORY_SHARE,
      0.95,
      0.94 },
    { "gpu_memory_high",
      { { FACT_GPU_MEMORY_SHARE, 0.6 },
        { FACT_LARGEST_BATCH_MB, 4 },
        { FACT_GPU_BATCH_FITS, 2 } },
      FACT_GPU_BATCH_LIKELY,
      1,
      0.99 },
    { "gpu_memory_growth",
      { { FACT_GPU_GROWTH_LATE, 1 },
        { FACT_GPU_MEMORY_SHARE, 0.5 },
        { FACT_GPU_MEMORY_MB, 5000 } },
      FACT_GPU_GROWTH_MB,
      500,
      499 },
    { "gpu_memory_growth",
      { { FACT_GPU_GROWTH_MB, 2000 },
        { FACT_GPU_MEMORY_SHARE, 0.5 },
        { FACT_GPU_MEMORY_MB, 5000 } },
      FACT_GPU_GROWTH_LATE,
      0.6,
      0.5 },
    { "gpu_allocator_thrash", { { FACT_NONE, 0 } }, FACT_GPU_ALLOC_SHARE, 0.05, 0.049 },
    { "straggler",
      { { FACT_RANKS, 4 }, { FACT_STRAGGLER_STEADY, 0.9 } },
      FACT_STRAGGLER_SHARE,
      0.10,
      0.099 },
    { "straggler",
      { { FACT_RANKS, 4 }, { FACT_STRAGGLER_SHARE, 0.3 } },
      FACT_STRAGGLER_STEADY,
      0.60,
      0.59 },
    { "rank_imbalance", { { FACT_RANKS, 4 } }, FACT_IMBALANCE_SHARE, 0.10, 0.099 },
    { "communication_bound",
      { { FACT_RANKS, 2 } },
      FACT_COMMUNICATION_SHARE,
      0.20,
      0.19 },
    { "communication_bound", { { FACT_COMMUNICATION_SHARE, 0.5 } }, FACT_RANKS, 2, 1 },
    { "communication_bound",
      { { FACT_RANKS, 2 },
        { FACT_COMMUNICATION_SHARE, 0.05 },
        { FACT_EXCHANGE_HIDDEN, 0.3 },
        { FACT_EXCHANGE_MB, 16 },
        { FACT_EXCHANGE_BUCKETS, 2 } },
      FACT_EXCHANGE_SHARE,
      0.15,
      0.149 },
};

static void each_fires_at_its_limit_and_not_below(void **state)
{
    (void)state;
    CHECK_ROWS(rows);
}

/* DESIGN §8, word for word. */
static const char design[] =
    "data_loading_bound preprocessing_bound collate_bound transfer_bound metadata_bound "
    "small_reads io_wait slow_samples too_many_workers epoch_boundary_stall shm_pressure "
    "padding_waste cpu_saturated cpu_throttled oversubscribed gil_contention gc_pauses "
    "slow_blas numa_pcie allocation_churn memory_leak memory_pressure "
    "worker_memory_growth swapping fd_leak optimizer_bound sync_stall launch_bound "
    "batch_too_small precision_unused recompilation checkpoint_stall logging_stall "
    "evaluation_heavy startup_bound gpu_unused gpu_underutilized gpu_throttled "
    "gpu_contended gpu_memory_high gpu_memory_growth gpu_allocator_thrash straggler "
    "rank_imbalance communication_bound";

static void every_rule_of_the_design_is_there_and_no_other(void **state)
{
    (void)state;
    char words[sizeof design];
    size_t count = 0;
    memcpy(words, design, sizeof design);
    for (char *save, *id = strtok_r(words, " ", &save); id;
         id = strtok_r(NULL, " ", &save), count++)
        if (!rule_by_id(id))
            fail_msg("no rule %s", id);
    assert_int_equal(rule_total(), count);
    for (size_t i = 0; i < rule_total(); i++)
        for (size_t k = 0; k < RULE_YIELDS && rule_at(i)->yields_to[k]; k++)
            if (!rule_by_id(rule_at(i)->yields_to[k]))
                fail_msg("%s yields to %s", rule_at(i)->id, rule_at(i)->yields_to[k]);
}

/* Many short messages want to be one; long ones, and few, want to be overlapped. */
static void advice_follows_the_number_of_messages(void **state)
{
    (void)state;
    static const struct {
        double calls, step_ms;
        const char *advice, *text;
    } cases[] = { { 64, 128, "one flat tensor", "in 64 calls of 1.00 ms" },
                  { 64, 258, "bucket_cap_mb", "exchanges data with other ranks." },
                  { 3.9, 10, "bucket_cap_mb", "exchanges data with other ranks." } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct rule_row row = { "communication_bound",
                                      { { FACT_RANKS, 2 },
                                        { FACT_STEP_MEAN_MS, cases[i].step_ms },
                                        { FACT_COLLECTIVES, cases[i].calls } },
                                      FACT_COMMUNICATION_SHARE,
                                      0.5,
                                      0 };
        struct arena arena = ARENA_INIT;
        struct thresholds t;
        struct facts f;
        thresholds_init(&t);
        row_facts(&row, row.fires, &f);
        const struct finding *found = judge_facts(&f, &t, row.id, &arena);
        assert_non_null(found);
        assert_non_null(strstr(found->recommendation, cases[i].advice));
        assert_non_null(strstr(found->description, cases[i].text));
        if (i == 0) /* one message of 64 is left of half the step */
            assert_near(found->gain.mid, 0.5 * 63 / 64, 1e-9);
        arena_release(&arena);
    }
}

/* At best backward and the optimizer are left: what is new runs slowly the first time. */
static void without_compiling_the_rest_may_be_faster_too(void **state)
{
    (void)state;
    const struct rule_row row = { "recompilation",
                                  { { FACT_BACKWARD_SHARE, 0.05 },
                                    { FACT_OPTIMIZER_SHARE, 0.05 } },
                                  FACT_COMPILE_SHARE,
                                  0.5,
                                  0 };
    struct arena arena = ARENA_INIT;
    struct thresholds t;
    struct facts f;
    thresholds_init(&t);
    row_facts(&row, row.fires, &f);
    const struct finding *found = judge_facts(&f, &t, row.id, &arena);
    assert_non_null(found);
    assert_near(found->gain.mid, 0.5, 1e-9);
    assert_near(found->gain.high, 0.9, 1e-9);
    arena_release(&arena);
}

static void nothing_known_means_nothing_found(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct thresholds t;
    struct facts f;
    struct diagnosis d;
    facts_init(&f);
    thresholds_init(&t);
    assert_int_equal(findings_make(&f, &t, &arena, &d), 0);
    assert_int_equal(d.finding_count, 0);
    assert_int_equal(d.unchecked_count, d.rules);
    assert_int_equal(thresholds_use_set(&t, "reference"), 0);
    assert_int_equal(findings_make(&f, &t, &arena, &d), 0);
    assert_int_equal(d.finding_count, 0);
    arena_release(&arena);
}

/* Whatever single fact is known, and however extreme: nothing may crash, and texts hold
 * no "nan". */
static void one_fact_alone_breaks_nothing(void **state)
{
    (void)state;
    static const double values[] = { 0, 1, -1, 1e9, 0.5 };
    struct thresholds t;
    thresholds_init(&t);
    for (int fact = 1; fact < FACT_COUNT; fact++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            struct arena arena = ARENA_INIT;
            struct facts f;
            struct diagnosis d;
            facts_init(&f);
            f.v[fact] = values[i];
            assert_int_equal(findings_make(&f, &t, &arena, &d), 0);
            for (size_t k = 0; k < d.finding_count; k++)
                assert_null(strstr(d.findings[k].recommendation, "nan"));
            arena_release(&arena);
        }
}

/* A run as it should be: computing, cores busy, nothing waiting. */
static void a_healthy_run_gets_no_finding(void **state)
{
    (void)state;
    static const struct {
        enum fact fact;
        double value;
    } healthy[] = {
        { FACT_RUN_S, 60 },
        { FACT_STEPS, 1000 },
        { FACT_STEP_MS, 50 },
        { FACT_STEADY_SHARE, 0.92 },
        { FACT_STARTUP_S, 3 },
        { FACT_IMPORT_S, 2 },
        { FACT_STARTUP_SHARE, 0.05 },
        { FACT_WARMUP_SHARE, 0.01 },
        { FACT_EPOCH_SHARE, 0.005 },
        { FACT_EPOCHS, 3 },
        { FACT_CHECKPOINT_SHARE, 0.01 },
        { FACT_EVALUATION_SHARE, 0.05 },
        { FACT_INPUT_SHARE, 0.04 },
        { FACT_WAIT_SHARE, 0.04 },
        { FACT_PREPROCESSING_SHARE, 0 },
        { FACT_COLLATE_SHARE, 0 },
        { FACT_TRANSFER_SHARE, 0.01 },
        { FACT_FORWARD_SHARE, 0.3 },
        { FACT_BACKWARD_SHARE, 0.55 },
        { FACT_OPTIMIZER_SHARE, 0.06 },
        { FACT_SYNC_SHARE, 0.01 },
        { FACT_COMMUNICATION_SHARE, 0 },
        { FACT_OTHER_SHARE, 0.03 },
        { FACT_WORKERS, 2 },
        { FACT_PREFETCH, 2 },
        { FACT_BATCH_SIZE, 32 },
        { FACT_SAMPLE_MS, 2 },
        { FACT_SAMPLE_CPU_SHARE, 0.95 },
        { FACT_TRANSFORM_OF_SAMPLE, 0.9 },
        { FACT_SAMPLE_TAIL, 2 },
        { FACT_SLOW_SAMPLE_SHARE, 0.01 },
        { FACT_COLLATE_OF_BATCH, 0.1 },
        { FACT_WORKERS_BEST, 1 },
        { FACT_WORKERS_GAIN, 0.01 },
        { FACT_FEWER_WORKERS_LOSS, 0.0 },
        { FACT_WORKER_START_S, 0.3 },
        { FACT_CORES, 2 },
        { FACT_CPU_CORES, 1.95 },
        { FACT_SYSTEM_BUSY, 0.99 },
        { FACT_IDLE_CORES, 0.02 },
        { FACT_FOREIGN_CORES, 0.03 },
        { FACT_IOWAIT_SHARE, 0.01 },
        { FACT_RUNNABLE, 1.4 },
        { FACT_BUSY_THREADS, 2.6 },
        { FACT_THREADS, 12 },
        { FACT_THROTTLED_SHARE, 0 },
        { FACT_THROTTLED_PERIODS, 0 },
        { FACT_RSS_MB, 900 },
        { FACT_MEMORY_LIMIT_MB, 24000 },
        { FACT_MEMORY_SHARE, 0.05 },
        { FACT_GROWTH_MB, 3 },
        { FACT_GROWTH_LATE, 0.2 },
        { FACT_LEAK_MB, 1 },
        { FACT_WORKER_GROWTH_MB, 6 },
        { FACT_SWAP_MB, 0 },
        { FACT_MAJOR_FAULTS, 0 },
        { FACT_ALLOC_SHARE, 0.02 },
        { FACT_FAULT_SHARE, 0.02 },
        { FACT_OPEN_SHARE, 0.02 },
        { FACT_READ_SHARE, 0.1 },
        { FACT_SMALL_READ_SHARE, 0.1 },
        { FACT_READS_PER_STEP, 64 },
        { FACT_OPEN_AT_END, 12 },
        { FACT_OPEN_GROWS, 0 },
        { FACT_GIL_WAIT_SHARE, 0.01 },
        { FACT_GC_SHARE, 0.005 },
        { FACT_LOG_SHARE, 0.002 },
        { FACT_COMPILE_SHARE, 0 },
        { FACT_REFERENCE_BLAS_SHARE, 0 },
        { FACT_DOUBLE_SHARE, 0 },
        { FACT_KERNEL_SHARE, 0.8 },
        { FACT_OVERHEAD_SHARE, 0.15 },
        { FACT_GPUS, 0 },
        { FACT_RANKS, 1 },
    };
    struct arena arena = ARENA_INIT;
    struct thresholds t;
    struct facts f;
    struct diagnosis d;
    facts_init(&f);
    thresholds_init(&t);
    for (size_t i = 0; i < sizeof healthy / sizeof *healthy; i++)
        f.v[healthy[i].fact] = healthy[i].value;
    assert_int_equal(findings_make(&f, &t, &arena, &d), 0);
    if (d.finding_count)
        fail_msg("%s: %s", d.findings[0].id, d.findings[0].description);
    assert_int_equal(d.quiet + d.unchecked_count, d.rules);
    arena_release(&arena);
}

static void a_rule_can_be_switched_off(void **state)
{
    (void)state;
    struct diagnosis d;
    struct trial c = TRIAL({ FACT_GC_SHARE, 0.5 });
    assert_int_equal(thresholds_rule_off(&c.t, "gc_pauses"), 0);
    assert_int_equal(findings_make(&c.f, &c.t, &c.arena, &d), 0);
    assert_int_equal(d.finding_count, 0);
    assert_int_equal(d.off, 1);
    trial_release(&c);
}

static void severity_is_what_is_at_stake(void **state)
{
    (void)state;
    static const struct {
        double share;
        enum severity severity;
    } rows_[] = { { 0.06, SEVERITY_LOW },
                  { 0.11, SEVERITY_MEDIUM },
                  { 0.25, SEVERITY_HIGH },
                  { 0.5, SEVERITY_CRITICAL } };
    struct arena arena = ARENA_INIT;
    struct thresholds t;
    thresholds_init(&t);
    for (size_t i = 0; i < 4; i++) {
        struct facts f;
        facts_init(&f);
        f.v[FACT_GC_SHARE] = rows_[i].share;
        assert_int_equal(judge_facts(&f, &t, "gc_pauses", &arena)->severity,
                         rows_[i].severity);
    }
    arena_release(&arena);
}

static void a_card_below_seventy_percent_is_the_documents_limit(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GPUS, 1 }, { FACT_GPU_BUSY, 0.69 });
    assert_null(judged(&c, "gpu_underutilized"));
    assert_int_equal(thresholds_use_set(&c.t, "reference"), 0);
    assert_non_null(judged(&c, "gpu_underutilized"));
    c.f.v[FACT_GPU_BUSY] = 0.71;
    assert_null(judged(&c, "gpu_underutilized"));
    trial_release(&c);
}

/* A number that may be too large is said to be one. */
static void a_batch_known_by_its_rows_says_so(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_OVERHEAD_SHARE, 0.8 }, { FACT_BATCH_SIZE, 2 });
    assert_non_null(strstr(judged(&c, "batch_too_small")->description, "of 2 samples"));
    c.f.v[FACT_BATCH_ROWS] = 2;
    const struct finding *found = judged(&c, "batch_too_small");
    assert_non_null(strstr(found->description, "at most 2 rows"));
    assert_non_null(strstr(found->recommendation, "no loader tells"));
    trial_release(&c);
}

/* A journal in every step is no cost of the batch: neither at stake nor to be had. */
static void own_work_is_not_the_batchs(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_OVERHEAD_SHARE, 0.9 }, { FACT_BATCH_SIZE, 4 },
                           { FACT_STEADY_SHARE, 1 }, { FACT_KERNEL_SHARE, 0.05 });
    const struct finding before = *judged(&c, "batch_too_small");
    c.f.v[FACT_OWN_SHARE] = c.f.v[FACT_OWN_CPU_SHARE] = 0.5;
    const struct finding *after = judged(&c, "batch_too_small");
    assert_near(after->score, 0.4, 1e-6); /* 0.9 - 0.5 */
    assert_true(after->score < before.score);
    assert_true(after->gain.mid < 0.5 && after->gain.mid < before.gain.mid);
    assert_non_null(strstr(after->description, "80 % of CPU time in training"));
    trial_release(&c);
}

/* Each of the two waits has a cure of its own: the longer one's is told. */
/* Start and end are in no share of the loop: nobody may take it for the run's. */
static void shares_of_the_loop_are_called_that(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_EVALUATION_SHARE, 0.8 }, { FACT_LOOP_S, 1.2 },
                           { FACT_RUN_S, 5 });
    const struct finding *f = judged(&c, "evaluation_heavy");
    assert_int_equal(f->gain_of, GAIN_OF_LOOP);
    assert_non_null(strstr(f->description, "from the first step to the last"));
    assert_null(strstr(f->description, "of the run"));
    c.f.v[FACT_LOOP_S] = NAN; /* a program without steps */
    f = judged(&c, "evaluation_heavy");
    assert_non_null(strstr(f->description, "of the run"));
    trial_release(&c);
}

/* A tenth of the time cannot bring nine. */
static void a_little_churn_promises_little(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_ALLOC_SHARE, 0.12 }, { FACT_TURNOVER, 50 });
    const struct finding *f = judged(&c, "allocation_churn");
    assert_non_null(f);
    assert_true(f->gain.high <= 3 * 0.12);
    trial_release(&c);
}

static void a_lock_is_told_from_results(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_SYNC_SHARE, 0.3 }, { FACT_LOCK_SHARE, 0.4 });
    const struct finding *found = judged(&c, "sync_stall");
    assert_non_null(strstr(found->description, "70 % of every step waits for a lock"));
    assert_non_null(strstr(found->recommendation, "lock"));
    c.f.v[FACT_LOCK_SHARE] = 0.2;
    found = judged(&c, "sync_stall");
    assert_non_null(strstr(found->description, "waits for results"));
    assert_non_null(strstr(found->recommendation, ".item()"));
    trial_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fires_at_its_limit_and_not_below),
        cmocka_unit_test(every_rule_of_the_design_is_there_and_no_other),
        cmocka_unit_test(advice_follows_the_number_of_messages),
        cmocka_unit_test(without_compiling_the_rest_may_be_faster_too),
        cmocka_unit_test(nothing_known_means_nothing_found),
        cmocka_unit_test(one_fact_alone_breaks_nothing),
        cmocka_unit_test(a_healthy_run_gets_no_finding),
        cmocka_unit_test(a_rule_can_be_switched_off),
        cmocka_unit_test(severity_is_what_is_at_stake),
        cmocka_unit_test(a_batch_known_by_its_rows_says_so),
        cmocka_unit_test(own_work_is_not_the_batchs),
        cmocka_unit_test(shares_of_the_loop_are_called_that),
        cmocka_unit_test(a_little_churn_promises_little),
        cmocka_unit_test(a_lock_is_told_from_results),
        cmocka_unit_test(a_card_below_seventy_percent_is_the_documents_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
