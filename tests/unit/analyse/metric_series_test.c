/* metric_series_test.c: the course of metrics: bounded, peaks kept, steps known. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "fake_trace.h"

#include "analyse/metric_series.h"

static struct trace *trace;
static struct metric_list list;
static unsigned loss, queue;

static int setup(void **state)
{
    (void)state;
    trace = fake_trace("x.sonde", 100);
    loss = fake_site(trace, "loss", 0, "", 0);
    queue = fake_site(trace, "queue", 0, "", 0);
    (void)fake_lane(trace, 0, 100, "main");
    (void)fake_lane(trace, 1, 101, "other");
    list = (struct metric_list){ 0 };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    metric_list_release(&list);
    fake_forget();
    return 0;
}

static void value(struct trace *t, unsigned lane, unsigned name, enum value_kind kind,
                  int64_t ns, double v)
{
    fake_event(t, (struct trace_event){ .kind = TRACE_VALUE,
                                        .lane = lane,
                                        .site = name,
                                        .sub = kind,
                                        .time_ns = ns,
                                        .value = v });
}

static void step(unsigned lane, int64_t ns)
{
    fake_event(trace,
               (struct trace_event){
                   .kind = TRACE_STEP, .lane = lane, .sub = STEP_NEXT, .time_ns = ns });
}

static void expect(const char *json)
{
    struct buf out = BUF_INIT;
    metric_list_finish(&list);
    assert_int_equal(metric_list_write(&list, &out), 0);
    assert_string_equal(out.data, json);
    buf_release(&out);
}

static void points_know_their_step(void **state)
{
    (void)state;
    fake_value(trace, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 3, 2, 1 }, 3,
               30);
    fake_value(trace, VALUE_COUNTER, TRACE_NO_NODE, "queue", (double[]){ 7, 8 }, 2, 30);
    trace->lanes[0].steps = 2;
    step(0, 5);
    value(trace, 0, loss, VALUE_METRIC, 10, 3);
    value(trace, 0, loss, VALUE_METRIC, 11, 2);
    step(0, 20);
    value(trace, 0, loss, VALUE_METRIC, 25, 1);
    value(trace, 1, queue, VALUE_COUNTER, 6, 7); /* a thread without steps: numbered */
    value(trace, 1, queue, VALUE_COUNTER, 26, 8);
    assert_int_equal(metric_list_add(&list, trace, -1), 0);
    expect("{\"loss\":[[1,3],[1,2],[2,1]],\"queue\":[[0,7],[1,8]]}");
    assert_false(list.items[0].partial);
}

static void what_is_no_number_is_null(void **state)
{
    (void)state;
    fake_value(trace, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 1, NAN }, 2, 30);
    value(trace, 0, loss, VALUE_METRIC, 10, 1);
    value(trace, 0, loss, VALUE_METRIC, 11, NAN);
    assert_int_equal(metric_list_add(&list, trace, -1), 0);
    expect("{\"loss\":[[0,1],[1,null]]}");
}

static void steps_before_the_retained_events_count(void **state)
{
    (void)state;
    fake_value(trace, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 9, 9, 9, 1 }, 4,
               30);
    trace->lanes[0].steps = 100; /* of which one is retained */
    step(0, 20);
    value(trace, 0, loss, VALUE_METRIC, 25, 1);
    assert_int_equal(metric_list_add(&list, trace, -1), 0);
    assert_true(list.items[0].partial);
    expect("{\"loss\":[[100,1]]}");
}

static void the_first_process_and_the_metric_have_the_name(void **state)
{
    (void)state;
    struct trace *second = fake_trace("y.sonde", 200);
    const unsigned other = fake_site(second, "loss", 0, "", 0);
    (void)fake_lane(second, 0, 200, "main");
    fake_value(trace, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 1 }, 1, 10);
    fake_value(trace, VALUE_COUNTER, TRACE_NO_NODE, "loss", (double[]){ 5 }, 1, 10);
    fake_value(second, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 2 }, 1, 10);
    value(trace, 0, loss, VALUE_METRIC, 10, 1);
    value(trace, 0, loss, VALUE_COUNTER, 11, 5);
    value(second, 0, other, VALUE_METRIC, 10, 2);
    assert_int_equal(metric_list_add(&list, trace, -1), 0);
    assert_int_equal(metric_list_add(&list, second, -1), 0);
    expect("{\"loss\":[[0,1]]}");
}

static void every_rank_keeps_its_own_course(void **state)
{
    (void)state;
    struct trace *second = fake_trace("y.sonde", 200);
    const unsigned other = fake_site(second, "loss", 0, "", 0);
    const unsigned alone = fake_site(second, "alone", 0, "", 0);
    (void)fake_lane(second, 0, 200, "main");
    fake_value(trace, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 1 }, 1, 10);
    fake_value(second, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 2, 4 }, 2, 10);
    fake_value(second, VALUE_METRIC, TRACE_NO_NODE, "alone", (double[]){ 3 }, 1, 10);
    value(trace, 0, loss, VALUE_METRIC, 10, 1);
    value(second, 0, other, VALUE_METRIC, 10, 2);
    value(second, 0, alone, VALUE_METRIC, 11, 3);
    value(second, 0, other, VALUE_METRIC, 12, 4);
    assert_int_equal(metric_list_add(&list, trace, 0), 0);
    assert_int_equal(metric_list_add(&list, second, 3), 0);
    expect("{\"loss\":[[0,1]],\"loss@rank3\":[[0,2],[1,4]],\"alone\":[[0,3]]}");
    assert_false(list.items[1].partial);
}

static void threads_are_laid_together_by_time(void **state)
{
    (void)state;
    fake_value(trace, VALUE_METRIC, TRACE_NO_NODE, "loss", (double[]){ 1, 3, 2 }, 3,
               10);
    value(trace, 0, loss, VALUE_METRIC, 10, 1);
    value(trace, 0, loss, VALUE_METRIC, 30, 3);
    value(trace, 1, loss, VALUE_METRIC, 20, 2);
    assert_int_equal(metric_list_add(&list, trace, -1), 0);
    expect("{\"loss\":[[0,1],[1,2],[2,3]]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(points_know_their_step, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_number_is_null, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_before_the_retained_events_count, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_first_process_and_the_metric_have_the_name,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(every_rank_keeps_its_own_course, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(threads_are_laid_together_by_time, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
