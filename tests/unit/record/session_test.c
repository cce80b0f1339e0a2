/* session_test.c: starting and stopping a session, what it refuses and says, what it
 * leaves in its directory. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "recorded.h"

/* run.json of a run directory, or of nothing: "". */
static const char *run_json(const char *dir)
{
    static char text[16384];
    char path[300];
    struct buf b = BUF_INIT;
    (void)snprintf(path, sizeof path, "%s/run.json", dir);
    text[0] = '\0';
    if (file_read_all(path, sizeof text - 1, &b) == 0)
        (void)snprintf(text, sizeof text, "%.*s", (int)b.len, b.data);
    buf_release(&b);
    return text;
}

static bool says(const char *dir, const char *words)
{
    return strstr(run_json(dir), words) != NULL;
}

static char scratch[64];

static int make_scratch(void **state)
{
    (void)state;
    static const char *const variables[] = { "SONDE_DIR",       "SONDE_RUN",
                                             "SONDE_NAME",      "SONDE_LEVEL",
                                             "SONDE_MAX_TRACE", "SONDE_DISABLE" };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        (void)unsetenv(variables[i]);
    return unit_temp_dir(scratch) ? setenv("SONDE_DIR", scratch, 1) : -1;
}

static int remove_scratch(void **state)
{
    (void)state;
    return file_remove_tree(scratch);
}

/* ---- Threads that cannot be ------------------------------------------------------- */

/* Stacks larger than any address space: no thread can be created any more. */
static void forbid_threads(bool forbid)
{
    static size_t usual;
    pthread_attr_t attr;
    assert_int_equal(pthread_getattr_default_np(&attr), 0);
    if (!usual)
        assert_int_equal(pthread_attr_getstacksize(&attr, &usual), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, forbid ? 1ULL << 50 : usual), 0);
    assert_int_equal(pthread_setattr_default_np(&attr), 0);
    (void)pthread_attr_destroy(&attr);
}

static void a_session_without_its_drain_thread_is_none(void **state)
{
    (void)state;
    struct recorded r;
    char output[96];
    struct sonde_options o;
    (void)snprintf(output, sizeof output, "%s/undrained", scratch);
    sonde_options_standard(&o);
    o.output = output;
    o.quiet = 1;
    forbid_threads(true);
    const int rc = sonde_session_start(&o);
    forbid_threads(false);
    assert_int_equal(rc, -EAGAIN);
    assert_non_null(strstr(sonde_session_error(), "drain thread"));
    assert_false(sonde_session_active() || sonde_recording());
    assert_null(getenv("SONDE_RUN"));
    assert_int_equal(sonde_session_stop(), -ENOENT);
    SONDE_ZONE("between", SONDE_FORWARD) {}
    assert_int_equal(sonde_session_start(&o), 0); /* in the same place */
    assert_int_equal(sonde_session_stop(), 0);
    recorded_start(&r, NULL);
    SONDE_ZONE("later", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "later"), 1);
    assert_int_equal(recorded_zones(&r, "between"), 0);
    recorded_release(&r);
}

/* ---- States ----------------------------------------------------------------------- */

static void there_is_at_most_one_session(void **state)
{
    (void)state;
    struct recorded r;
    assert_false(sonde_session_active() || sonde_recording());
    assert_string_equal(sonde_session_directory(), "");
    assert_int_equal(sonde_session_stop(), -ENOENT);
    recorded_start(&r, NULL);
    assert_true(sonde_session_active() && sonde_recording());
    assert_string_equal(sonde_session_directory(), r.output);
    assert_string_equal(sonde_session_error(), "");
    assert_int_equal(sonde_session_start(NULL), -EBUSY);
    assert_non_null(strstr(sonde_session_error(), r.output));
    SONDE_ZONE("goes on", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "goes on"), 1);
    assert_false(sonde_session_active() || sonde_recording());
    assert_string_equal(sonde_session_directory(), "");
    assert_int_equal(sonde_lost(), 0);
    assert_int_equal(sonde_session_stop(), -ENOENT);
    recorded_release(&r);
}

