/* cost.h: how a layer's formula adds up what the layer does.
 *
 * A formula is a list of the operators a sensible framework runs, each one line:
 *
 *     cost_product(c, (struct product){ .rows = n, .in = d, .out = 4 * d, .bias = 1 });
 *     cost_elements(c, n * 4 * d, c->rules.gelu, 2 * c->rules.gelu);
 *
 * Only src/model includes this; the result is include/sonde/model.h's.
 */
#ifndef SONDE_MODEL_COST_H
#define SONDE_MODEL_COST_H

#include <stdbool.h>

#include <sonde/model.h>

struct costing {
    const struct sonde_layer *layer;
    struct sonde_counting rules; /* without zeros */
    struct sonde_cost cost;
};

/* rows × in times in × out. */
struct product {
    double rows, in, out;
    bool bias;
    bool no_weights;    /* both operands are activations: attention */
    double copies;      /* so many independent products; 0: one */
    double ratio;       /* part of the result that is computed; 0: all */
    bool no_input_grad; /* nobody wants the gradient of the left operand */
};

void cost_product(struct costing *c, struct product p);

/* One element-wise operator over `count` elements: operations each, forward and backward;
 * reads and writes them once. */
void cost_elements(struct costing *c, double count, double forward, double backward);

/* Operations that stay in registers: no memory traffic of their own. */
void cost_fused(struct costing *c, double forward, double backward);

void cost_move(struct costing *c, double forward_elements, double backward_elements);
void cost_parameters(struct costing *c, double count);
void cost_save(struct costing *c, double elements);

double cost_activation_ops(const struct costing *c, int activation);

/* Operations per element of the backward pass, for those that are not twice the forward's.
 * Counted off the reference implementations in src/model/ref. */
enum { NORM_BACKWARD = 11, SOFTMAX_BACKWARD = 4 };

void linear_cost(struct costing *c);
void embedding_cost(struct costing *c);
void norm_cost(struct costing *c);
void softmax_cost(struct costing *c);
void activation_cost(struct costing *c);
void elements_cost(struct costing *c);
void conv_cost(struct costing *c);
void pool_cost(struct costing *c);
void ffn_cost(struct costing *c);
void attention_cost(struct costing *c);
void message_cost(struct costing *c);
void encoding_cost(struct costing *c);

#endif
