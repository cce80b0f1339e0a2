/* export_test.c: timelines for other tools, read back by jansson and compared with
 * the events they were made from. */
#include "fake_run.h"

#include <math.h>

#include "present/export/export.h"
#include "store/run.h"

/* Last: its macros meet base/json.h. */
#include <jansson.h>

static struct trace *t;
static unsigned outer, inner, other, counter, mark, span;

#define START INT64_C(1700000000000000000)

static int setup(void **state)
{
    if (fake_setup(state) != 0)
        return -1;
    t = fake_trace("0001-7-a.sonde", 7);
    t->info.start_ns = START;
    outer = fake_site(t, "outer", SONDE_FORWARD, "dir/a.c", 3);
    inner = fake_site(t, "in\"ner\033[2J\n", 0, "", 0);
    other = fake_site(t, "other", 0, "", 0);
    counter = fake_site(t, "queue", 0, "", 0);
    mark = fake_site(t, "epoch 1", 0, "", 0);
    span = fake_site(t, "request", 0, "", 0);
    (void)fake_lane(t, 0, 7, "main");
    (void)fake_lane(t, 1, 8, "loader");
    return 0;
}

static void event(enum trace_event_kind kind, unsigned site, int64_t ns, unsigned lane)
{
    fake_event(t,
               (struct trace_event){
                   .kind = kind, .site = site, .time_ns = START + ns, .lane = lane });
}

static struct run *open_run(void)
{
    struct run *run = NULL;
    const char *dir = fake_run_dir("r",
                                   "{\"id\":\"r\",\"started_ns\":1700000000000000000,"
                                   "\"command\":[\"./x\",\"\\u001b\"]}");
    fake_run_files(dir);
    assert_int_equal(run_open(dir, &run), 0);
    return run;
}

static json_t *chrome(struct export_totals *ret_totals)
{
    json_error_t error;
    struct run *run = open_run();
    FILE *f = tmpfile();
    assert_int_equal(
        export_chrome(&(struct export_job){ .run = run, .out = f }, ret_totals), 0);
    rewind(f);
    json_t *root = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("line %d: %s", error.line, error.text);
    (void)fclose(f);
    run_free(run);
    return root;
}

/* The n-th event of that kind. */
static const json_t *nth(const json_t *root, const char *ph, size_t n)
{
    const json_t *list = json_object_get(root, "traceEvents");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(e, "ph")), ph) == 0 && n-- == 0)
            return e;
    }
    return NULL;
}

static double number(const json_t *e, const char *key)
{
    return json_number_value(json_object_get(e, key));
}

static const char *text(const json_t *e, const char *key)
{
    return json_string_value(json_object_get(e, key));
}

static void zones_become_complete_events_to_the_nanosecond(void **state)
{
    (void)state;
    struct export_totals totals;
    event(TRACE_BEGIN, outer, 1001, 0);
    event(TRACE_BEGIN, inner, 2002, 0);
    fake_event(t, (struct trace_event){ .kind = TRACE_VALUE,
                                        .sub = VALUE_ZONE,
                                        .site = counter,
                                        .value = 32,
                                        .time_ns = START + 2500 });
    event(TRACE_END, inner, 3003, 0);
    event(TRACE_END, outer, 9009, 0);
    json_t *root = chrome(&totals);
    const json_t *e = nth(root, "X", 0);
    assert_string_equal(text(e, "name"), "in\"ner\033[2J\n");
    assert_near(number(e, "ts"), 2.002, 1e-9);
    assert_near(number(e, "dur"), 1.001, 1e-9);
    const json_t *values = json_object_get(json_object_get(e, "args"), "values");
    assert_near(number(json_array_get(values, 0), "queue"), 32, 0);
    e = nth(root, "X", 1);
    assert_string_equal(text(e, "cat"), "forward");
    assert_near(number(e, "ts"), 1.001, 1e-9);
    assert_near(number(e, "dur"), 8.008, 1e-9);
    assert_near(number(e, "pid"), 7, 0);
    assert_near(number(e, "tid"), 7, 0);
    assert_string_equal(text(json_object_get(e, "args"), "where"), "dir/a.c:3");
    assert_null(nth(root, "X", 2));
    assert_int_equal(totals.zones, 2);
    assert_string_equal(text(root, "displayTimeUnit"), "ns");
    assert_string_equal(text(json_object_get(root, "otherData"), "run"), "r");
    json_decref(root);
}

