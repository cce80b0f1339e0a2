/* open_zones_test.c: a thread knows at any time which zones it is in.
 *
 * Whoever asks on whose behalf something happens reads lane->open; it must say what the
 * trace says. So most tests here compare the two, or the lane with what was begun.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "num/prng.h"
#include "recorded.h"
#include "trace/format.h"

enum { SITES = 8 };
static struct sonde_site *sites[SITES];

static int make_sites(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SITES; i++) {
        char name[] = "site 0";
        name[5] = (char)('0' + i);
        sites[i] = sonde_site_named(name, SONDE_NO_PHASE, NULL, NULL, NULL);
    }
    return 0;
}

static bool is_at(uint32_t level, const struct sonde_site *site)
{
    return sonde_lane_->open[level] == (uint16_t)(site->id << 1);
}

/* The mark puts this thread into the file, and a begin that was held back. */
static void assert_trace_agrees(struct recorded *r)
{
    sonde_mark("look");
    recorded_read(r);
    const struct trace_lane *lane = trace_lane(r->trace, 0);
    assert_int_equal(lane->open_count, sonde_lane_->depth);
    for (unsigned i = 0; i < lane->open_count; i++)
        assert_int_equal(lane->open[i].site << 1, sonde_lane_->open[i]);
}

/* ---- Nesting ---------------------------------------------------------------------- */

static void zones_are_known_from_the_outermost_inwards(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < SITES; i++) {
        sonde_begin(sites[i]);
        assert_int_equal(sonde_lane_->depth, i + 1);
        for (unsigned k = 0; k <= i; k++)
            assert_true(is_at(k, sites[k]));
    }
    assert_trace_agrees(&r);
    for (unsigned i = SITES; i-- > 0;) {
        sonde_end(sites[i]);
        assert_int_equal(sonde_lane_->depth, i);
    }
    recorded_stop(&r);
    recorded_release(&r);
}

static void the_same_zone_may_be_open_more_than_once(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    sonde_begin(sites[0]);
    sonde_begin(sites[1]);
    sonde_begin(sites[0]);
    sonde_end(sites[0]);
    assert_int_equal(sonde_lane_->depth, 2);
    assert_true(is_at(0, sites[0]) && is_at(1, sites[1]));
    sonde_end(sites[1]);
    sonde_end(sites[0]);
    assert_int_equal(sonde_lane_->depth, 0);
    recorded_stop(&r);
    recorded_release(&r);
}

static void an_outer_end_ends_those_inside(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < 5; i++)
        sonde_begin(sites[i]);
    sonde_end(sites[2]);
    assert_int_equal(sonde_lane_->depth, 2);
    assert_trace_agrees(&r);
    sonde_end(sites[4]); /* closed already: an end without a begin */
    assert_int_equal(sonde_lane_->depth, 2);
    sonde_end(sites[0]);
    sonde_end(sites[0]);
    assert_int_equal(sonde_lane_->depth, 0);
    assert_trace_agrees(&r);
    assert_int_equal(trace_lane(r.trace, 0)->orphan_ends, 2);
    recorded_stop(&r);
    recorded_release(&r);
}

static void recurse(unsigned depth, unsigned most)
{
    if (depth == most)
        return;
    struct sonde_site *site = sites[depth % SITES];
    sonde_begin(site);
    assert_int_equal(sonde_lane_->depth, depth + 1);
    recurse(depth + 1, most);
    assert_int_equal(sonde_lane_->depth, depth + 1);
    if (depth < SONDE_OPEN_ZONES)
        assert_true(is_at(depth, site));
    sonde_end(site);
    assert_int_equal(sonde_lane_->depth, depth);
}

static void deep_zones_are_counted_and_the_outer_ones_kept(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    static const unsigned depths[] = { SONDE_OPEN_ZONES - 1, SONDE_OPEN_ZONES,
                                       SONDE_OPEN_ZONES + 1, 200, 300 };
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        recurse(0, depths[i]);
    recorded_stop(&r);
    assert_int_equal(trace_lane(r.trace, 0)->orphan_ends, 0);
    recorded_release(&r);
}

/* ---- Any order -------------------------------------------------------------------- */

static void walk(struct prng *random)
{
    for (unsigned i = 0; i < 60; i++) {
        struct sonde_site *site = sites[prng_below(random, SITES)];
        const uint64_t what = prng_below(random, 20);
        if (what < 10)
            sonde_begin(site);
        else if (what < 18)
            sonde_end(site);
        else
            sonde_site_enable(site, what == 19);
    }
}