static void a_session_records_nothing_of_others(void **state)
{
    (void)state;
    struct recorded r;
    for (unsigned i = 1; i <= 3; i++) {
        SONDE_ZONE("between", SONDE_FORWARD) {}
        recorded_start(&r, NULL);
        for (unsigned k = 0; k < i; k++)
            SONDE_ZONE("zone", SONDE_FORWARD) {}
        recorded_stop(&r);
        assert_int_equal(recorded_zones(&r, "zone"), i);
        assert_int_equal(recorded_zones(&r, "between"), 0);
        assert_int_equal(trace_lane_count(r.trace), 1);
        recorded_release(&r);
    }
}

static void what_one_session_lost_costs_the_next_nothing(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    struct timespec start, now;
    sonde_options_lightweight(&o);
    o.lossy = 1;
    o.no_drainer = 1;
    recorded_start(&r, &o);
    /* Long enough for its lane to lose patience: it asks for space ever more seldom. */
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (unsigned i = 0; i < 1000; i++)
            SONDE_ZONE("many", SONDE_FORWARD) {}
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 2);
    assert_true(sonde_lost() > 0);
    recorded_stop(&r);
    assert_true(trace_info(r.trace)->lost_reason & LOST_LOSSY);
    recorded_release(&r);
    recorded_start(&r, NULL);
    SONDE_ZONE("first", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "first"), 1);
    assert_int_equal(trace_info(r.trace)->lost, 0);
    recorded_release(&r);
}

/* ---- Options ---------------------------------------------------------------------- */

static void refused(const struct sonde_options *o, int rc, const char *why)
{
    assert_int_equal(sonde_session_start(o), rc);
    if (!strstr(sonde_session_error(), why))
        fail_msg("'%s' does not say '%s'", sonde_session_error(), why);
    assert_false(sonde_session_active());
}

static void senseless_options_are_refused(void **state)
{
    (void)state;
    struct sonde_options o;
    sonde_options_standard(&o);
    o.size = 0;
    refused(&o, -EINVAL, "sizeof");
    o.size = 100000;
    refused(&o, -EINVAL, "sizeof");
    sonde_options_standard(&o);
    o.level = 4;
    refused(&o, -EINVAL, "level");
    o.level = -1;
    refused(&o, -EINVAL, "level");
}

/* A program compiled against an older header passes a shorter struct. */
static void fields_behind_the_size_are_not_read(void **state)
{
    (void)state;
    char output[80];
    (void)snprintf(output, sizeof output, "%s/short", scratch);
    struct sonde_options o = { .size = offsetof(struct sonde_options, name),
                               .output = output };
    memset((char *)&o + o.size, 0x5a, sizeof o - o.size);
    assert_int_equal(sonde_session_start(&o), 0);
    assert_int_equal(sonde_session_stop(), 0);
    assert_true(says(output, "\"level\": \"detailed\""));
    assert_true(says(output, "\"name\": null"));
}

static void a_directory_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct sonde_options o;
    struct recorded r;
    sonde_options_standard(&o);
    o.output = "/dev/null/run";
    refused(&o, -ENOTDIR, "/dev/null/run");
    SONDE_ZONE("nowhere", SONDE_FORWARD) {} /* harmless */
    recorded_start(&r, NULL); /* and another one is none the worse for it */
    SONDE_ZONE("somewhere", SONDE_FORWARD) {}
    recorded_stop(&r);
    assert_int_equal(recorded_zones(&r, "somewhere"), 1);
    assert_int_equal(recorded_zones(&r, "nowhere"), 0);
    /* A directory with a run in it is not written over. */
    o.output = r.output;
    refused(&o, -EEXIST, r.output);
    assert_int_equal(recorded_zones(&r, "somewhere"), 1);
    recorded_release(&r);
}

static void a_budget_too_small_for_anything_is_refused(void **state)
{
    (void)state;
    struct sonde_options o;
    char output[80];
    (void)snprintf(output, sizeof output, "%s/tiny", scratch);
    sonde_options_standard(&o);
    o.output = output;
    o.quiet = 1;
    o.max_trace = 1;
    refused(&o, -EIO, "budget");
    SONDE_ZONE("nowhere", SONDE_FORWARD) {}
}

/* ---- The environment -------------------------------------------------------------- */

