/* attention.c: see layers.h. Group by group and head by head:
 *
 *     S = Q·Kᵀ / √d    P = softmax(S)    O = P·V
 *
 *     dV = Pᵀ·dO    dP = dO·Vᵀ    dS = softmax's gradient    dQ = dS·K/√d    dK = dSᵀ·Q/√d
 */
#include <math.h>
#include <stdio.h>

#include "base/moment.h"
#include "model/ref/blas.h"
#include "model/ref/kernels.h"
#include "model/ref/layers.h"

int attention_declare(struct refnet *net, size_t width, const char *name)
{
    char part[PARAMETER_NAME_LEN];
    (void)snprintf(part, sizeof part, "%s.qkv", name);
    const int rc = linear_declare(net, width, 3 * width, true, part);
    (void)snprintf(part, sizeof part, "%s.out", name);
    return rc < 0 ? rc : linear_declare(net, width, width, true, part);
}

void attention_bind(struct attention *a, struct refnet *net, size_t heads, size_t width,
                    const char *name)
{
    char part[PARAMETER_NAME_LEN];
    a->heads = heads;
    a->width = width;
    (void)snprintf(part, sizeof part, "%s.qkv", name);
    linear_bind(&a->qkv, net, part);
    (void)snprintf(part, sizeof part, "%s.out", name);
    linear_bind(&a->out, net, part);
}

/* One head of one group: where its matrices begin. */
struct head {
    size_t n, size, stride; /* rows; width of the head; from row to row of qkv */
    size_t row, column;     /* of the group and the head */
    float *p;               /* n × n */
};

static size_t pair_count(const struct attention *a)
{
    size_t pairs = 0;
    for (size_t g = 0; g < a->groups; g++) {
        const size_t n = a->first[g + 1] - a->first[g];
        pairs += n * n;
    }
    return pairs * a->heads;
}

/* The matrix `which` (0 Q, 1 K, 2 V) of a head in an array laid out as `projected`. */
static const float *part(const struct attention *a, const struct head *h,
                         const float *base, int which)
{
    return base + h->row * h->stride + (size_t)which * a->width + h->column;
}

static void head_forward(const struct attention *a, const struct head *h)
{
    const struct mat q = { part(a, h, a->projected, 0), h->stride, false };
    const struct mat k = { part(a, h, a->projected, 1), h->stride, true };
    const struct mat v = { part(a, h, a->projected, 2), h->stride, false };
    blas_multiply(h->n, h->n, h->size, 1 / sqrtf((float)h->size), q, k, 0, h->p, h->n);
    kernel_softmax(h->p, h->n, h->n, a->causal);
    blas_multiply(h->n, h->size, h->n, 1, (struct mat){ h->p, h->n, false }, v, 0,
                  a->context + h->row * a->width + h->column, a->width);
}

static void head_backward(const struct attention *a, const struct head *h,
                          const float *dcontext, float *dprojected, float *dp)
{
    const float scale = 1 / sqrtf((float)h->size);
    const struct mat q = { part(a, h, a->projected, 0), h->stride, false };
    const struct mat k = { part(a, h, a->projected, 1), h->stride, false };
    const struct mat v = { part(a, h, a->projected, 2), h->stride, true };
    const struct mat d_o = { dcontext + h->row * a->width + h->column, a->width,
                             false };
    float *dq = dprojected + h->row * h->stride + h->column;
    float *dk = dq + a->width, *dv = dk + a->width;

    blas_multiply(h->n, h->size, h->n, 1, (struct mat){ h->p, h->n, true }, d_o, 0, dv,
                  h->stride);
    blas_multiply(h->n, h->n, h->size, 1, d_o, v, 0, dp, h->n);
    kernel_softmax_grad(dp, h->p, h->n, h->n);
    blas_multiply(h->n, h->size, h->n, scale, (struct mat){ dp, h->n, false }, k, 0, dq,
                  h->stride);
    blas_multiply(h->n, h->size, h->n, scale, (struct mat){ dp, h->n, true }, q, 0, dk,
                  h->stride);
}

static struct head head_at(const struct attention *a, size_t group, size_t index,
                           float **p)
{
    const size_t n = a->first[group + 1] - a->first[group], size = a->width / a->heads;
    const struct head h = { .n = n,
                            .size = size,
                            .stride = 3 * a->width,
                            .row = a->first[group],
                            .column = index * size,
                            .p = *p };
    *p += n * n;
    return h;
}

void attention_forward(struct attention *a, struct refnet *net, const float *x,
                       const size_t *first, size_t groups, float *y)
{
    const size_t rows = first[groups];
    a->first = first;
    a->groups = groups;
    a->projected = tape_floats(&net->tape, rows * 3 * a->width);
    a->probabilities = tape_floats(&net->tape, pair_count(a));
    a->context = tape_floats(&net->tape, rows * a->width);

    linear_forward(&a->qkv, x, rows, a->projected);
    const uint64_t start = moment_ns(net->clock);
    float *p = a->probabilities;
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < a->heads; i++) {
            const struct head h = head_at(a, g, i, &p);
            head_forward(a, &h);
        }
    net->inner[INNER_PAIRS].forward_ns += moment_ns(net->clock) - start;
    linear_forward(&a->out, a->context, rows, y);
}

static size_t largest_group(const struct attention *a)
{
    size_t largest = 0;
    for (size_t g = 0; g < a->groups; g++)
        if (a->first[g + 1] - a->first[g] > largest)
            largest = a->first[g + 1] - a->first[g];
    return largest;
}

void attention_backward(struct attention *a, struct refnet *net, const float *dy,
                        float *dx)
{
    const size_t rows = a->first[a->groups], n = largest_group(a),
                 mark = tape_mark(&net->tape);
    float *dcontext = tape_floats(&net->tape, rows * a->width);
    float *dprojected = tape_floats(&net->tape, rows * 3 * a->width);
    float *dp = tape_floats(&net->tape, n * n);

    linear_backward(&a->out, dy, dcontext);
    const uint64_t start = moment_ns(net->clock);
    float *p = a->probabilities;
    for (size_t g = 0; g < a->groups; g++)
        for (size_t i = 0; i < a->heads; i++) {
            const struct head h = head_at(a, g, i, &p);
            head_backward(a, &h, dcontext, dprojected, dp);
        }
    net->inner[INNER_PAIRS].backward_ns += moment_ns(net->clock) - start;
    linear_backward(&a->qkv, dprojected, dx);
    tape_back(&net->tape, mark);
}
