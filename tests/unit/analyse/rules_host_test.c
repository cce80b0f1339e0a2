/* Rules about processors, memory and descriptors. */
#include "rules_rows.h"

static const struct rule_row rows[] = {
    { "cpu_saturated",
      { { FACT_FOREIGN_CORES, 1 }, { FACT_CORES, 2 } },
      FACT_SYSTEM_BUSY,
      0.95,
      0.94 },
    { "cpu_throttled",
      { { FACT_THROTTLED_PERIODS, 0.3 }, { FACT_CPU_LIMIT, 0.5 }, { FACT_CORES, 2 } },
      FACT_THROTTLED_SHARE,
      0.05,
      0.049 },
    { "oversubscribed",
      { { FACT_CORES, 2 }, { FACT_RUNNABLE, 3 } },
      FACT_BUSY_THREADS,
      4,
      3.9 },
    { "oversubscribed",
      { { FACT_CORES, 2 }, { FACT_BUSY_THREADS, 9 } },
      FACT_RUNNABLE,
      2,
      1.9 },
    { "oversubscribed",
      { { FACT_CORES, 2 },
        { FACT_BUSY_THREADS, 3.5 },
        { FACT_CPU_CORES, 2 },
        { FACT_SPIN_SHARE, 0.3 } },
      FACT_THREADS,
      8,
      7.9 },
    { "oversubscribed", /* one thread waits for each core: all that spinning is lost */
      { { FACT_CORES, 4 },
        { FACT_BUSY_THREADS, 7.9 },
        { FACT_CPU_CORES, 3.9 },
        { FACT_THREADS, 20 } },
      FACT_SPIN_SHARE,
      0.20,
      0.199 },
    { "oversubscribed", /* spinning that nobody waits for is not */
      { { FACT_CORES, 2 },
        { FACT_CPU_CORES, 2 },
        { FACT_THREADS, 20 },
        { FACT_SPIN_SHARE, 0.5 } },
      FACT_BUSY_THREADS,
      2.81,
      2.79 },
    { "oversubscribed", /* half of the spinning, and switches */
      { { FACT_CORES, 2 },
        { FACT_BUSY_THREADS, 3 },
        { FACT_CPU_CORES, 2 },
        { FACT_THREADS, 20 },
        { FACT_SPIN_SHARE, 0.3 } },
      FACT_TURNS,
      10001,
      9900 },
    { "oversubscribed", /* they sleep and wake each other at every operator */
      { { FACT_CORES, 2 },
        { FACT_BUSY_THREADS, 3 },
        { FACT_CPU_CORES, 2 },
        { FACT_THREADS, 20 },
        { FACT_TURNS, 10000 } },
      FACT_SLEEPS,
      30001,
      29900 },
    { "gil_contention", { { FACT_NONE, 0 } }, FACT_GIL_WAIT_SHARE, 0.10, 0.099 },
    { "gc_pauses", { { FACT_NONE, 0 } }, FACT_GC_SHARE, 0.05, 0.049 },
    { "slow_blas", { { FACT_NONE, 0 } }, FACT_REFERENCE_BLAS_SHARE, 0.20, 0.19 },
    { "numa_pcie", { { FACT_NONE, 0 } }, FACT_NUMA_REMOTE, 0.30, 0.29 },
    { "allocation_churn",
      { { FACT_FAULT_SHARE, 0.04 } },
      FACT_ALLOC_SHARE,
      0.06,
      0.059 },
    { "allocation_churn",
      { { FACT_ALLOC_SHARE, 0.3 }, { FACT_FAULT_SHARE, 0.1 } },
      FACT_TURNOVER,
      4,
      3.9 },
    { "memory_leak",
      { { FACT_GROWTH_LATE, 1 },
        { FACT_RSS_MB, 200 },
        { FACT_MEMORY_LIMIT_MB, 24000 },
        { FACT_GROWTH_MB_PER_MIN, 200 },
        { FACT_RUN_S, 10 } },
      FACT_GROWTH_MB,
      32,
      31 },
    { "memory_leak",
      { { FACT_GROWTH_MB, 50 },
        { FACT_RSS_MB, 200 },
        { FACT_MEMORY_LIMIT_MB, 24000 },
        { FACT_GROWTH_MB_PER_MIN, 200 } },
      FACT_GROWTH_LATE,
      0.6,
      0.59 },
    { "memory_leak",
      { { FACT_GROWTH_MB, 10 },
        { FACT_GROWTH_LATE, 1 },
        { FACT_RSS_MB, 200 },
        { FACT_MEMORY_LIMIT_MB, 24000 },
        { FACT_GROWTH_MB_PER_MIN, 10 } },
      FACT_LEAK_MB,
      32,
      31 },
    { "memory_pressure",
      { { FACT_MEMORY_LIMIT_MB, 1000 } },
      FACT_MEMORY_SHARE,
      0.90,
      0.89 },
    { "memory_pressure", /* the batch that will not fit: it came, it may come, little room */
      { { FACT_MEMORY_SHARE, 0.5 }, { FACT_LARGEST_BATCH_MB, 4 } },
      FACT_BATCH_FITS,
      1.15,
      1.16 },
    { "memory_pressure",
      { { FACT_MEMORY_SHARE, 0.5 },
        { FACT_LARGEST_BATCH_MB, 4 },
        { FACT_BATCH_ALL_SEEN, 1 } },
      FACT_BATCH_FITS,
      0.99,
      1.01 },
    { "memory_pressure",
      { { FACT_MEMORY_SHARE, 0.5 },
        { FACT_LARGEST_BATCH_MB, 4 },
        { FACT_BATCH_FITS, 2 } },
      FACT_BATCH_LIKELY,
      1,
      0.99 },
    { "memory_pressure",
      { { FACT_MEMORY_SHARE, 0.5 },
        { FACT_LARGEST_BATCH_MB, 4 },
        { FACT_BATCH_FITS, 2 } },
      FACT_BATCH_POSSIBLE,
      1,
      0.99 },
    { "worker_memory_growth",
      { { FACT_MEMORY_LIMIT_MB, 24000 } },
      FACT_WORKER_GROWTH_MB,
      64,
      63 },
    { "worker_memory_growth",
      { { FACT_MEMORY_LIMIT_MB, 400 } },
      FACT_WORKER_GROWTH_MB,
      20,
      19 },
    { "worker_memory_growth", /* twenty with a little each: the interpreter's own */
      { { FACT_MEMORY_LIMIT_MB, 24000 }, { FACT_WORKERS, 20 } },
      FACT_WORKER_GROWTH_MB,
      640,
      639 },
    { "swapping", { { FACT_SWAP_MB, 100 } }, FACT_MAJOR_FAULTS, 20, 19 },
    { "swapping", { { FACT_MAJOR_FAULTS, 100 } }, FACT_SWAP_MB, 1, 0.5 },
    { "fd_leak", { { FACT_OPEN_GROWS, 1 } }, FACT_OPEN_AT_END, 100, 99 },
    { "fd_leak", { { FACT_OPEN_AT_END, 500 } }, FACT_OPEN_GROWS, 1, 0 },
};

