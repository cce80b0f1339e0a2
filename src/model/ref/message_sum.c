/* message_sum.c: message passing that adds up neighbours with weights known beforehand.
 *
 *     gin    y = W₂ · relu(W₁ · (x + Σ x_j) + b₁) + b₂
 *     gcn    y = W · Σ x_j / √(d_i d_j) + b, each node its own neighbour too
 *     sage   y = W₁ · mean x_j + b + W₂ · x
 *
 * Each node sums over its incoming edges; the gradient flows back over the outgoing ones.
 * Both are lists per node (graphs.h), so nothing is scattered and the order of every sum is
 * fixed.
 */
#include <string.h>

#include "model/ref/kernels.h"
#include "model/ref/message.h"

/* ---- The sum ------------------------------------------------------------------------------- */

/* How much node j counts for node i. */
static float weight(const struct message *m, const struct graphs *g, size_t i, size_t j)
{
    switch (m->kind) {
    case SONDE_GCN:
        return g->gcn_scale[i] * g->gcn_scale[j];
    case SONDE_SAGE:
        return 1 / (float)incoming(g, i);
    default:
        return 1;
    }
}

static float self_weight(const struct message *m, const struct graphs *g, size_t i)
{
    return m->kind == SONDE_SAGE ? 0 : weight(m, g, i, i);
}

/* y_i = Σ weight · x_j over `list`: incoming edges, or outgoing ones for the gradient,
 * where the weight is that of the edge's target. */
static void gather(const struct message *m, struct refnet *net, const float *x,
                   float *y, bool gradient)
{
    const uint64_t start = message_clock(net);
    const struct graphs *g = m->graphs;
    const uint32_t *first = gradient ? g->out_first : g->in_first;
    const uint32_t *other = gradient ? g->out_target : g->in_source;
    const size_t width = m->width;
    for (size_t i = 0; i < g->nodes; i++) {
        float *row = y + i * width;
        const float self = self_weight(m, g, i);
        memcpy(row, x + i * width, width * sizeof *row);
        if (self != 1)
            kernel_scale(row, self, width);
        for (uint32_t e = first[i]; e < first[i + 1]; e++) {
            const size_t j = other[e];
            kernel_add_scaled(row, x + j * width,
                              gradient ? weight(m, g, j, i) : weight(m, g, i, j),
                              width);
        }
    }
    message_clock_end(net, start, gradient);
}

static void gather_forward(struct message *m, struct refnet *net, const float *x)
{
    m->gathered = tape_floats(&net->tape, m->graphs->nodes * m->width);
    gather(m, net, x, m->gathered, false);
}

/* ---- GIN ----------------------------------------------------------------------------------- */

int message_mlp_declare(struct refnet *net, size_t width, size_t heads,
                        const char *name)
{
    (void)heads;
    const int rc = message_linear_declare(net, width, width, true, name, "0");
    return rc < 0 ? rc : message_linear_declare(net, width, width, true, name, "2");
}

void message_mlp_bind(struct message *m, struct refnet *net, const char *name)
{
    message_linear_bind(&m->linears[0], net, name, "0");
    message_linear_bind(&m->linears[1], net, name, "2");
}

void message_mlp_forward(struct message *m, struct refnet *net, float *y)
{
    const size_t nodes = m->graphs->nodes;
    m->hidden = tape_floats(&net->tape, nodes * m->width);
    linear_forward(&m->linears[0], m->gathered, nodes, m->hidden);
    kernel_relu(m->hidden, nodes * m->width);
    linear_forward(&m->linears[1], m->hidden, nodes, y);
}

void message_mlp_backward(struct message *m, const float *dy, float *scratch,
                          float *dgathered)
{
    linear_backward(&m->linears[1], dy, scratch);
    kernel_relu_grad(scratch, m->hidden, m->graphs->nodes * m->width);
    linear_backward(&m->linears[0], scratch, dgathered);
}

static void gin_forward(struct message *m, struct refnet *net, const float *x, float *y)
{
    gather_forward(m, net, x);
    message_mlp_forward(m, net, y);
}

static void gin_backward(struct message *m, struct refnet *net, const float *dy,
                         float *dx)
{
    const size_t mark = tape_mark(&net->tape);
    float *dgathered = tape_floats(&net->tape, m->graphs->nodes * m->width);
    message_mlp_backward(m, dy, dx, dgathered);
    gather(m, net, dgathered, dx, true);
    tape_back(&net->tape, mark);
}

const struct message_rule gin_rule = { message_mlp_declare, message_mlp_bind,
                                       gin_forward, gin_backward };

/* ---- GCN ----------------------------------------------------------------------------------- */

static int gcn_declare(struct refnet *net, size_t width, size_t heads, const char *name)
{
    (void)heads;
    return message_linear_declare(net, width, width, true, name, "lin");
}

static void gcn_bind(struct message *m, struct refnet *net, const char *name)
{
    message_linear_bind(&m->linears[0], net, name, "lin");
}

static void gcn_forward(struct message *m, struct refnet *net, const float *x, float *y)
{
    gather_forward(m, net, x);
    linear_forward(&m->linears[0], m->gathered, m->graphs->nodes, y);
}

static void gcn_backward(struct message *m, struct refnet *net, const float *dy,
                         float *dx)
{
    const size_t mark = tape_mark(&net->tape);
    float *dgathered = tape_floats(&net->tape, m->graphs->nodes * m->width);
    linear_backward(&m->linears[0], dy, dgathered);
    gather(m, net, dgathered, dx, true);
    tape_back(&net->tape, mark);
}

const struct message_rule gcn_rule = { gcn_declare, gcn_bind, gcn_forward,
                                       gcn_backward };

/* ---- SAGE ---------------------------------------------------------------------------------- */

static int sage_declare(struct refnet *net, size_t width, size_t heads,
                        const char *name)
{
    (void)heads;
    const int rc = message_linear_declare(net, width, width, true, name, "lin_l");
    return rc < 0 ? rc
                  : message_linear_declare(net, width, width, false, name, "lin_r");
}

static void sage_bind(struct message *m, struct refnet *net, const char *name)
{
    message_linear_bind(&m->linears[0], net, name, "lin_l");
    message_linear_bind(&m->linears[1], net, name, "lin_r");
}

static void sage_forward(struct message *m, struct refnet *net, const float *x,
                         float *y)
{
    const size_t nodes = m->graphs->nodes, n = nodes * m->width;
    gather_forward(m, net, x);
    linear_forward(&m->linears[0], m->gathered, nodes, y);
    const size_t mark = tape_mark(&net->tape);
    float *own = tape_floats(&net->tape, n);
    linear_forward(&m->linears[1], x, nodes, own);
    kernel_add(y, own, n);
    tape_back(&net->tape, mark);
}

static void sage_backward(struct message *m, struct refnet *net, const float *dy,
                          float *dx)
{
    const size_t n = m->graphs->nodes * m->width, mark = tape_mark(&net->tape);
    float *dgathered = tape_floats(&net->tape, n);
    linear_backward(&m->linears[0], dy, dgathered);
    gather(m, net, dgathered, dx, true);
    linear_backward(&m->linears[1], dy, dgathered);
    kernel_add(dx, dgathered, n);
    tape_back(&net->tape, mark);
}

const struct message_rule sage_rule = { sage_declare, sage_bind, sage_forward,
                                        sage_backward };
