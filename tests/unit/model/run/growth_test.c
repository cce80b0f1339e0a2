/* What is made of the points of a scaling experiment, from times that are known. */
#include "model/run/growth.h"

#include <math.h>
#include <string.h>

#include "unit.h"

static struct scaling *made(enum axis axis)
{
    static const uint64_t sizes[] = { 100, 500, 1000, 2000 };
    struct scaling *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->axis = axis;
    s->count = 4;
    for (size_t i = 0; i < s->count; i++) {
        struct scale_point *p = &s->points[i];
        const double n = (double)sizes[i], ms = 2 + 0.01 * n + 3e-5 * n * n;
        p->at.size = sizes[i];
        p->measured = true;
        p->m.kept_count = 4;
        p->m.encode_ms = NAN;
        for (int pass = 0; pass < PASS_COUNT; pass++) {
            for (int k = 0; k < 4; k++) /* the last one was disturbed */
                p->m.kept[pass][k] = ms * (k == 3 ? 5 : 1);
            assert_int_equal(summary_compute(p->m.kept[pass], 4, 1, &p->m.passes[pass]),
                             0);
        }
        p->m.best_parts[PART_MESSAGE] = 0.02 * n;
        p->m.best_parts[PART_ATTENTION] = 5e-5 * n * n; /* as much at n = 400 */
        p->m.best_inner[INNER_PAIRS] = 4e-5 * n * n;
        p->m.best_inner[INNER_MESSAGES] = 3 + 0.001 * n; /* mostly constant */
    }
    return s;
}

static const struct curve *curve(const struct scaling *s, const char *name)
{
    for (size_t i = 0; i < s->curve_count; i++)
        if (strcmp(s->curves[i].name, name) == 0)
            return &s->curves[i];
    fail_msg("no curve %s", name);
    return NULL;
}

static void exponents_are_those_of_the_times(void **state)
{
    (void)state;
    struct scaling *s = made(AXIS_NODES);
    growth_fit(s);
    assert_near(curve(s, "mpnn")->exponent.value, 1, 1e-9);
    assert_near(curve(s, "attention pairs")->exponent.value, 2, 1e-9);
    const struct curve *step = curve(s, "training_step");
    assert_true(step->exponent.low < step->exponent.value);
    assert_int_equal(step->local[0].points, 0);
    assert_near(curve(s, "attention")->local[2].value, 2, 1e-9);
    free(s);
}

static void a_constant_does_not_flatten_the_exponent(void **state)
{
    (void)state;
    struct scaling *s = made(AXIS_NODES);
    growth_fit(s);
    const struct curve *c = curve(s, "messages");
    assert_true(c->exponent.value < 0.2);
    assert_true(c->has_beyond);
    assert_near(c->beyond.exponent.value, 1, 1e-3);
    assert_near(c->beyond.constant, 3, 1e-2);
    c = curve(s, "attention pairs");
    assert_near(c->beyond.exponent.value, 2, 1e-3);
    free(s);
}

static void disturbed_repeats_do_not_bend_the_fit(void **state)
{
    (void)state;
    struct scaling *s = made(AXIS_NODES);
    growth_fit(s);
    /* Between 500 and 1000 of 2 + 0.01 N + 3e-5 N²; the disturbance hit all alike. */
    const double known = log(42 / 14.5) / log(2);
    assert_near(curve(s, "training_step")->local[2].value, known, 1e-6);
    assert_near(growth_at(curve(s, "attention")->mixture, 3000), 450, 1e-3);
    free(s);
}

static void attention_overtakes_messages_where_it_does(void **state)
{
    (void)state;
    struct scaling *s = made(AXIS_NODES);
    growth_fit(s);
    assert_true(s->has_crossing);
    assert_false(s->crossing_beyond);
    assert_near(s->crossing, 400, 0.1);
    free(s);
}

static void points_that_were_skipped_are_left_out(void **state)
{
    (void)state;
    struct scaling *s = made(AXIS_NODES);
    s->points[3].measured = false;
    growth_fit(s);
    assert_true(isnan(curve(s, "mpnn")->ms[3]));
    assert_near(curve(s, "mpnn")->exponent.value, 1, 1e-9);
    assert_int_equal(curve(s, "mpnn")->exponent.points, 3);
    for (size_t i = 0; i < 4; i++)
        s->points[i].measured = false;
    s->curve_count = 0;
    s->has_crossing = false;
    growth_fit(s); /* nothing at all */
    assert_false(s->has_crossing);
    free(s);
}

static void encodings_have_no_size_to_grow_with(void **state)
{
    (void)state;
    struct scaling *s = made(AXIS_PE);
    s->points[1].m.encode_ms = 7;
    growth_fit(s);
    assert_false(curve(s, "training_step")->has_exponent);
    assert_near(curve(s, "encoding (once)")->ms[1], 7, 0);
    assert_false(s->has_crossing);
    free(s);
}

static void sizes_are_read_from_words(void **state)
{
    (void)state;
    struct scale_size size;
    assert_int_equal(scale_size_parse(AXIS_NODES, "500", &size), 0);
    assert_int_equal(size.size, 500);
    assert_int_equal(scale_size_parse(AXIS_PE, "lap:8", &size), 0);
    assert_int_equal(size.encoding, SONDE_LAPLACIAN);
    assert_int_equal(size.size, 8);
    assert_true(scale_size_parse(AXIS_PE, "lap:0", &size) < 0);
    assert_true(scale_size_parse(AXIS_NODES, "lap", &size) < 0);
    struct scale_size sizes[SCALE_POINTS];
    assert_int_equal(scale_default_sizes(AXIS_NODES, sizes), 5);
    assert_int_equal(sizes[4].size, 5000);
    assert_int_equal(scale_default_sizes(AXIS_LAYERS, sizes), 6);
    assert_int_equal(sizes[5].size, 16);
    assert_int_equal(scale_default_sizes(AXIS_PE, sizes), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponents_are_those_of_the_times),
        cmocka_unit_test(a_constant_does_not_flatten_the_exponent),
        cmocka_unit_test(disturbed_repeats_do_not_bend_the_fit),
        cmocka_unit_test(attention_overtakes_messages_where_it_does),
        cmocka_unit_test(points_that_were_skipped_are_left_out),
        cmocka_unit_test(encodings_have_no_size_to_grow_with),
        cmocka_unit_test(sizes_are_read_from_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