static void a_zone_open_at_death_is_marked_truncated(void **state)
{
    (void)state;
    struct export_totals totals;
    event(TRACE_BEGIN, outer, 1000, 0);
    event(TRACE_BEGIN, inner, 2000, 0);
    event(TRACE_END, inner, 3000, 0);
    json_t *root = chrome(&totals);
    const json_t *e = nth(root, "X", 1);
    assert_true(json_is_true(json_object_get(json_object_get(e, "args"), "truncated")));
    assert_near(number(e, "dur"), 2, 1e-9);
    assert_int_equal(totals.truncated, 1);
    json_decref(root);
}

static void counters_marks_and_steps_find_their_forms(void **state)
{
    (void)state;
    struct export_totals totals;
    static const double values[] = { 4, NAN, INFINITY };
    for (int i = 0; i < 3; i++)
        fake_event(t, (struct trace_event){ .kind = TRACE_VALUE,
                                            .sub = VALUE_COUNTER,
                                            .site = counter,
                                            .value = values[i],
                                            .time_ns = START + 10 + i });
    event(TRACE_MARK, mark, 20, 0);
    fake_event(t, (struct trace_event){
                      .kind = TRACE_STEP, .number = 32, .time_ns = START + 30 });
    json_t *root = chrome(&totals);
    const json_t *e = nth(root, "C", 0);
    assert_string_equal(text(e, "name"), "queue");
    assert_near(number(json_object_get(e, "args"), "value"), 4, 0);
    assert_null(nth(root, "C", 1)); /* JSON has no NaN */
    assert_string_equal(text(nth(root, "i", 0), "name"), "epoch 1");
    assert_string_equal(text(nth(root, "i", 0), "s"), "t");
    assert_string_equal(text(nth(root, "i", 1), "name"), "step");
    assert_string_equal(text(nth(root, "i", 1), "s"), "p");
    assert_near(number(json_object_get(nth(root, "i", 1), "args"), "samples"), 32, 0);
    json_decref(root);
}

static void span_event(unsigned kind, uint64_t id, int64_t ns, unsigned lane)
{
    fake_event(t, (struct trace_event){ .kind = TRACE_SPAN,
                                        .sub = kind,
                                        .site = span,
                                        .number = id,
                                        .time_ns = START + ns,
                                        .lane = lane,
                                        .active_ns = 300,
                                        .wall_ns = kind == SPAN_END ? 1000 : 0 });
}

static void spans_are_pairs_whatever_thread_they_end_on(void **state)
{
    (void)state;
    struct export_totals totals;
    span_event(SPAN_END, 1, 2000, 0); /* began on lane 1, read later */
    span_event(SPAN_BEGIN, 2, 2500, 0);
    span_event(SPAN_BEGIN, 1, 1000, 1);
    span_event(SPAN_SUSPEND, 1, 1200, 1);
    event(TRACE_MARK, mark, 4000, 1);
    json_t *root = chrome(&totals);
    const json_t *b = nth(root, "b", 0);
    const json_t *e = nth(root, "e", 0);
    assert_near(number(b, "ts"), 1, 1e-9);
    assert_near(number(e, "ts"), 2, 1e-9);
    assert_string_equal(text(json_object_get(b, "id2"), "local"), "0x1");
    assert_string_equal(text(json_object_get(e, "id2"), "local"), "0x1");
    assert_near(number(json_object_get(e, "args"), "suspended_ms"), 700e-6, 1e-12);
    assert_non_null(nth(root, "n", 0));
    /* The one that never ended reaches to the last event. */
    b = nth(root, "b", 1);
    assert_string_equal(text(json_object_get(b, "id2"), "local"), "0x2");
    assert_true(json_is_true(json_object_get(json_object_get(b, "args"), "truncated")));
    assert_near(number(nth(root, "e", 1), "ts"), 4, 1e-9);
    assert_null(nth(root, "b", 2));
    assert_null(nth(root, "e", 2));
    json_decref(root);
}

static void processes_and_threads_have_names(void **state)
{
    (void)state;
    struct export_totals totals;
    json_t *root = chrome(&totals);
    assert_string_equal(text(nth(root, "M", 0), "name"), "process_name");
    assert_string_equal(text(json_object_get(nth(root, "M", 0), "args"), "name"),
                        "train");
    assert_string_equal(text(json_object_get(nth(root, "M", 2), "args"), "name"),
                        "loader");
    assert_near(number(nth(root, "M", 2), "tid"), 8, 0);
    json_decref(root);
}

