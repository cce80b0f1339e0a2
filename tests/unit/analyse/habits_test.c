/* What a loop would take with other habits: known parts, and what must be left. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyse/facts.h"
#include "analyse/habits.h"

/* 100 steps of 10 ms; 20 evaluations that take 2 s in their zones and 0.3 s of metrics in
 * the steps around them; 10 checkpoints of 50 ms; a tenth of the loop logs. */
static const struct habits loop = {
    .loop_ns = 4e9,
    .step_ns = 10e6,
    .steps = 100,
    .extras = { [EXTRA_CHECKPOINT] = 10, [EXTRA_EVALUATION] = 20 },
    .extra_ns = { [EXTRA_CHECKPOINT] = 0.5e9, [EXTRA_EVALUATION] = 2e9 },
    .beside_ns = { [EXTRA_CHECKPOINT] = 0, [EXTRA_EVALUATION] = 0.3e9 },
    .log_ns = 0.4e9,
    .gc_ns = 0.5e9,
    .optimizer_ns = 0.4e9,
    .exchange_ns = 0.5e9,
    .fixed = 0.75,
    .fixed_low = 0.5,
    .fixed_high = 0.9,
    .workers = NAN,
    .foreign_share = NAN,
};

static struct habits_forecast ask(const struct habits *h, struct settings s)
{
    struct habits_forecast f;
    char error[WHATIF_ERROR_LEN];
    assert_int_equal(habits_predict(h, &s, NULL, NAN, &f, error), 0);
    assert_true(f.loop_low_ns < f.loop_ns && f.loop_ns < f.loop_high_ns);
    assert_true(f.step_low_ns < f.step_ns && f.step_ns < f.step_high_ns);
    return f;
}

/* Half of the cores are others': at best they are gone, and the range ends lower. */
static void others_on_the_machine_may_be_gone(void **state)
{
    (void)state;
    struct habits h = loop;
    const struct habits_forecast quiet = ask(&h, (struct settings){ .checkpoint = 5 });
    h.foreign_share = 0.5;
    const struct habits_forecast f = ask(&h, (struct settings){ .checkpoint = 5 });
    assert_near(f.step_ns, quiet.step_ns, 1);
    assert_near(quiet.step_low_ns, 0.85 * f.step_ns, 1);
    assert_near(f.step_low_ns, 0.65 * f.step_ns, 1);
}

static void what_is_done_more_seldom_leaves_its_part(void **state)
{
    (void)state;
    struct habits_forecast f = ask(&loop, (struct settings){ .evaluation = 10 });
    /* A tenth is left of the zones and of what goes with them. */
    assert_near(f.loop_ns, 4e9 - 0.9 * 2.3e9, 1);
    assert_near(f.step_ns, 10e6 - 0.9 * 3e6, 1);
    f = ask(&loop, (struct settings){ .checkpoint = 5 });
    assert_near(f.loop_ns, 4e9 - 0.8 * 0.5e9, 1);
    assert_near(f.step_ns, 10e6, 1);
    f = ask(&loop, (struct settings){ .logging = 50 });
    /* 4 ms of it in every step, and the 6 ms behind it begin warm. */
    const double warmer = whatif_cold_ns(6e6, 4e6);
    assert_true(warmer > 0.2e6);
    assert_near(f.loop_ns, 4e9 - 0.98 * (0.4e9 + 100 * warmer), 1);
    assert_near(f.step_ns, 10e6 - 0.98 * (4e6 + warmer), 1);
    f = ask(&loop, (struct settings){ .gc = 100 });
    assert_near(f.loop_ns, 4e9 - 0.99 * 0.5e9, 1);
    f = ask(&loop, (struct settings){ .exchange = 8 });
    assert_near(f.step_ns, 10e6 - 0.875 * (5e6 + whatif_cold_ns(5e6, 5e6)), 1);
}

/* A quarter of 4 ms is left, and the next step begins with warmer caches. */
static void a_faster_optimizer_leaves_its_part_of_a_step(void **state)
{
    (void)state;
    const struct habits_forecast f = ask(&loop, (struct settings){ .optimizer = 4 });
    const double warmer = whatif_cold_ns(6e6, 4e6) - whatif_cold_ns(6e6, 1e6);
    assert_true(warmer > 0.1e6 && warmer < 0.5e6);
    assert_near(f.step_ns, 10e6 - 3e6 - warmer, 1);
    assert_near(f.loop_ns, 4e9 - 100 * (3e6 + warmer), 1);
    assert_near(ask(&loop, (struct settings){ .optimizer = 1 }).step_ns, 10e6, 1);
}

/* Nearly all of a step goes: what is left is known to a half of it, not to a seventh of
 * what goes. */