static void each_fires_at_its_limit_and_not_below(void **state)
{
    (void)state;
    CHECK_ROWS(rows);
}

static void busy_cores_alone_are_no_illness(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_SYSTEM_BUSY, 1 }, { FACT_CORES, 2 },
                           { FACT_FOREIGN_CORES, 0.1 });
    assert_null(judged(&c, "cpu_saturated"));
    /* With something that explains it, it is its symptom. */
    c.f.v[FACT_REFERENCE_BLAS_SHARE] = 0.9;
    const struct finding *n = judged(&c, "cpu_saturated");
    assert_non_null(n);
    assert_string_equal(n->because[0], "slow_blas");
    /* The documents' rule is about the number alone. */
    c.f.v[FACT_REFERENCE_BLAS_SHARE] = 0;
    assert_int_equal(thresholds_use_set(&c.t, "reference"), 0);
    assert_non_null(judged(&c, "cpu_saturated"));
    trial_release(&c);
}

/* Pages that the C library gives back are worth a word, and so is what follows of them. */
static void busy_cores_mean_no_more_than_what_explains_them(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_SYSTEM_BUSY, 1 }, { FACT_CORES, 2 },
                           { FACT_FOREIGN_CORES, 0.1 }, { FACT_ALLOC_SHARE, 0.02 },
                           { FACT_FAULT_SHARE, 0.17 });
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_LOW);
    assert_int_equal(judged(&c, "cpu_saturated")->severity, SEVERITY_LOW);
    c.f.v[FACT_FAULT_SHARE] = 0.19;
    assert_int_equal(judged(&c, "allocation_churn")->severity, SEVERITY_HIGH);
    assert_int_equal(judged(&c, "cpu_saturated")->severity, SEVERITY_MEDIUM);
    /* One of two is enough. */
    c.f.v[FACT_FAULT_SHARE] = 0.17;
    c.f.v[FACT_REFERENCE_BLAS_SHARE] = 0.9;
    assert_int_equal(judged(&c, "cpu_saturated")->severity, SEVERITY_MEDIUM);
    trial_release(&c);
}

