/* What a gate can compare, by name. */
#include "cli/measures.h"

#include <math.h>
#include <string.h>

#include "unit.h"

static void names_say_which_run_they_need(void **state)
{
    static const struct {
        const char *name;
        enum measure_source source;
    } rows[] = {
        { "wall", MEASURE_PLAIN },          { "syscalls", MEASURE_COUNTED },
        { "flops", MEASURE_PROFILED },      { "allocations", MEASURE_PROFILED },
        { "calls.load", MEASURE_PROFILED }, { "metrics.loss", MEASURE_PROFILED },
    };
    struct measure m;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(measure_find(rows[i].name, &m));
        assert_string_equal(m.name, rows[i].name);
        assert_int_equal(m.source, rows[i].source);
    }
    assert_true(measure_find("samples_per_s", &m) && m.more_is_better);
    assert_true(measure_find("calls", &m) && !m.more_is_better);
}

static void other_words_mean_the_same(void **state)
{
    struct measure m;
    (void)state;
    assert_true(measure_find("bytes", &m));
    assert_string_equal(m.name, "allocated_bytes");
    assert_true(measure_find("FLOPs", &m));
    assert_string_equal(m.name, "flops");
}

static void what_is_no_name_is_told(void **state)
{
    static const char *const wrong[] = { "",         "syscals", "calls.",
                                         "metrics.", "Wall",    "zones.x" };
    struct measure m;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(measure_find(wrong[i], &m));
}

static struct op_value value(const char *name, double last)
{
    return (struct op_value){ .name = name, .last = last };
}

static void flops_are_the_total_told_or_those_of_all_steps(void **state)
{
    struct op_value each = value("flops_per_step", 1e9), all = value("flops", 7e12);
    struct report r = { .steps = { .calls = 20 } };
    (void)state;
    assert_true(isnan(measure_of_report(&r, "flops")));
    r.metrics = &each;
    assert_true(measure_of_report(&r, "flops") == 20e9);
    each.next = &all;
    assert_true(measure_of_report(&r, "flops") == 7e12);
    r.metrics = NULL;
    r.counters = &each;
    each.next = NULL;
    assert_true(measure_of_report(&r, "flops") == 20e9);
    r.steps.calls = 0; /* of one step is not of none */
    assert_true(isnan(measure_of_report(&r, "flops")));
}

static void what_was_not_recorded_is_not_zero(void **state)
{
    static const char *const names[] = {
        "allocations", "allocated_bytes", "io_calls", "io_bytes",  "calls", "calls.x",
        "time.x",      "steps",           "syscalls", "metrics.x", "flops"
    };
    const struct report r = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(isnan(measure_of_report(&r, names[i])));
        assert_true(measure_hint(names[i])[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_which_run_they_need),
        cmocka_unit_test(other_words_mean_the_same),
        cmocka_unit_test(what_is_no_name_is_told),
        cmocka_unit_test(flops_are_the_total_told_or_those_of_all_steps),
        cmocka_unit_test(what_was_not_recorded_is_not_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
