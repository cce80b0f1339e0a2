#include "tune/trial.h"

#include <math.h>

#include "unit.h"

/* 100 steps of 10 ms, and what lies between them. */
static struct step_account steps_of(double mean_ns, uint64_t steps)
{
    return (struct step_account){ .known = true,
                                  .steps = steps,
                                  .steady = steps,
                                  .mean_ns = mean_ns,
                                  .median_ns = mean_ns,
                                  .mad_ns = 0.01 * mean_ns,
                                  .steady_ns = mean_ns * (double)steps,
                                  .wall_ns = mean_ns * (double)steps,
                                  .plain = { steps, mean_ns * (double)steps } };
}

static struct plan nothing(void)
{
    return (struct plan){ .finding = "", .memo_place = "", .loader = "" };
}

static void a_step_is_the_trials_mean_with_what_runs_differ_by(void **state)
{
    (void)state;
    const struct step_account sick = steps_of(100e6, 100), trial = steps_of(10e6, 60);
    const struct plan p = nothing();
    const struct trial_counts counts = { 0, 0, 0, false };
    struct trial_entry e = { 0 };
    trial_judge(&sick, &trial, &p, &counts, &e);
    assert_near(e.step_ns, 10e6, 1);
    assert_near(e.low_ns, 7.5e6, 1e3);
    assert_near(e.high_ns, 12.5e6, 1e3);
    assert_near(e.loop_ns, 1e9, 1e3); /* 100 steps at the trial's pace */
    assert_int_equal(e.steps, 60);
}

/* 20 changes of epochs of 300 ms in the sick run; in the trial, which is no whole one, they
 * take 10 ms. */
static void kept_workers_take_what_changes_of_epochs_took_with_them(void **state)
{
    (void)state;
    struct step_account sick = steps_of(10e6, 100), trial = steps_of(10e6, 60);
    struct plan p = nothing();
    const struct trial_counts counts = { 0, 0, 0, false };
    struct trial_entry e = { 0 };
    p.persistent = true;
    sick.epochs = 20;
    sick.epoch_ns = 6e9;
    sick.wall_ns += 6e9;
    trial.epochs = 12;
    trial.epoch_ns = 120e6;
    trial_judge(&sick, &trial, &p, &counts, &e);
    assert_near(e.loop_ns, 1e9 + 0.2e9, 1e3);
    trial.epochs = 0; /* longer epochs than the trial */
    trial.epoch_ns = 0;
    trial_judge(&sick, &trial, &p, &counts, &e);
    assert_true(isnan(e.loop_ns));
}

static void noisy_steps_have_a_wide_range(void **state)
{
    (void)state;
    struct step_account sick = steps_of(100e6, 100), trial = steps_of(10e6, 16);
    const struct plan p = nothing();
    const struct trial_counts counts = { 0, 0, 0, false };
    struct trial_entry e = { 0 };
    trial.mad_ns = 4e6;
    trial_judge(&sick, &trial, &p, &counts, &e);
    assert_near(e.high_ns / e.step_ns - 1, 2 * 1.4826 * 4 / 10 / 4, 1e-6);
}

/* 20 evaluations of 100 ms in the sick run, ten times as seldom: 2 of them. */
static void the_loop_has_as_many_evaluations_as_there_will_be(void **state)
{
    (void)state;
    struct step_account sick = steps_of(10e6, 100), trial = steps_of(8e6, 100);
    struct plan p = nothing();
    struct trial_entry e = { 0 };
    sick.evaluation_ns = 2e9;
    sick.wall_ns += 2e9;
    trial.evaluation_ns = 5 * 90e6; /* three more while the layer looked */
    trial.wall_ns += 5 * 90e6;
    p.rare[p.rare_count++] = (struct plan_rare){ "evaluation", "", 10 };
    const struct trial_counts whole = {
        .kept = 5, .seen = 20, .times = 10, .whole = true
    };
    trial_judge(&sick, &trial, &p, &whole, &e);
    assert_near(e.loop_ns, 100 * 8e6 + 2 * 90e6, 1e3);
    /* A trial of some steps: the evaluations are those of the sick run. */
    const struct trial_counts part = { .whole = false };
    struct step_account window = steps_of(8e6, 60);
    trial_judge(&sick, &window, &p, &part, &e);
    assert_near(e.loop_ns, 100 * 8e6 + 2e9 / 10, 1e3);
}

static void larger_batches_need_fewer_steps(void **state)
{
    (void)state;
    const struct step_account sick = steps_of(10e6, 160), trial = steps_of(20e6, 60);
    struct plan p = nothing();
    const struct trial_counts counts = { 0, 0, 0, false };
    struct trial_entry e = { 0 };
    p.batch = 16;
    trial_judge(&sick, &trial, &p, &counts, &e);
    assert_near(e.step_ns, 20e6, 1);
    assert_near(e.loop_ns, 10 * 20e6, 1e3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_the_trials_mean_with_what_runs_differ_by),
        cmocka_unit_test(kept_workers_take_what_changes_of_epochs_took_with_them),
        cmocka_unit_test(noisy_steps_have_a_wide_range),
        cmocka_unit_test(the_loop_has_as_many_evaluations_as_there_will_be),
        cmocka_unit_test(larger_batches_need_fewer_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
