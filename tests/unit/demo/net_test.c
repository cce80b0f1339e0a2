#include "demo/net.h"

#include <math.h>
#include <string.h>

#include "demo/dataset.h"
#include "demo/image.h"
#include "demo/matmul.h"
#include "demo/random.h"

#include "unit.h"

enum { PICTURES = 6 };

static void fill(float *at, size_t count, uint64_t seed)
{
    struct rng rng = rng_for(seed, 9, 0);
    for (size_t i = 0; i < count; i++)
        at[i] = rng_normal(&rng);
}

/* Plain triple loop in double: the reference. */
static double product_at(struct matrix a, struct matrix b, size_t i, size_t j, size_t k)
{
    double sum = 0;
    for (size_t p = 0; p < k; p++)
        sum += (double)a.at[i * a.row + p * a.column] *
               (double)b.at[p * b.row + j * b.column];
    return sum;
}

static void check_product(size_t m, size_t n, size_t k, bool a_turned, bool b_turned)
{
    float *a = calloc(m * k, sizeof *a), *b = calloc(k * n, sizeof *b);
    float *c = calloc(m * n, sizeof *c);
    assert_true(a && b && c);
    fill(a, m * k, 1);
    fill(b, k * n, 2);
    fill(c, m * n, 3);
    const struct matrix ma = { a, a_turned ? 1 : k, a_turned ? m : 1 };
    const struct matrix mb = { b, b_turned ? 1 : n, b_turned ? k : 1 };
    matmul(m, n, k, ma, mb, c, n, false);
    matmul(m, n, k, ma, mb, c, n, true);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            assert_near((double)c[i * n + j], 2 * product_at(ma, mb, i, j, k),
                        1e-5 * (double)k);
    free(a);
    free(b);
    free(c);
}

static void a_product_is_right_at_every_edge_of_the_blocks(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1, 3, 4, 5, 8, 9, 63, 64, 65, 100, 257 };
    const size_t count = sizeof sizes / sizeof *sizes;
    for (size_t i = 0; i < count; i++)
        for (unsigned turned = 0; turned < 4; turned++)
            check_product(sizes[i], sizes[(i * 7 + 3) % count],
                          sizes[(i * 5 + 1) % count], turned & 1, turned & 2);
    check_product(65, 66, 513, false, true);
}

struct problem {
    struct net net;
    float images[PICTURES][IMAGE_PIXELS];
    uint8_t labels[PICTURES];
};

static double problem_loss(struct problem *p)
{
    net_forward(&p->net, p->images[0], PICTURES);
    return net_loss(&p->net, p->labels, PICTURES);
}

static int problem_setup(void **state)
{
    struct problem *p = calloc(1, sizeof *p);
    if (!p || net_init(&p->net, PICTURES, 5) < 0)
        return -1;
    fill(p->images[0], sizeof p->images / sizeof(float), 11);
    /* Biases off zero, so that their gradients cannot hide. */
    for (int i = 0; i < NET_LAYERS; i++)
        fill(p->net.layers[i].bias, p->net.layers[i].out_channels, 20 + (unsigned)i);
    for (int i = 0; i < PICTURES; i++)
        p->labels[i] = (uint8_t)(i * 3 % CLASSES);
    *state = p;
    return 0;
}

static int problem_teardown(void **state)
{
    struct problem *p = *state;
    net_release(&p->net);
    free(p);
    return 0;
}

/* How far a gradient is from the slope of the loss to the left or to the right, which
 * differ at a corner of ReLU: the gradient is one of them. */
static double gradient_error(struct problem *p, float *parameter, float gradient)
{
    const float h = 5e-4F, kept = *parameter;
    const double middle = problem_loss(p);
    *parameter = kept + h;
    const double right = (problem_loss(p) - middle) / (double)(*parameter - kept);
    *parameter = kept - h;
    const double left = (middle - problem_loss(p)) / (double)(kept - *parameter);
    *parameter = kept;
    return fmin(fabs(left - (double)gradient), fabs(right - (double)gradient));
}

/* The difference of two float losses is good to about 1e-6 / h. */
static void check_gradients(struct problem *p, float *parameters,
                            const float *gradients, size_t count, const char *what)
{
    unsigned wrong = 0;
    const size_t stride = count / 97 + 1;
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)gradients[i]));
    assert_true(largest > 0.01);
    for (size_t i = 0; i < count; i += stride)
        wrong += gradient_error(p, &parameters[i], gradients[i]) >
                 0.01 * largest + 1e-3;
    if (wrong > 0)
        fail_msg("%s: %u gradients differ from the slope", what, wrong);
}

static void every_gradient_is_the_slope_of_the_loss(void **state)
{
    struct problem *p = *state;
    (void)problem_loss(p);
    net_backward(&p->net, PICTURES);
    float *gradients = malloc(p->net.count * sizeof *gradients);
    assert_non_null(gradients);
    memcpy(gradients, p->net.gradients, p->net.count * sizeof *gradients);

    for (int i = 0; i < NET_LAYERS; i++) {
        struct layer *layer = &p->net.layers[i];
        const size_t weights = layer->depth * layer->out_channels;
        const float *from = gradients + (layer->weights - p->net.parameters);
        check_gradients(p, layer->weights, from, weights, layer->name);
        check_gradients(p, layer->bias, from + weights, layer->out_channels,
                        layer->name);
    }
    free(gradients);
}

/* Along the gradient itself the slope is its squared length: a check that sees every
 * parameter at once and needs no tolerance for small ones. */
static void the_slope_along_the_gradient_is_its_squared_length(void **state)
{
    struct problem *p = *state;
    (void)problem_loss(p);
    net_backward(&p->net, PICTURES);
    struct net *net = &p->net;
    float *start = malloc(net->count * sizeof *start);
    float *gradients = malloc(net->count * sizeof *gradients);
    assert_true(start && gradients);
    memcpy(start, net->parameters, net->count * sizeof *start);
    memcpy(gradients, net->gradients, net->count * sizeof *gradients);
    double squares = 0;
    for (size_t i = 0; i < net->count; i++)
        squares += (double)gradients[i] * (double)gradients[i];

    const double h = 2e-3 / sqrt(squares);
    double loss[2];
    for (int side = 0; side < 2; side++) {
        const double sign = side == 0 ? 1 : -1;
        for (size_t i = 0; i < net->count; i++)
            net->parameters[i] = start[i] + (float)(sign * h * (double)gradients[i]);
        loss[side] = problem_loss(p);
    }
    const double slope = (loss[0] - loss[1]) / (2 * h);
    assert_near(slope / squares, 1, 0.01);
    free(start);
    free(gradients);
}

static void a_new_net_guesses(void **state)
{
    struct problem *p = *state;
    for (int i = 0; i < NET_LAYERS; i++)
        memset(p->net.layers[i].bias, 0, p->net.layers[i].out_channels * sizeof(float));
    memset(p->net.layers[NET_LAYERS - 1].weights, 0, (size_t)64 * CLASSES * 4);
    assert_near(problem_loss(p), log(CLASSES), 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_is_right_at_every_edge_of_the_blocks),
        cmocka_unit_test_setup_teardown(every_gradient_is_the_slope_of_the_loss,
                                        problem_setup, problem_teardown),
        cmocka_unit_test_setup_teardown(
            the_slope_along_the_gradient_is_its_squared_length, problem_setup,
            problem_teardown),
        cmocka_unit_test_setup_teardown(a_new_net_guesses, problem_setup,
                                        problem_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
