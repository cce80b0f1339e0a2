/* windows_test.c: what is recorded is what was asked for: windows of steps and of time,
 * pauses, levels, a threshold, sites switched off. */
#include <errno.h>

#include "recorded.h"
#include "trace/format.h"

static struct sonde_options standard(void)
{
    struct sonde_options o;
    sonde_options_standard(&o);
    return o;
}

static uint64_t broken_zones(const struct recorded *r)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < trace_lane_count(r->trace); i++)
        count += trace_lane(r->trace, i)->orphan_ends +
                 trace_lane(r->trace, i)->unbalanced;
    return count;
}

/* ---- Steps ------------------------------------------------------------------------ */

/* Records a zone named for each step, and one before the first. */
static void run_steps(unsigned count)
{
    SONDE_ZONE("before", SONDE_FORWARD) {}
    for (unsigned i = 1; i <= count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "step %u", i);
        sonde_step_samples(10);
        SONDE_ZONE_OF(sonde_site_named(name, SONDE_FORWARD, NULL, NULL, NULL)) {}
    }
}

static void check_steps(uint64_t first, uint64_t last, unsigned before, unsigned from,
                        unsigned to)
{
    enum { STEPS = 12 };
    struct recorded r;
    struct sonde_options o = standard();
    uint64_t steps = 0;
    o.first_step = first;
    o.last_step = last;
    recorded_start(&r, &o);
    run_steps(STEPS);
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "before"), before);
    for (unsigned i = 1; i <= STEPS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "step %u", i);
        assert_int_equal(recorded_zones(&r, name), i >= from && i <= to);
    }
    for (unsigned i = 0; i < trace_lane_count(r.trace); i++)
        steps += trace_lane(r.trace, i)->steps;
    assert_int_equal(steps, to >= from ? to - from + 1 : 0);
    assert_int_equal(trace_info(r.trace)->steps, STEPS); /* counted, recorded or not */
    recorded_release(&r);
}

static void a_window_of_steps_is_exact(void **state)
{
    (void)state;
    check_steps(0, 0, 1, 1, 12); /* none: everything */
    check_steps(4, 7, 0, 4, 7);
    check_steps(1, 1, 0, 1, 1);
    check_steps(5, 0, 0, 5, 12);
    check_steps(0, 3, 1, 1, 3); /* from the start, steps or not */
    check_steps(12, 100, 0, 12, 12);
    check_steps(50, 100, 0, 1, 0);
}

static void a_pause_wins_over_a_window_of_steps(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.first_step = 2;
    o.last_step = 4;
    recorded_start(&r, &o);
    sonde_resume(); /* not begun: stays shut */
    SONDE_ZONE("early", SONDE_FORWARD) {}
    sonde_step();
    sonde_pause();
    sonde_step(); /* 2: the window opens, the pause stays */
    assert_false(sonde_recording());
    SONDE_ZONE("paused", SONDE_FORWARD) {}
    sonde_resume();
    assert_true(sonde_recording());
    SONDE_ZONE("inside", SONDE_FORWARD) {}
    for (unsigned i = 0; i < 3; i++)
        sonde_step();
    sonde_pause();
    sonde_resume(); /* over: stays shut */
    assert_false(sonde_recording());
    SONDE_ZONE("late", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "early"), 0);
    assert_int_equal(recorded_zones(&r, "paused"), 0);
    assert_int_equal(recorded_zones(&r, "inside"), 1);
    assert_int_equal(recorded_zones(&r, "late"), 0);
    recorded_release(&r);
}

/* ---- Time ------------------------------------------------------------------------- */

/* The drain thread moves the window; how soon depends on the machine. */
static bool wait_until_recording(int wanted)
{
    for (unsigned i = 0; i < 30000 && sonde_recording() != wanted; i++)
        nap_ns(1000000);
    return sonde_recording() == wanted;
}

static void nothing_is_recorded_before_the_window(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.after_ns = 3600000000000;
    recorded_start(&r, &o);
    assert_false(sonde_recording());
    for (unsigned i = 0; i < 100; i++) {
        SONDE_ZONE("early", SONDE_FORWARD) {}
        sonde_value("early", 1);
        sonde_step();
    }
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "early"), 0);
    assert_int_equal(trace_value_count(r.trace), 0);
    recorded_release(&r);
}

