/* The formulas against what the authors of known models publish. */
#include "model/zoo.h"

#include <math.h>

#include "model/answer.h"
#include "unit.h"

static void every_published_figure_is_met_to_its_digits(void **state)
{
    (void)state;
    int figures = 0;
    for (size_t i = 0; zoo_at(i); i++) {
        const struct zoo_model *m = zoo_at(i);
        struct model_answer a;
        assert_int_equal(answer_estimate_zoo(m, SONDE_ADAMW, SONDE_FLOAT32, &a), 0);
        assert_near(a.estimate.total.parameters, m->parameters, 0);
        if (!(m->published > 0))
            continue;
        const double unit = m->unit[1] == 'F' ? 2 : 1, digits = pow(10, m->decimals);
        const double ours = unit * a.estimate.total.forward.macs / 1e9;
        assert_near(round(ours * digits) / digits, m->published, 1e-9);
        figures++;
    }
    assert_true(figures >= 8);
}

static void backward_is_about_twice_forward(void **state)
{
    (void)state;
    struct model_answer a;
    assert_int_equal(
        answer_estimate_zoo(zoo_find("bert_base"), SONDE_ADAMW, SONDE_FLOAT32, &a), 0);
    const double ratio = a.estimate.total.backward.macs / a.estimate.total.forward.macs;
    assert_near(ratio, 2, 1e-6);
}

static void the_document_s_example_has_its_sizes(void **state)
{
    (void)state;
    const struct model_config c = config_default(FAMILY_GRAPH_TRANSFORMER);
    struct model_answer a;
    assert_int_equal(c.nodes, 500);
    assert_int_equal(config_edges(&c), 2500);
    assert_int_equal(config_ffn(&c), 512);
    assert_int_equal(answer_estimate_config(&c, SONDE_ADAMW, SONDE_FLOAT32, &a), 0);
    /* attention: 6 layers of 4 N d² + 2 N² d multiply-adds */
    const double attention = 6 * (4 * 500.0 * 256 * 256 + 2 * 500.0 * 500 * 256);
    for (size_t i = 0; i < a.estimate.component_count; i++)
        if (a.estimate.components[i].name[0] == 'a')
            assert_near(a.estimate.components[i].cost.forward.macs, attention, 0);
}

static void impossible_sizes_are_named(void **state)
{
    (void)state;
    char error[CONFIG_ERROR_LEN];
    struct model_config c = config_default(FAMILY_GRAPH_TRANSFORMER);
    assert_int_equal(config_check(&c, error), 0);
    c.heads = 7;
    assert_true(config_check(&c, error) < 0);
    assert_string_equal(error,
                        "--num-heads 7 does not divide --hidden-dim 256 (8 would)");
    c = config_default(FAMILY_GRAPH_TRANSFORMER);
    c.nodes = 0;
    assert_true(config_check(&c, error) < 0);
    c = config_default(FAMILY_MLP);
    c.nodes = 0; /* not its concern */
    assert_int_equal(config_check(&c, error), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_published_figure_is_met_to_its_digits),
        cmocka_unit_test(backward_is_about_twice_forward),
        cmocka_unit_test(the_document_s_example_has_its_sizes),
        cmocka_unit_test(impossible_sizes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
