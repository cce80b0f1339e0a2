/* Every expected number is worked out beside it, from the definition of the layer. */
#include <sonde/model.h>

#include <errno.h>
#include <string.h>

#include "unit.h"

static struct sonde_cost cost_of(struct sonde_layer layer)
{
    struct sonde_cost cost = { .size = sizeof cost };
    layer.size = sizeof layer;
    assert_int_equal(sonde_layer_cost(&layer, NULL, &cost), 0);
    return cost;
}

static void a_linear_layer_multiplies_rows_in_and_out(void **state)
{
    (void)state;
    const struct sonde_cost c = cost_of((struct sonde_layer){
        .kind = SONDE_LAYER_LINEAR, .rows = 32, .in = 784, .out = 512 });
    assert_near(c.forward.macs, 32.0 * 784 * 512, 0);
    assert_near(c.forward.elementwise, 32.0 * 512, 0);
    assert_near(c.backward.macs, 2 * 32.0 * 784 * 512, 0);
    assert_near(c.parameters, 784.0 * 512 + 512, 0);
    assert_near(c.forward.bytes, 4.0 * (32 * 784 + 784 * 512 + 32 * 512), 0);
    assert_near(c.saved, 32.0 * 784, 0);
}

static void the_first_layer_has_no_gradient_of_its_input(void **state)
{
    (void)state;
    const struct sonde_cost c = cost_of(
        (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                              .rows = 8,
                              .in = 3,
                              .out = 5,
                              .no_grad = 1,
                              .no_bias = 1 });
    assert_near(c.backward.macs, 8.0 * 3 * 5, 0);
    assert_near(c.parameters, 15, 0);
}

static void elements_count_by_the_rules_of_the_document(void **state)
{
    (void)state;
    const struct {
        struct sonde_layer layer;
        double each;
    } rules[] = {
        { { .kind = SONDE_LAYER_SOFTMAX }, 5 },
        { { .kind = SONDE_LAYER_NORM }, 5 },
        { { .kind = SONDE_LAYER_ACTIVATION, .activation = SONDE_GELU }, 4 },
        { { .kind = SONDE_LAYER_ACTIVATION, .activation = SONDE_RELU }, 1 },
        { { .kind = SONDE_LAYER_ELEMENTS }, 1 },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct sonde_layer layer = rules[i].layer;
        layer.rows = 7;
        layer.in = 11;
        const struct sonde_cost c = cost_of(layer);
        assert_near(c.forward.elementwise, 77 * rules[i].each, 0);
        assert_near(c.forward.macs, 0, 0);
    }
}

static void other_rules_replace_the_document_s(void **state)
{
    (void)state;
    const struct sonde_counting rules = { .size = sizeof rules,
                                          .norm = 8,
                                          .element_bytes = 2 };
    const struct sonde_layer norm = {
        .size = sizeof norm, .kind = SONDE_LAYER_NORM, .rows = 10, .in = 10
    };
    struct sonde_cost c = { .size = sizeof c };
    assert_int_equal(sonde_layer_cost(&norm, &rules, &c), 0);
    assert_near(c.forward.elementwise, 800, 0);
    assert_near(c.forward.bytes, 400, 0);
}

static const struct sonde_layer attention = { .size = sizeof attention,
                                              .kind = SONDE_LAYER_ATTENTION,
                                              .rows = 1000,
                                              .in = 256,
                                              .heads = 8 };

static void attention_is_four_projections_and_two_products_of_pairs(void **state)
{
    (void)state;
    const struct sonde_cost c = cost_of(attention);
    const double pairs = 1000.0 * 1000;
    assert_near(c.forward.macs, 4 * 1000.0 * 256 * 256 + 2 * pairs * 256, 0);
    assert_near(c.forward.elementwise, 8 * pairs * (5 + 1) + 4 * 1000.0 * 256, 0);
    assert_near(c.parameters, 4 * (256.0 * 256 + 256), 0);
    assert_near(c.attention, 8 * pairs, 0);
}

static void batches_sparsity_and_masks_thin_the_pairs(void **state)
{
    (void)state;
    const double projections = 4 * 1000.0 * 256 * 256;
    struct sonde_layer l = attention;
    l.sequences = 10; /* 10 × 100 × 100 */
    assert_near(cost_of(l).forward.macs, projections + 2 * 100000.0 * 256, 0);
    l = attention;
    l.sparse_ratio = 0.25;
    assert_near(cost_of(l).forward.macs, projections + 0.25 * 2 * 1e6 * 256, 0);
    l = attention;
    l.causal = 1;
    assert_near(cost_of(l).forward.macs, projections + 2 * 500500.0 * 256, 0);
}

