/* Waits that stretch every phase are no phase's fault; what workers grew by. */
#include "rules_rows.h"

static void a_phase_stretched_by_the_gil_is_not_that_phases_fault(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_OPTIMIZER_SHARE, 0.45 });
    assert_int_equal(judged(&c, "optimizer_bound")->severity, SEVERITY_CRITICAL);
    c.f.v[FACT_GIL_WAIT_SHARE] = 0.099; /* nobody would cure that */
    assert_int_equal(judged(&c, "optimizer_bound")->severity, SEVERITY_CRITICAL);
    c.f.v[FACT_GIL_WAIT_SHARE] = 0.9;
    const struct finding *n = judged(&c, "optimizer_bound");
    assert_int_equal(n->severity, SEVERITY_LOW);
    assert_string_equal(n->because[0], "gil_contention");
    trial_release(&c);
}

static void nor_is_one_that_the_quota_stopped(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_SYNC_SHARE, 0.5 }, { FACT_THROTTLED_SHARE, 0.049 });
    assert_int_equal(judged(&c, "sync_stall")->severity, SEVERITY_CRITICAL);
    c.f.v[FACT_THROTTLED_SHARE] = 0.85;
    const struct finding *n = judged(&c, "sync_stall");
    assert_int_equal(n->severity, SEVERITY_LOW);
    assert_string_equal(n->because[0], "cpu_throttled");
    trial_release(&c);
}

static void half_a_wait_leaves_half_of_what_is_at_stake(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_OPTIMIZER_SHARE, 0.6 }, { FACT_GIL_WAIT_SHARE, 0.5 });
    assert_near(judged(&c, "optimizer_bound")->stake, 0.3, 1e-9);
    trial_release(&c);
}

static void workers_that_copy_are_told_from_workers_that_allocate(void **state)
{
    (void)state;
    struct trial c = TRIAL({ FACT_WORKER_GROWTH_MB, 200 },
                           { FACT_MEMORY_LIMIT_MB, 24000 },
                           { FACT_WORKER_COPIED_MB, 180 });
    c.f.place[PLACE_OBJECT] = "Records.items: list of 400,000 dict";
    const struct finding *n = judged(&c, "worker_memory_growth");
    assert_non_null(strstr(n->description, "copied"));
    assert_non_null(strstr(n->recommendation, "Records.items: list of 400,000 dict"));
    c.f.v[FACT_WORKER_COPIED_MB] = 20;
    n = judged(&c, "worker_memory_growth");
    assert_null(strstr(n->description, "copied"));
    assert_null(strstr(n->recommendation, "Records.items"));
    trial_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_stretched_by_the_gil_is_not_that_phases_fault),
        cmocka_unit_test(nor_is_one_that_the_quota_stopped),
        cmocka_unit_test(half_a_wait_leaves_half_of_what_is_at_stake),
        cmocka_unit_test(workers_that_copy_are_told_from_workers_that_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
