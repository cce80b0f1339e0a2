/* kernels_edge.c: see kernels_edge.h. */
#include "model/ref/kernels_edge.h"

#include <math.h>

#include "model/ref/fast.h"

FAST void kernel_relu_sum(float *restrict y, const float *restrict a,
                          const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float sum = a[i] + b[i];
        y[i] = sum > 0 ? sum : 0;
    }
}

FAST void kernel_add_where(float *restrict y, const float *restrict x,
                           const float *restrict mask, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += mask[i] > 0 ? x[i] : 0;
}

FAST void kernel_add_product(float *restrict y, const float *restrict a,
                             const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a[i] * b[i];
}

FAST float kernel_dot(const float *a, const float *b, size_t n)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

FAST void kernel_gate(float *restrict gate, const float *restrict a,
                      const float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gate[i] = 1 / (1 + fast_exp(-(gate[i] + a[i] + b[i])));
}

FAST void kernel_gate_grad(float *restrict dgate, float *restrict dvalue,
                           const float *restrict gate, const float *restrict value,
                           const float *restrict dabove, const float *restrict dbelow,
                           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float d = dabove[i] * value[i] + dbelow[i];
        dvalue[i] += gate[i] * dabove[i];
        dgate[i] = d * gate[i] * (1 - gate[i]);
    }
}

FAST void kernel_moments(const struct moments *m, const float *restrict x, size_t n)
{
    float *restrict sum = m->sum, *restrict squares = m->squares,
                    *restrict max = m->max, *restrict min = m->min;
    for (size_t i = 0; i < n; i++) {
        sum[i] += x[i];
        squares[i] += x[i] * x[i];
        max[i] = x[i] > max[i] ? x[i] : max[i];
        min[i] = x[i] < min[i] ? x[i] : min[i];
    }
}

static const float VARIANCE_LEAST = 1e-5F;

FAST void kernel_moments_end(float *restrict mean, float *restrict std,
                             const struct moments *m, float count, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float average = m->sum[i] / count;
        const float variance = m->squares[i] / count - average * average;
        mean[i] = average;
        std[i] = sqrtf((variance > 0 ? variance : 0) + VARIANCE_LEAST);
    }
}

FAST void kernel_moments_grad(float *restrict dx, const float *restrict x,
                              const struct moments_grad *g, float count, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float spread = g->std[i] * g->std[i] > VARIANCE_LEAST
                                 ? (x[i] - g->mean[i]) / g->std[i]
                                 : 0;
        const float top = x[i] == g->max[i] ? g->dmax[i] : 0;
        const float bottom = x[i] == g->min[i] ? g->dmin[i] : 0;
        dx[i] = (g->dmean[i] + g->dstd[i] * spread) / count + top + bottom;
        g->dmax[i] = x[i] == g->max[i] ? 0 : g->dmax[i];
        g->dmin[i] = x[i] == g->min[i] ? 0 : g->dmin[i];
    }
}
