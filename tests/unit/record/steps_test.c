/* steps_test.c: steps that end without another, that were none, and their samples. */
#include <math.h>
#include <unistd.h>

#include <sonde/tables.h>

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

static void a_step_may_have_ended_earlier(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    sonde_options_standard(&o);
    recorded_start(&r, &o);
    sonde_step_samples(8);
    const uint64_t over = sonde_ticks();
    (void)usleep(50000);
    sonde_step_ended(over);
    sonde_step(); /* told to have ended before it began: it took no time */
    sonde_step_ended(over);
    recorded_stop(&r);
    const struct trace_node *steps = trace_node(r.trace, NODE_STEP);
    assert_int_equal(steps->count, 2);
    assert_true(steps->total_ns < 40e6);
    assert_int_equal(trace_info(r.trace)->steps, 2);
    for (unsigned i = 0; i < trace_lane_count(r.trace); i++)
        assert_true(trace_lane(r.trace, i)->samples <= 8);
    recorded_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_end_and_are_taken_back),
        cmocka_unit_test(ending_what_did_not_begin_does_nothing),
        cmocka_unit_test(a_step_may_have_ended_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