/* Random begins and ends, some of them wrong: what comes out must be nested. */
static void whatever_comes_in_zones_are_nested(void **state)
{
    (void)state;
    const unsigned sites[] = { outer, inner, other };
    uint64_t s = 7;
    int64_t now = 0;
    for (int i = 0; i < 3000; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        now += (int64_t)(s >> 60) - 2; /* sometimes a step back */
        event(s >> 33 & 1 ? TRACE_BEGIN : TRACE_END, sites[(s >> 40) % 3], now, 0);
    }
    struct export_totals totals;
    json_t *root = chrome(&totals);
    const json_t *list = json_object_get(root, "traceEvents");
    size_t zones = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *x = json_array_get(list, i);
        if (strcmp(text(x, "ph"), "X") != 0)
            continue;
        zones++;
        const double from = number(x, "ts");
        const double to = from + number(x, "dur");
        assert_true(number(x, "dur") >= 0);
        for (size_t k = i + 1; k < json_array_size(list); k++) {
            const json_t *y = json_array_get(list, k);
            if (strcmp(text(y, "ph"), "X") != 0)
                continue;
            const double from2 = number(y, "ts");
            const double to2 = from2 + number(y, "dur");
            const bool apart = to <= from2 + 1e-9 || to2 <= from + 1e-9;
            const bool inside = from2 < from && to <= to2 + 1e-9;
            const bool around = from < from2 && to2 <= to + 1e-9;
            if (!apart && !inside && !around)
                fail_msg("%f–%f and %f–%f", from, to, from2, to2);
        }
    }
    assert_true(zones > 500);
    assert_int_equal(zones, totals.zones);
    json_decref(root);
}

static void a_trace_that_cannot_be_read_is_counted(void **state)
{
    (void)state;
    struct export_totals totals;
    struct trace *bad = fake_trace("0002-9-b.sonde", 9);
    bad->open_error = SONDE_E_FORMAT;
    event(TRACE_BEGIN, outer, 1, 0);
    event(TRACE_END, outer, 2, 0);
    json_t *root = chrome(&totals);
    assert_int_equal(totals.traces, 1);
    assert_int_equal(totals.unreadable, 1);
    json_decref(root);
}

static void json_lines_hold_one_zone_each(void **state)
{
    (void)state;
    struct export_totals totals;
    char line[1024];
    size_t lines = 0;
    event(TRACE_BEGIN, outer, 1000, 0);
    event(TRACE_BEGIN, inner, 2000, 0);
    event(TRACE_END, inner, 3000, 0);
    event(TRACE_END, outer, 4000, 0);
    struct run *run = open_run();
    FILE *f = tmpfile();
    assert_int_equal(
        export_jsonl(&(struct export_job){ .run = run, .out = f, .what = EXPORT_ZONES },
                     &totals),
        0);
    rewind(f);
    while (fgets(line, sizeof(line), f)) {
        json_t *zone = json_loads(line, 0, NULL);
        assert_true(json_is_object(zone));
        if (lines++ == 1) {
            assert_string_equal(text(zone, "name"), "outer");
            assert_near(number(zone, "duration_ms"), 0.003, 1e-12);
            assert_near(number(zone, "start_s"), 1e-6, 1e-15);
            assert_string_equal(text(zone, "phase"), "forward");
        }
        json_decref(zone);
    }
    assert_int_equal(lines, 2);
    (void)fclose(f);
    run_free(run);
}

static void the_skeleton_works(void **state)
{
    (void)state;
    struct export_totals totals;
    char line[256];
    event(TRACE_BEGIN, outer, 1000, 0);
    event(TRACE_END, outer, 4000, 0);
    struct run *run = open_run();
    FILE *f = tmpfile();
    assert_int_equal(
        export_skeleton(&(struct export_job){ .run = run, .out = f }, &totals), 0);
    rewind(f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_string_equal(line, "1000 3000 7 7 outer\n");
    (void)fclose(f);
    run_free(run);
}

static void exporters_are_found_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < exporter_count; i++)
        assert_ptr_equal(exporter_find(exporters[i].name), &exporters[i]);
    assert_null(exporter_find("nonsense"));
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    struct export_totals totals;
    for (int i = 0; i < 1000; i++) {
        event(TRACE_BEGIN, outer, i * 10, 0);
        event(TRACE_END, outer, i * 10 + 5, 0);
    }
    struct run *run = open_run();
    FILE *f = fopen("/dev/full", "w");
    assert_non_null(f);
    assert_int_equal(
        export_chrome(&(struct export_job){ .run = run, .out = f }, &totals), -ENOSPC);
    (void)fclose(f);
    run_free(run);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(zones_become_complete_events_to_the_nanosecond),
        TEST(a_zone_open_at_death_is_marked_truncated),
        TEST(counters_marks_and_steps_find_their_forms),
        TEST(spans_are_pairs_whatever_thread_they_end_on),
        TEST(processes_and_threads_have_names),
        TEST(whatever_comes_in_zones_are_nested),
        TEST(a_trace_that_cannot_be_read_is_counted),
        TEST(json_lines_hold_one_zone_each),
        TEST(the_skeleton_works),
        TEST(exporters_are_found_by_name),
        TEST(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
