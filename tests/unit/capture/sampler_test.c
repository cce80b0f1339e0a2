/* sampler_test.c: what is kept of the values: statistics, points, processes, on disk and
 * readable at every instant. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/error.h"
#include "capture/monitor/sampler.h"
#include "capture_machine.h"
#include "trace/tables.h"

static struct fake_machine machine;
static char run_dir[160];

/* A monitor that says what the test wants. */
static double next_value = 1;
static unsigned subjects = 1;
static bool silent;
static uint64_t last_elapsed_ns;

static int toy_open(const struct monitor_roots *roots, void **ret_state,
                    const char **ret_why)
{
    (void)roots, (void)ret_why;
    *ret_state = &next_value;
    return 0;
}

static void toy_sample(void *state, const struct monitor_round *round,
                       struct monitor_sink *sink)
{
    (void)state;
    last_elapsed_ns = round->elapsed_ns;
    for (unsigned i = 0; !silent && i < subjects; i++) {
        char subject[32] = "";
        if (i)
            snprintf(subject, sizeof subject, "s%u", i);
        sink->set(sink, "toy", subject, "1", next_value);
    }
    if (round->process_count)
        sink->total(sink, 0, TOTAL_CPU_S, next_value);
}

static int absent_open(const struct monitor_roots *roots, void **ret_state,
                       const char **ret_why)
{
    (void)roots, (void)ret_state;
    *ret_why = "not on this machine";
    return SONDE_E_UNSUPPORTED;
}

static const struct monitor_ops toy = { .name = "toy",
                                        .open = toy_open,
                                        .sample = toy_sample };
static const struct monitor_ops slow_toy = {
    .name = "toy", .open = toy_open, .sample = toy_sample, .slowest_ns = 1000000000
};
static const struct monitor_ops absent = { .name = "absent", .open = absent_open };
static const struct monitor_ops *const list[] = { &toy, &absent, NULL };
static const struct monitor_ops *const slow_list[] = { &slow_toy, NULL };

static int set_up(void **state)
{
    (void)state;
    machine_make(&machine);
    snprintf(run_dir, sizeof run_dir, "%s/run", machine.root);
    assert_int_equal(mkdir(run_dir, 0700), 0);
    next_value = subjects = 1;
    silent = false;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    machine_remove(&machine);
    return 0;
}

static struct sampler *make(uint64_t interval_ns, const char *dir,
                            const struct monitor_ops *const *monitors)
{
    struct sampler *s = NULL;
    const struct sampler_options options = { .dir = dir,
                                             .roots = machine.roots,
                                             .interval_ns = interval_ns,
                                             .pid = 100,
                                             .list = monitors };
    assert_int_equal(sampler_new(&options, &s), 0);
    return s;
}

static uint64_t start_of(const struct sampler *s)
{
    return sampler_next_ns(s);
}

