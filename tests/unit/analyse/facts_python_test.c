/* facts_python_test.c: how much of the time is the collector's, by looks at a thread. */
#include "unit.h"

#include <math.h>

#include "analyse/fact_parts.h"
#include "made_pystacks.h"

#define OWN "/home/u/count.py"

/* A program without steps whose main thread was found collecting at `looks` of `all`. */
static double collecting(double run_s, double looks, double all)
{
    struct facts f;
    facts_init(&f);
    STACK(1, 1, { "main", OWN, 12 });
    tables_close(&tables);
    struct py_thread main_thread = { .pid = MAIN,
                                     .tid = MAIN,
                                     .wall_ns = 1e9 * run_s,
                                     .gc_ns = 1e9 * run_s * looks / all };
    report.python.threads = &main_thread;
    report.python.thread_count = 1;
    report.python.samples = (uint64_t)all;
    report.python.period_ns = 1e7;
    facts_of_python(&report, &f);
    return f.v[FACT_GC_SHARE];
}

/* A thread that waits is looked at ten times a second. */
static void three_looks_may_be_chance(void **state)
{
    (void)state;
    assert_near(collecting(0.33, 3, 5), 0, 1e-9);
}

/* … but hundreds are not: what imports and the end may have had is less by far. */
static void many_looks_are_the_collector(void **state)
{
    (void)state;
    assert_near(collecting(10, 800, 1000), 0.8, 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(three_looks_may_be_chance, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_looks_are_the_collector, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
