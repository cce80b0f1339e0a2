/* span_test.c: spans are zones that may wait, and may end on another thread. */
#include <pthread.h>

#include "recorded.h"
#include "trace/format.h"

static struct sonde_site request = { .name = "request", .phase = SONDE_COMMUNICATION };

static const struct trace_node *span_node(const struct recorded *r, const char *name)
{
    for (unsigned i = FIRST_NODE; i < trace_node_count(r->trace); i++) {
        const struct trace_node *n = trace_node(r->trace, i);
        if (n && n->parent == NODE_SPANS && strcmp(recorded_name(r, i), name) == 0)
            return n;
    }
    return NULL;
}

/* What the timeline says of spans, in order. */
struct edges {
    unsigned count, kinds[32];
    uint64_t ids[32];
    double active_ns, wall_ns; /* of the last end */
};

static int note_edge(void *arg, const struct trace_event *e)
{
    struct edges *edges = arg;
    if (e->kind != TRACE_SPAN || edges->count == 32)
        return 0;
    edges->kinds[edges->count] = e->sub;
    edges->ids[edges->count++] = e->number;
    if (e->sub == SPAN_END) {
        edges->active_ns = e->active_ns;
        edges->wall_ns = e->wall_ns;
    }
    return 0;
}

static struct edges edges_of(const struct recorded *r)
{
    struct edges edges = { 0 };
    assert_int_equal(trace_events(r->trace, note_edge, &edges), 0);
    return edges;
}

static void waiting_is_kept_apart_from_work(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span span;
    recorded_start(&r, NULL);
    sonde_span_begin(&span, &request);
    spin_ns(2000000);
    sonde_span_suspend(&span);
    nap_ns(60000000);
    sonde_span_resume(&span);
    spin_ns(2000000);
    sonde_span_end(&span);
    recorded_stop(&r);
    const struct trace_node *n = span_node(&r, "request");
    assert_non_null(n);
    assert_int_equal(n->count, 1);
    assert_int_equal(n->spans_open, 0);
    /* Sleeping and spinning take at least their time; 1 % for the two clocks. */
    assert_true(n->suspended_ns >= 60e6 * 0.99);
    assert_true(n->total_ns - n->suspended_ns >= 4e6 * 0.99);
    const struct edges e = edges_of(&r);
    assert_int_equal(e.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(e.kinds[i], i); /* begin, suspend, resume, end */
        assert_int_equal(e.ids[i], e.ids[0]);
    }
    assert_near(e.wall_ns, n->total_ns, 0.01 * n->total_ns);
    assert_near(e.wall_ns - e.active_ns, n->suspended_ns, 0.01 * n->total_ns);
    recorded_release(&r);
}

static void a_span_that_never_waits_has_worked_all_the_time(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span span;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < 10; i++) {
        sonde_span_begin(&span, &request);
        spin_ns(100000);
        sonde_span_end(&span);
    }
    recorded_stop(&r);
    const struct trace_node *n = span_node(&r, "request");
    assert_int_equal(n->count, 10);
    assert_near(n->suspended_ns, 0, 0);
    assert_true(n->min_ns >= 100000 * 0.99 && n->min_ns <= n->mean_ns);
    recorded_release(&r);
}

static void one_that_ends_while_waiting_has_waited_to_the_end(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span span;
    recorded_start(&r, NULL);
    sonde_span_begin(&span, &request);
    sonde_span_suspend(&span);
    nap_ns(20000000);
    sonde_span_end(&span);
    recorded_stop(&r);
    const struct trace_node *n = span_node(&r, "request");
    assert_int_equal(n->count, 1);
    assert_true(n->suspended_ns >= 20e6 * 0.99 && n->suspended_ns <= n->total_ns);
    recorded_release(&r);
}