static void the_window_opens_by_itself(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.after_ns = 20000000;
    recorded_start(&r, &o);
    assert_true(wait_until_recording(1));
    for (unsigned i = 0; i < 100; i++)
        SONDE_ZONE("inside", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "inside"), 100);
    recorded_release(&r);
}

static void and_shuts_by_itself(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.duration_ns = 20000000;
    recorded_start(&r, &o);
    assert_true(wait_until_recording(0));
    for (unsigned i = 0; i < 100; i++)
        SONDE_ZONE("late", SONDE_FORWARD) {}
    nap_ns(30000000);
    assert_false(sonde_recording()); /* and stays shut */
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "late"), 0);
    recorded_release(&r);
}

static void a_window_that_opens_in_a_pause_waits_for_its_end(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.after_ns = 10000000;
    recorded_start(&r, &o);
    sonde_pause();
    nap_ns(100000000);
    assert_false(sonde_recording());
    SONDE_ZONE("paused", SONDE_FORWARD) {}
    sonde_resume();
    assert_true(wait_until_recording(1));
    SONDE_ZONE("inside", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "paused"), 0);
    assert_int_equal(recorded_zones(&r, "inside"), 1);
    recorded_release(&r);
}

static void impossible_windows_are_refused(void **state)
{
    (void)state;
    const struct sonde_options windows[] = {
        { .size = sizeof windows[0], .after_ns = 1, .no_drainer = 1 },
        { .size = sizeof windows[0], .duration_ns = 1, .no_drainer = 1 },
        { .size = sizeof windows[0], .after_ns = 1, .first_step = 1 },
        { .size = sizeof windows[0], .first_step = 5, .last_step = 4 },
    };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        assert_int_equal(sonde_session_start(&windows[i]), -EINVAL);
        assert_true(strlen(sonde_session_error()) > 0);
        assert_false(sonde_session_active());
    }
}

/* ---- Pauses ----------------------------------------------------------------------- */

static void nothing_that_happens_in_a_pause_is_recorded(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    SONDE_ZONE("before", SONDE_FORWARD) {}
    sonde_pause();
    sonde_pause(); /* pauses do not add up */
    assert_false(sonde_recording());
    assert_true(sonde_session_active());
    SONDE_ZONE("paused", SONDE_FORWARD) {}
    sonde_value("paused", 1);
    sonde_counter("paused", 1);
    sonde_metric("paused", 1);
    sonde_mark("paused");
    sonde_step();
    sonde_resume();
    assert_true(sonde_recording());
    SONDE_ZONE("after", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "before"), 1);
    assert_int_equal(recorded_zones(&r, "paused"), 0);
    assert_int_equal(recorded_zones(&r, "after"), 1);
    assert_int_equal(trace_value_count(r.trace), 0);
    assert_int_equal(trace_lane(r.trace, 0)->steps, 0);
    assert_int_equal(trace_info(r.trace)->steps, 1);
    assert_int_equal(broken_zones(&r), 0);
    recorded_release(&r);
}

static void a_block_begun_recorded_is_ended_in_a_pause(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < 10; i++) {
        SONDE_ZONE("across", SONDE_FORWARD) {
            sonde_pause();
        }
        SONDE_ZONE("begun paused", SONDE_FORWARD) {
            sonde_resume();
        }
    }
    recorded_stop(&r);
    assert_int_equal(recorded_node(&r, "across", NULL)->count, 10);
    assert_int_equal(recorded_zones(&r, "begun paused"), 0);
    assert_int_equal(broken_zones(&r), 0);
    recorded_release(&r);
}

static void a_pause_ends_with_its_session(void **state)
{
    (void)state;
    struct recorded r;
    sonde_pause(); /* no session: nothing to pause */
    recorded_start(&r, NULL);
    assert_true(sonde_recording());
    sonde_pause();
    recorded_stop(&r);
    recorded_release(&r);
    recorded_start(&r, NULL);
    assert_true(sonde_recording());
    recorded_stop(&r);
    recorded_release(&r);
}

/* ---- Levels ----------------------------------------------------------------------- */

enum { MANY = 300000 };

static void record_many(const struct sonde_options *options, struct recorded *r)
{
    recorded_start(r, options);
    for (unsigned i = 0; i < MANY; i++)
        SONDE_ZONE("many", SONDE_FORWARD) {}
    recorded_read(r);
}

