/* kernels_edge.h: what message passing does with one edge or node of `n` features. Kept
 * like kernels.h; all of them add or overwrite exactly what they say. */
#ifndef SONDE_MODEL_REF_KERNELS_EDGE_H
#define SONDE_MODEL_REF_KERNELS_EDGE_H

#include <stddef.h>

/* y = relu(a + b) */
void kernel_relu_sum(float *y, const float *a, const float *b, size_t n);
/* y += x where mask > 0 */
void kernel_add_where(float *y, const float *x, const float *mask, size_t n);
/* y += a · b */
void kernel_add_product(float *y, const float *a, const float *b, size_t n);
float kernel_dot(const float *a, const float *b, size_t n);

/* gate = σ(gate + a + b) */
void kernel_gate(float *gate, const float *a, const float *b, size_t n);
/* Of an edge whose gate lets `value` through into a quotient with the gradients dabove
 * and dbelow: dgate becomes the gradient of what stood in σ; dvalue is added to. */
void kernel_gate_grad(float *dgate, float *dvalue, const float *gate,
                      const float *value, const float *dabove, const float *dbelow,
                      size_t n);

/* Sum, sum of squares, largest and smallest so far of each feature. */
struct moments {
    float *sum, *squares, *max, *min;
};
void kernel_moments(const struct moments *m, const float *x, size_t n);
/* Mean and standard deviation, √(max(0, E x² − mean²) + 1e-5), from sums over `count`. */
void kernel_moments_end(float *mean, float *std, const struct moments *m, float count,
                        size_t n);
/* The gradient of one message from those of the four: mean, std, max, min. */
struct moments_grad {
    const float *mean, *std; /* results of the forward pass */
    const float *max, *min;  /* … */
    float *dmean, *dstd, *dmax,
        *dmin; /* the latter two are set to 0 once they were given
                                            to the first message that attained them */
};
void kernel_moments_grad(float *dx, const float *x, const struct moments_grad *g,
                         float count, size_t n);

#endif
