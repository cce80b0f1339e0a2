/* facts_hand_test.c: a function that the loop waits in, and what it waits for. */
#include "unit.h"

#include "analyse/fact_parts.h"
#include "made_pystacks.h"

#define OWN   "/home/u/train.py"
#define OPTIM "/usr/lib/python3/dist-packages/torch/optim/sgd.py"

/* 100 steps of 10 ms, 8 of which wait in one function. */
static struct facts waiting(void)
{
    struct facts f;
    facts_init(&f);
    STACK(200, 200, { "learn", OWN, 230 }, { "step", OPTIM, 110 });
    STACK(800, 10, { "learn", OWN, 240 }, { "line", OWN, 410 });
    tables_close(&tables);
    f.v[FACT_INPUT_SHARE] = 0;
    f.v[FACT_OTHER_SHARE] = 0.8;
    report.account = (struct step_account){
        .known = true, .steps = 100, .mean_ns = 10e6, .wall_ns = 1e9, .steady_ns = 1e9
    };
    report.io.captured = true;
    report.io.hand.known = true;
    return f;
}

static void who_waits_for_something_outside_loads(void **state)
{
    (void)state;
    struct facts f = waiting();
    f.v[FACT_SYNC_IO_SHARE] = 0.3;
    facts_of_hand(&report, &f);
    assert_near(f.v[FACT_INPUT_SHARE], 0.8, 1e-6);
}

static void who_waits_for_its_own_file_to_be_written_does_not(void **state)
{
    (void)state;
    struct facts f = waiting();
    f.v[FACT_SYNC_IO_SHARE] = 0.7;
    facts_of_hand(&report, &f);
    assert_near(f.v[FACT_INPUT_SHARE], 0, 1e-6);
    assert_near(f.v[FACT_OTHER_SHARE], 0.8, 1e-6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_waits_for_something_outside_loads),
        TEST(who_waits_for_its_own_file_to_be_written_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