static void the_environment_can_switch_everything_off(void **state)
{
    (void)state;
    (void)setenv("SONDE_DISABLE", "1", 1);
    refused(NULL, -ECANCELED, "SONDE_DISABLE");
    (void)setenv("SONDE_DISABLE", "0", 1);
    assert_int_equal(sonde_session_start(NULL), 0);
    assert_int_equal(sonde_session_stop(), 0);
    (void)unsetenv("SONDE_DISABLE");
}

static void run_once(const struct sonde_options *o, char ret_dir[300])
{
    assert_int_equal(sonde_session_start(o), 0);
    (void)snprintf(ret_dir, 300, "%s", sonde_session_directory());
    assert_int_equal(sonde_session_stop(), 0);
}

static void the_environment_fills_what_the_program_left_open(void **state)
{
    (void)state;
    char dir[300];
    struct sonde_options o;
    (void)setenv("SONDE_LEVEL", "basic", 1);
    (void)setenv("SONDE_MAX_TRACE", "16MiB", 1);
    (void)setenv("SONDE_NAME", "from outside", 1);
    run_once(NULL, dir);
    assert_true(says(dir, "\"level\": \"basic\""));
    assert_true(says(dir, "\"max_trace\": 16777216"));
    assert_true(says(dir, "\"name\": \"from outside\""));
    sonde_options_standard(&o); /* what the program says wins */
    o.level = SONDE_COMPREHENSIVE;
    o.max_trace = 32 << 20;
    o.name = "from inside";
    run_once(&o, dir);
    assert_true(says(dir, "\"level\": \"comprehensive\""));
    assert_true(says(dir, "\"max_trace\": 33554432"));
    assert_true(says(dir, "\"name\": \"from inside\""));
    (void)setenv("SONDE_LEVEL", "extreme", 1);
    refused(NULL, -EINVAL, "extreme");
    (void)setenv("SONDE_LEVEL", "basic", 1);
    (void)setenv("SONDE_MAX_TRACE", "much", 1);
    refused(NULL, -EINVAL, "much");
    (void)unsetenv("SONDE_LEVEL");
    (void)unsetenv("SONDE_MAX_TRACE");
    (void)unsetenv("SONDE_NAME");
}

