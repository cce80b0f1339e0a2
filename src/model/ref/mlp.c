/* mlp.c: linear layers with relu between them: the smallest complete net. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/ref/kernels.h"
#include "model/ref/layers.h"

struct mlp {
    struct linear *layers;
    float **outputs; /* of each layer, after relu */
    float *dlogits;
};

static int init(struct refnet *net)
{
    const struct model_config *c = &net->config;
    struct mlp *t = calloc(1, sizeof *t);
    char name[PARAMETER_NAME_LEN];
    net->own = t;
    if (!t || !(t->layers = calloc(c->layers, sizeof *t->layers)) ||
        !(t->outputs = calloc(c->layers, sizeof *t->outputs)))
        return -ENOMEM;
    for (size_t i = 0; i < c->layers; i++) {
        (void)snprintf(name, sizeof name, "layers.%zu", i);
        const int rc = linear_declare(net, i ? c->hidden : c->features,
                                      i + 1 < c->layers ? c->hidden : c->outputs, true,
                                      name);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < c->layers; i++) {
        (void)snprintf(name, sizeof name, "layers.%zu", i);
        linear_bind(&t->layers[i], net, name);
    }
    return 0;
}

static void release(struct refnet *net)
{
    struct mlp *t = net->own;
    if (t) {
        free(t->layers);
        free(t->outputs);
    }
    free(t);
}

static double forward(struct refnet *net, const struct batch *batch)
{
    struct mlp *t = net->own;
    const size_t last = net->config.layers - 1;
    const float *x = batch->rows;
    struct part_clock clock = refpart_begin(net, PART_FFN, false);
    for (size_t i = 0; i <= last; i++) {
        const size_t n = batch->count * t->layers[i].weight->rows;
        t->outputs[i] = tape_floats(&net->tape, n);
        linear_forward(&t->layers[i], x, batch->count, t->outputs[i]);
        if (i < last)
            kernel_relu(t->outputs[i], n);
        x = t->outputs[i];
    }
    refpart_end(&clock);
    net->output = x;
    net->output_count = batch->count * net->config.outputs;
    t->dlogits = tape_floats(&net->tape, net->output_count);
    return cross_entropy(x, batch->classes, batch->count, net->config.outputs,
                         t->dlogits);
}

static void backward(struct refnet *net)
{
    struct mlp *t = net->own;
    const size_t rows = t->layers[0].rows;
    float *dy = t->dlogits;
    struct part_clock clock = refpart_begin(net, PART_FFN, true);
    for (size_t i = net->config.layers; i > 0; i--) {
        struct linear *l = &t->layers[i - 1];
        float *dx = i > 1 ? tape_floats(&net->tape, rows * l->weight->columns) : NULL;
        linear_backward(l, dy, dx);
        if (dx)
            kernel_relu_grad(dx, t->outputs[i - 2], rows * l->weight->columns);
        dy = dx;
    }
    refpart_end(&clock);
}

const struct refnet_family mlp_family = { init, forward, backward, release };