static void others_on_the_machine_are_worth_a_word_not_more(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_SYSTEM_BUSY, 1 }, { FACT_CORES, 2 },
                           { FACT_FOREIGN_CORES, 1.5 },
                           { FACT_REFERENCE_BLAS_SHARE, 0.9 });
    assert_int_equal(judged(&c, "cpu_saturated")->severity, SEVERITY_LOW);
    trial_release(&c);
}

/* What others do has no cause in this program, whatever else is wrong with it. */
static void cores_that_others_take_are_not_because_of_the_program(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_SYSTEM_BUSY, 1 }, { FACT_CORES, 2 },
                           { FACT_FOREIGN_CORES, 1.7 },
                           { FACT_REFERENCE_BLAS_SHARE, 0.9 });
    assert_int_equal(judged(&c, "cpu_saturated")->because_count, 0);
    c.f.v[FACT_FOREIGN_CORES] = 0.1;
    const struct finding *n = judged(&c, "cpu_saturated");
    assert_int_equal(n->because_count, 1);
    /* Nothing is loaded: no advice about loading. */
    assert_null(strstr(n->recommendation, "loading"));
    c.f.v[FACT_INPUT_SHARE] = 0.5;
    assert_non_null(strstr(judged(&c, "cpu_saturated")->recommendation, "loading"));
    trial_release(&c);
}

/* gc.disable() does not stop the program's own calls. */
static void who_calls_the_collector_is_told_to_call_it_less(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GC_SHARE, 0.8 }, { FACT_STEPS, 100 });
    c.f.place[PLACE_ALLOC] = "libopenblas.so";
    const struct finding *n = judged(&c, "gc_pauses");
    assert_non_null(strstr(n->recommendation, "gc.disable()"));
    assert_null(strstr(n->recommendation, "libopenblas"));
    c.f.place[PLACE_COLLECT] = "train.py:15";
    n = judged(&c, "gc_pauses");
    assert_non_null(strstr(n->recommendation, "take the call out"));
    assert_non_null(strstr(n->recommendation, "train.py:15"));
    assert_null(strstr(n->recommendation, "gc.disable()"));
    trial_release(&c);
}

/* Grew, then stood still: a cache. */
static void a_cache_that_has_filled_is_no_leak(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GROWTH_MB, 500 }, { FACT_RSS_MB, 800 },
                           { FACT_MEMORY_LIMIT_MB, 24000 }, { FACT_GROWTH_LATE, 0.05 },
                           { FACT_LEAK_MB, 400 });
    assert_null(judged(&c, "memory_leak"));
    c.f.v[FACT_GROWTH_LATE] = 1;
    assert_non_null(judged(&c, "memory_leak"));
    trial_release(&c);
}

static void growth_without_live_blocks_is_called_fragmentation(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GROWTH_MB, 500 }, { FACT_RSS_MB, 800 },
                           { FACT_MEMORY_LIMIT_MB, 24000 }, { FACT_GROWTH_LATE, 1 },
                           { FACT_LEAK_MB, 0 }, { FACT_LIVE_MB, 100 },
                           { FACT_LIVE_PEAK_MB, 150 }, { FACT_LIVE_PEAK_AT, 0.3 },
                           { FACT_FRAGMENTATION, 8 });
    const struct finding *n = judged(&c, "memory_leak");
    assert_non_null(strstr(n->description, "fragmented"));
    /* Live blocks were most at the end: they grew too, and are what can be let go of. */
    c.f.v[FACT_LIVE_PEAK_AT] = 0.8;
    n = judged(&c, "memory_leak");
    assert_null(strstr(n->description, "fragmented"));
    assert_non_null(strstr(n->description, "at most 150 MiB of it"));
    assert_non_null(strstr(n->recommendation, "Let go of what is kept"));
    /* Nobody knows how they went. */
    c.f.v[FACT_LIVE_PEAK_AT] = NAN;
    c.f.v[FACT_LIVE_PEAK_MB] = NAN;
    n = judged(&c, "memory_leak");
    assert_null(strstr(n->description, "live blocks"));
    assert_null(strstr(n->recommendation, "MALLOC_ARENA_MAX"));
    c.f.v[FACT_LIVE_PEAK_MB] = 150;
    c.f.v[FACT_LIVE_PEAK_AT] = 0.3;
    c.f.v[FACT_FRAGMENTATION] = 1.1;
    n = judged(&c, "memory_leak");
    assert_null(strstr(n->description, "fragmented"));
    trial_release(&c);
}