static void a_range_is_not_many_times_what_is_left(void **state)
{
    (void)state;
    struct habits h = loop;
    h.gc_ns = 0.98e9;
    h.steps = 100;
    const struct habits_forecast f = ask(&h, (struct settings){ .gc = 1000 });
    assert_true(f.step_high_ns < 2 * f.step_ns);
    assert_true(f.step_low_ns > 0.2 * f.step_ns);
}

static void habits_add_up(void **state)
{
    (void)state;
    const struct settings s = { .evaluation = 10, .checkpoint = 5, .logging = 50 };
    const struct habits_forecast f = ask(&loop, s);
    const double logs = 0.4e9 + 100 * whatif_cold_ns(6e6, 4e6); /* and colder steps */
    assert_near(f.loop_ns, 4e9 - 0.9 * 2.3e9 - 0.8 * 0.5e9 - 0.98 * logs, 1);
}

static void as_often_as_it_is_changes_nothing(void **state)
{
    (void)state;
    const struct settings s = { .evaluation = 1, .checkpoint = 1, .batch = 1 };
    assert_near(ask(&loop, s).loop_ns, 4e9, 1);
    assert_near(ask(&loop, s).step_ns, 10e6, 1);
}

static void a_larger_batch_pays_once_for_what_is_fixed(void **state)
{
    (void)state;
    const struct habits_forecast f = ask(&loop, (struct settings){ .batch = 4 });
    /* 7.5 ms once and 2.5 ms four times, somewhat slower; 25 such steps, and 3 s that are
     * no steps. */
    const double step_ns = 17.5e6 * (1 + 0.08 * 0.75);
    assert_near(f.step_ns, step_ns, 1);
    assert_near(f.loop_ns, 3e9 + 25 * step_ns, 1);
    /* The less is fixed, the less a larger batch brings. */
    assert_true(f.loop_high_ns > 3e9 + 25 * 25e6);
    assert_true(f.loop_low_ns < 3e9 + 25 * 13e6);
}

static void the_loader_and_the_loop_go_together(void **state)
{
    (void)state;
    const struct forecast half = { .step_ns = 6e6, .low_ns = 5e6, .high_ns = 8e6 };
    const struct settings s = { .workers = 2, .evaluation = 10, .loader = true };
    struct habits_forecast f;
    char error[WHATIF_ERROR_LEN];
    assert_int_equal(habits_predict(&loop, &s, &half, 12e6, &f, error), 0);
    /* 12 ms with what short epochs cost: from there it is 6 less, not half of 10. */
    assert_near(f.loop_ns, 4e9 - 100 * 6e6 - 0.9 * 2.3e9, 1);
    assert_near(f.step_ns, 6e6 - 0.9 * 3e6, 1);
    assert_true(f.loop_low_ns < f.loop_ns && f.loop_ns < f.loop_high_ns);
}

static void refused(const struct habits *h, struct settings s, const char *why)
{
    struct habits_forecast f = { .loop_ns = 7 };
    char error[WHATIF_ERROR_LEN] = "";
    assert_int_equal(habits_predict(h, &s, NULL, NAN, &f, error), -EINVAL);
    assert_non_null(strstr(error, why));
    assert_near(f.loop_ns, 7, 0);
}

static void what_was_not_recorded_is_not_predicted(void **state)
{
    (void)state;
    struct habits h = loop;
    h.extras[EXTRA_EVALUATION] = 0;
    refused(&h, (struct settings){ .evaluation = 2 }, "no evaluation");
    h.extras[EXTRA_CHECKPOINT] = 0;
    refused(&h, (struct settings){ .checkpoint = 2 }, "no checkpoint");
    h.log_ns = NAN;
    refused(&h, (struct settings){ .logging = 2 }, "no time in logging");
    h.gc_ns = NAN;
    refused(&h, (struct settings){ .gc = 2 }, "garbage collector");
    h.optimizer_ns = NAN;
    refused(&h, (struct settings){ .optimizer = 2 }, "optimizer");
    h.exchange_ns = NAN;
    refused(&h, (struct settings){ .exchange = 2 }, "other ranks");
    h.fixed = NAN;
    refused(&h, (struct settings){ .batch = 2 }, "native stacks");
    h = loop;
    h.workers = 2;
    refused(&h, (struct settings){ .batch = 2 }, "workers");
    refused(&loop, (struct settings){ .batch = 2, .loader = true }, "loader");
    h.loop_ns = NAN;
    refused(&h, (struct settings){ .evaluation = 2 }, "no steps");
}

/* Some evaluations, and nothing to compare with: the zones alone are predicted. */
static void unknown_time_beside_is_no_time(void **state)
{
    (void)state;
    struct habits h = loop;
    h.beside_ns[EXTRA_EVALUATION] = NAN;
    assert_near(ask(&h, (struct settings){ .evaluation = 10 }).loop_ns, 4e9 - 1.8e9, 1);
}