static void the_basic_level_keeps_statistics_and_a_short_timeline(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    sonde_options_lightweight(&o);
    assert_int_equal(o.level, SONDE_BASIC);
    record_many(&o, &r);
    assert_int_equal(trace_info(r.trace)->level, SONDE_BASIC);
    assert_int_equal(recorded_zones(&r, "many"), MANY);
    assert_false(trace_info(r.trace)->timeline_complete);
    assert_true(trace_info(r.trace)->file_bytes <= 64u * BLOCK_SIZE);
    recorded_stop(&r);
    recorded_release(&r);
}

static int count_end(void *arg, const struct trace_event *e)
{
    *(unsigned *)arg += e->kind == TRACE_END;
    return 0;
}

static void the_detailed_level_keeps_the_timeline(void **state)
{
    (void)state;
    static const int levels[] = { SONDE_LEVEL_DEFAULT, SONDE_DETAILED,
                                  SONDE_COMPREHENSIVE };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        struct recorded r;
        struct sonde_options o = standard();
        o.level = levels[i];
        record_many(&o, &r);
        assert_int_equal(trace_info(r.trace)->level,
                         levels[i] ? levels[i] : SONDE_DETAILED);
        assert_int_equal(recorded_zones(&r, "many"), MANY);
        assert_true(trace_info(r.trace)->timeline_complete);
        unsigned ends = 0;
        assert_int_equal(trace_events(r.trace, count_end, &ends), 0);
        assert_int_equal(ends, MANY);
        recorded_stop(&r);
        recorded_release(&r);
    }
}

/* ---- The threshold ---------------------------------------------------------------- */

static void short_zones_are_only_counted(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.min_zone_ns = 3600000000000;
    recorded_start(&r, &o);
    for (unsigned i = 0; i < 1000; i++)
        SONDE_ZONE("short", SONDE_FORWARD) {}
    SONDE_ZONE("outer", SONDE_FORWARD) {
        for (unsigned i = 0; i < 10; i++)
            SONDE_ZONE("short", SONDE_FORWARD) {}
    }
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "short"), 0);
    assert_int_equal(recorded_zones(&r, "outer"), 1); /* it had something inside */
    assert_int_equal(trace_info(r.trace)->filtered, 1010);
    assert_int_equal(trace_info(r.trace)->lost, 0);
    assert_int_equal(broken_zones(&r), 0);
    recorded_release(&r);
}

static void long_zones_are_kept(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.min_zone_ns = 2000000;
    recorded_start(&r, &o);
    for (unsigned i = 0; i < 5; i++) {
        SONDE_ZONE("long", SONDE_FORWARD) {
            spin_ns(2500000);
        }
        SONDE_ZONE("outer", SONDE_FORWARD) {
            SONDE_ZONE("long", SONDE_FORWARD) {
                spin_ns(2500000);
            }
        }
    }
    recorded_stop(&r);
    const struct trace_node *n = recorded_node(&r, "long", NULL);
    assert_non_null(n);
    assert_int_equal(n->count, 5);
    assert_true(n->min_ns >= 2500000 * 0.99); /* from its begin, not from its end */
    assert_int_equal(recorded_node(&r, "outer", "long", NULL)->count, 5);
    assert_int_equal(trace_info(r.trace)->filtered, 0);
    assert_int_equal(broken_zones(&r), 0);
    recorded_release(&r);
}

static void a_short_zone_with_something_to_say_is_kept(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    o.min_zone_ns = 3600000000000;
    recorded_start(&r, &o);
    SONDE_ZONE("speaks", SONDE_FORWARD) {
        sonde_value("batch", 32);
    }
    recorded_stop(&r);
    const struct trace_node *n = recorded_node(&r, "speaks", NULL);
    assert_non_null(n);
    assert_int_equal(n->count, 1);
    const struct trace_value *v = recorded_value(&r, "batch");
    assert_non_null(v);
    assert_ptr_equal(trace_node(r.trace, v->node), n);
    recorded_release(&r);
}

/* ---- Sites ------------------------------------------------------------------------ */

static void a_site_switched_off_leaves_no_trace(void **state)
{
    (void)state;
    struct recorded r;
    static struct sonde_site site = { .name = "switched" };
    recorded_start(&r, NULL);
    sonde_site_enable(&site, 0); /* before its first use */
    for (unsigned i = 0; i < 10; i++) {
        SONDE_ZONE_OF(&site)
        {
            SONDE_ZONE("inside", SONDE_FORWARD) {}
        }
        sonde_begin(&site);
        sonde_end(&site);
    }
    sonde_site_enable(&site, 1);
    SONDE_ZONE_OF(&site) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "switched"), 1);
    assert_int_equal(recorded_node(&r, "inside", NULL)->count, 10);
    assert_int_equal(broken_zones(&r), 0);
    recorded_release(&r);
}

