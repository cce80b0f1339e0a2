/* message_gat.c: graph attention.
 *
 *     h = W x;  z = leaky_relu(a_src · h_j + a_dst · h_i) for each head
 *     y_i = Σ α h_j + b,  α the softmax of z over i's incoming edges and i itself
 *
 * Scores stand head by head behind each other, those of node i from slot(i) on: its
 * incoming edges in their order, then itself.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "model/ref/kernels.h"
#include "model/ref/kernels_edge.h"
#include "model/ref/message.h"

static const float LEAK = 0.2F;

enum { TO_SOURCE, TO_TARGET, BIAS };
static const char *const own_names[] = { "att_src", "att_dst", "bias" };

static int gat_declare(struct refnet *net, size_t width, size_t heads, const char *name)
{
    int rc = message_linear_declare(net, width, width, false, name, "lin");
    rc = rc < 0 ? rc : refnet_declare(net, heads, width / heads, "%s.att_src", name);
    rc = rc < 0 ? rc : refnet_declare(net, heads, width / heads, "%s.att_dst", name);
    return rc < 0 ? rc : refnet_declare(net, width, 0, "%s.bias", name);
}

static void gat_bind(struct message *m, struct refnet *net, const char *name)
{
    message_linear_bind(&m->linears[0], net, name, "lin");
    for (int i = TO_SOURCE; i <= BIAS; i++) {
        char full[PARAMETER_NAME_LEN];
        (void)snprintf(full, sizeof full, "%s.%s", name, own_names[i]);
        m->own[i] = refnet_parameter(net, full);
        assert(m->own[i]);
    }
}

/* config_check() saw that the heads divide the width. */
static size_t head_size(const struct message *m)
{
    assert(m->heads > 0);
    return m->heads ? m->width / m->heads : m->width;
}

static size_t slot(const struct graphs *g, size_t node)
{
    return g->in_first[node] + node;
}

/* Of the k-th of node i's neighbours; the last is i itself. */
static size_t neighbour(const struct graphs *g, size_t i, size_t k)
{
    return k < incoming(g, i) ? g->in_source[g->in_first[i] + k] : i;
}

/* a · h of every node and head. */
static void project(const struct message *m, const struct parameter *a, float *ret)
{
    const size_t size = head_size(m);
    for (size_t i = 0; i < m->graphs->nodes; i++)
        for (size_t head = 0; head < m->heads; head++)
            ret[i * m->heads + head] = kernel_dot(
                m->hidden + i * m->width + head * size, a->value + head * size, size);
}

/* One node and head: scores into `raw`, their softmax into `alpha`; stride: heads. */
static void attend(const struct message *m, size_t i, size_t head, const float *source,
                   const float *target)
{
    const size_t heads = m->heads, count = incoming(m->graphs, i) + 1,
                 at = slot(m->graphs, i) * heads + head;
    float *raw = m->per_edge + at, *alpha = m->below + at, top = -INFINITY, sum = 0;
    for (size_t k = 0; k < count; k++) {
        const size_t j = neighbour(m->graphs, i, k);
        const float z = source[j * heads + head] + target[i * heads + head];
        raw[k * heads] = z;
        alpha[k * heads] = z > 0 ? z : LEAK * z;
        top = fmaxf(top, alpha[k * heads]);
    }
    for (size_t k = 0; k < count; k++)
        sum += alpha[k * heads] = expf(alpha[k * heads] - top);
    for (size_t k = 0; k < count; k++)
        alpha[k * heads] /= sum;
}

static void gat_node(const struct message *m, size_t i, float *y)
{
    const size_t size = head_size(m), count = incoming(m->graphs, i) + 1;
    const float *alpha = m->below + slot(m->graphs, i) * m->heads;
    for (size_t k = 0; k < count; k++)
        for (size_t head = 0; head < m->heads; head++)
            kernel_add_scaled(y + head * size,
                              m->hidden + neighbour(m->graphs, i, k) * m->width +
                                  head * size,
                              alpha[k * m->heads + head], size);
}

