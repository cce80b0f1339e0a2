/* facts_own_test.c: when what a program's own functions do is taken for logging, and how much
 * of a step it is. */
#include "unit.h"

#include <math.h>

#include "analyse/fact_parts.h"
#include "made_pystacks.h"

#define OWN    "/home/u/train.py"
#define OPTIM  "/usr/lib/python3/dist-packages/torch/optim/sgd.py"
#define TENSOR "/usr/lib/python3/dist-packages/torch/_tensor.py"
/* 100 steps of 10 ms, half of them a journal of 200 bytes a step. */
static struct facts journal(void)
{
    struct facts f;
    facts_init(&f);
    writing = "note";
    STACK(250, 250, { "learn", OWN, 220 }, { "backward", TENSOR, 110 });
    STACK(250, 250, { "learn", OWN, 230 }, { "step", OPTIM, 110 });
    STACK(500, 250, { "learn", OWN, 240 }, { "note", OWN, 410 });
    tables_close(&tables);
    f.v[FACT_BACKWARD_SHARE] = f.v[FACT_OPTIMIZER_SHARE] = 0.25;
    f.v[FACT_OTHER_SHARE] = 0.5;
    f.v[FACT_LOG_SHARE] = 0;
    report.account = (struct step_account){
        .known = true, .steps = 100, .wall_ns = 1e9, .steady_ns = 1e9
    };
    report.io.captured = true;
    report.io.hand = (struct io_hand){ .known = true,
                                       .writes_known = true,
                                       .write_steps = 100,
                                       .writes = 100,
                                       .write_bytes = 100 * 1000 };
    return f;
}

static void a_journal_in_every_step_is_logging(void **state)
{
    (void)state;
    struct facts f = journal();
    facts_of_own(&report, &f);
    assert_near(f.v[FACT_OWN_SHARE], 0.5, 1e-9);
    assert_near(f.v[FACT_OWN_CPU_S], 0.25, 1e-9);
    assert_near(f.v[FACT_LOG_SHARE], 0.5, 1e-9);
    assert_near(f.v[FACT_LOG_WHOLE_SHARE], 0.5, 1e-9);
    assert_string_equal(f.place[PLACE_LOG], "train.py:410 in note");
}

/* What steps have outside of phases is more exact than stacks. */
static void it_is_no_more_than_steps_have_outside_of_phases(void **state)
{
    (void)state;
    struct facts f = journal();
    f.v[FACT_OTHER_SHARE] = 0.3;
    facts_of_own(&report, &f);
    assert_near(f.v[FACT_LOG_SHARE], 0.3, 1e-9);
    assert_near(f.v[FACT_OWN_SHARE], 0.3, 1e-9);
}

/* A line of 50 characters tells of a millisecond at most; the rest of the ten was something
 * else. */
static void a_short_line_does_not_explain_a_long_function(void **state)
{
    (void)state;
    struct facts f = journal();
    report.io.hand.write_bytes = 100 * 50;
    facts_of_own(&report, &f);
    assert_near(f.v[FACT_LOG_SHARE], 0.1, 1e-9);
    assert_near(f.v[FACT_LOG_WHOLE_SHARE], 0.1, 1e-9);
}

static void what_is_written_in_few_steps_is_no_logging(void **state)
{
    (void)state;
    struct facts f = journal();
    report.io.hand.write_steps = 49;
    facts_of_own(&report, &f);
    assert_near(f.v[FACT_LOG_SHARE], 0, 1e-9);
    assert_string_equal(f.place[PLACE_LOG], "");
    assert_near(f.v[FACT_OWN_SHARE], 0.5, 1e-9); /* own work it is all the same */
}

/* Results that are written behind the loop: the run is that long behind its last step. */
static void what_may_be_behind_the_loop_is_not_counted(void **state)
{
    (void)state;
    struct facts f = journal();
    report.account.end_ns = 0.3e9 + 0.45e9;
    report.account.wall_ns += report.account.end_ns;
    report.io.total[1].bytes = 200 * 1000;
    facts_of_own(&report, &f);
    assert_near(f.v[FACT_LOG_SHARE], 0.05, 1e-9);
    assert_near(f.v[FACT_OWN_SHARE], 0.05, 1e-9);
}

/* On a busy machine the interpreter takes seconds to end. */
static void a_long_end_that_writes_nothing_is_none_of_it(void **state)
{
    (void)state;
    struct facts f = journal();
    report.account.end_ns = 2e9;
    report.account.wall_ns += report.account.end_ns;
    report.io.total[1].bytes = 105 * 1000;
    facts_of_own(&report, &f);
    assert_near(f.v[FACT_LOG_SHARE], 0.5, 1e-9);
}

static void older_runs_do_not_know_what_was_written(void **state)
{
    (void)state;
    struct facts f = journal();
    report.io.hand.writes_known = false;
    facts_of_own(&report, &f);
    assert_near(f.v[FACT_LOG_SHARE], 0, 1e-9);
}

/* A program that updates its weights by hand trains in functions of its own. */
static void without_zones_of_training_own_work_is_not_known(void **state)
{
    (void)state;
    struct facts f = journal();
    f.v[FACT_OPTIMIZER_SHARE] = 0;
    facts_of_own(&report, &f);
    assert_true(isnan(f.v[FACT_OWN_SHARE]));
    f.v[FACT_OTHER_SHARE] = f.v[FACT_OPTIMIZER_SHARE] = NAN;
    facts_of_own(&report, &f);
    assert_true(isnan(f.v[FACT_OWN_SHARE]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_journal_in_every_step_is_logging),
        TEST(it_is_no_more_than_steps_have_outside_of_phases),
        TEST(a_short_line_does_not_explain_a_long_function),
        TEST(what_is_written_in_few_steps_is_no_logging),
        TEST(what_may_be_behind_the_loop_is_not_counted),
        TEST(a_long_end_that_writes_nothing_is_none_of_it),
        TEST(older_runs_do_not_know_what_was_written),
        TEST(without_zones_of_training_own_work_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
