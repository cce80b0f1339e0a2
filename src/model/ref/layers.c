/* layers.c: linear, norm, feed-forward, losses. See layers.h. */
#include "model/ref/layers.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "model/ref/blas.h"
#include "model/ref/kernels.h"

static struct parameter *bind(struct refnet *net, const char *name, const char *what)
{
    char full[PARAMETER_NAME_LEN];
    (void)snprintf(full, sizeof full, "%s.%s", name, what);
    return refnet_parameter(net, full);
}

/* ---- Linear ----------------------------------------------------------------------------- */

int linear_declare(struct refnet *net, size_t in, size_t out, bool bias,
                   const char *name)
{
    const int rc = refnet_declare(net, out, in, "%s.weight", name);
    return rc < 0 || !bias ? rc : refnet_declare(net, out, 0, "%s.bias", name);
}

void linear_bind(struct linear *l, struct refnet *net, const char *name)
{
    l->weight = bind(net, name, "weight");
    l->bias = bind(net, name, "bias");
    assert(l->weight);
}

void linear_forward(struct linear *l, const float *x, size_t rows, float *y)
{
    const size_t in = l->weight->columns, out = l->weight->rows;
    if (l->bias)
        kernel_bias(y, l->bias->value, rows, out);
    blas_multiply(rows, out, in, 1, (struct mat){ x, in, false },
                  (struct mat){ l->weight->value, in, true }, l->bias ? 1 : 0, y, out);
    l->x = x;
    l->rows = rows;
}

/* dW += dyᵀ · x,  db += Σ dy,  dx = dy · W */
void linear_backward(struct linear *l, const float *dy, float *dx)
{
    const size_t in = l->weight->columns, out = l->weight->rows;
    blas_multiply(out, in, l->rows, 1, (struct mat){ dy, out, true },
                  (struct mat){ l->x, in, false }, 1, l->weight->grad, in);
    if (l->bias)
        kernel_bias_grad(l->bias->grad, dy, l->rows, out);
    if (dx)
        blas_multiply(l->rows, in, out, 1, (struct mat){ dy, out, false },
                      (struct mat){ l->weight->value, in, false }, 0, dx, in);
}

/* ---- Norm -------------------------------------------------------------------------------- */

int norm_declare(struct refnet *net, size_t width, const char *name)
{
    const int rc = refnet_declare(net, width, 0, "%s.weight", name);
    return rc < 0 ? rc : refnet_declare(net, width, 0, "%s.bias", name);
}

void norm_bind(struct norm *n, struct refnet *net, const char *name)
{
    n->weight = bind(net, name, "weight");
    n->bias = bind(net, name, "bias");
    assert(n->weight && n->bias);
}

void norm_forward(struct norm *n, struct refnet *net, const float *x, size_t rows,
                  float *y)
{
    n->x = x;
    n->rows = rows;
    n->mean = tape_floats(&net->tape, rows);
    n->rstd = tape_floats(&net->tape, rows);
    kernel_norm(y, x, n->weight->value, n->bias->value, n->mean, n->rstd, rows,
                n->weight->rows);
}

void norm_backward(struct norm *n, const float *dy, float *dx)
{
    kernel_norm_grad(dx, n->weight->grad, n->bias->grad, dy, n->x, n->weight->value,
                     n->mean, n->rstd, n->rows, n->weight->rows);
}

/* ---- Feed-forward -------------------------------------------------------------------------- */

int ffn_declare(struct refnet *net, size_t width, size_t hidden, const char *name)
{
    char part[PARAMETER_NAME_LEN];
    (void)snprintf(part, sizeof part, "%s.0", name);
    const int rc = linear_declare(net, width, hidden, true, part);
    (void)snprintf(part, sizeof part, "%s.2", name);
    return rc < 0 ? rc : linear_declare(net, hidden, width, true, part);
}

void ffn_bind(struct ffn *f, struct refnet *net, const char *name)
{
    char part[PARAMETER_NAME_LEN];
    (void)snprintf(part, sizeof part, "%s.0", name);
    linear_bind(&f->up, net, part);
    (void)snprintf(part, sizeof part, "%s.2", name);
    linear_bind(&f->down, net, part);
}

void ffn_forward(struct ffn *f, struct refnet *net, const float *x, size_t rows,
                 float *y)
{
    const size_t n = rows * f->up.weight->rows;
    f->before = tape_floats(&net->tape, n);
    f->after = tape_floats(&net->tape, n);
    linear_forward(&f->up, x, rows, f->before);
    kernel_gelu(f->after, f->before, n, f->tanh_form);
    linear_forward(&f->down, f->after, rows, y);
}

void ffn_backward(struct ffn *f, struct refnet *net, const float *dy, float *dx)
{
    const size_t n = f->up.rows * f->up.weight->rows, mark = tape_mark(&net->tape);
    float *dhidden = tape_floats(&net->tape, n);
    linear_backward(&f->down, dy, dhidden);
    kernel_gelu_grad(dhidden, dhidden, f->before, n, f->tanh_form);
    linear_backward(&f->up, dhidden, dx);
    tape_back(&net->tape, mark);
}

/* ---- Losses --------------------------------------------------------------------------------- */

static double row_cross_entropy(const float *logits, size_t columns, int32_t class,
                                float scale, float *dlogits)
{
    double top = logits[0];
    for (size_t c = 1; c < columns; c++)
        top = logits[c] > top ? logits[c] : top;
    double sum = exp((double)logits[0] - top);
    for (size_t c = 1; c < columns; c++)
        sum += exp((double)logits[c] - top);
    for (size_t c = 0; c < columns; c++)
        dlogits[c] = scale * (float)(exp((double)logits[c] - top) / sum);
    dlogits[class] -= scale;
    return top + log(sum) - (double)logits[class];
}

double cross_entropy(const float *logits, const int32_t *classes, size_t rows,
                     size_t columns, float *ret_dlogits)
{
    double loss = 0;
    for (size_t r = 0; r < rows; r++)
        loss += row_cross_entropy(logits + r * columns, columns, classes[r],
                                  1 / (float)rows, ret_dlogits + r * columns);
    return loss / (double)rows;
}

double binary_cross_entropy(const float *logits, const float *labels, size_t n,
                            float *ret_dlogits)
{
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)logits[i], y = (double)labels[i];
        /* max(x, 0) − x y + log(1 + e^−|x|): no overflow on either side */
        loss += (x > 0 ? x : 0) - x * y + log1p(exp(-fabs(x)));
        ret_dlogits[i] = (float)((1 / (1 + exp(-x)) - y) / (double)n);
    }
    return loss / (double)n;
}
