/* monitors_test.c: what a report says of the monitors, from good rows and hostile ones. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "analyse/report.h"
#include "base/files.h"
#include "present/report/report.h"
#include "trace/monitor_rows.h"
#include "trace/tables.h"

static char root[64];
static struct tables tables;

static int set_up(void **state)
{
    (void)state;
    static const struct tables_spec specs[] = {
        { "info", sizeof(struct monitor_info_row), 1 },
        { "series", sizeof(struct monitor_series_row), 100 },
        { "points", sizeof(struct monitor_points_row), 100 },
        { "processes", sizeof(struct monitor_process_row), 100 },
        { "gaps", sizeof(struct monitor_gap_row), 100 },
    };
    static const char run[] = "{\"id\": \"1\", \"pid\": 7, \"started_ns\": "
                              "1767225600000000000}";
    char path[128];
    assert_non_null(unit_temp_dir(root));
    snprintf(path, sizeof path, "%s/run.json", root);
    assert_int_equal(file_write_atomic(path, run, sizeof run - 1, 0600), 0);
    return tables_create(root, MONITOR_KIND, NULL, specs, 5, &tables);
}

static int tear_down(void **state)
{
    (void)state;
    tables_close(&tables);
    return file_remove_tree(root);
}

static uint32_t text(const char *words)
{
    return tables_text(&tables, words, strlen(words));
}

static void *row_of(unsigned table)
{
    uint32_t index;
    uint64_t *row = tables_append(&tables, table, &index);
    assert_non_null(row);
    *row = index + 1;
    return row;
}

static struct monitor_info_row *add_info(void)
{
    struct monitor_info_row *info = row_of(MONITOR_TABLE_INFO);
    info->start_real_ns = 1767225600000000000 + 2000000000; /* 2 s after the start */
    info->interval_ns = 1000000000;
    info->base_ns = 500000000;
    info->rounds = 3;
    return info;
}

static struct monitor_series_row *add_series(const char *metric, const char *subject)
{
    struct monitor_series_row *row = row_of(MONITOR_TABLE_SERIES);
    row->metric = text(metric);
    row->subject = text(subject);
    row->unit = text("MiB");
    row->stats[0] = (struct monitor_stats){
        .count = 3, .weight_s = 2, .sum = 30, .min = 5, .max = 25, .last = 20
    };
    return row;
}

static struct report *build(struct run **ret_run)
{
    struct report *report = NULL;
    assert_int_equal(run_open(root, ret_run), 0);
    assert_int_equal(report_build(*ret_run, &report), 0);
    return report;
}

static void series_and_points_are_placed_in_the_run(void **state)
{
    (void)state;
    (void)add_info();
    struct monitor_series_row *row = add_series("rss", "");
    struct monitor_points_row *points = row_of(MONITOR_TABLE_POINTS);
    row->points[1] = 1;
    row->state = 2 | 1 << 8; /* points 1, shift 1: one second each */
    points->point[0] = monitor_point(5, 5);
    points->point[4] = monitor_point(0, 0);
    (void)add_series("rss", "4711");
    struct run *run;
    struct report *r = build(&run);
    const struct report_series *s = monitors_find(&r->monitors, "rss", "");
    assert_non_null(s);
    assert_string_equal(s->name, "rss");
    assert_near(s->avg, 15, 1e-9);
    assert_near(s->max, 25, 1e-9);
    assert_int_equal(s->point_count, 2);
    assert_near(s->points[0].t_s, 2, 1e-6);
    assert_near(s->points[1].t_s, 6, 1e-6);
    assert_near(s->points[1].mean, 0, 0);
    s = monitors_find(&r->monitors, "rss", "4711");
    assert_non_null(s);
    assert_string_equal(s->name, "rss/4711");
    assert_int_equal(s->point_count, 0);
    report_free(r);
    run_free(run);
}

static void the_stats_in_use_are_those_the_state_names(void **state)
{
    (void)state;
    (void)add_info();
    struct monitor_series_row *row = add_series("rss", "");
    row->stats[1] = row->stats[0];
    row->stats[0] = (struct monitor_stats){ .count = 99,
                                            .max = 1e9 }; /* half written */
    row->state = 1;
    struct run *run;
    struct report *r = build(&run);
    assert_near(monitors_find(&r->monitors, "rss", "")->max, 25, 1e-9);
    report_free(r);
    run_free(run);
}

static void what_a_process_row_does_not_know_is_unknown(void **state)
{
    (void)state;
    (void)add_info();
    struct monitor_process_row *row = row_of(MONITOR_TABLE_PROCESSES);
    row->pid = 7;
    row->exe = text("train");
    row->set = 1; /* CPU seconds alone */
    row->total[0] = 1.5;
    row->total[1] = 77;
    row->end = 0x0300 | MONITOR_EXIT_KNOWN;
    struct run *run;
    struct report *r = build(&run);
    const struct watched_process *p = monitors_process(&r->monitors, 7);
    assert_non_null(p);
    assert_near(p->cpu_s, 1.5, 0);
    assert_true(isnan(p->peak_rss_mb) && isnan(p->read_mb));
    assert_true(p->end_known && p->end_status == 0x0300);
    assert_false(p->traced);
    report_free(r);
    run_free(run);
}

