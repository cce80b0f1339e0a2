/* trials_test.c: which advice counts as tried, and what is measured of it. */
#include "analyse/trials.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/facts.h"
#include "base/files.h"
#include "store/ledger.h"
#include "unit.h"

enum { STEPS = 100 };

/* A run that worked. */
struct made {
    struct run run;
    struct report r;
    struct loader loader;
    struct finding findings[3];
    const char *command[6];
};

static char dir[64];

static int setup(void **state)
{
    (void)state;
    return unit_temp_dir(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return file_remove_tree(dir);
}

static void set_command(struct made *m, const char *option, const char *value)
{
    const char *const words[] = { "python3", "t.py", "--data", "x", option, value };
    size_t n = 0;
    while (n < 6 && words[n]) {
        m->command[n] = words[n];
        n++;
    }
    m->run.meta.command = m->command;
    m->run.meta.command_count = n;
}

static void make(struct made *m, const char *id, int64_t start_ns, double step_ms)
{
    *m = (struct made){ 0 };
    run_meta_init(&m->run.meta);
    m->run.id = id;
    m->run.meta.cwd = "/home/a";
    m->run.meta.host = "b";
    set_command(m, NULL, NULL);
    m->loader = (struct loader){ .training = true, .num_workers = 2, .batch_size = 8 };
    m->r = (struct report){
        .run = &m->run,
        .arena = ARENA_INIT,
        .state = RUN_GOOD,
        .start_ns = start_ns,
        .end_ns = start_ns + 1,
        .since = "",
        .account = { .known = true,
                     .steps = STEPS,
                     .steady = STEPS,
                     .mean_ns = step_ms * 1e6,
                     .steady_ns = STEPS * step_ms * 1e6,
                     .wall_ns = STEPS * step_ms * 1e6 },
        .loaders = { .present = true, .list = &m->loader, .count = 1 },
        .diagnosis = { .made = true, .findings = m->findings },
    };
}

static struct finding *find(struct made *m, const char *id, enum severity severity,
                            double stake)
{
    struct finding *f = &m->findings[m->r.diagnosis.finding_count++];
    *f = (struct finding){ .id = id,
                           .bound_by = "input",
                           .severity = severity,
                           .stake = stake,
                           .gain = { 0.4, 0.5, 0.6 } };
    return f;
}

static void advise_workers(struct finding *f, double workers)
{
    f->evidence[f->evidence_count++] = (struct finding_evidence){
        fact_infos[FACT_WORKERS_BEST].metric, "1", "", workers
    };
}

/* How many are in the ledger; `now` is given back. */
static size_t tries(const struct made *before, struct made *now)
{
    struct ledger_record record;
    assert_int_equal(trial_between(&before->r, &now->r, dir), 0);
    assert_int_equal(ledger_read(dir, NULL, &record), 0);
    return record.tries;
}

static void what_was_predicted_of_the_loop_is_measured_by_the_loop(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 8);
    before.r.account.evaluation_ns = 3 * before.r.account.steady_ns;
    before.r.account.wall_ns += before.r.account.evaluation_ns;
    find(&before, "evaluation_heavy", SEVERITY_CRITICAL, 0.75)->gain_of = GAIN_OF_LOOP;
    assert_int_equal(tries(&before, &now), 1);
    assert_non_null(strstr(now.r.since, "8 ms instead of 40, 80 % less"));
    arena_release(&now.r.arena);
}

static void other_arguments_make_another_program(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 5);
    set_command(&now, "--big-model", NULL);
    find(&before, "preprocessing_bound", SEVERITY_CRITICAL, 0.5);
    assert_int_equal(tries(&before, &now), 0);
    /* … but for what the advice is about. */
    set_command(&now, "--save-every", "50");
    before.findings[0].id = "checkpoint_stall";
    assert_int_equal(tries(&before, &now), 1);
    arena_release(&now.r.arena);
}