static void gat_forward(struct message *m, struct refnet *net, const float *x, float *y)
{
    const size_t nodes = m->graphs->nodes,
                 scores = (nodes + m->graphs->edges) * m->heads;
    m->hidden = tape_floats(&net->tape, nodes * m->width);
    m->per_edge = tape_floats(&net->tape, scores);
    m->below = tape_floats(&net->tape, scores);
    const size_t mark = tape_mark(&net->tape);
    float *source = tape_floats(&net->tape, nodes * m->heads),
          *target = tape_floats(&net->tape, nodes * m->heads);
    linear_forward(&m->linears[0], x, nodes, m->hidden);
    project(m, m->own[TO_SOURCE], source);
    project(m, m->own[TO_TARGET], target);
    kernel_bias(y, m->own[BIAS]->value, nodes, m->width);
    const uint64_t start = message_clock(net);
    for (size_t i = 0; i < nodes; i++) {
        for (size_t head = 0; head < m->heads; head++)
            attend(m, i, head, source, target);
        gat_node(m, i, y + i * m->width);
    }
    message_clock_end(net, start, false);
    tape_back(&net->tape, mark);
}

/* ---- Backward ------------------------------------------------------------------------------- */

struct gat_grads {
    float *h, *source, *target; /* of h; of a · h */
    float *alpha;               /* of one node and head */
};

/* One node and head. dα_k = dy · h_j; the softmax; then the leak. */
static void attend_backward(const struct message *m, size_t i, size_t head,
                            const float *dy, const struct gat_grads *d)
{
    const size_t heads = m->heads, size = head_size(m), column = head * size,
                 count = incoming(m->graphs, i) + 1,
                 at = slot(m->graphs, i) * heads + head;
    const float *raw = m->per_edge + at, *alpha = m->below + at;
    const float *own = dy + i * m->width + column;
    float inner = 0;
    for (size_t k = 0; k < count; k++) {
        const size_t row = neighbour(m->graphs, i, k) * m->width + column;
        d->alpha[k] = kernel_dot(own, m->hidden + row, size);
        kernel_add_scaled(d->h + row, own, alpha[k * heads], size);
        inner += alpha[k * heads] * d->alpha[k];
    }
    for (size_t k = 0; k < count; k++) {
        const float dz = alpha[k * heads] * (d->alpha[k] - inner) *
                         (raw[k * heads] > 0 ? 1 : LEAK);
        d->source[neighbour(m->graphs, i, k) * heads + head] += dz;
        d->target[i * heads + head] += dz;
    }
}

/* dh += d(a · h) a;  da += d(a · h) h */
static void project_backward(const struct message *m, struct parameter *a,
                             const float *d, float *dh)
{
    const size_t size = head_size(m);
    for (size_t i = 0; i < m->graphs->nodes; i++)
        for (size_t head = 0; head < m->heads; head++) {
            const size_t row = i * m->width + head * size;
            const float slope = d[i * m->heads + head];
            kernel_add_scaled(dh + row, a->value + head * size, slope, size);
            kernel_add_scaled(a->grad + head * size, m->hidden + row, slope, size);
        }
}

static size_t most_incoming(const struct graphs *g)
{
    size_t most = 0;
    for (size_t i = 0; i < g->nodes; i++)
        most = incoming(g, i) > most ? incoming(g, i) : most;
    return most;
}

static void gat_backward(struct message *m, struct refnet *net, const float *dy,
                         float *dx)
{
    const size_t nodes = m->graphs->nodes, mark = tape_mark(&net->tape);
    const struct gat_grads d = {
        .h = tape_floats(&net->tape, nodes * m->width),
        .source = tape_floats(&net->tape, nodes * m->heads),
        .target = tape_floats(&net->tape, nodes * m->heads),
        .alpha = tape_floats(&net->tape, most_incoming(m->graphs) + 1),
    };
    kernel_fill(d.h, 0, nodes * m->width);
    kernel_fill(d.source, 0, nodes * m->heads);
    kernel_fill(d.target, 0, nodes * m->heads);
    kernel_bias_grad(m->own[BIAS]->grad, dy, nodes, m->width);
    const uint64_t start = message_clock(net);
    for (size_t i = 0; i < nodes; i++)
        for (size_t head = 0; head < m->heads; head++)
            attend_backward(m, i, head, dy, &d);
    message_clock_end(net, start, true);
    project_backward(m, m->own[TO_SOURCE], d.source, d.h);
    project_backward(m, m->own[TO_TARGET], d.target, d.h);
    linear_backward(&m->linears[0], d.h, dx);
    tape_back(&net->tape, mark);
}

const struct message_rule gat_rule = { gat_declare, gat_bind, gat_forward,
                                       gat_backward };
