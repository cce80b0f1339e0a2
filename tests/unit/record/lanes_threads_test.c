/* lanes_threads_test.c: threads come and go; their events stay, all of them, in as many
 * lanes as ever ran at once. */
#include <pthread.h>

#include "base/error.h"
#include "recorded.h"
#include "trace/format.h"

static void run_threads(unsigned count, void *(*fn)(void *), size_t stack)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    pthread_attr_t attr;
    assert_int_equal(pthread_attr_init(&attr), 0);
    if (stack)
        assert_int_equal(pthread_attr_setstacksize(&attr, stack), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], &attr, fn, (void *)i), 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)pthread_attr_destroy(&attr);
    free(threads);
}

/* ---- Churn ------------------------------------------------------------------------ */

enum { ROUNDS = 250, AT_ONCE = 8, ZONES = 10 };

static void *ten_zones(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ZONES; i++)
        SONDE_ZONE("outer", SONDE_FORWARD) {
            SONDE_ZONE("inner", SONDE_NO_PHASE) {}
        }
    return NULL;
}

static void two_thousand_threads_need_few_lanes(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < ROUNDS; i++)
        run_threads(AT_ONCE, ten_zones, 0);
    SONDE_ZONE("main", SONDE_FORWARD) {}
    recorded_stop(&r);
    const uint64_t expected = (uint64_t)ROUNDS * AT_ONCE * ZONES;
    assert_int_equal(recorded_zones(&r, "outer"), expected);
    assert_int_equal(recorded_zones(&r, "inner"), expected);
    assert_int_equal(recorded_zones(&r, "main"), 1);
    assert_true(trace_lane_count(r.trace) <= AT_ONCE + 1);
    assert_int_equal(trace_info(r.trace)->lost, 0);
    /* Short threads do not take a block each. */
    assert_true(trace_info(r.trace)->file_bytes < 4 << 20);
    uint64_t unbalanced = 0, orphans = 0;
    for (unsigned i = 0; i < trace_lane_count(r.trace); i++) {
        unbalanced += trace_lane(r.trace, i)->unbalanced;
        orphans += trace_lane(r.trace, i)->orphan_ends;
    }
    assert_int_equal(unbalanced + orphans, 0);
    recorded_release(&r);
}

static int thread_event(void *arg, const struct trace_event *e)
{
    *(unsigned *)arg += e->kind == TRACE_THREAD;
    return 0;
}

static void each_thread_is_named_in_its_lane(void **state)
{
    (void)state;
    struct recorded r;
    unsigned threads = 0;
    recorded_start(&r, NULL);
    for (unsigned i = 0; i < 20; i++)
        run_threads(1, ten_zones, 0);
    recorded_stop(&r);
    assert_int_equal(trace_events(r.trace, thread_event, &threads), 0);
    assert_int_equal(threads, 20);
    assert_int_equal(trace_lane_count(r.trace), 1);
    recorded_release(&r);
}

static void *named_thread(void *arg)
{
    (void)arg;
    sonde_thread_name("a name that is much too long");
    SONDE_ZONE("work", SONDE_FORWARD) {}
    return NULL;
}

static void a_thread_may_name_itself(void **state)
{
    (void)state;
    struct recorded r;
    recorded_start(&r, NULL);
    SONDE_ZONE("work", SONDE_FORWARD) {}
    run_threads(1, named_thread, 0);
    recorded_stop(&r);
    assert_int_equal(trace_lane_count(r.trace), 2);
    assert_true(trace_lane(r.trace, 0)->is_main);
    assert_false(trace_lane(r.trace, 1)->is_main);
    assert_string_equal(trace_lane(r.trace, 1)->name, "a name that is ");
    recorded_release(&r);
}

/* ---- Threads that leave zones open ------------------------------------------------ */

static struct sonde_site *left_open;

static double now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void *leave_open(void *arg)
{
    (void)arg;
    sonde_begin(left_open);
    SONDE_ZONE("inside", SONDE_FORWARD) {}
    return NULL;
}

static void an_open_zone_ends_with_its_thread_not_with_the_next(void **state)
{
    (void)state;
    struct recorded r;
    left_open = sonde_site_named("left open", SONDE_FORWARD, NULL, NULL, NULL);
    recorded_start(&r, NULL);
    const double start = now_ns();
    run_threads(1, leave_open, 0);
    const double took = now_ns() - start;
    nap_ns(300000000);
    run_threads(1, ten_zones, 0); /* takes the lane over */
    recorded_stop(&r);
    const struct trace_node *n = recorded_node(&r, "left open", NULL);
    assert_non_null(n);
    assert_int_equal(n->count, 1);
    assert_int_equal(n->truncated, 1);
    assert_true(n->max_ns <= took * 1.01); /* two clocks */
    assert_int_equal(recorded_node(&r, "outer", NULL)->count, ZONES);
    recorded_release(&r);
}

