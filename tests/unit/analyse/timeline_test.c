/* timeline_test.c: events become zones by the same rules as the statistics. */
#include "unit.h"

#include <string.h>

#include "fake_trace.h"

#include "analyse/timeline.h"
#include "base/buf.h"

static struct trace *trace;
static unsigned a, b, c;

static int setup(void **state)
{
    (void)state;
    trace = fake_trace("x.sonde", 100);
    a = fake_site(trace, "a", 0, "", 0);
    b = fake_site(trace, "b", 0, "", 0);
    c = fake_site(trace, "c", 0, "", 0);
    (void)fake_lane(trace, 0, 100, "main");
    (void)fake_lane(trace, 1, 101, "other");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_forget();
    return 0;
}

static void begin(unsigned site, int64_t ns)
{
    fake_event(trace, (struct trace_event){
                          .kind = TRACE_BEGIN, .site = site, .time_ns = ns });
}

static void end(unsigned site, int64_t ns)
{
    fake_event(trace,
               (struct trace_event){ .kind = TRACE_END, .site = site, .time_ns = ns });
}

static int put_zone(void *arg, const struct timeline_zone *z)
{
    buf_printf(arg, "%s %lld-%lld d%u t%u%s%s%s%s\n", trace_site(trace, z->site)->name,
               (long long)z->begin_ns, (long long)z->end_ns, z->depth, z->tid,
               z->truncated ? " cut" : "", z->open ? " open" : "",
               z->unbalanced ? " unbalanced" : "", z->begin_lost ? " begin-lost" : "");
    return 0;
}

static void expect(const char *zones, struct timeline_totals *ret_totals)
{
    struct buf text = BUF_INIT;
    struct timeline_totals totals;
    const struct timeline_visitor visitor = { .zone = put_zone, .arg = &text };
    assert_int_equal(timeline_walk(trace, &visitor, &totals), 0);
    assert_string_equal(text.data, zones);
    buf_release(&text);
    if (ret_totals)
        *ret_totals = totals;
}

static void nested_zones_come_out_inner_first(void **state)
{
    (void)state;
    begin(a, 10);
    begin(b, 20);
    end(b, 30);
    begin(b, 40);
    end(b, 45);
    end(a, 50);
    expect("b 20-30 d1 t100\nb 40-45 d1 t100\na 10-50 d0 t100\n", NULL);
}

static void an_end_of_an_outer_zone_closes_the_inner_ones(void **state)
{
    (void)state;
    struct timeline_totals totals;
    begin(a, 10);
    begin(b, 20);
    begin(c, 25);
    end(a, 50);
    expect("c 25-50 d2 t100 unbalanced\nb 20-50 d1 t100 unbalanced\na 10-50 d0 t100\n",
           &totals);
    assert_int_equal(totals.unbalanced, 2);
}

static void an_end_without_a_begin_is_counted(void **state)
{
    (void)state;
    struct timeline_totals totals;
    end(b, 5);
    begin(a, 10);
    end(c, 15);
    end(a, 20);
    expect("a 10-20 d0 t100\n", &totals);
    assert_int_equal(totals.orphan_ends, 2);
}

static void zones_open_at_death_end_at_the_last_event_of_their_lane(void **state)
{
    (void)state;
    begin(a, 10);
    begin(b, 20);
    end(b, 30);
    fake_event(trace, (struct trace_event){
                          .kind = TRACE_BEGIN, .site = c, .time_ns = 15, .lane = 1 });
    expect("b 20-30 d1 t100\na 10-30 d0 t100 cut\nc 15-15 d0 t101 cut\n", NULL);
}

static void zones_of_a_living_process_are_open(void **state)
{
    (void)state;
    trace->info.alive = true;
    begin(a, 10);
    begin(b, 20);
    end(b, 30);
    expect("b 20-30 d1 t100\na 10-30 d0 t100 open\n", NULL);
}

static void a_thread_that_takes_a_lane_over_ends_what_was_left(void **state)
{
    (void)state;
    fake_event(trace,
               (struct trace_event){ .kind = TRACE_THREAD, .time_ns = 1, .number = 7 });
    begin(a, 10);
    fake_event(trace, (struct trace_event){
                          .kind = TRACE_THREAD, .time_ns = 20, .number = 8 });
    begin(b, 30);
    end(b, 40);
    expect("a 10-20 d0 t7 cut\nb 30-40 d0 t8\n", NULL);
}

static void time_never_runs_backwards_and_inner_begins_come_later(void **state)
{
    (void)state;
    begin(a, 100);
    begin(b, 90); /* a signal handler between slot and clock */
    end(b, 95);
    begin(c, 101);
    end(c, 101);
    end(a, 101);
    expect("b 101-101 d1 t100\nc 101-101 d1 t100\na 100-101 d0 t100\n", NULL);
}

static void recycled_begins_are_told(void **state)
{
    (void)state;
    trace->info.timeline_complete = false;
    /* c and a began before the first retained event; a is still open at the end. */
    const unsigned outer = fake_node(trace, 0, a);
    fake_open(trace, &trace->lanes[0], outer, 3);
    begin(b, 20);
    end(b, 30);
    end(c, 40);
    expect("b 20-30 d0 t100\nc 20-40 d0 t100 begin-lost\na 3-40 d0 t100 cut\n", NULL);
}

static void zones_deeper_than_the_stack_are_counted_and_balanced(void **state)
{
    (void)state;
    struct timeline_totals totals;
    struct buf text = BUF_INIT;
    const struct timeline_visitor visitor = { .zone = put_zone, .arg = &text };
    for (int i = 0; i < MAX_DEPTH + 50; i++)
        begin(a, i);
    for (int i = 0; i < MAX_DEPTH + 50; i++)
        end(a, 1000 + i);
    assert_int_equal(timeline_walk(trace, &visitor, &totals), 0);
    assert_int_equal(totals.zones, MAX_DEPTH);
    assert_int_equal(totals.too_deep, 50);
    assert_int_equal(totals.truncated, 0);
    buf_release(&text);
}

static int stop_at_once(void *arg, const struct timeline_zone *z)
{
    (void)z;
    ++*(int *)arg;
    return 42;
}

static void a_visitor_may_stop_the_walk(void **state)
{
    (void)state;
    int calls = 0;
    struct timeline_totals totals;
    const struct timeline_visitor visitor = { .zone = stop_at_once, .arg = &calls };
    for (int i = 0; i < 3; i++) {
        begin(a, i * 10);
        end(a, i * 10 + 5);
    }
    assert_int_equal(timeline_walk(trace, &visitor, &totals), 42);
    assert_int_equal(calls, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nested_zones_come_out_inner_first),
        TEST(an_end_of_an_outer_zone_closes_the_inner_ones),
        TEST(an_end_without_a_begin_is_counted),
        TEST(zones_open_at_death_end_at_the_last_event_of_their_lane),
        TEST(zones_of_a_living_process_are_open),
        TEST(a_thread_that_takes_a_lane_over_ends_what_was_left),
        TEST(time_never_runs_backwards_and_inner_begins_come_later),
        TEST(recycled_begins_are_told),
        TEST(zones_deeper_than_the_stack_are_counted_and_balanced),
        TEST(a_visitor_may_stop_the_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
