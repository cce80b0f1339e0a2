/* compare_test.c: what a comparison says of runs whose numbers are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "analyse/compare.h"
#include "num/prng.h"

struct side {
    struct report report;
    struct run run;
    struct run_pair params[2];
    struct op_value metrics;
};

static double noise(struct prng *r)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += prng_double(r);
    return sum;
}

/* A run of 200 points of steps of `mean` ns, each off by `spread` of that. */
static void make(struct side *s, const char *id, double mean, double spread,
                 uint64_t seed)
{
    struct prng r;
    prng_init(&r, seed);
    memset(s, 0, sizeof *s);
    run_meta_init(&s->run.meta);
    s->run.id = id;
    s->report.run = &s->run;
    s->report.start_ns = 1700000000000000000;
    s->report.end_ns = s->report.start_ns + 10000000000;
    struct step_series *series = &s->report.series;
    series->count = 200;
    series->steps = 200;
    series->per_point = 1;
    for (size_t i = 0; i < series->count; i++)
        series->points[i].mean_ns = mean * (1 + spread * noise(&r));
    s->report.steps.calls = 201;
    s->report.steps.durations.count = 200;
    s->report.steps.durations.mean = mean;
    s->report.steps.total_ns = mean * 200;
    s->report.energy.joules = NAN;
}

static void set_hardware(struct side *s, const char *cpu)
{
    s->run.meta.root = json_pack("{s:{s:s,s:i}}", "hardware", "cpu", cpu, "cores", 2);
    assert_non_null(s->run.meta.root);
}

static struct comparison *compared(struct side *a, struct side *b)
{
    struct comparison *c = NULL;
    const struct report *runs[] = { &a->report, &b->report };
    assert_int_equal(compare_runs(runs, 2, NULL, &c), 0);
    return c;
}

static const struct compare_row *row(const struct comparison *c, const char *name)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (strcmp(c->rows[i].name, name) == 0)
            return &c->rows[i];
    return NULL;
}

static void a_tenth_slower_is_seen_and_its_interval_holds_it(void **state)
{
    (void)state;
    struct side a, b;
    make(&a, "a", 10e6, 0.05, 1);
    make(&b, "b", 11e6, 0.05, 2);
    struct comparison *c = compared(&a, &b);
    const struct compare_cell *cell = &row(c, "step time")->cells[1];
    assert_true(compare_cell_differs(cell));
    assert_true(cell->low < 1.1 && cell->high > 1.1);
    assert_true(cell->high - cell->low < 0.05);
    assert_non_null(strstr(c->verdict, "slower"));
    comparison_free(c);
}

/* 95 % intervals: of 400 pairs alike, about 20 are called different. */
static void runs_alike_are_called_different_as_seldom_as_promised(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (uint64_t i = 0; i < 400; i++) {
        struct side a, b;
        make(&a, "a", 10e6, 0.2, 1000 + 2 * i);
        make(&b, "b", 10e6, 0.2, 1001 + 2 * i);
        struct comparison *c = compared(&a, &b);
        wrong += compare_cell_differs(&row(c, "step time")->cells[1]);
        comparison_free(c);
    }
    assert_in_range(wrong, 5, 36);
}

/* Steps that come in long slow and fast stretches say less than their number. */
static void stretches_of_slow_steps_widen_the_interval(void **state)
{
    (void)state;
    struct side a, b;
    make(&a, "a", 10e6, 0.1, 1);
    make(&b, "b", 10e6, 0.1, 2);
    struct comparison *c = compared(&a, &b);
    const struct compare_cell steady = row(c, "step time")->cells[1];
    comparison_free(c);
    for (size_t i = 0; i < 200; i++)
        b.report.series.points[i].mean_ns = (i / 50 % 2) ? 11e6 : 9e6;
    c = compared(&a, &b);
    const struct compare_cell waves = row(c, "step time")->cells[1];
    comparison_free(c);
    assert_true(waves.high - waves.low > 2 * (steady.high - steady.low));
}

static void other_hardware_gets_no_verdict_on_speed(void **state)
{
    (void)state;
    struct side a, b;
    make(&a, "a", 10e6, 0.05, 1);
    make(&b, "b", 20e6, 0.05, 2);
    set_hardware(&a, "EPYC");
    set_hardware(&b, "Xeon");
    struct comparison *c = compared(&a, &b);
    assert_false(c->same_hardware);
    assert_non_null(strstr(c->verdict, "No verdict"));
    assert_int_equal(c->difference_count, 1);
    assert_string_equal(c->differences[0].name, "cpu");
    assert_string_equal(c->differences[0].values[1], "Xeon");
    comparison_free(c);
    json_decref(a.run.meta.root);
    json_decref(b.run.meta.root);
}

static void what_is_unknown_has_no_ratio(void **state)
{
    (void)state;
    struct side a, b;
    make(&a, "a", 10e6, 0.05, 1);
    make(&b, "b", 10e6, 0.05, 2);
    a.report.allocations.known = true;
    a.report.allocations.count = 1000;
    struct comparison *c = compared(&a, &b);
    const struct compare_row *r = row(c, "allocations");
    assert_true(r->cells[0].value == 1000);
    assert_true(isnan(r->cells[1].value) && isnan(r->cells[1].ratio));
    assert_null(row(c, "energy"));
    comparison_free(c);
}

static void the_best_batch_and_what_a_second_bought_are_named(void **state)
{
    (void)state;
    struct side a, b;
    make(&a, "a", 10e6, 0.05, 1);
    make(&b, "b", 15e6, 0.05, 2);
    a.params[0] = (struct run_pair){ "batch", "32" };
    b.params[0] = (struct run_pair){ "batch", "64" };
    a.report.params = a.params;
    b.report.params = b.params;
    a.report.param_count = b.report.param_count = 1;
    a.report.steps.samples = 201 * 32;
    b.report.steps.samples = 201 * 64;
    a.report.steps.first_ns = b.report.steps.first_ns = 1;
    a.report.steps.last_ns = 1 + (int64_t)(200 * 10e6);
    b.report.steps.last_ns = 1 + (int64_t)(200 * 15e6);
    a.metrics = (struct op_value){ .name = "accuracy", .count = 1, .last = 0.5 };
    b.metrics = (struct op_value){ .name = "accuracy", .count = 1, .last = 0.8 };
    a.report.metrics = &a.metrics;
    b.report.metrics = &b.metrics;
    struct comparison *c = compared(&a, &b);
    assert_non_null(strstr(c->batch, "64 gives the most"));
    const struct compare_row *r = row(c, "accuracy per second");
    assert_true(fabs(r->cells[0].value - 0.05) < 1e-9);
    assert_true(fabs(r->cells[1].ratio - 1.6) < 1e-9);
    comparison_free(c);
}

static void one_run_is_no_comparison(void **state)
{
    (void)state;
    struct side a;
    struct comparison *c = NULL;
    make(&a, "a", 10e6, 0.05, 1);
    const struct report *runs[] = { &a.report };
    assert_true(compare_runs(runs, 1, NULL, &c) < 0);
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenth_slower_is_seen_and_its_interval_holds_it),
        cmocka_unit_test(runs_alike_are_called_different_as_seldom_as_promised),
        cmocka_unit_test(stretches_of_slow_steps_widen_the_interval),
        cmocka_unit_test(other_hardware_gets_no_verdict_on_speed),
        cmocka_unit_test(what_is_unknown_has_no_ratio),
        cmocka_unit_test(the_best_batch_and_what_a_second_bought_are_named),
        cmocka_unit_test(one_run_is_no_comparison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