static void walk_and_compare(const struct sonde_options *options)
{
    struct recorded r;
    struct prng random;
    prng_init(&random, 7);
    recorded_start(&r, options);
    for (unsigned round = 0; round < 40; round++) {
        walk(&random);
        assert_trace_agrees(&r);
        for (unsigned i = 0; i < SITES; i++) { /* from nothing again */
            sonde_site_enable(sites[i], 1);
            while (sonde_is_open_(sonde_lane_, sites[i]))
                sonde_end(sites[i]);
        }
        assert_int_equal(sonde_lane_->depth, 0);
    }
    recorded_stop(&r);
    recorded_release(&r);
}

static void whatever_happens_the_trace_agrees(void **state)
{
    (void)state;
    walk_and_compare(NULL);
}

/* With a threshold no event takes the short way. */
static void so_it_does_in_slow_mode(void **state)
{
    (void)state;
    struct sonde_options o;
    sonde_options_standard(&o);
    o.min_zone_ns = 1;
    walk_and_compare(&o);
}

static void zones_that_are_left_out_are_open_all_the_same(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    sonde_options_standard(&o);
    o.min_zone_ns = 3600000000000; /* everything is too short */
    recorded_start(&r, &o);
    for (unsigned i = 0; i < 10; i++) {
        sonde_begin(sites[0]);
        assert_int_equal(sonde_lane_->depth, 1);
        assert_true(is_at(0, sites[0]));
        sonde_end(sites[0]);
        assert_int_equal(sonde_lane_->depth, 0);
    }
    recorded_stop(&r);
    assert_int_equal(trace_info(r.trace)->filtered, 10);
    recorded_release(&r);
}

/* ---- Off -------------------------------------------------------------------------- */

static void a_site_switched_off_is_never_open(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    sonde_begin(sites[0]);
    sonde_site_enable(sites[1], 0);
    SONDE_ZONE_OF(sites[1])
    {
        assert_int_equal(sonde_lane_->depth, 1);
    }
    assert_int_equal(sonde_lane_->depth, 1);
    sonde_site_enable(sites[0], 0); /* this one is, and ends as it should */
    sonde_end(sites[0]);
    assert_int_equal(sonde_lane_->depth, 0);
    sonde_site_enable(sites[0], 1);
    sonde_site_enable(sites[1], 1);
    assert_trace_agrees(&r);
    recorded_stop(&r);
    recorded_release(&r);
}

static void a_block_that_is_left_in_a_pause_is_left(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    SONDE_ZONE_OF(sites[0])
    {
        SONDE_ZONE_OF(sites[1])
        {
            sonde_pause();
        }
        SONDE_ZONE_OF(sites[2])
        {
            assert_int_equal(sonde_lane_->depth, 1);
        }
        sonde_resume();
    }
    assert_int_equal(sonde_lane_->depth, 0);
    assert_trace_agrees(&r);
    recorded_stop(&r);
    recorded_release(&r);
}

static void a_new_session_begins_outside_all_zones(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    sonde_begin(sites[0]);
    sonde_begin(sites[1]);
    recorded_stop(&r);
    recorded_release(&r);
    recorded_start(&r, NULL);
    sonde_begin(sites[2]);
    assert_int_equal(sonde_lane_->depth, 1);
    assert_true(is_at(0, sites[2]));
    assert_trace_agrees(&r);
    sonde_end(sites[2]);
    recorded_stop(&r);
    recorded_release(&r);
}

static void zones_are_known_even_when_events_are_lost(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    sonde_options_lightweight(&o);
    o.lossy = 1;
    o.no_drainer = 1;
    recorded_start(&r, &o);
    for (unsigned i = 0; sonde_lost() == 0 && i < 10000000; i++)
        SONDE_ZONE_OF(sites[0]) {}
    assert_true(sonde_lost() > 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sonde_lane_->depth, i);
        sonde_begin(sites[i]);
        assert_true(is_at(i, sites[i]));
    }
    for (unsigned i = 3; i-- > 0;)
        sonde_end(sites[i]);
    assert_int_equal(sonde_lane_->depth, 0);
    recorded_stop(&r);
    recorded_release(&r);
}

/* ---- Threads and processes -------------------------------------------------------- */

static const struct sonde_lane *lane_of_thread;
static uint32_t depth_in_thread;

static void *leave_open(void *arg)
{
    (void)arg;
    sonde_begin(sites[0]);
    sonde_begin(sites[1]);
    lane_of_thread = sonde_lane_;
    depth_in_thread = sonde_lane_->depth;
    return NULL;
}

static void run_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, leave_open, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_thread_does_not_inherit_the_zones_of_the_one_before(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    sonde_begin(sites[3]);
    run_thread();
    const struct sonde_lane *first = lane_of_thread;
    assert_int_equal(depth_in_thread, 2);
    run_thread();
    assert_ptr_equal(lane_of_thread, first); /* the same lane */
    assert_int_equal(depth_in_thread, 2);
    assert_int_equal(sonde_lane_->depth, 1); /* ours is another */
    assert_true(is_at(0, sites[3]));
    sonde_end(sites[3]);
    recorded_stop(&r);
    recorded_release(&r);
}

