/* session_threads_test.c: many threads record at once into a session of their own,
 * with a drain thread beside them. Run under ThreadSanitizer too. */
#include "unit.h"

#include <dirent.h>
#include <pthread.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/files.h"
#include "trace/reader.h"

enum { THREADS = 8, ZONES = 20000, CHURN = 300, CHURN_ZONES = 20 };

static char dir[64], run_dir[80];

static int set_up(void **state)
{
    (void)state;
    if (!unit_temp_dir(dir))
        return -1;
    (void)snprintf(run_dir, sizeof run_dir, "%s/run", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir);
}

static void start(uint64_t max_trace, int no_drainer)
{
    struct sonde_options o;
    sonde_options_standard(&o);
    o.output = run_dir;
    o.max_trace = max_trace;
    o.no_drainer = no_drainer;
    assert_int_equal(sonde_session_start(&o), 0);
}

static struct trace *open_only_trace(void)
{
    struct trace *trace = NULL;
    DIR *d = opendir(run_dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[400];
        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        assert_null(trace);
        (void)snprintf(path, sizeof path, "%s/%s", run_dir, e->d_name);
        assert_int_equal(trace_open(path, NULL, &trace), 0);
    }
    (void)closedir(d);
    assert_non_null(trace);
    return trace;
}

static uint64_t zones_named(const struct trace *trace, const char *name)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < trace_node_count(trace); i++) {
        const struct trace_node *n = trace_node(trace, i);
        if (n && n->site && strcmp(trace_site(trace, n->site)->name, name) == 0)
            count += n->count;
    }
    return count;
}

static void *record(void *arg)
{
    const int zones = *(const int *)arg;
    for (int i = 0; i < zones; i++) {
        SONDE_ZONE("outer", SONDE_FORWARD) {
            SONDE_ZONE("inner", SONDE_NO_PHASE) {}
            if (i % 100 == 0)
                sonde_value("i", i);
        }
        if (i % 1000 == 0)
            sonde_counter("progress", i);
    }
    return NULL;
}

static void run_threads(int threads, int zones)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, record, &zones), 0);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static void check(uint64_t zones)
{
    assert_int_equal(sonde_session_stop(), 0);
    struct trace *trace = open_only_trace();
    assert_int_equal(zones_named(trace, "outer"), zones);
    assert_int_equal(zones_named(trace, "inner"), zones);
    assert_int_equal(trace_info(trace)->lost, 0);
    trace_free(trace);
}

static void threads_lose_nothing_beside_a_drainer(void **state)
{
    (void)state;
    start(8u << 20, 0); /* small: blocks are recycled all the time */
    run_threads(THREADS, ZONES);
    check((uint64_t)THREADS * ZONES);
}

static void threads_that_fold_for_themselves_lose_nothing(void **state)
{
    (void)state;
    start(8u << 20, 1);
    run_threads(THREADS, ZONES);
    check((uint64_t)THREADS * ZONES);
}

static void short_threads_share_a_few_lanes(void **state)
{
    (void)state;
    start(32u << 20, 0);
    for (int i = 0; i < CHURN; i++)
        run_threads(4, CHURN_ZONES);
    assert_int_equal(sonde_session_stop(), 0);
    struct trace *trace = open_only_trace();
    assert_int_equal(zones_named(trace, "outer"), 4u * CHURN * CHURN_ZONES);
    assert_true(trace_lane_count(trace) <= 8); /* 1,200 threads, four at a time */
    trace_free(trace);
}

static void a_second_session_starts_from_nothing(void **state)
{
    (void)state;
    start(0, 0);
    run_threads(2, 100);
    assert_int_equal(sonde_session_stop(), 0);
    assert_int_equal(sonde_session_stop(), -2); /* −ENOENT: none there */
    assert_int_equal(file_remove_tree(run_dir), 0);
    run_threads(2, 50); /* off: goes nowhere */
    start(0, 0);
    run_threads(2, 30);
    check(60);
}

static void pauses_and_switched_off_sites_leave_no_trace(void **state)
{
    (void)state;
    static struct sonde_site site = { .name = "switched" };
    start(0, 0);
    for (int i = 0; i < 30; i++) {
        if (i == 10)
            sonde_pause();
        if (i == 15)
            sonde_resume();
        if (i == 20)
            sonde_site_enable(&site, 0);
        if (i == 25)
            sonde_site_enable(&site, 1);
        SONDE_ZONE_OF(&site) {}
    }
    assert_int_equal(sonde_session_stop(), 0);
    struct trace *trace = open_only_trace();
    assert_int_equal(zones_named(trace, "switched"), 20);
    trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_lose_nothing_beside_a_drainer, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(threads_that_fold_for_themselves_lose_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_threads_share_a_few_lanes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_second_session_starts_from_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(pauses_and_switched_off_sites_leave_no_trace,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
