/* steps_test.c: steps that end without another, that were none, and their samples. */
#include <math.h>

#include "recorded.h"
#include "trace/format.h"

static void steps_end_and_are_taken_back(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    uint64_t steps = 0, samples = 0;
    sonde_options_standard(&o);
    recorded_start(&r, &o);
    for (int i = 0; i < 3; i++) { /* an epoch of three steps */
        sonde_step();
        sonde_step_add(8);
    }
    sonde_step_end();
    sonde_step(); /* a loader that turns out to be for evaluation */
    sonde_step_add(5);
    sonde_step_cancel(5);
    sonde_step_samples(4); /* goes on to the end */
    recorded_stop(&r);
    for (unsigned i = 0; i < trace_lane_count(r.trace); i++) {
        steps += trace_lane(r.trace, i)->steps;
        samples += trace_lane(r.trace, i)->samples;
    }
    assert_int_equal(steps, 4);
    assert_int_equal(samples, 28);
    assert_int_equal(trace_info(r.trace)->steps, 4);
    assert_int_equal(trace_node(r.trace, NODE_STEP)->count, 3);
    recorded_release(&r);
}

static void ending_what_did_not_begin_does_nothing(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    sonde_options_standard(&o);
    recorded_start(&r, &o);
    sonde_step();
    sonde_step_end();
    sonde_step_end();
    recorded_stop(&r);
    assert_int_equal(trace_node(r.trace, NODE_STEP)->count, 1);
    recorded_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_end_and_are_taken_back),
        cmocka_unit_test(ending_what_did_not_begin_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