static void an_end_is_recorded_when_its_begin_was(void **state)
{
    (void)state;
    struct recorded r;
    static struct sonde_site site = { .name = "switched" };
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < 10; i++) {
        sonde_begin(&site);
        sonde_begin(&site);
        sonde_site_enable(&site, 0);
        sonde_end(&site);
        sonde_end(&site);
        sonde_end(&site); /* one too many: none of the begun ones' */
        sonde_site_enable(&site, 1);
    }
    SONDE_ZONE_OF(&site)
    {
        SONDE_ZONE("inside", SONDE_FORWARD) {
            sonde_site_enable(&site, 0);
        }
    }
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "switched"), 21);
    assert_int_equal(recorded_node(&r, "switched", "inside", NULL)->count, 1);
    assert_int_equal(broken_zones(&r), 0);
    recorded_release(&r);
}

static void so_it_is_with_a_threshold(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o = standard();
    static struct sonde_site site = { .name = "switched" };
    o.min_zone_ns = 1000;
    recorded_start(&r, &o);
    sonde_begin(&site);
    spin_ns(100000);
    sonde_site_enable(&site, 0);
    sonde_end(&site);
    for (unsigned i = 0; i < 10; i++)
        SONDE_ZONE_OF(&site)
        {
            spin_ns(2000);
        }
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "switched"), 1);
    assert_int_equal(broken_zones(&r), 0);
    recorded_release(&r);
}

/* What a begin that was not recorded leaves behind is one end that is counted. */
static void an_end_without_a_recorded_begin_is_counted(void **state)
{
    (void)state;
    struct recorded r;
    static struct sonde_site site = { .name = "switched" };
    recorded_start(&r, NULL);
    sonde_site_enable(&site, 0);
    sonde_begin(&site);
    sonde_site_enable(&site, 1);
    sonde_end(&site);
    SONDE_ZONE("next", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "switched"), 0);
    assert_int_equal(recorded_node(&r, "next", NULL)->count, 1);
    assert_int_equal(trace_lane(r.trace, 0)->orphan_ends, 1);
    recorded_release(&r);
}

static void a_site_stays_off_over_sessions(void **state)
{
    (void)state;
    struct recorded r;
    static struct sonde_site site = { .name = "switched" };
    sonde_site_enable(&site, 0); /* no session yet */
    for (unsigned i = 0; i < 2; i++) {
        recorded_start(&r, NULL);
        SONDE_ZONE_OF(&site) {}
        SONDE_ZONE("other", SONDE_FORWARD) {}
        recorded_stop(&r);
        assert_int_equal(recorded_zones(&r, "switched"), 0);
        assert_int_equal(recorded_zones(&r, "other"), 1);
        recorded_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_of_steps_is_exact),
        cmocka_unit_test(a_pause_wins_over_a_window_of_steps),
        cmocka_unit_test(nothing_is_recorded_before_the_window),
        cmocka_unit_test(the_window_opens_by_itself),
        cmocka_unit_test(and_shuts_by_itself),
        cmocka_unit_test(a_window_that_opens_in_a_pause_waits_for_its_end),
        cmocka_unit_test(impossible_windows_are_refused),
        cmocka_unit_test(nothing_that_happens_in_a_pause_is_recorded),
        cmocka_unit_test(a_block_begun_recorded_is_ended_in_a_pause),
        cmocka_unit_test(a_pause_ends_with_its_session),
        cmocka_unit_test(the_basic_level_keeps_statistics_and_a_short_timeline),
        cmocka_unit_test(the_detailed_level_keeps_the_timeline),
        cmocka_unit_test(short_zones_are_only_counted),
        cmocka_unit_test(long_zones_are_kept),
        cmocka_unit_test(a_short_zone_with_something_to_say_is_kept),
        cmocka_unit_test(a_site_switched_off_leaves_no_trace),
        cmocka_unit_test(an_end_is_recorded_when_its_begin_was),
        cmocka_unit_test(so_it_is_with_a_threshold),
        cmocka_unit_test(an_end_without_a_recorded_begin_is_counted),
        cmocka_unit_test(a_site_stays_off_over_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