static void the_sooner_the_limit_the_worse_the_leak(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GROWTH_MB, 100 }, { FACT_RSS_MB, 500 },
                           { FACT_GROWTH_LATE, 1 }, { FACT_GROWTH_MB_PER_MIN, 100 },
                           { FACT_MEMORY_LIMIT_MB, 2000 });
    assert_int_equal(judged(&c, "memory_leak")->severity, SEVERITY_CRITICAL);
    c.f.v[FACT_MEMORY_LIMIT_MB] = 1e7;
    assert_int_equal(judged(&c, "memory_leak")->severity, SEVERITY_LOW);
    trial_release(&c);
}

/* Each compiled graph is kept: without compiling again nothing grows. */
static void what_compiling_leaves_behind_is_no_leak_of_its_own(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GROWTH_MB, 300 }, { FACT_RSS_MB, 500 },
                           { FACT_GROWTH_LATE, 1 }, { FACT_GROWTH_MB_PER_MIN, 1600 },
                           { FACT_MEMORY_LIMIT_MB, 24000 });
    assert_int_equal(judged(&c, "memory_leak")->because_count, 0);
    c.f.v[FACT_COMPILE_SHARE] = 0.5;
    const struct finding *n = judged(&c, "memory_leak");
    assert_int_equal(n->because_count, 1);
    assert_string_equal(n->because[0], "recompilation");
    trial_release(&c);
}

static void sixteen_gigabytes_are_the_documents_limit(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_MEMORY_SHARE, 0.1 }, { FACT_MEMORY_LIMIT_MB, 500000 },
                           { FACT_RSS_MB, 16001 });
    assert_null(judged(&c, "memory_pressure"));
    assert_int_equal(thresholds_use_set(&c.t, "reference"), 0);
    assert_non_null(judged(&c, "memory_pressure"));
    c.f.v[FACT_RSS_MB] = 15999;
    assert_null(judged(&c, "memory_pressure"));
    trial_release(&c);
}

/* Batches are made of many small objects: the collector walks over those, and goes with
 * them. Where it takes most of the step nothing else is to blame. */
static void a_collector_that_goes_with_the_batches_is_worth_a_word(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_GC_SHARE, 0.12 }, { FACT_INPUT_SHARE, 0.75 });
    assert_int_equal(judged(&c, "gc_pauses")->severity, SEVERITY_LOW);
    trial_release(&c);
    c = TRIAL({ FACT_GC_SHARE, 0.12 }, { FACT_INPUT_SHARE, 0.3 });
    assert_int_equal(judged(&c, "gc_pauses")->severity, SEVERITY_MEDIUM);
    trial_release(&c);
    c = TRIAL({ FACT_GC_SHARE, 0.3 }, { FACT_INPUT_SHARE, 0.75 });
    assert_int_equal(judged(&c, "gc_pauses")->severity, SEVERITY_HIGH);
    trial_release(&c);
    /* Workers make them beside the main thread: its collector has other objects. */
    c = TRIAL({ FACT_GC_SHARE, 0.12 }, { FACT_INPUT_SHARE, 0.75 }, { FACT_WORKERS, 2 });
    assert_int_equal(judged(&c, "gc_pauses")->severity, SEVERITY_MEDIUM);
    trial_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_that_goes_with_the_batches_is_worth_a_word),
        cmocka_unit_test(each_fires_at_its_limit_and_not_below),
        cmocka_unit_test(busy_cores_alone_are_no_illness),
        cmocka_unit_test(busy_cores_mean_no_more_than_what_explains_them),
        cmocka_unit_test(others_on_the_machine_are_worth_a_word_not_more),
        cmocka_unit_test(cores_that_others_take_are_not_because_of_the_program),
        cmocka_unit_test(who_calls_the_collector_is_told_to_call_it_less),
        cmocka_unit_test(a_cache_that_has_filled_is_no_leak),
        cmocka_unit_test(growth_without_live_blocks_is_called_fragmentation),
        cmocka_unit_test(the_sooner_the_limit_the_worse_the_leak),
        cmocka_unit_test(what_compiling_leaves_behind_is_no_leak_of_its_own),
        cmocka_unit_test(sixteen_gigabytes_are_the_documents_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
