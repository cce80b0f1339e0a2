/* Alerts of a run, read from its directory. */
#include "unit.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "analyse/report.h"
#include "base/buf.h"
#include "base/files.h"
#include "capture/monitor/alerts.h"
#include "present/report/report.h"

static char dir[64];
static struct alerts *alerts;
static struct monitor_sink *sink;
static uint64_t now_ns;
static struct run *run;
static struct report *r;

static uint64_t clock_now(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(unit_temp_dir(dir));
    const struct alerts_options options = { .dir = dir, .interval_ns = 1000000000 };
    assert_int_equal(alerts_new(&options, &alerts), 0);
    sink = alerts_sink(alerts, NULL);
    now_ns = clock_now(CLOCK_MONOTONIC);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    report_free(r);
    run_free(run);
    r = NULL;
    run = NULL;
    alerts_free(alerts);
    alerts = NULL;
    return file_remove_tree(dir);
}

static void watch(const char *expression)
{
    struct alert_error error;
    assert_int_equal(alerts_add(alerts, expression, NULL, NULL, &error), 0);
}

/* A second passes. */
static void next_round(void)
{
    static struct monitor_round round;
    round = (struct monitor_round){ .now_ns = now_ns += 1000000000 };
    alerts_round(alerts, &round);
}

static void load(double value)
{
    next_round();
    sink->set(sink, "load", "", "1", value);
}

/* The run began with the first sample and has ended now. */
static void report_it(unsigned seconds)
{
    struct buf text = BUF_INIT;
    struct buf path = BUF_INIT;
    const uint64_t start = clock_now(CLOCK_REALTIME);
    buf_printf(&text,
               "{\"schema\":\"sonde.run/1\",\"id\":\"x\",\"started_ns\":%llu,"
               "\"ended_ns\":%llu,\"exit\":{\"code\":0,\"signal\":null,"
               "\"cause\":\"ok\"}}",
               (unsigned long long)start,
               (unsigned long long)(start + seconds * 1000000000ull));
    path_join(&path, dir, "run.json");
    assert_int_equal(file_write_atomic(path.data, text.data, text.len, 0600), 0);
    buf_release(&text);
    buf_release(&path);
    assert_int_equal(run_open(dir, &run), 0);
    assert_int_equal(report_build(run, &r), 0);
}

static void what_fired_has_its_moments_and_its_worst(void **state)
{
    (void)state;
    watch("load>10:2s");
    for (int i = 0; i < 4; i++)
        load(20 + i);
    load(1);
    load(1);
    load(50); /* again, and not over */
    load(60);
    load(55);
    report_it(20);

    assert_int_equal(r->alerts.rule_count, 1);
    assert_int_equal(r->alerts.event_count, 2);
    const struct alert_event *first = &r->alerts.events[0];
    const struct alert_event *second = &r->alerts.events[1];
    assert_string_equal(first->state, "cleared");
    assert_int_equal(first->fired_ns - first->since_ns, 2000000000);
    assert_int_equal(first->cleared_ns - first->since_ns, 4000000000);
    assert_near(first->peak, 23, 0);
    assert_string_equal(second->state, "open");
    assert_int_equal(second->cleared_ns, 0);
    assert_near((double)(first->since_ns - r->start_ns), 1e9, 2e8);

    const struct alert_rule_state *rule = &r->alerts.rules[0];
    assert_string_equal(rule->expression, "load>10:2s");
    assert_int_equal(rule->fired, 2);
    assert_int_equal(rule->compared, 9);
    assert_near(rule->peak, 60, 0);
    assert_near(rule->fired_s, 4 + 13, 0.3); /* the second to the end of the run */
    assert_string_equal(rule->unheard, "");
}

static void rules_that_could_not_fire_are_told_apart_from_quiet_ones(void **state)
{
    (void)state;
    watch("load>10");
    watch("lode>10");
    watch("load>50%");
    watch("batch>1ms");
    load(1);
    report_it(1);
    assert_string_equal(r->alerts.rules[0].unheard, "");
    assert_string_equal(r->alerts.rules[1].unheard, "lode was not measured");
    assert_string_equal(r->alerts.rules[2].unheard, "load is measured in 1");
    assert_non_null(strstr(r->alerts.rules[3].unheard, "no steps"));
    assert_int_equal(r->alerts.event_count, 0);
}

static void the_text_names_the_worst(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    watch("gpu_memory>90%");
    watch("load>10");
    next_round();
    sink->set(sink, "gpu_memory_percent", "gpu0", "percent", 91);
    sink->set(sink, "gpu_memory_percent", "gpu3", "percent", 99);
    load(1);
    report_it(5);
    FILE *out = open_memstream(&text, &len);
    const struct report_style style = { .unicode = true };
    assert_int_equal(report_text(r, &style, out), 0);
    (void)fclose(out);
    assert_non_null(strstr(text, "gpu_memory>90% · fired 2×, peak 99 % · gpu3"));
    assert_non_null(strstr(text, "1 quiet"));
    assert_near(r->alerts.rules[0].fired_s, 4, 0.3); /* not eight: at the same time */
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_fired_has_its_moments_and_its_worst),
        TEST(rules_that_could_not_fire_are_told_apart_from_quiet_ones),
        TEST(the_text_names_the_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