static void calls_out_of_order_are_ignored(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span span = { 0 };
    recorded_start(&r, NULL);
    sonde_span_end(&span); /* never begun */
    sonde_span_begin(&span, &request);
    sonde_span_resume(&span); /* not suspended */
    sonde_span_suspend(&span);
    sonde_span_suspend(&span); /* again */
    sonde_span_resume(&span);
    sonde_span_resume(&span); /* again */
    sonde_span_end(&span);
    sonde_span_end(&span); /* again */
    sonde_span_suspend(&span);
    sonde_span_resume(&span);
    recorded_stop(&r);
    const struct edges e = edges_of(&r);
    assert_int_equal(e.count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(e.kinds[i], i);
    assert_int_equal(span_node(&r, "request")->count, 1);
    recorded_release(&r);
}

static void *end_it(void *arg)
{
    SONDE_ZONE("other thread", SONDE_FORWARD) {
        sonde_span_end(arg);
    }
    return NULL;
}

static void a_span_may_end_on_another_thread(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span span;
    pthread_t thread;
    recorded_start(&r, NULL);
    SONDE_ZONE("main thread", SONDE_FORWARD) {
        sonde_span_begin(&span, &request);
    }
    assert_int_equal(pthread_create(&thread, NULL, end_it, &span), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    recorded_stop(&r);
    const struct trace_node *n = span_node(&r, "request");
    assert_int_equal(n->count, 1);
    assert_int_equal(n->spans_open, 0);
    /* Neither thread's zones know of it. */
    assert_int_equal(recorded_node(&r, "main thread", NULL)->count, 1);
    assert_int_equal(recorded_node(&r, "other thread", NULL)->count, 1);
    for (unsigned i = 0; i < trace_lane_count(r.trace); i++) {
        assert_int_equal(trace_lane(r.trace, i)->unbalanced, 0);
        assert_int_equal(trace_lane(r.trace, i)->orphan_ends, 0);
    }
    recorded_release(&r);
}

static void many_may_be_open_at_once(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span spans[8];
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < 8; i++)
        sonde_span_begin(&spans[i], &request);
    for (unsigned i = 0; i < 5; i++)
        sonde_span_end(&spans[(i * 3) % 8]);
    recorded_stop(&r);
    const struct trace_node *n = span_node(&r, "request");
    assert_int_equal(n->count, 5);
    assert_int_equal(n->spans_open, 3);
    const struct edges e = edges_of(&r);
    assert_int_equal(e.count, 13);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < i; k++)
            assert_true(e.ids[i] != e.ids[k]);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(e.ids[8 + i], e.ids[(i * 3) % 8]);
    recorded_release(&r);
}

/* ---- Off -------------------------------------------------------------------------- */

static void a_span_begun_while_off_stays_off(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span early, paused;
    sonde_span_begin(&early, &request); /* no session yet */
    recorded_start(&r, NULL);
    sonde_span_end(&early);
    sonde_pause();
    sonde_span_begin(&paused, &request);
    sonde_resume();
    sonde_span_suspend(&paused);
    sonde_span_end(&paused);
    SONDE_ZONE("something", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(edges_of(&r).count, 0);
    assert_null(span_node(&r, "request"));
    recorded_release(&r);
}

static void a_span_begun_recorded_is_ended_though_paused(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span span;
    recorded_start(&r, NULL);
    sonde_span_begin(&span, &request);
    sonde_pause();
    sonde_span_end(&span);
    recorded_stop(&r);
    assert_int_equal(span_node(&r, "request")->count, 1);
    assert_int_equal(span_node(&r, "request")->spans_open, 0);
    recorded_release(&r);
}

static void a_site_switched_off_begins_no_spans(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_span before, during;
    static struct sonde_site site = { .name = "switched" };
    recorded_start(&r, NULL);
    sonde_span_begin(&before, &site);
    sonde_site_enable(&site, 0);
    sonde_span_begin(&during, &site);
    sonde_span_end(&during);
    sonde_span_end(&before); /* begun while it was on */
    recorded_stop(&r);
    assert_int_equal(span_node(&r, "switched")->count, 1);
    assert_int_equal(span_node(&r, "switched")->spans_open, 0);
    recorded_release(&r);
}

static void a_session_that_is_over_takes_no_more_of_a_span(void **state)
{
    (void)state;
    struct recorded first, second;
    struct sonde_span span;
    recorded_start(&first, NULL);
    sonde_span_begin(&span, &request);
    recorded_stop(&first);
    sonde_span_suspend(&span);
    assert_int_equal(span_node(&first, "request")->spans_open, 1);
    recorded_release(&first);
    recorded_start(&second, NULL);
    SONDE_ZONE("something", SONDE_FORWARD) {}
    recorded_stop(&second);
    assert_null(span_node(&second, "request"));
    recorded_release(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_kept_apart_from_work),
        cmocka_unit_test(a_span_that_never_waits_has_worked_all_the_time),
        cmocka_unit_test(one_that_ends_while_waiting_has_waited_to_the_end),
        cmocka_unit_test(calls_out_of_order_are_ignored),
        cmocka_unit_test(a_span_may_end_on_another_thread),
        cmocka_unit_test(many_may_be_open_at_once),
        cmocka_unit_test(a_span_begun_while_off_stays_off),
        cmocka_unit_test(a_span_begun_recorded_is_ended_though_paused),
        cmocka_unit_test(a_site_switched_off_begins_no_spans),
        cmocka_unit_test(a_session_that_is_over_takes_no_more_of_a_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