static void a_program_that_watched_itself_is_marked_beside_the_supervisor(void **state)
{
    (void)state;
    (void)add_info();
    (void)add_series("rss", "");
    const struct tables outside = tables;
    static const struct tables_spec specs[] = {
        { "info", sizeof(struct monitor_info_row), 1 },
        { "series", sizeof(struct monitor_series_row), 100 },
    };
    assert_int_equal(tables_create(root, MONITOR_KIND, NULL, specs, 2, &tables), 0);
    add_info()->inside = 1;
    (void)add_series("rss", "");
    struct run *run;
    struct report *r = build(&run);
    char name[64];
    snprintf(name, sizeof name, "rss/inside %d", (int)getpid());
    assert_int_equal(r->monitors.series_count, 2);
    assert_string_equal(r->monitors.series[0].name, "rss");
    assert_string_equal(r->monitors.series[1].name, name);
    report_free(r);
    run_free(run);
    tables_close(&tables);
    tables = outside;
}

/* ---- Hostile rows ------------------------------------------------------------------------ */

static void print_all(const struct report *r)
{
    for (int format = REPORT_TEXT; format <= REPORT_JSON; format++) {
        const struct report_style style = { .format = (enum report_format)format,
                                            .full = true };
        char *printed = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&printed, &len);
        assert_int_equal(report_print(r, &style, out), 0);
        (void)fclose(out);
        if (format == REPORT_JSON) {
            json_error_t error;
            json_t *json = json_loadb(printed, len, 0, &error);
            if (!json)
                fail_msg("%s at %d", error.text, error.position);
            json_decref(json);
        }
        free(printed);
    }
}

static void impossible_rows_are_left_out(void **state)
{
    (void)state;
    struct monitor_info_row *info = add_info();
    info->start_real_ns = INT64_MIN;
    info->base_ns = UINT64_MAX;
    struct monitor_series_row *row = add_series("nan", "");
    row->stats[0].max = NAN;
    row = add_series("infinite", "");
    row->stats[0].sum = INFINITY;
    row = add_series("none", "");
    row->stats[0].count = 0;
    row = add_series("", "no name");
    row = add_series("far", "");
    row->points[0] = UINT32_MAX;
    row = add_series("wide", "");
    row->points[0] = 1;
    row->state = 0xff00;
    row = add_series("lost texts", "");
    row->subject = row->unit = 0xfffffff0;
    struct monitor_points_row *points = row_of(MONITOR_TABLE_POINTS);
    row = add_series("odd points", "\x1b[31m\xff\xfe");
    row->points[0] = 1;
    memset(points->point, 0x7f, sizeof points->point); /* NaN */
    struct monitor_process_row *process = row_of(MONITOR_TABLE_PROCESSES);
    process->pid = UINT32_MAX;
    process->set = UINT64_MAX;
    process->end = UINT64_MAX;
    process->first_ns = UINT64_MAX;
    process->exe = process->command = UINT32_MAX;
    for (int i = 0; i < MONITOR_ROW_TOTALS; i++)
        process->total[i] = i % 2 ? NAN : -1e300;
    struct run *run;
    struct report *r = build(&run);
    assert_null(monitors_find(&r->monitors, "nan", ""));
    assert_null(monitors_find(&r->monitors, "infinite", ""));
    assert_null(monitors_find(&r->monitors, "none", ""));
    assert_null(monitors_find(&r->monitors, "", "no name"));
    assert_int_equal(monitors_find(&r->monitors, "far", "")->point_count, 0);
    assert_int_equal(monitors_find(&r->monitors, "wide", "")->point_count, 0);
    assert_true(isnan(r->monitors.processes[0].cpu_s));
    print_all(r);
    report_free(r);
    run_free(run);
}

static void flipped_bits_are_no_danger(void **state)
{
    (void)state;
    (void)add_info();
    for (int i = 0; i < 5; i++) {
        char subject[16];
        snprintf(subject, sizeof subject, "%d", i);
        add_series("rss", subject)->points[0] = 1;
    }
    struct monitor_points_row *points = row_of(MONITOR_TABLE_POINTS);
    for (int i = 0; i < MONITOR_POINTS; i++)
        points->point[i] = monitor_point(i, i);
    ((struct monitor_process_row *)row_of(MONITOR_TABLE_PROCESSES))->pid = 7;
    struct stat st;
    assert_int_equal(stat(tables.path, &st), 0);
    uint8_t *good = malloc((size_t)st.st_size);
    FILE *in = fopen(tables.path, "rb");
    assert_int_equal(fread(good, 1, (size_t)st.st_size, in), st.st_size);
    (void)fclose(in);
    srand(5);
    for (int turn = 0; turn < 300; turn++) {
        uint8_t *bad = malloc((size_t)st.st_size);
        memcpy(bad, good, (size_t)st.st_size);
        for (int k = 0; k < 40; k++) { /* where rows are: the first 2 KiB of blocks */
            const size_t block = (size_t)rand() % ((size_t)st.st_size / TABLES_BLOCK);
            bad[block * TABLES_BLOCK + (size_t)rand() % 2048] = (uint8_t)rand();
        }
        FILE *out = fopen(tables.path, "wb");
        assert_int_equal(fwrite(bad, 1, (size_t)st.st_size, out), st.st_size);
        (void)fclose(out);
        struct run *run;
        struct report *r = build(&run);
        print_all(r);
        report_free(r);
        run_free(run);
        free(bad);
    }
    free(good);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(series_and_points_are_placed_in_the_run),
        TEST(the_stats_in_use_are_those_the_state_names),
        TEST(what_a_process_row_does_not_know_is_unknown),
        TEST(a_program_that_watched_itself_is_marked_beside_the_supervisor),
        TEST(impossible_rows_are_left_out),
        TEST(flipped_bits_are_no_danger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