static bool child_is_in_no_zone(void)
{
    if (sonde_lane_->depth != 0)
        return false;
    sonde_begin(sites[1]);
    if (sonde_lane_->depth != 1 || !is_at(0, sites[1]))
        return false;
    sonde_end(sites[1]);
    sonde_end(sites[0]); /* its parent's */
    return sonde_lane_->depth == 0;
}

static void a_forked_child_is_in_no_zone(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    sonde_begin(sites[0]);
    assert_true(in_child(child_is_in_no_zone));
    assert_int_equal(sonde_lane_->depth, 1);
    assert_true(is_at(0, sites[0]));
    sonde_end(sites[0]);
    assert_int_equal(sonde_lane_->depth, 0);
    recorded_stop(&r);
    recorded_release(&r);
}

/* ---- Signals ---------------------------------------------------------------------- */

#if defined(__x86_64__) && !defined(SONDE_SANITIZED)
#define CAN_STEP
static volatile unsigned traps, wrong_in_trap;

/* After each instruction of the code under test. */
static void record_in_handler(int signal)
{
    (void)signal;
    const uint32_t depth = sonde_lane_->depth;
    traps++;
    SONDE_ZONE_OF(sites[7])
    {
        wrong_in_trap += sonde_lane_->depth != depth + 1 || !is_at(depth, sites[7]);
    }
    wrong_in_trap += sonde_lane_->depth != depth;
}

/* The trap flag; below the red zone, where the compiler keeps nothing. */
#define STEPPING(change)                                                               \
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\t" change                    \
                     "\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::                          \
                         : "memory", "cc")

static __attribute__((noinline)) void stepped(void (*edge)(struct sonde_site *),
                                              struct sonde_site *site)
{
    STEPPING("orq $0x100, (%%rsp)");
    edge(site);
    STEPPING("andq $~0x100, (%%rsp)");
}
#endif

static void a_handler_may_record_after_any_instruction(void **state)
{
    (void)state;
#ifndef CAN_STEP
    skip();
#else
    enum { DEPTH = 4 };
    struct recorded r;
    const struct sigaction trap = { .sa_handler = record_in_handler };
    struct sigaction before;
    recorded_start(&r, NULL);
    SONDE_ZONE_OF(sites[7]) {} /* the slow ways are behind us: they block signals */
    traps = wrong_in_trap = 0;
    assert_int_equal(sigaction(SIGTRAP, &trap, &before), 0);
    for (unsigned i = 0; i < DEPTH; i++) {
        stepped(sonde_begin, sites[i]);
        assert_int_equal(sonde_lane_->depth, i + 1);
        for (unsigned k = 0; k <= i; k++)
            assert_true(is_at(k, sites[k]));
    }
    for (unsigned i = DEPTH; i-- > 0;) {
        stepped(sonde_end, sites[i]);
        assert_int_equal(sonde_lane_->depth, i);
    }
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
    assert_true(traps > 2 * DEPTH * 10);
    assert_int_equal(wrong_in_trap, 0);
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, sites[7]->name), traps + 1);
    assert_int_equal(recorded_zones(&r, sites[0]->name), 1);
    assert_int_equal(trace_lane(r.trace, 0)->orphan_ends, 0);
    assert_int_equal(trace_lane(r.trace, 0)->unbalanced, 0);
    recorded_release(&r);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zones_are_known_from_the_outermost_inwards),
        cmocka_unit_test(the_same_zone_may_be_open_more_than_once),
        cmocka_unit_test(an_outer_end_ends_those_inside),
        cmocka_unit_test(deep_zones_are_counted_and_the_outer_ones_kept),
        cmocka_unit_test(whatever_happens_the_trace_agrees),
        cmocka_unit_test(so_it_does_in_slow_mode),
        cmocka_unit_test(zones_that_are_left_out_are_open_all_the_same),
        cmocka_unit_test(a_site_switched_off_is_never_open),
        cmocka_unit_test(a_block_that_is_left_in_a_pause_is_left),
        cmocka_unit_test(a_new_session_begins_outside_all_zones),
        cmocka_unit_test(zones_are_known_even_when_events_are_lost),
        cmocka_unit_test(a_thread_does_not_inherit_the_zones_of_the_one_before),
        cmocka_unit_test(a_forked_child_is_in_no_zone),
        cmocka_unit_test(a_handler_may_record_after_any_instruction),
    };
    return cmocka_run_group_tests(tests, make_sites, NULL);
}