static void flash_attention_keeps_no_matrix_but_computes_scores_again(void **state)
{
    (void)state;
    struct sonde_layer l = attention;
    l.flash = 1;
    const struct sonde_cost dense = cost_of(attention), flash = cost_of(l);
    assert_near(flash.forward.macs, dense.forward.macs, 0);
    assert_near(flash.backward.macs - dense.backward.macs, 1e6 * 256, 0);
    assert_near(flash.attention, 8 * 1000.0, 0);
    assert_true(flash.forward.bytes < dense.forward.bytes / 4);
}

static void fewer_key_heads_shrink_their_projections(void **state)
{
    (void)state;
    struct sonde_layer l = attention;
    l.kv_heads = 2;
    l.no_bias = 1;
    assert_near(cost_of(l).parameters, 256.0 * 256 * 2 + 2 * 256.0 * 64, 0);
}

static void attention_memory_needs_no_run(void **state)
{
    (void)state;
    struct sonde_attention_memory m = { .size = sizeof m };
    struct sonde_layer l = attention;
    l.repeat = 6; /* the answer is one layer's all the same */
    assert_int_equal(sonde_attention_memory(&l, NULL, &m), 0);
    assert_near(m.qkv, 3 * 1000.0 * 256 * 4, 0);
    assert_near(m.scores, 8 * 1e6 * 4, 0);
    assert_near(m.probabilities, 8 * 1e6 * 4, 0);
    assert_near(m.total, m.qkv + m.scores + m.probabilities + m.output, 0);
    l.flash = 1;
    assert_int_equal(sonde_attention_memory(&l, NULL, &m), 0);
    assert_near(m.scores, 0, 0);
}

static void a_feed_forward_part_is_two_linear_layers(void **state)
{
    (void)state;
    struct sonde_layer l = { .kind = SONDE_LAYER_FFN,
                             .rows = 500,
                             .in = 256,
                             .hidden = 512,
                             .activation = SONDE_GELU };
    struct sonde_cost c = cost_of(l);
    assert_near(c.forward.macs, 2 * 500.0 * 256 * 512, 0);
    assert_near(c.forward.elementwise, 500.0 * 512 * 4 + 500.0 * (512 + 256), 0);
    l.gated = 1;
    l.no_bias = 1;
    assert_near(cost_of(l).parameters, 3 * 256.0 * 512, 0);
}

static void convolutions_multiply_windows(void **state)
{
    (void)state;
    const struct sonde_cost c = cost_of((struct sonde_layer){
        .kind = SONDE_LAYER_CONV, .rows = 112 * 112, .in = 3, .out = 64, .kernel = 7 });
    assert_near(c.forward.macs, 112.0 * 112 * 7 * 7 * 3 * 64, 0);
    const struct sonde_cost depthwise = cost_of(
        (struct sonde_layer){ .kind = SONDE_LAYER_CONV,
                              .rows = 100,
                              .in = 32,
                              .out = 32,
                              .kernel = 3,
                              .groups = 32,
                              .no_bias = 1 });
    assert_near(depthwise.forward.macs, 100.0 * 9 * 32, 0);
    assert_near(depthwise.parameters, 9 * 32, 0);
}

enum { N = 100, E = 700, D = 16 };

static struct sonde_cost message(int kind, uint64_t edge_dim)
{
    return cost_of((struct sonde_layer){ .kind = SONDE_LAYER_MESSAGE,
                                         .rows = N,
                                         .edges = E,
                                         .in = D,
                                         .out = D,
                                         .message = kind,
                                         .heads = 4,
                                         .edge_dim = edge_dim });
}

static void message_passing_by_kind(void **state)
{
    (void)state;
    const double node = (double)N * D * D, edge = (double)E * D * D;
    assert_near(message(SONDE_GCN, 0).forward.macs, node + (E + N) * D, 0);
    assert_near(message(SONDE_GCN, 0).parameters, D * D + D, 0);
    assert_near(message(SONDE_GIN, 0).forward.macs, 2 * node, 0);
    assert_near(message(SONDE_GIN, 0).parameters, 2 * (D * D + D), 0);
    /* sum over edges, (1 + ε)x added, relu, two biases */
    assert_near(message(SONDE_GIN, 0).forward.elementwise,
                E * D + 2 * N * D + N * D + 2 * N * D, 0);
    assert_near(message(SONDE_GINE, 3).forward.macs, 2 * node + (double)E * 3 * D, 0);
    assert_near(message(SONDE_GAT, 0).forward.macs, node + 2 * N * D + (E + N) * D, 0);
    assert_near(message(SONDE_GAT, 0).parameters, D * D + 3 * D, 0);
    assert_near(message(SONDE_GATED_GCN, 0).forward.macs, 4 * node + edge, 0);
    assert_near(message(SONDE_GATED_GCN, 0).parameters, 5 * (D * D + D), 0);
    assert_near(message(SONDE_PNA, 0).forward.macs, 2 * edge + 13 * node + node, 0);
    assert_near(message(SONDE_SAGE, 0).forward.macs, 2 * node, 0);
    assert_near(message(SONDE_SAGE, 0).parameters, 2 * D * D + D, 0);
    assert_near(message(SONDE_NO_MESSAGE, 0).forward.macs, 0, 0);
}

