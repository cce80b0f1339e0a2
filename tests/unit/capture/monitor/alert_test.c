/* Alert expressions: what they mean, and where they are wrong. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "capture/monitor/alert.h"

static struct alert_rule rule;
static struct alert_error error;

static void reads(const char *text)
{
    if (alert_parse(text, &rule, &error) < 0)
        fail_msg("%s: at %zu: %s", text, error.position, error.message);
    assert_string_equal(rule.text, text);
}

static void is_wrong(const char *text, size_t position, const char *message)
{
    assert_int_equal(alert_parse(text, &rule, &error), -EINVAL);
    if (error.position != position || !strstr(error.message, message))
        fail_msg("%s: at %zu: %s", text, error.position, error.message);
}

static void the_examples_of_the_documents_are_understood(void **state)
{
    (void)state;
    reads("cpu>80%:10s");
    assert_string_equal(rule.source, "cpu_system");
    assert_true(rule.of_all_cores && rule.whole_only);
    assert_int_equal(rule.op, ALERT_ABOVE);
    assert_near(rule.threshold, 80, 0);
    assert_int_equal(rule.duration_ns, 10000000000);

    reads("memory>16GiB");
    assert_string_equal(rule.source, "rss");
    assert_near(rule.threshold, 16384, 0);
    assert_string_equal(rule.unit, "MiB");
    assert_int_equal(rule.duration_ns, 0);

    reads("gpu_memory>90%");
    assert_string_equal(rule.source, "gpu_memory_percent");
    reads("gpu_temp>=85C:30s");
    assert_int_equal(rule.op, ALERT_AT_LEAST);
    assert_string_equal(rule.unit, "C");
    reads("batch>100ms");
    assert_true(rule.from_trace);
    assert_near(rule.threshold, 0.1, 1e-15);
}

static void a_word_means_what_its_unit_says(void **state)
{
    (void)state;
    reads("memory > 85 % : 500ms");
    assert_string_equal(rule.source, "memory_used");
    assert_string_equal(rule.share_of, "memory_total");
    assert_int_equal(rule.duration_ns, 500000000);
    reads("gpu_memory gpu1>70GB");
    assert_string_equal(rule.source, "gpu_memory");
    assert_string_equal(rule.subject, "gpu1");
    assert_near(rule.threshold, 70 * 1024, 0);
    reads("cpu>80"); /* of what else */
    assert_string_equal(rule.unit, "percent");
    reads("cpu 4242 > 350%"); /* a process: of one core */
    assert_string_equal(rule.source, "cpu");
    assert_false(rule.of_all_cores);
}

static void any_metric_of_a_monitor_may_be_used(void **state)
{
    (void)state;
    reads("load>32");
    assert_string_equal(rule.source, "load");
    assert_ptr_equal(rule.source, rule.metric); /* not into the parser's stack */
    assert_string_equal(rule.unit, "");
    reads("disk_read nvme0n1<0.5MiB/s:1m");
    assert_string_equal(rule.unit, "MiB/s");
    assert_int_equal(rule.duration_ns, 60000000000);
    reads("temp package-0 >= -5.5 °C");
    assert_near(rule.threshold, -5.5, 0);
    reads("gpu_clock<=1.2GHz:10s");
    assert_near(rule.threshold, 1200, 1e-9);
}

static void mistakes_are_shown_where_they_are(void **state)
{
    (void)state;
    is_wrong("", 1, "expected a metric");
    is_wrong("cpu", 4, "expected >");
    is_wrong("cpu=80%", 4, "expected >, >=, < or <=");
    is_wrong("cpu>", 5, "expected a number");
    is_wrong("cpu>x", 5, "expected a number");
    is_wrong("cpu>80.%", 5, "not a number");
    is_wrong("cpu>1.2.3%", 5, "not a number");
    is_wrong("cpu>80furlongs", 7, "unknown unit 'furlongs'");
    is_wrong("cpu>80GiB", 7, "cpu is not measured in 'GiB'");
    is_wrong("memory>16", 10, "wants a unit");
    is_wrong("batch>100", 10, "us, ms or s");
    is_wrong("memory 4242>5%", 14, "the machine's");
    is_wrong("cpu>80%:", 9, "expected a duration");
    is_wrong("cpu>80%:10", 9, "such as 10s");
    is_wrong("cpu>80% 10s", 9, "expected ':'");
    is_wrong("cpu gpu0 extra>5", 10, "expected >");
    is_wrong("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>5", 1, "longer than");
}

static void the_reference_set_is_well_formed(void **state)
{
    (void)state;
    size_t count = 0;
    for (; alert_reference[count]; count++)
        reads(alert_reference[count]);
    assert_int_equal(count, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_documents_are_understood),
        cmocka_unit_test(a_word_means_what_its_unit_says),
        cmocka_unit_test(any_metric_of_a_monitor_may_be_used),
        cmocka_unit_test(mistakes_are_shown_where_they_are),
        cmocka_unit_test(the_reference_set_is_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
