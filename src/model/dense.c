/* dense.c: layers that treat every row alike: linear, embedding, norms, activations,
 * feed-forward; and convolutions, which are linear layers over windows. */
#include "model/cost.h"

void linear_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const double rows = (double)l->rows, in = (double)l->in, out = (double)l->out;
    cost_product(c, (struct product){ .rows = rows,
                                      .in = in,
                                      .out = out,
                                      .bias = !l->no_bias,
                                      .no_input_grad = l->no_grad });
    cost_save(c, rows * in);
}

/* A look-up: nothing is computed, rows of the table move. Backward adds them up. */
void embedding_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const double elements = (double)l->rows * (double)l->out;
    cost_parameters(c, (double)l->in * (double)l->out);
    cost_move(c, 2 * elements, 3 * elements);
    cost_fused(c, 0, elements);
    cost_save(c, (double)l->rows); /* the indices */
}

void norm_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const double elements = (double)l->rows * (double)l->in;
    cost_elements(c, elements, c->rules.norm, NORM_BACKWARD);
    cost_parameters(c, (l->no_bias ? 1 : 2) * (double)l->in);
    cost_save(c, elements + 2 * (double)l->rows); /* input, mean, deviation */
}

void softmax_cost(struct costing *c)
{
    const double elements = (double)c->layer->rows * (double)c->layer->in;
    cost_elements(c, elements, c->rules.softmax, SOFTMAX_BACKWARD);
    cost_save(c, elements);
}

/* A relu keeps its result, which is the next layer's input and counted there; smooth ones
 * keep their input. */
void activation_cost(struct costing *c)
{
    const double elements = (double)c->layer->rows * (double)c->layer->in;
    const double ops = cost_activation_ops(c, c->layer->activation);
    const bool smooth = ops > c->rules.simple;
    cost_elements(c, elements, ops, smooth ? 2 * ops : ops);
    cost_save(c, smooth ? elements : 0);
}

void elements_cost(struct costing *c)
{
    const double elements = (double)c->layer->rows * (double)c->layer->in;
    cost_elements(c, elements, c->rules.simple, c->rules.simple);
}

/* Two linear layers with an activation between them; gated (SwiGLU and its kin): a third
 * one whose result multiplies the activation's. */
void ffn_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const double rows = (double)l->rows, in = (double)l->in, hidden = (double)l->hidden;
    const double out = (double)(l->out ? l->out : l->in);
    const double ops = cost_activation_ops(c, l->activation);
    const bool bias = !l->no_bias, smooth = ops > c->rules.simple;
    const struct product up = { .rows = rows, .in = in, .out = hidden, .bias = bias };

    cost_product(c, up);
    if (l->gated) {
        cost_product(c, up);
        cost_elements(c, rows * hidden, c->rules.simple, 2 * c->rules.simple);
    }
    cost_elements(c, rows * hidden, ops, smooth ? 2 * ops : ops);
    cost_product(
        c, (struct product){ .rows = rows, .in = hidden, .out = out, .bias = bias });
    /* A relu needs only its result, which the second layer keeps anyway. */
    cost_save(c, rows * in + rows * hidden * (smooth ? 2 : 1) +
                     (l->gated ? 2 * rows * hidden : 0));
}

void conv_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const double groups = l->groups ? (double)l->groups : 1;
    const double wide = (double)(l->kernel_width ? l->kernel_width : l->kernel);
    const double window = (double)l->kernel * wide * (double)l->in / groups;
    cost_product(c, (struct product){ .rows = (double)l->rows,
                                      .in = window,
                                      .out = (double)l->out,
                                      .bias = !l->no_bias,
                                      .no_input_grad = l->no_grad });
    /* The window is gathered from the input, of about rows × in. */
    cost_save(c, (double)l->rows * (double)l->in);
}

void pool_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const double wide = (double)(l->kernel_width ? l->kernel_width : l->kernel);
    const double window = l->kernel ? (double)l->kernel * wide : 1;
    const double elements = (double)l->rows * (double)l->in;
    cost_fused(c, elements * window * c->rules.simple, elements * window);
    cost_move(c, elements * window + elements, elements * window + elements);
    cost_save(
        c, (double)l->rows); /* which graph a row belongs to, or the maximum's place */
}
