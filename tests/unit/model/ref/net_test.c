/* Gradients against finite differences, dropout, memory, odd shapes. */
#include "model/ref/net.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "model/ref/data.h"
#include "unit.h"

static struct model_config small(enum family family)
{
    struct model_config c = config_default(family);
    c.layers = 2;
    c.hidden = 12;
    c.heads = 3;
    c.batch = 2;
    c.nodes = 9;
    c.degree = 3;
    c.features = 5;
    c.outputs = 4;
    c.tokens = 7;
    c.vocabulary = 128;
    return c;
}

static double loss_of(struct refnet *net, const struct data *data)
{
    double loss;
    assert_int_equal(refnet_forward(net, &data->batch, &loss), 0);
    return loss;
}

/* The slope of the loss along the gradient's own direction is the gradient's length:
 * every element counts, and noise of single floats averages out. */
static void check_gradient(const struct model_config *c)
{
    struct refnet net;
    struct data data;
    assert_int_equal(data_synthetic(&data, c, 3), 0);
    assert_int_equal(refnet_init(&net, c), 0);
    (void)loss_of(&net, &data);
    assert_int_equal(refnet_backward(&net), 0);
    float *values = malloc(net.count * sizeof *values);
    assert_non_null(values);
    memcpy(values, net.values, net.count * sizeof *values);
    double length = 0;
    for (size_t i = 0; i < net.count; i++)
        length += (double)net.grads[i] * (double)net.grads[i];
    length = sqrt(length);
    assert_true(length > 1e-3);
    const double step = 1e-2;
    double sides[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < net.count; i++)
            net.values[i] = values[i] + (float)((side ? step : -step) *
                                                (double)net.grads[i] / length);
        sides[side] = loss_of(&net, &data);
    }
    assert_near((sides[1] - sides[0]) / (2 * step), length, 0.01 * length);
    free(values);
    refnet_release(&net);
    data_release(&data);
}

static void gradients_are_the_slope_of_the_loss(void **state)
{
    (void)state;
    for (int family = 0; family < FAMILY_COUNT; family++) {
        struct model_config c = small((enum family)family);
        check_gradient(&c);
        c.dropout = 0.25; /* the same elements are dropped in every pass of a step */
        check_gradient(&c);
    }
    for (int message = 0; message < SONDE_MESSAGE_COUNT; message++) {
        struct model_config c = small(FAMILY_GRAPH_TRANSFORMER);
        c.message = message;
        check_gradient(&c);
    }
}

static void the_net_has_the_parameters_of_its_formula(void **state)
{
    (void)state;
    for (int k = 0; k < SONDE_MESSAGE_COUNT + FAMILY_COUNT; k++) {
        const int message = k - FAMILY_COUNT; /* families first */
        struct model_config c = small(message < 0 ? (enum family)k
                                                  : FAMILY_GRAPH_TRANSFORMER);
        c.message = message < 0 ? c.message : message;
        struct layer_list list = LAYER_LIST_INIT;
        struct sonde_estimate e = { .size = sizeof e };
        struct refnet net;
        config_layers(&c, &list);
        assert_int_equal(list_estimate(&list, NULL, &e), 0);
        assert_int_equal(refnet_init(&net, &c), 0);
        assert_near(e.total.parameters, (double)net.count, 0);
        refnet_release(&net);
        list_release(&list);
    }
}

static void only_the_first_step_allocates(void **state)
{
    (void)state;
    const struct model_config c = small(FAMILY_GRAPH_TRANSFORMER);
    struct refnet net;
    struct data data;
    assert_int_equal(data_synthetic(&data, &c, 3), 0);
    assert_int_equal(refnet_init(&net, &c), 0);
    (void)loss_of(&net, &data);
    assert_int_equal(refnet_backward(&net), 0);
    const size_t bytes = net.tape.bytes;
    for (int i = 0; i < 3; i++) {
        (void)loss_of(&net, &data);
        assert_int_equal(refnet_backward(&net), 0);
        refnet_update(&net, 1e-3F);
    }
    assert_int_equal(net.tape.bytes, bytes);
    refnet_release(&net);
    data_release(&data);
}

static void dropout_keeps_the_mean_and_stops_outside_training(void **state)
{
    (void)state;
    struct model_config c = small(FAMILY_MLP);
    c.dropout = 0.3;
    struct refnet net;
    assert_int_equal(refnet_init(&net, &c), 0);
    enum { N = 100000 };
    float *y = malloc(N * sizeof *y);
    assert_non_null(y);
    for (int i = 0; i < N; i++)
        y[i] = 1;
    const uint64_t which = refnet_dropout(&net, y, N);
    double sum = 0;
    size_t zeros = 0;
    for (int i = 0; i < N; i++) {
        sum += (double)y[i];
        zeros += y[i] == 0;
    }
    assert_near(sum / N, 1, 0.02);
    assert_near((double)zeros / N, 0.3, 0.01);
    float *again = malloc(N * sizeof *again);
    assert_non_null(again);
    for (int i = 0; i < N; i++)
        again[i] = 1;
    refnet_dropout_again(&net, again, N, which);
    assert_memory_equal(y, again, N * sizeof *y);
    net.training = false;
    for (int i = 0; i < N; i++)
        again[i] = 1;
    (void)refnet_dropout(&net, again, N);
    for (int i = 0; i < N; i++)
        assert_true(again[i] == 1);
    free(y);
    free(again);
    refnet_release(&net);
}

static void what_cannot_be_built_is_refused(void **state)
{
    (void)state;
    struct refnet net;
    struct model_config c = small(FAMILY_GRAPH_TRANSFORMER);
    c.heads = 5;
    assert_int_equal(refnet_init(&net, &c), -EINVAL);
    c = small(FAMILY_MLP);
    assert_int_equal(refnet_init(&net, &c), 0);
    assert_int_equal(refnet_backward(&net), -EINVAL); /* no forward before it */
    refnet_release(&net);
}

/* The mean over no neighbours, the softmax over one, the largest of none … */
static void check_lonely_node(int message)
{
    struct model_config c = small(FAMILY_GRAPH_TRANSFORMER);
    c.nodes = 1;
    c.degree = 0;
    c.message = message;
    struct refnet net;
    struct data data;
    assert_int_equal(data_synthetic(&data, &c, 3), 0);
    assert_int_equal(refnet_init(&net, &c), 0);
    assert_true(isfinite(loss_of(&net, &data)));
    assert_int_equal(refnet_backward(&net), 0);
    for (size_t i = 0; i < net.count; i++)
        assert_true(isfinite(net.grads[i]));
    refnet_release(&net);
    data_release(&data);
}

static void a_graph_without_edges_and_of_one_node_still_works(void **state)
{
    (void)state;
    for (int message = 0; message < SONDE_MESSAGE_COUNT; message++)
        check_lonely_node(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_the_slope_of_the_loss),
        cmocka_unit_test(the_net_has_the_parameters_of_its_formula),
        cmocka_unit_test(only_the_first_step_allocates),
        cmocka_unit_test(dropout_keeps_the_mean_and_stops_outside_training),
        cmocka_unit_test(what_cannot_be_built_is_refused),
        cmocka_unit_test(a_graph_without_edges_and_of_one_node_still_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
