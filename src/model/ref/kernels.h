/* kernels.h: the element-wise loops of the reference nets.
 *
 * Each does one thing to an array. They stand in one file because that file is compiled
 * for speed (cmake/layers.cmake): vectorised, sums in any order the compiler fixed, so
 * that the same build gives the same bits. `_grad` belongs to the kernel of the same
 * name and adds to nothing: it overwrites, unless it says "adds".
 */
#ifndef SONDE_MODEL_REF_KERNELS_H
#define SONDE_MODEL_REF_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void kernel_fill(float *y, float value, size_t n);
void kernel_add(float *y, const float *x, size_t n); /* y += x */
void kernel_sum(float *y, const float *a, const float *b, size_t n);
void kernel_add_scaled(float *y, const float *x, float factor, size_t n);
void kernel_scale(float *y, float factor, size_t n);
/* a = b + s·c: three streams and nothing to compute, for the memory's speed. */
void kernel_triad(float *a, const float *b, const float *c, float s, size_t n);

/* Every row of y starts as the bias. */
void kernel_bias(float *y, const float *bias, size_t rows, size_t columns);
void kernel_bias_grad(float *dbias, const float *dy, size_t rows,
                      size_t columns); /* adds */

void kernel_relu(float *y, size_t n);                       /* in place */
void kernel_relu_grad(float *dy, const float *y, size_t n); /* in place in dy */
/* x · Φ(x); `tanh_form` is GPT-2's approximation of it. */
void kernel_gelu(float *y, const float *x, size_t n, bool tanh_form);
void kernel_gelu_grad(float *dx, const float *dy, const float *x, size_t n,
                      bool tanh_form); /* dx may be dy */

/* y = (x − mean) · rstd · gain + bias, over each row. */
void kernel_norm(float *y, const float *x, const float *gain, const float *bias,
                 float *ret_mean, float *ret_rstd, size_t rows, size_t columns);
void kernel_norm_grad(float *dx, float *dgain, float *dbias, const float *dy,
                      const float *x, const float *gain, const float *mean,
                      const float *rstd, size_t rows,
                      size_t columns); /* adds to dgain and dbias; dx may be dy */

/* Rows of scores become probabilities; `causal`: row i sees columns up to i. */
void kernel_softmax(float *s, size_t rows, size_t columns, bool causal);
/* dp becomes ds. */
void kernel_softmax_grad(float *dp, const float *p, size_t rows, size_t columns);

/* Zeroes with probability `rate`, scales the rest. The same seed drops the same
 * elements, so the backward pass needs no stored mask. */
void kernel_dropout(float *y, size_t n, float rate, uint64_t seed);

struct adamw {
    float rate, beta1, beta2, epsilon, decay;
    float correct1, correct2; /* 1 − betaᵗ */
};
void kernel_adamw(float *value, const float *grad, float *moment1, float *moment2,
                  size_t n, const struct adamw *rule);

#endif
