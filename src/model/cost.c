/* cost.c: see cost.h. */
#include "model/cost.h"

static double or_one(double value)
{
    return value > 0 ? value : 1;
}

static void ops_add(struct sonde_ops *ops, double macs, double elementwise,
                    double bytes)
{
    ops->macs += macs;
    ops->elementwise += elementwise;
    ops->bytes += bytes;
}

/* Y = X·W: the backward pass has dX = dY·Wᵀ and dW = Xᵀ·dY, each as large as the
 * forward product. */
void cost_product(struct costing *c, struct product p)
{
    const double copies = or_one(p.copies), size = c->rules.element_bytes;
    const double results = copies * p.rows * p.out * or_one(p.ratio);
    const double left = copies * p.rows * p.in, right = copies * p.in * p.out;
    const double macs = results * p.in;
    const double bias = p.bias ? results : 0;
    const bool input_grad = !p.no_input_grad;

    ops_add(&c->cost.forward, macs, bias, size * (left + right + results));
    ops_add(&c->cost.backward, macs * (input_grad ? 2 : 1), bias,
            size * (results + left + right + /* dW */
                    (input_grad ? results + right + left : 0)));
    if (!p.no_weights)
        c->cost.parameters += p.in * p.out + (p.bias ? p.out : 0);
}

void cost_elements(struct costing *c, double count, double forward, double backward)
{
    const double size = c->rules.element_bytes;
    ops_add(&c->cost.forward, 0, count * forward, 2 * count * size);
    ops_add(&c->cost.backward, 0, count * backward, 3 * count * size);
}

void cost_fused(struct costing *c, double forward, double backward)
{
    c->cost.forward.elementwise += forward;
    c->cost.backward.elementwise += backward;
}

void cost_move(struct costing *c, double forward_elements, double backward_elements)
{
    c->cost.forward.bytes += forward_elements * c->rules.element_bytes;
    c->cost.backward.bytes += backward_elements * c->rules.element_bytes;
}

void cost_parameters(struct costing *c, double count)
{
    c->cost.parameters += count;
}

void cost_save(struct costing *c, double elements)
{
    c->cost.saved += elements;
}

double cost_activation_ops(const struct costing *c, int activation)
{
    switch (activation) {
    case SONDE_GELU:
    case SONDE_GELU_TANH:
        return c->rules.gelu;
    case SONDE_SILU:
    case SONDE_SIGMOID:
    case SONDE_TANH:
        return c->rules.smooth;
    case SONDE_NO_ACTIVATION:
        return 0;
    default:
        return c->rules.simple;
    }
}