static struct tablefile *reopened(void)
{
    char path[512] = "";
    struct tablefile *file = NULL;
    DIR *dir = opendir(run_dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (tablefile_is_name(e->d_name, MONITOR_KIND))
            snprintf(path, sizeof path, "%s/%s", run_dir, e->d_name);
    (void)closedir(dir);
    assert_int_equal(tablefile_open(path, &file), 0);
    return file;
}

static struct monitor_series_row series_row(const struct tablefile *file,
                                            unsigned index)
{
    struct monitor_series_row row;
    assert_true(
        tablefile_get(file, tablefile_find(file, "series"), index, &row, sizeof row));
    return row;
}

/* ---- Statistics ------------------------------------------------------------------------ */

static void averages_are_weighted_by_time(void **state)
{
    (void)state;
    struct sampler *s = make(1000000000, NULL, list);
    const uint64_t start = start_of(s);
    struct monitor_stats stats;
    next_value = 1000; /* stands for no time */
    sampler_round(s, start, NULL, 0);
    next_value = 10;
    sampler_round(s, start + 3000000000, NULL, 0);
    next_value = 50;
    sampler_round(s, start + 4000000000, NULL, 0);
    assert_true(sampler_stats(s, "toy", "", &stats));
    assert_int_equal(stats.count, 3);
    assert_near(stats.sum / stats.weight_s, 20, 1e-6);
    assert_true(stats.min == 10 && stats.max == 1000 && stats.last == 50);
    double value = -1;
    assert_true(sampler_current(s, "toy", NULL, &value) && value == 50);
    assert_false(sampler_current(s, "toy", "none", &value));
    assert_true(value == 50);
    sampler_free(s);
}

static void what_is_not_set_is_not_counted(void **state)
{
    (void)state;
    struct sampler *s = make(1000000000, NULL, list);
    const uint64_t start = start_of(s);
    struct monitor_stats stats;
    sampler_round(s, start, NULL, 0);
    silent = true;
    sampler_round(s, start + 1000000000, NULL, 0);
    next_value = NAN;
    silent = false;
    sampler_round(s, start + 2000000000, NULL, 0);
    assert_true(sampler_stats(s, "toy", "", &stats));
    assert_int_equal(stats.count, 1);
    sampler_free(s);
}

static void early_rounds_are_dense_then_punctual(void **state)
{
    (void)state;
    static const unsigned expected_ms[] = { 10, 30, 70, 150, 310, 630, 755, 880, 1005 };
    struct sampler *s = make(1000000000, NULL, list);
    const uint64_t start = start_of(s);
    sampler_round(s, start, NULL, 0);
    for (size_t i = 0; i < sizeof expected_ms / sizeof *expected_ms; i++) {
        const uint64_t next = sampler_next_ns(s);
        assert_near((double)(next - start) / 1e6, expected_ms[i], 0.01);
        sampler_round(s, next, NULL, 0);
    }
    sampler_round(s, start + 7200000000, NULL, 0); /* an eighth of its age */
    assert_near((double)(sampler_next_ns(s) - start) / 1e9, 8.1, 1e-6);
    sampler_round(s, start + 9400000000, NULL, 0); /* no longer young */
    assert_near((double)(sampler_next_ns(s) - start) / 1e9, 10, 1e-6);
    sampler_free(s);
}

static void a_dear_monitor_is_asked_less_often_and_told_its_own_interval(void **state)
{
    (void)state;
    struct sampler *s = make(10000000, NULL, slow_list);
    const uint64_t start = start_of(s);
    struct monitor_stats stats;
    for (unsigned i = 0; i <= 250; i++)
        sampler_round(s, start + i * 10000000ull, NULL, 0);
    assert_true(sampler_stats(s, "toy", "", &stats));
    assert_in_range(stats.count, 3, 3);
    assert_near((double)last_elapsed_ns / 1e9, 1, 0.011);
    sampler_free(s);
}

static unsigned begun, ended, passed;
static struct monitor_sink in_front, *behind;

static void pass_on(struct monitor_sink *sink, const char *metric, const char *subject,
                    const char *unit, double value)
{
    assert_ptr_equal(sink, &in_front);
    passed++;
    behind->set(behind, metric, subject, unit, value);
}

static struct monitor_sink *attach(void *arg, struct monitor_sink *sink)
{
    assert_ptr_equal(arg, &begun);
    behind = sink;
    in_front = *sink;
    in_front.set = pass_on;
    return &in_front;
}

static void on_begin(void *arg, const struct monitor_round *round)
{
    (void)arg;
    assert_true(begun == 0 ? round->elapsed_ns == 0 : round->elapsed_ns > 0);
    begun++;
}

static void on_end(void *arg)
{
    (void)arg;
    ended++;
}

static void who_stands_in_front_sees_every_value(void **state)
{
    (void)state;
    static const struct monitor_ops *const only[] = { &toy, NULL };
    const struct sampler_hooks hooks = { attach, on_begin, on_end, &begun };
    const struct sampler_options options = { .list = only, .hooks = &hooks };
    struct sampler *s;
    double value;
    assert_int_equal(sampler_new(&options, &s), 0);
    const uint64_t start = start_of(s);
    for (unsigned i = 0; i < 5; i++)
        sampler_round(s, start + i * 1000000000ull, NULL, 0);
    assert_int_equal(begun, 5);
    assert_int_equal(ended, 5);
    assert_int_equal(passed, 5);
    assert_true(sampler_current(s, "toy", "", &value));
    sampler_free(s);
}

/* ---- On disk --------------------------------------------------------------------------- */

static void points_halve_and_keep_mean_and_maximum(void **state)
{
    (void)state;
    struct sampler *s = make(10000000, run_dir, list);
    const uint64_t start = start_of(s);
    const unsigned rounds = 10000;
    for (unsigned i = 0; i < rounds; i++) {
        next_value = i == 7777 ? 1e6 : i;
        sampler_round(s, start + i * 10000000ull, NULL, 0);
    }
    struct tablefile *file = reopened();
    const struct monitor_series_row row = series_row(file, 0);
    const unsigned shift = row.state >> 8 & 0xff;
    struct monitor_points_row points;
    assert_int_equal(shift, 7); /* 10,000 / 128 fits, 10,000 / 64 does not */
    assert_true(tablefile_get(file, tablefile_find(file, "points"),
                              row.points[row.state >> 1 & 1] - 1, &points,
                              sizeof points));
    for (unsigned i = 1; i < rounds >> shift; i++) {
        double mean, max;
        monitor_point_read(points.point[i], &mean, &max);
        const double first = i << shift, last = first + (1u << shift) - 1;
        if (i == 7777u >> shift) {
            assert_near(max, 1e6, 1);
        } else {
            assert_near(mean, (first + last) / 2, 1);
            assert_near(max, last, 1);
        }
    }
    const struct monitor_stats *stats = &row.stats[row.state & 1];
    assert_int_equal(stats->count, rounds);
    assert_true(stats->max == 1e6 && stats->last == rounds - 1);
    assert_true(tablefile_count(file, tablefile_find(file, "points")) == 2);
    tablefile_free(file);
    sampler_free(s);
}

static void zero_is_a_value_and_an_empty_point_is_none(void **state)
{
    (void)state;
    struct sampler *s = make(10000000, run_dir, list);
    const uint64_t start = start_of(s);
    next_value = 0;
    sampler_round(s, start, NULL, 0);
    sampler_round(s, start + 50000000, NULL, 0);
    struct tablefile *file = reopened();
    const struct monitor_series_row row = series_row(file, 0);
    struct monitor_points_row points;
    assert_true(tablefile_get(file, tablefile_find(file, "points"), row.points[0] - 1,
                              &points, sizeof points));
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(points.point[i] != 0, i == 0 || i == 5);
    double mean = 1, max = 1;
    monitor_point_read(points.point[5], &mean, &max);
    assert_true(mean == 0 && max == 0);
    tablefile_free(file);
    sampler_free(s);
}

static void gaps_and_info_are_in_the_file(void **state)
{
    (void)state;
    struct sampler *s = make(0, run_dir, list);
    sampler_round(s, start_of(s), NULL, 0);
    struct tablefile *file = reopened();
    struct monitor_info_row info;
    struct monitor_gap_row gap;
    assert_true(
        tablefile_get(file, tablefile_find(file, "info"), 0, &info, sizeof info));
    assert_int_equal(info.rounds, 1);
    assert_int_equal(info.interval_ns, 1000000000);
    assert_true(tablefile_get(file, tablefile_find(file, "gaps"), 0, &gap, sizeof gap));
    assert_string_equal(tablefile_text(file, gap.metric), "absent");
    assert_string_equal(tablefile_text(file, gap.why), "not on this machine");
    tablefile_free(file);
    sampler_free(s);
}

static void processes_have_rows_that_stay(void **state)
{
    (void)state;
    static const struct monitor_process both[] = { { 100, 5000 }, { 101, 5001 } };
    struct monitor_process_row row;
    put_file(machine.proc, "100/stat",
             "100 (main) S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 1 1 1\n");
    put_file(machine.proc, "100/cmdline", "");
    struct sampler *s = make(1000000000, run_dir, list);
    const uint64_t start = start_of(s);
    next_value = 4.5;
    sampler_round(s, start, both, 2);
    /* "--token", "s3cret": words as the kernel keeps them */
    char path[200];
    snprintf(path, sizeof path, "%s/100/cmdline", machine.proc);
    FILE *out = fopen(path, "wb");
    (void)fwrite("train\0--token\0hunter2\0", 22, 1, out);
    (void)fclose(out);
    sampler_round(s, start + 1000000000, both, 2);
    sampler_round(s, start + 2000000000, both, 1); /* 101 has gone */
    sampler_ended(s, &both[1], 0x0300);
    struct tablefile *file = reopened();
    const int table = tablefile_find(file, "processes");
    assert_int_equal(tablefile_count(file, table), 2);
    assert_true(tablefile_get(file, table, 0, &row, sizeof row));
    assert_int_equal(row.pid, 100);
    assert_int_equal(row.ppid, 7);
    assert_string_equal(tablefile_text(file, row.command), "train --token [redacted]");
    assert_true(row.set & 1 << TOTAL_CPU_S && row.total[TOTAL_CPU_S] == 4.5);
    assert_false(row.set & 1 << TOTAL_PEAK_RSS_MB);
    assert_int_equal(row.end, 0);
    assert_true(tablefile_get(file, table, 1, &row, sizeof row));
    assert_int_equal(row.pid, 101);
    assert_true(row.end == (0x0300 | MONITOR_EXIT_KNOWN));
    assert_near((double)row.last_ns / 1e9, 1, 1e-6);
    tablefile_free(file);
    sampler_free(s);
}

static void a_process_that_lived_before_counts_from_the_start_of_the_run(void **state)
{
    (void)state;
    const struct sampler_options options = { .dir = run_dir,
                                             .roots = machine.roots,
                                             .interval_ns = 1000000000,
                                             .pid = 100,
                                             .joined = true,
                                             .list = list };
    const struct monitor_process process = { 100, 1 };
    struct monitor_process_row row;
    struct sampler *s = NULL;
    assert_int_equal(sampler_new(&options, &s), 0);
    const uint64_t start = start_of(s);
    next_value = 30;
    sampler_round(s, start, &process, 1);
    next_value = 31.5;
    sampler_round(s, start + 1000000000, &process, 1);
    sampler_free(s);
    struct tablefile *file = reopened();
    assert_true(
        tablefile_get(file, tablefile_find(file, "processes"), 0, &row, sizeof row));
    assert_true(row.total[TOTAL_CPU_S] == 1.5);
    tablefile_free(file);
}

static void more_series_than_there_is_room_for_are_counted(void **state)
{
    (void)state;
    struct sampler *s = make(1000000000, run_dir, list);
    const uint64_t start = start_of(s);
    subjects = SAMPLER_SERIES_MAX + 100;
    sampler_round(s, start, NULL, 0);
    sampler_round(s, start + 1000000000, NULL, 0);
    struct tablefile *file = reopened();
    struct monitor_info_row info;
    struct monitor_stats stats;
    assert_true(
        tablefile_get(file, tablefile_find(file, "info"), 0, &info, sizeof info));
    assert_true(info.series_lost >= 100);
    assert_true(sampler_stats(s, "toy", "s100", &stats) && stats.count == 2);
    tablefile_free(file);
    sampler_free(s);
}

/* Killed at a random moment, again and again: statistics agree with themselves. */
static void a_kill_at_any_instant_leaves_consistent_rows(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < 60; turn++) {
        const pid_t pid = fork();
        if (pid == 0) {
            struct sampler *s = make(10000000, run_dir, list);
            const uint64_t start = start_of(s);
            for (uint64_t i = 0;; i++) {
                next_value = (double)i;
                sampler_round(s, start + i * 10000000ull, NULL, 0);
            }
        }
        const struct timespec wait = { 0, 1000000 + turn * 400000 };
        (void)nanosleep(&wait, NULL);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        DIR *dir = opendir(run_dir);
        for (struct dirent *e; (e = readdir(dir));) {
            char path[512];
            struct tablefile *file;
            struct monitor_series_row row;
            snprintf(path, sizeof path, "%s/%s", run_dir, e->d_name);
            if (!tablefile_is_name(e->d_name, MONITOR_KIND))
                continue;
            if (tablefile_open(path, &file) == 0) {
                if (tablefile_get(file, tablefile_find(file, "series"), 0, &row,
                                  sizeof row)) {
                    const struct monitor_stats *st = &row.stats[row.state & 1];
                    const double n = (double)st->count;
                    if (st->count) { /* values 0 … n−1, each but the first for 10 ms */
                        assert_true(st->max == n - 1 && st->last == n - 1);
                        assert_near(st->sum, n * (n - 1) / 2 * 0.01, 1e-3 * (1 + n));
                    }
                }
                tablefile_free(file);
            }
            (void)unlink(path);
        }
        (void)closedir(dir);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(averages_are_weighted_by_time),
        TEST(what_is_not_set_is_not_counted),
        TEST(early_rounds_are_dense_then_punctual),
        TEST(a_dear_monitor_is_asked_less_often_and_told_its_own_interval),
        TEST(who_stands_in_front_sees_every_value),
        TEST(points_halve_and_keep_mean_and_maximum),
        TEST(zero_is_a_value_and_an_empty_point_is_none),
        TEST(gaps_and_info_are_in_the_file),
        TEST(processes_have_rows_that_stay),
        TEST(a_process_that_lived_before_counts_from_the_start_of_the_run),
        TEST(more_series_than_there_is_room_for_are_counted),
        TEST(a_kill_at_any_instant_leaves_consistent_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