/* ---- Many blocks at once ---------------------------------------------------------- */

enum { BUSY = 4, MANY = 40000 };

static void *many_zones(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < MANY; i++)
        SONDE_ZONE("busy", SONDE_FORWARD) {}
    return NULL;
}

static void busy_threads(const struct sonde_options *options)
{
    struct recorded r;
    recorded_start(&r, options);
    run_threads(BUSY, many_zones, 0);
    recorded_stop(&r);
    assert_int_equal(trace_info(r.trace)->lost, 0);
    assert_int_equal(recorded_zones(&r, "busy"), (uint64_t)BUSY * MANY);
    const struct trace_node *n = recorded_node(&r, "busy", NULL);
    assert_true(n->min_ns >= 0 && n->mean_ns <= n->max_ns);
    recorded_release(&r);
}

static void threads_that_fill_blocks_lose_nothing(void **state)
{
    (void)state;
    busy_threads(NULL);
}

static void a_small_budget_costs_time_not_events(void **state)
{
    (void)state;
    struct sonde_options o;
    sonde_options_standard(&o);
    o.max_trace = 4 << 20;
    busy_threads(&o);
}

static void without_a_drainer_threads_fold_for_themselves(void **state)
{
    (void)state;
    struct sonde_options o;
    sonde_options_standard(&o);
    o.max_trace = 4 << 20;
    o.no_drainer = 1;
    busy_threads(&o);
}

static void at_the_basic_level_nothing_is_lost_either(void **state)
{
    (void)state;
    struct sonde_options o;
    sonde_options_lightweight(&o);
    busy_threads(&o);
}

/* ---- More threads than lanes ------------------------------------------------------ */

#ifndef SONDE_SANITIZED
static pthread_barrier_t all_here;

static void *one_zone_together(void *arg)
{
    (void)arg;
    (void)pthread_barrier_wait(&all_here);
    SONDE_ZONE("together", SONDE_FORWARD) {}
    (void)pthread_barrier_wait(&all_here);
    return NULL;
}
#endif

static void threads_beyond_the_limit_are_counted_as_lost(void **state)
{
    (void)state;
#ifdef SONDE_SANITIZED
    skip(); /* eleven hundred threads at once are too much for the sanitizers */
#else
    enum { TOO_MANY = MAX_LANES + 76 };
    struct recorded r;
    recorded_start(&r, NULL);
    assert_int_equal(pthread_barrier_init(&all_here, NULL, TOO_MANY), 0);
    run_threads(TOO_MANY, one_zone_together, 65536);
    (void)pthread_barrier_destroy(&all_here);
    recorded_stop(&r);
    const uint64_t kept = recorded_zones(&r, "together");
    assert_int_equal(kept, MAX_LANES - 1); /* lane 0 is the main thread's */
    assert_int_equal(trace_info(r.trace)->lost, 2 * (TOO_MANY - kept));
    assert_true(trace_info(r.trace)->lost_reason & LOST_LANES);
    recorded_release(&r);
#endif
}

/* ---- First uses ------------------------------------------------------------------- */

enum { FRESH = 3000, TOGETHER = 4 };
static struct sonde_site fresh[FRESH];
static unsigned next_fresh; /* the threads go from site to site side by side */

static void *use_fresh_sites(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < FRESH; i++) {
        (void)__atomic_add_fetch(&next_fresh, 1, __ATOMIC_RELAXED);
        for (unsigned spins = 0; spins < 1000; spins++)
            if (__atomic_load_n(&next_fresh, __ATOMIC_RELAXED) >= (i + 1) * TOGETHER)
                break;
        SONDE_ZONE_OF(&fresh[i]) {}
    }
    return NULL;
}

static void a_site_is_on_from_its_first_use_for_every_thread(void **state)
{
    (void)state;
    struct recorded r;
    static char names[FRESH][16];
    for (unsigned i = 0; i < FRESH; i++) {
        (void)snprintf(names[i], sizeof names[i], "fresh %u", i);
        fresh[i] = (struct sonde_site){ .name = names[i], .line = 1 };
    }
    next_fresh = 0;
    recorded_start(&r, NULL);
    run_threads(TOGETHER, use_fresh_sites, 0);
    recorded_stop(&r);
    uint64_t zones = 0, orphans = 0;
    for (unsigned i = 0; i < trace_lane_count(r.trace); i++)
        orphans += trace_lane(r.trace, i)->orphan_ends;
    for (unsigned i = NODE_OTHER; i < trace_node_count(r.trace); i++)
        if ((i == NODE_OTHER || i >= FIRST_NODE) && trace_node(r.trace, i))
            zones += trace_node(r.trace, i)->count;
    assert_int_equal(orphans, 0);
    assert_int_equal(zones, FRESH * TOGETHER);
    recorded_release(&r);
}