static double encoding(int kind, uint64_t nodes, uint64_t edges, uint64_t graphs)
{
    return cost_of((struct sonde_layer){ .kind = SONDE_LAYER_ENCODING,
                                         .rows = nodes,
                                         .edges = edges,
                                         .out = 16,
                                         .encoding = kind,
                                         .sequences = graphs })
        .forward.macs;
}

static void positional_encodings_by_kind(void **state)
{
    (void)state;
    assert_near(encoding(SONDE_LAPLACIAN, 100, 500, 1), 4.5e6, 0);
    assert_near(encoding(SONDE_RANDOM_WALK, 100, 500, 1), 15 * 1e6, 0);
    assert_near(encoding(SONDE_RANDOM_WALK_SPARSE, 100, 500, 1), 15 * 500 * 100, 0);
    /* Two graphs of half the size: a quarter of the cubic work. */
    assert_near(encoding(SONDE_LAPLACIAN, 100, 500, 2), 4.5e6 / 4, 0);
    assert_true(encoding(SONDE_LAPLACIAN_LANCZOS, 5000, 25000, 1) <
                encoding(SONDE_LAPLACIAN, 5000, 25000, 1) / 100);
}

static void storage_of_encodings(void **state)
{
    (void)state;
    struct sonde_encoding_storage s = { .size = sizeof s };
    assert_int_equal(sonde_encoding_storage(1000, 32, 16, 0.1, &s), 0);
    assert_near(s.node, 1000 * 32 * 4, 0);
    assert_near(s.relative_dense, 1e6 * 16 * 4, 0);
    assert_near(s.relative_sparse, 1e5 * (16 * 4 + 8), 1e-6);
    assert_near(s.index_dense, 1e6, 0);
    assert_near(s.index_sparse, 1e5 * (1 + 8), 1e-6);
    assert_int_equal(sonde_encoding_storage(0, 32, 16, 0.1, &s), -EINVAL);
    assert_int_equal(sonde_encoding_storage(10, 32, 16, 1.5, &s), -EINVAL);
}

