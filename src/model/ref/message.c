/* message.c: message passing, see layers.h. Each node sums over its incoming edges; the
 * gradient flows back over the outgoing ones. Both are lists per node (graphs.h), so
 * nothing is scattered and the order of every sum is fixed.
 *
 *     gin    y = W₂ · relu(W₁ · (x + Σ x_j) + b₁) + b₂
 *     gcn    y = W · Σ x_j / √(d_i d_j) + b, each node its own neighbour too
 *     sage   y = W₁ · mean x_j + b + W₂ · x
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/moment.h"
#include "model/ref/kernels.h"
#include "model/ref/layers.h"

static const char *first_name(int kind)
{
    return kind == SONDE_GIN ? "0" : kind == SONDE_SAGE ? "lin_l" : "lin";
}

int message_declare(struct refnet *net, int kind, size_t width, const char *name)
{
    char part[PARAMETER_NAME_LEN];
    if (kind != SONDE_GIN && kind != SONDE_GCN && kind != SONDE_SAGE)
        return SONDE_E_UNSUPPORTED;
    (void)snprintf(part, sizeof part, "%s.%s", name, first_name(kind));
    const int rc = linear_declare(net, width, width, true, part);
    if (rc < 0 || kind == SONDE_GCN)
        return rc;
    (void)snprintf(part, sizeof part, "%s.%s", name, kind == SONDE_GIN ? "2" : "lin_r");
    return linear_declare(net, width, width, kind == SONDE_GIN, part);
}

void message_bind(struct message *m, struct refnet *net, int kind, size_t width,
                  const char *name)
{
    char part[PARAMETER_NAME_LEN];
    m->kind = kind;
    m->width = width;
    (void)snprintf(part, sizeof part, "%s.%s", name, first_name(kind));
    linear_bind(&m->first, net, part);
    (void)snprintf(part, sizeof part, "%s.%s", name, kind == SONDE_GIN ? "2" : "lin_r");
    if (kind != SONDE_GCN)
        linear_bind(&m->second, net, part);
}

/* How much node j counts for node i. */
static float weight(const struct message *m, const struct graphs *g, size_t i, size_t j)
{
    switch (m->kind) {
    case SONDE_GCN:
        return g->gcn_scale[i] * g->gcn_scale[j];
    case SONDE_SAGE:
        return 1 / (float)(g->in_first[i + 1] - g->in_first[i]);
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
    const uint64_t start = moment_ns(net->clock);
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
    struct part_time *time = &net->inner[INNER_MESSAGES];
    *(gradient ? &time->backward_ns : &time->forward_ns) += moment_ns(net->clock) -
                                                            start;
}

void message_forward(struct message *m, struct refnet *net, const float *x,
                     const struct graphs *graphs, float *y)
{
    const size_t n = graphs->nodes * m->width;
    m->graphs = graphs;
    m->gathered = tape_floats(&net->tape, n);
    gather(m, net, x, m->gathered, false);
    if (m->kind == SONDE_GIN) {
        m->hidden = tape_floats(&net->tape, n);
        linear_forward(&m->first, m->gathered, graphs->nodes, m->hidden);
        kernel_relu(m->hidden, n);
        linear_forward(&m->second, m->hidden, graphs->nodes, y);
        return;
    }
    linear_forward(&m->first, m->gathered, graphs->nodes, y);
    if (m->kind == SONDE_SAGE) {
        const size_t mark = tape_mark(&net->tape);
        float *own = tape_floats(&net->tape, n);
        linear_forward(&m->second, x, graphs->nodes, own);
        kernel_add(y, own, n);
        tape_back(&net->tape, mark);
    }
}

void message_backward(struct message *m, struct refnet *net, const float *dy, float *dx)
{
    const size_t n = m->graphs->nodes * m->width, mark = tape_mark(&net->tape);
    float *dgathered = tape_floats(&net->tape, n);
    if (m->kind == SONDE_GIN) {
        linear_backward(&m->second, dy, dx); /* dx serves as the hidden gradient */
        kernel_relu_grad(dx, m->hidden, n);
        linear_backward(&m->first, dx, dgathered);
    } else {
        linear_backward(&m->first, dy, dgathered);
    }
    gather(m, net, dgathered, dx, true);
    if (m->kind == SONDE_SAGE) {
        linear_backward(&m->second, dy, dgathered);
        kernel_add(dx, dgathered, n);
    }
    tape_back(&net->tape, mark);
}