/* ---- Reading meanwhile ------------------------------------------------------------ */

/* A writer waits 4 s for readers, then drops events: a read must not take nearly as long,
 * on a busy machine either (of 256 MiB it did). */
#ifdef SONDE_SANITIZED
enum { WRITERS = 2, READS = 10, TRACE_MIB = 16 };
#else
enum { WRITERS = 2, READS = 30, TRACE_MIB = 48 };
#endif
static unsigned enough, begun;
static uint64_t written[WRITERS];

static void *write_zones(void *arg)
{
    uint64_t count = 0;
    while (!__atomic_load_n(&enough, __ATOMIC_ACQUIRE)) {
        SONDE_ZONE("live", SONDE_FORWARD) {}
        if (count++ == 0)
            (void)__atomic_add_fetch(&begun, 1, __ATOMIC_RELEASE);
    }
    written[(size_t)arg] = count;
    return NULL;
}

/* Reports one after the other while the program goes on: each is whole, and never says
 * less than the one before. No assertions: it may run in a child. */
static bool read_again_and_again(const struct recorded *r)
{
    char path[512];
    uint64_t before = 0;
    bool good = recorded_file(r, 0, path);
    for (unsigned i = 0; i < READS && good; i++) {
        struct recorded now = { 0 };
        const int rc = trace_open(path, NULL, &now.trace);
        if (rc < 0) {
            print_message("after %u reads: %s\n", i, error_text(rc));
            return false;
        }
        const uint64_t count = recorded_zones(&now, "live");
        good = trace_damage(now.trace)[0] == '\0' && count >= before;
        if (!good)
            print_message("%llu zones, then %llu; %s\n", (unsigned long long)before,
                          (unsigned long long)count, trace_damage(now.trace));
        before = count;
        trace_free(now.trace);
    }
    return good && before > 0;
}

static struct recorded live_run;

static bool read_from_outside(void)
{
    return read_again_and_again(&live_run);
}

/* Writers as fast as they can, a reader without a pause: both come to their right. */
static void read_while_it_runs(bool outside)
{
    struct sonde_options o;
    pthread_t threads[WRITERS];
    uint64_t all = 0;
    sonde_options_standard(&o);
    o.max_trace = (uint64_t)TRACE_MIB << 20;
    recorded_start(&live_run, &o);
    enough = begun = 0;
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_zones, (void *)i), 0);
    while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) < WRITERS)
        nap_ns(1000000); /* all reads may be done before a busy machine comes to them */
    const bool good = outside ? in_child(read_from_outside)
                              : read_again_and_again(&live_run);
    __atomic_store_n(&enough, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        all += written[i];
    }
    assert_true(good);
    recorded_read(&live_run);
    const struct trace_info *info = trace_info(live_run.trace);
    if (info->lost)
        print_message("lost for reasons %#x; %llu waits, %.0f ms, %llu self-folds\n",
                      info->lost_reason, (unsigned long long)info->waits,
                      info->wait_ns / 1e6, (unsigned long long)info->self_folds);
    assert_int_equal(info->lost, 0);
    assert_int_equal(recorded_zones(&live_run, "live"), all);
    recorded_stop(&live_run);
    assert_int_equal(recorded_zones(&live_run, "live"), all);
    recorded_release(&live_run);
}

static void a_running_session_can_be_read_from_inside(void **state)
{
    (void)state;
    read_while_it_runs(false);
}

static void and_from_outside(void **state)
{
    (void)state;
    read_while_it_runs(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_thousand_threads_need_few_lanes),
        cmocka_unit_test(each_thread_is_named_in_its_lane),
        cmocka_unit_test(a_thread_may_name_itself),
        cmocka_unit_test(an_open_zone_ends_with_its_thread_not_with_the_next),
        cmocka_unit_test(threads_that_fill_blocks_lose_nothing),
        cmocka_unit_test(a_small_budget_costs_time_not_events),
        cmocka_unit_test(without_a_drainer_threads_fold_for_themselves),
        cmocka_unit_test(at_the_basic_level_nothing_is_lost_either),
        cmocka_unit_test(threads_beyond_the_limit_are_counted_as_lost),
        cmocka_unit_test(a_site_is_on_from_its_first_use_for_every_thread),
        cmocka_unit_test(a_running_session_can_be_read_from_inside),
        cmocka_unit_test(and_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
