/* When alerts fire and when they are over. */
#include "unit.h"

#include <dirent.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "capture/monitor/alert_api.h"
#include "capture/monitor/collect.h"
#include "trace/tables.h"

static struct alerts *alerts;
static struct collect forwarded;
static struct monitor_sink *sink;
static char dir[64];
static uint64_t now_ns;
static unsigned fired, cleared;
static struct sonde_alert last;

static void count(const struct sonde_alert *alert, void *arg)
{
    assert_ptr_equal(arg, &last);
    fired += alert->active == 1;
    cleared += alert->active == 0;
    last = *alert;
}

static void watch(const char *expression)
{
    struct alert_error error;
    assert_int_equal(alerts_add(alerts, expression, count, &last, &error), 0);
}

static void set(const char *metric, const char *subject, const char *unit, double value)
{
    sink->set(sink, metric, subject, unit, value);
    alerts_deliver(alerts);
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
    set("load", "", "1", value);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(unit_temp_dir(dir));
    const struct alerts_options options = { .dir = dir,
                                            .interval_ns = 1000000000,
                                            .cores = 8 };
    assert_int_equal(alerts_new(&options, &alerts), 0);
    collect_init(&forwarded);
    sink = alerts_sink(alerts, &forwarded.sink);
    now_ns = 5000000000;
    fired = cleared = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    alert_api_detach(alerts);
    alerts_free(alerts);
    return file_remove_tree(dir);
}

static void without_duration_the_first_bad_value_fires(void **state)
{
    (void)state;
    watch("load>10");
    load(10);
    assert_int_equal(fired, 0); /* above means above */
    load(10.5);
    assert_int_equal(fired, 1);
    assert_near(last.value, 10.5, 0);
    load(90);
    load(50);
    assert_int_equal(fired, 1);
    assert_near(collected(&forwarded, "load"), 10, 0); /* all was passed on */
    assert_int_equal(forwarded.count, 4);
}

static void with_a_duration_the_condition_must_have_held(void **state)
{
    (void)state;
    watch("load>10:3s");
    load(20);
    load(20);
    load(5); /* it begins anew */
    load(20);
    load(30);
    load(20);
    assert_int_equal(fired, 0);
    load(20);
    assert_int_equal(fired, 1);
    assert_near(last.seconds, 3, 1e-9);
    assert_near(last.peak, 30, 0);
}

static void a_value_that_sways_around_the_threshold_is_one_alert(void **state)
{
    (void)state;
    watch("load>100:2s");
    for (int i = 0; i < 4; i++)
        load(101);
    for (int i = 0; i < 200; i++)
        load(i % 2 ? 101 : 97); /* below, but not by 5 % */
    assert_int_equal(fired, 1);
    assert_int_equal(cleared, 0);
    load(90);
    assert_int_equal(cleared, 0); /* two of them */
    load(90);
    assert_int_equal(cleared, 1);
    load(90);
    assert_int_equal(cleared, 1);
}

static void it_clears_after_half_its_duration(void **state)
{
    (void)state;
    watch("load<5:10s");
    for (int i = 0; i < 11; i++)
        load(1);
    assert_int_equal(fired, 1);
    for (int i = 0; i < 5; i++)
        load(50);
    assert_int_equal(cleared, 0);
    load(50);
    assert_int_equal(cleared, 1);
    assert_near(last.peak, 1, 0); /* the worst is the lowest */
}

static void a_pause_is_not_time_in_which_the_condition_held(void **state)
{
    (void)state;
    watch("load>10:60s");
    load(20);
    load(20);
    now_ns += 3600000000000; /* the lid was closed */
    load(20);
    assert_int_equal(fired, 0);
    for (int i = 0; i < 59; i++)
        load(20);
    assert_int_equal(fired, 0);
    load(20);
    assert_int_equal(fired, 1);
    now_ns += 3600000000000;
    load(20);
    load(20);
    assert_int_equal(cleared, 0); /* it is still so */
}

static void a_slow_monitor_is_no_pause(void **state)
{
    (void)state;
    watch("gpu_energy>5J:30s");
    for (int i = 0; i < 5; i++) {
        for (int round = 0; round < 10; round++)
            next_round();
        set("gpu_energy", "gpu0", "J", 10);
    }
    assert_int_equal(fired, 1);
    assert_near(last.seconds, 30, 1e-9);
    assert_int_equal(cleared, 0);
}

static void what_is_no_longer_measured_is_over(void **state)
{
    (void)state;
    watch("gpu_temp>80C");
    next_round();
    set("gpu_temp", "gpu0", "C", 90);
    next_round();
    set("gpu_temp", "gpu0", "C", 91);
    assert_int_equal(fired, 1);
    for (int i = 0; i < 10; i++)
        load(1);
    assert_int_equal(cleared, 1);
    assert_near(last.value, 91, 0);
}

static void a_function_is_called_after_the_round_not_in_it(void **state)
{
    (void)state;
    watch("load>10");
    next_round();
    sink->set(sink, "load", "", "1", 20);
    assert_int_equal(fired, 0);
    alerts_deliver(alerts);
    alerts_deliver(alerts);
    assert_int_equal(fired, 1);
}

static void every_card_has_a_state_of_its_own(void **state)
{
    (void)state;
    watch("gpu_memory>90%");
    next_round();
    set("gpu_memory_percent", "gpu0", "percent", 95);
    set("gpu_memory_percent", "gpu1", "percent", 20);
    set("gpu_memory_percent", "gpu2", "percent", 99);
    assert_int_equal(fired, 2);
    assert_string_equal(last.subject, "gpu2");
}

