/* optimizer.h: gradient clipping and AdamW over one array of parameters. */
#ifndef SONDE_DEMO_OPTIMIZER_H
#define SONDE_DEMO_OPTIMIZER_H

#include <stddef.h>

struct adamw {
    size_t count;
    unsigned step;
    float weight_decay;
    float *mean, *square; /* moving averages of the gradient and of its square */
};

/* Scales the gradients down to a length of at most `limit`; returns their length
 * before. */
double gradients_clip(float *gradients, size_t count, double limit);

int adamw_init(struct adamw *adamw, size_t count, float weight_decay);
void adamw_release(struct adamw *adamw);
void adamw_step(struct adamw *adamw, float *parameters, const float *gradients,
                float learning_rate);

#endif