static void runs_get_directories_of_their_own(void **state)
{
    (void)state;
    char first[300], second[300], expected[100], id[64];
    struct stat st;
    run_once(NULL, first);
    run_once(NULL, second);
    assert_string_not_equal(first, second);
    (void)snprintf(expected, sizeof expected, "%s/runs/", scratch);
    assert_int_equal(strncmp(first, expected, strlen(expected)), 0);
    const char *name = first + strlen(expected);
    assert_int_equal(strspn(name, "0123456789abcdef"), 8);
    assert_int_equal(strlen(name), 8);
    (void)snprintf(id, sizeof id, "\"id\": \"%.8s\"", name);
    assert_true(says(first, id));
    assert_int_equal(stat(first, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700); /* nobody else's business */
}

static void programs_started_meanwhile_find_the_run(void **state)
{
    (void)state;
    struct recorded r;
    assert_null(getenv("SONDE_RUN"));
    recorded_start(&r, NULL);
    assert_non_null(getenv("SONDE_RUN"));
    assert_string_equal(getenv("SONDE_RUN"), r.output);
    recorded_stop(&r);
    assert_null(getenv("SONDE_RUN"));
    recorded_release(&r);
}

/* ---- run.json --------------------------------------------------------------------- */

static void run_json_says_how_it_stands(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    char pid[32];
    sonde_options_standard(&o);
    o.name = "a name";
    o.min_zone_ns = 1234;
    o.first_step = 2;
    o.last_step = 4;
    o.lossy = 1;
    recorded_start(&r, &o);
    assert_true(says(r.output, "\"ended_ns\": null"));
    assert_true(says(r.output, "\"exit\": null") || says(r.output, "\"cause\": null"));
    recorded_stop(&r);
    assert_false(says(r.output, "\"ended_ns\": null"));
    assert_true(says(r.output, "\"exit\": null")); /* the program goes on */
    assert_true(says(r.output, "\"session\": true"));
    assert_true(says(r.output, "\"name\": \"a name\""));
    assert_true(says(r.output, "\"min_zone_ns\": 1234"));
    assert_true(says(r.output, "\"steps\": \"2:5\"")); /* as --steps takes it */
    assert_true(says(r.output, "\"lossy\": true"));
    (void)snprintf(pid, sizeof pid, "\"pid\": %d", (int)getpid());
    assert_true(says(r.output, pid));
    recorded_release(&r);
}

static void run_json_knows_the_window_of_time(void **state)
{
    (void)state;
    struct recorded r;
    struct sonde_options o;
    sonde_options_standard(&o);
    o.after_ns = 1500000000;
    o.duration_ns = 2000000000;
    recorded_start(&r, &o);
    assert_true(says(r.output, "\"after_s\": 1.5"));
    assert_true(says(r.output, "\"duration_s\": 2"));
    assert_true(says(r.output, "\"steps\": null"));
    recorded_stop(&r);
    recorded_release(&r);
}

/* ---- Ends without a stop ---------------------------------------------------------- */

static char child_output[80];

static int run_child(void (*fn)(void))
{
    int status;
    (void)snprintf(child_output, sizeof child_output, "%s/child", scratch);
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        fn();
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void start_in_child(void)
{
    struct sonde_options o;
    sonde_options_standard(&o);
    o.output = child_output;
    if (sonde_session_start(&o) < 0)
        _exit(99);
    for (unsigned i = 0; i < 10; i++)
        SONDE_ZONE("child", SONDE_FORWARD) {}
}

static void exit_with_three(void)
{
    start_in_child();
    exit(3);
}

static void die(void)
{
    start_in_child();
    (void)raise(SIGKILL);
}

/* A child of the session that exits is not the end of the session. */
static void fork_and_exit(void)
{
    start_in_child();
    const pid_t pid = fork();
    if (pid == 0)
        exit(5);
    int status;
    if (waitpid(pid, &status, 0) != pid || !says(child_output, "\"ended_ns\": null"))
        _exit(98);
    SONDE_ZONE("child", SONDE_FORWARD) {}
    exit(0);
}

static uint64_t zones_of_child(void)
{
    struct recorded r = { 0 };
    (void)snprintf(r.output, sizeof r.output, "%s", child_output);
    recorded_read(&r);
    const uint64_t count = recorded_zones(&r, "child");
    trace_free(r.trace);
    clock_table_release(&r.clock);
    assert_int_equal(file_remove_tree(child_output), 0);
    return count;
}

static void a_program_that_exits_ends_its_session(void **state)
{
    (void)state;
    const int status = run_child(exit_with_three);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_false(says(child_output, "\"ended_ns\": null"));
    assert_true(says(child_output, "\"code\": 3"));
    assert_true(says(child_output, "\"cause\": \"error\""));
    assert_int_equal(zones_of_child(), 10);
}

static void a_program_that_is_killed_leaves_its_events(void **state)
{
    (void)state;
    const int status = run_child(die);
    assert_true(WIFSIGNALED(status));
    assert_true(says(child_output, "\"ended_ns\": null")); /* nobody was there to say */
    assert_int_equal(zones_of_child(), 10);
}

static void a_forked_child_does_not_end_its_parents_session(void **state)
{
    (void)state;
    const int status = run_child(fork_and_exit);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(says(child_output, "\"cause\": \"ok\""));
    assert_int_equal(zones_of_child(), 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_at_most_one_session),
        cmocka_unit_test(a_session_without_its_drain_thread_is_none),
        cmocka_unit_test(a_session_records_nothing_of_others),
        cmocka_unit_test(what_one_session_lost_costs_the_next_nothing),
        cmocka_unit_test(senseless_options_are_refused),
        cmocka_unit_test(fields_behind_the_size_are_not_read),
        cmocka_unit_test(a_directory_that_cannot_be_is_refused),
        cmocka_unit_test(a_budget_too_small_for_anything_is_refused),
        cmocka_unit_test(the_environment_can_switch_everything_off),
        cmocka_unit_test(the_environment_fills_what_the_program_left_open),
        cmocka_unit_test(runs_get_directories_of_their_own),
        cmocka_unit_test(programs_started_meanwhile_find_the_run),
        cmocka_unit_test(run_json_says_how_it_stands),
        cmocka_unit_test(run_json_knows_the_window_of_time),
        cmocka_unit_test(a_program_that_exits_ends_its_session),
        cmocka_unit_test(a_program_that_is_killed_leaves_its_events),
        cmocka_unit_test(a_forked_child_does_not_end_its_parents_session),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