static void shares_are_of_the_whole_machine(void **state)
{
    (void)state;
    watch("cpu>80%");
    watch("memory>50%");
    next_round();
    set("cpu_system", "", "percent", 640); /* of 8 cores: exactly 80 */
    set("memory_used", "", "MiB", 900);    /* of what is not known yet */
    set("memory_total", "", "MiB", 1000);
    assert_int_equal(fired, 0);
    next_round();
    set("cpu_system", "", "percent", 648);
    assert_int_equal(fired, 1);
    assert_near(last.value, 81, 1e-9);
    set("memory_used", "", "MiB", 900);
    assert_int_equal(fired, 2);
    assert_near(last.value, 90, 1e-9);
}

static struct tablefile *reopened(void)
{
    struct tablefile *file = NULL;
    char path[400];
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        if (tablefile_is_name(e->d_name, ALERT_KIND)) {
            (void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            assert_int_equal(tablefile_open(path, &file), 0);
        }
    (void)closedir(d);
    assert_non_null(file);
    return file;
}

static void what_fired_is_in_the_file_at_once(void **state)
{
    (void)state;
    struct alert_rule_row rule;
    struct alert_row row;
    watch("load>10:2s");
    watch("memory>1GiB");
    watch("gpu_power>5"); /* in W */
    load(20);
    load(40);
    load(30);
    set("rss", "", "MiB", 5000);
    struct tablefile *file = reopened();
    assert_true(tablefile_get(file, 1, 0, &rule, sizeof rule));
    assert_string_equal(tablefile_text(file, rule.text), "load>10:2s");
    assert_int_equal(rule.compared, 3);
    assert_int_equal(rule.fired, 1);
    assert_true(tablefile_get(file, 2, 0, &row, sizeof row));
    assert_int_equal(row.rule, 0);
    assert_int_equal(row.fired_ns - row.since_ns, 2000000000);
    assert_int_equal(row.cleared_ns, 0);
    assert_near(row.peak, 40, 0);
    assert_true(tablefile_get(file, 2, 1, &row, sizeof row));
    assert_int_equal(row.rule, 1);
    assert_true(tablefile_get(file, 1, 2, &rule, sizeof rule));
    assert_int_equal(rule.compared, 0); /* so that the report can say so */
    tablefile_free(file);

    load(1);
    load(1);
    file = reopened();
    assert_true(tablefile_get(file, 2, 0, &row, sizeof row));
    assert_int_equal(row.end, ALERT_CLEARED);
    assert_int_equal(row.cleared_ns, now_ns - 1000000000); /* when it became well */
    tablefile_free(file);
}

static void a_unit_that_does_not_fit_is_remembered(void **state)
{
    (void)state;
    struct alert_rule_row rule;
    watch("pss>50%");
    next_round();
    set("pss", "", "MiB", 4000);
    assert_int_equal(fired, 0);
    struct tablefile *file = reopened();
    assert_true(tablefile_get(file, 1, 0, &rule, sizeof rule));
    assert_int_equal(rule.compared, 0);
    assert_string_equal(tablefile_text(file, rule.other_unit), "MiB");
    tablefile_free(file);
}

static void the_reference_set_is_thirteen_rules(void **state)
{
    (void)state;
    watch("reference");
    assert_int_equal(alerts_count(alerts), 13);
    next_round();
    set("rss", "", "MiB", 17 * 1024);
    assert_int_equal(fired, 1);
    assert_string_equal(last.expression, "memory>16GiB");
}

static void there_is_room_for_64_rules(void **state)
{
    (void)state;
    struct alert_error error;
    for (int i = 0; i < 64; i++)
        watch("load>1");
    assert_int_equal(alerts_add(alerts, "load>1", NULL, NULL, &error), SONDE_E_LIMIT);
    assert_non_null(strstr(error.message, "64"));
}

static void the_programs_own_alerts_join_at_the_next_round(void **state)
{
    (void)state;
    assert_int_equal(sonde_alert_add("load>>1", count, &last), -22);
    assert_string_equal(sonde_alert_error(),
                        "character 6: expected a number such as 80 "
                        "or 0.5");
    assert_int_equal(sonde_alert_add("load>1", count, &last), 0);
    assert_string_equal(sonde_alert_error(), "");
    assert_int_equal(alert_api_attach(alerts), 1);
    assert_int_equal(alert_api_attach(alerts), 0);
    load(2);
    assert_int_equal(fired, 1);
    assert_int_equal(sonde_alert_add("load>100", count, &last), 0);
    assert_int_equal(alert_api_attach(alerts), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_duration_the_first_bad_value_fires),
        TEST(with_a_duration_the_condition_must_have_held),
        TEST(a_value_that_sways_around_the_threshold_is_one_alert),
        TEST(it_clears_after_half_its_duration),
        TEST(a_pause_is_not_time_in_which_the_condition_held),
        TEST(a_slow_monitor_is_no_pause),
        TEST(what_is_no_longer_measured_is_over),
        TEST(a_function_is_called_after_the_round_not_in_it),
        TEST(every_card_has_a_state_of_its_own),
        TEST(shares_are_of_the_whole_machine),
        TEST(what_fired_is_in_the_file_at_once),
        TEST(a_unit_that_does_not_fit_is_remembered),
        TEST(the_reference_set_is_thirteen_rules),
        TEST(there_is_room_for_64_rules),
        TEST(the_programs_own_alerts_join_at_the_next_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