/* Behind every step: no step is without one, and each begins with cold caches. */
static void steps_behind_an_evaluation_each_begin_cold(void **state)
{
    (void)state;
    struct habits h = loop;
    h.beside_ns[EXTRA_EVALUATION] = NAN;
    h.extras[EXTRA_EVALUATION] = 100;
    const double cold = whatif_cold_ns(10e6, 20e6);
    assert_true(cold > 0.5e6 && cold < 1e6);
    assert_near(ask(&h, (struct settings){ .evaluation = 10 }).loop_ns,
                4e9 - 0.9 * (2e9 + 100 * cold), 1);
}

/* Weights are read once for all rows; a convolution has many of a single sample. */
static void few_samples_are_few_rows_without_positions(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_BATCH_SIZE] = 4;
    f.v[FACT_OVERHEAD_SHARE] = 0.5;
    f.v[FACT_KERNEL_SHARE] = 0.2;
    f.v[FACT_STEP_MS] = 1;
    f.v[FACT_POSITIONS] = 6;
    assert_near(habits_fixed_share(&f).mid, 0.8, 1e-9);
    f.v[FACT_POSITIONS] = 0;
    assert_near(habits_fixed_share(&f).mid, 1 - 0.2 * (1 - 0.75 * 0.75), 1e-9);
}

/* What drives kernels is no arithmetic: the one that is known counts, with what is copied
 * for it where a sample has many positions. */
static void arithmetic_is_less_than_all_kernels(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_BATCH_SIZE] = 16;
    f.v[FACT_OVERHEAD_SHARE] = 0.5;
    f.v[FACT_KERNEL_SHARE] = 0.2;
    f.v[FACT_ARITHMETIC_SHARE] = 0.05;
    f.v[FACT_STEP_MS] = 1;
    assert_near(habits_fixed_share(&f).mid, 0.95, 1e-9);
    /* Known that well the range is narrower, on both sides of it. */
    assert_near(habits_fixed_share(&f).low, 1 - 3 * 0.05 - 0.15, 1e-9);
    f.v[FACT_POSITIONS] = 6;
    assert_near(habits_fixed_share(&f).mid, 1 - 1.6 * 0.05, 1e-9);
}

/* A journal that every step writes is paid by neither. */
static void own_work_is_not_fixed(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    f.v[FACT_BATCH_SIZE] = 16;
    f.v[FACT_OVERHEAD_SHARE] = 0.8;
    f.v[FACT_KERNEL_SHARE] = 0.1;
    f.v[FACT_STEP_MS] = 1;
    assert_near(habits_fixed_share(&f).mid, 0.9, 1e-9);
    assert_near(habits_step_overhead(&f), 0.8, 1e-9);
    f.v[FACT_OWN_SHARE] = f.v[FACT_OWN_CPU_SHARE] = 0.6;
    assert_near(habits_fixed_share(&f).mid, 0.3, 1e-9);
    assert_true(habits_fixed_share(&f).low <= 0.3);
    assert_near(habits_step_overhead(&f), 0.5, 1e-9);
    f.v[FACT_OVERHEAD_SHARE] = NAN;
    assert_true(isnan(habits_step_overhead(&f)));
}

static void a_fixed_share_takes_facts(void **state)
{
    (void)state;
    struct facts f;
    facts_init(&f);
    assert_true(isnan(habits_fixed_share(&f).mid));
    f.v[FACT_BATCH_SIZE] = 32;
    f.v[FACT_OVERHEAD_SHARE] = 0.5;
    f.v[FACT_KERNEL_SHARE] = 0.3;
    f.v[FACT_STEP_MS] = 1;
    const struct fixed_share fixed = habits_fixed_share(&f);
    assert_true(fixed.low < fixed.mid && fixed.mid < fixed.high);
    assert_true(fixed.mid >= 0.5 && fixed.mid <= 0.71);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_on_the_machine_may_be_gone),
        cmocka_unit_test(what_is_done_more_seldom_leaves_its_part),
        cmocka_unit_test(a_faster_optimizer_leaves_its_part_of_a_step),
        cmocka_unit_test(a_range_is_not_many_times_what_is_left),
        cmocka_unit_test(habits_add_up),
        cmocka_unit_test(as_often_as_it_is_changes_nothing),
        cmocka_unit_test(a_larger_batch_pays_once_for_what_is_fixed),
        cmocka_unit_test(the_loader_and_the_loop_go_together),
        cmocka_unit_test(what_was_not_recorded_is_not_predicted),
        cmocka_unit_test(unknown_time_beside_is_no_time),
        cmocka_unit_test(steps_behind_an_evaluation_each_begin_cold),
        cmocka_unit_test(arithmetic_is_less_than_all_kernels),
        cmocka_unit_test(own_work_is_not_fixed),
        cmocka_unit_test(a_fixed_share_takes_facts),
        cmocka_unit_test(few_samples_are_few_rows_without_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