static void wrong_layers_are_refused_with_a_reason(void **state)
{
    (void)state;
    const struct {
        struct sonde_layer layer;
        int rc;
        const char *word;
    } wrong[] = {
        { { .kind = SONDE_LAYER_LINEAR, .in = 4, .out = 4 }, -EINVAL, "rows" },
        { { .kind = SONDE_LAYER_ATTENTION, .rows = 4, .in = 16, .heads = 5 },
          -EINVAL,
          "must divide" },
        { { .kind = SONDE_LAYER_ATTENTION,
            .rows = 4,
            .in = 16,
            .heads = 4,
            .sparse_ratio = 1.5 },
          -EINVAL,
          "sparse_ratio" },
        { { .kind = SONDE_LAYER_LINEAR, .rows = 1ULL << 60, .in = 4, .out = 4 },
          -ERANGE,
          "too large" },
        { { .kind = 99 }, -EINVAL, "unknown" },
        { { .kind = SONDE_LAYER_MESSAGE, .rows = 4, .in = 4, .message = 77 },
          -EINVAL,
          "unknown" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sonde_layer layer = wrong[i].layer;
        struct sonde_cost cost = { .size = sizeof cost, .parameters = -7 };
        char text[96];
        layer.size = sizeof layer;
        assert_int_equal(sonde_layer_cost(&layer, NULL, &cost), wrong[i].rc);
        assert_near(cost.parameters, -7, 0); /* untouched */
        assert_non_null(
            strstr(sonde_layer_error(&layer, text, sizeof text), wrong[i].word));
    }
}

static void a_model_is_the_sum_of_its_layers_by_component(void **state)
{
    (void)state;
    const struct sonde_layer layers[] = {
        { .size = sizeof *layers,
          .kind = SONDE_LAYER_LINEAR,
          .rows = 2,
          .in = 3,
          .out = 4,
          .repeat = 5 },
        { .size = sizeof *layers,
          .kind = SONDE_LAYER_LINEAR,
          .rows = 2,
          .in = 4,
          .out = 1,
          .component = "head" },
        { .size = sizeof *layers,
          .kind = SONDE_LAYER_LINEAR,
          .rows = 2,
          .in = 3,
          .out = 4,
          .shared = 1 },
    };
    struct sonde_estimate e = { .size = sizeof e };
    assert_int_equal(sonde_estimate_layers(layers, 3, NULL, &e, NULL), 0);
    assert_int_equal(e.component_count, 2);
    assert_string_equal(e.components[0].name, "linear");
    assert_near(e.components[0].cost.forward.macs, 6 * 24, 0);
    assert_near(e.components[0].cost.parameters, 5 * 16,
                0); /* the shared one has none */
    assert_near(e.total.forward.macs, 6 * 24 + 8, 0);
    assert_near(sonde_ops_total(&e.total.forward), 2 * 152 + 6 * 8 + 2, 0);
}

static void training_holds_weights_gradients_state_and_activations(void **state)
{
    (void)state;
    const struct sonde_cost cost = {
        .size = sizeof cost, .parameters = 1000, .saved = 500, .attention = 100
    };
    struct sonde_memory m = { .size = sizeof m };
    assert_int_equal(sonde_training_memory(&cost, SONDE_ADAMW, SONDE_FLOAT32, &m), 0);
    assert_near(m.total, 4000 + 4000 + 8000 + 2000, 0);
    assert_near(m.attention, 400, 0);
    assert_int_equal(sonde_training_memory(&cost, SONDE_SGD, SONDE_FLOAT32, &m), 0);
    assert_near(m.optimizer, 0, 0);
    assert_int_equal(sonde_training_memory(&cost, SONDE_ADAM, SONDE_MIXED, &m), 0);
    assert_near(m.total, 2000 + 2000 + 12000 + 1000, 0);
    assert_int_equal(sonde_training_memory(&cost, -1, SONDE_FLOAT32, &m), 0);
    assert_near(m.total, 4000, 0);
    assert_int_equal(sonde_training_memory(&cost, 9, SONDE_FLOAT32, &m), -EINVAL);
}

static void padding_wastes_rows_and_more_pairs(void **state)
{
    (void)state;
    const uint64_t nodes[] = { 10, 20, 30, 40 };
    struct sonde_padding p = { .size = sizeof p };
    assert_int_equal(sonde_padding_waste(nodes, 4, &p), 0);
    assert_near(p.node_waste, 1 - 100.0 / 160, 1e-12);
    assert_near(p.pair_waste, 1 - 3000.0 / 6400, 1e-12);
    assert_int_equal(sonde_padding_waste(nodes, 0, &p), -EINVAL);
}

static void names_and_numbers_agree(void **state)
{
    (void)state;
    for (int i = 1; i < SONDE_LAYER_KIND_COUNT; i++)
        assert_int_equal(sonde_layer_kind_of(sonde_layer_kind_name(i)), i);
    for (int i = 0; i < SONDE_MESSAGE_COUNT; i++)
        assert_int_equal(sonde_message_of(sonde_message_name(i)), i);
    for (int i = 0; i < SONDE_ENCODING_COUNT; i++)
        assert_int_equal(sonde_encoding_of(sonde_encoding_name(i)), i);
    for (int i = 0; i < SONDE_ACTIVATION_COUNT; i++)
        assert_int_equal(sonde_activation_of(sonde_activation_name(i)), i);
    for (int i = 0; i < SONDE_OPTIMIZER_COUNT; i++)
        assert_int_equal(sonde_optimizer_of(sonde_optimizer_name(i)), i);
    assert_int_equal(sonde_message_of("gim"), -EINVAL);
    assert_null(sonde_layer_kind_name(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_layer_multiplies_rows_in_and_out),
        cmocka_unit_test(the_first_layer_has_no_gradient_of_its_input),
        cmocka_unit_test(elements_count_by_the_rules_of_the_document),
        cmocka_unit_test(other_rules_replace_the_document_s),
        cmocka_unit_test(attention_is_four_projections_and_two_products_of_pairs),
        cmocka_unit_test(batches_sparsity_and_masks_thin_the_pairs),
        cmocka_unit_test(flash_attention_keeps_no_matrix_but_computes_scores_again),
        cmocka_unit_test(fewer_key_heads_shrink_their_projections),
        cmocka_unit_test(attention_memory_needs_no_run),
        cmocka_unit_test(a_feed_forward_part_is_two_linear_layers),
        cmocka_unit_test(convolutions_multiply_windows),
        cmocka_unit_test(message_passing_by_kind),
        cmocka_unit_test(positional_encodings_by_kind),
        cmocka_unit_test(storage_of_encodings),
        cmocka_unit_test(wrong_layers_are_refused_with_a_reason),
        cmocka_unit_test(a_model_is_the_sum_of_its_layers_by_component),
        cmocka_unit_test(training_holds_weights_gradients_state_and_activations),
        cmocka_unit_test(padding_wastes_rows_and_more_pairs),
        cmocka_unit_test(names_and_numbers_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