static void who_does_the_opposite_did_not_follow(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 50);
    before.loader.num_workers = 8;
    now.loader.num_workers = 0;
    find(&before, "epoch_boundary_stall", SEVERITY_HIGH, 0.3)->gain_of = GAIN_OF_LOOP;
    assert_int_equal(tries(&before, &now), 0);
    assert_string_equal(now.r.since, "");
    advise_workers(find(&before, "data_loading_bound", SEVERITY_HIGH, 0.3), 12);
    assert_int_equal(tries(&before, &now), 0);
}

/* Nobody saw what was done: without a gain nothing says that it was a cure. */
static void what_became_slower_was_no_cure(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 20);
    find(&before, "preprocessing_bound", SEVERITY_CRITICAL, 0.5);
    assert_int_equal(tries(&before, &now), 0);
}

/* A prediction that failed is one as well. */
static void advice_that_was_surely_followed_counts_whatever_came_of_it(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 12);
    now.loader.num_workers = 4;
    advise_workers(find(&before, "data_loading_bound", SEVERITY_CRITICAL, 0.5), 4);
    find(&now, "data_loading_bound", SEVERITY_CRITICAL, 0.5);
    assert_int_equal(tries(&before, &now), 1);
    assert_non_null(strstr(now.r.since, "20 % more"));
    assert_null(strstr(now.r.since, "-20"));
    arena_release(&now.r.arena);
}

static void a_finding_that_is_next_to_gone_was_cured(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 6);
    find(&before, "checkpoint_stall", SEVERITY_CRITICAL, 0.5);
    find(&now, "checkpoint_stall", SEVERITY_LOW, 0.08);
    assert_int_equal(tries(&before, &now), 1);
    assert_non_null(strstr(now.r.since, "low instead of critical"));
    arena_release(&now.r.arena);
}

static void advice_of_the_second_finding_can_be_followed_too(void **state)
{
    (void)state;
    struct made before, now;
    struct ledger_record record;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 6);
    find(&before, "preprocessing_bound", SEVERITY_CRITICAL, 0.5);
    find(&before, "logging_stall", SEVERITY_CRITICAL, 0.4)->gain_of = GAIN_OF_LOOP;
    find(&now, "preprocessing_bound", SEVERITY_CRITICAL, 0.8);
    assert_int_equal(tries(&before, &now), 1);
    assert_int_equal(ledger_read(dir, "logging_stall", &record), 0);
    assert_int_equal(record.tries, 1);
    arena_release(&now.r.arena);
}

static void of_two_cures_at_once_nobody_knows_what_each_brought(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 2);
    find(&before, "preprocessing_bound", SEVERITY_CRITICAL, 0.5);
    find(&before, "logging_stall", SEVERITY_CRITICAL, 0.4)->gain_of = GAIN_OF_LOOP;
    assert_int_equal(tries(&before, &now), 0);
}

static void a_larger_batch_is_measured_by_the_sample(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 40);
    now.loader.batch_size = 64;
    find(&before, "batch_too_small", SEVERITY_CRITICAL, 0.5);
    assert_int_equal(tries(&before, &now), 1);
    assert_non_null(strstr(now.r.since, "50 % less"));
    arena_release(&now.r.arena);
}

static void a_run_that_failed_is_not_compared(void **state)
{
    (void)state;
    struct made before, now;
    make(&before, "aaaa", 1, 10);
    make(&now, "bbbb", 2, 5);
    find(&before, "preprocessing_bound", SEVERITY_CRITICAL, 0.5);
    now.r.state = RUN_FAILED;
    assert_int_equal(tries(&before, &now), 0);
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(what_was_predicted_of_the_loop_is_measured_by_the_loop),
        EACH(other_arguments_make_another_program),
        EACH(who_does_the_opposite_did_not_follow),
        EACH(what_became_slower_was_no_cure),
        EACH(advice_that_was_surely_followed_counts_whatever_came_of_it),
        EACH(a_finding_that_is_next_to_gone_was_cured),
        EACH(advice_of_the_second_finding_can_be_followed_too),
        EACH(of_two_cures_at_once_nobody_knows_what_each_brought),
        EACH(a_larger_batch_is_measured_by_the_sample),
        EACH(a_run_that_failed_is_not_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
