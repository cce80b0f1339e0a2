/* message_edge.c: message passing that looks at the features e of edges.
 *
 *     gine      y = MLP(x + Σ relu(x_j + e)), the MLP as GIN's
 *     gatedgcn  y = U x + Σ g ⊙ V x_j / (Σ g + ε),  g = σ(A x_i + B x_j + C e)
 *
 * Both leave e as it is: all layers of a net look at the same features.
 */
#include <string.h>

#include "model/ref/kernels.h"
#include "model/ref/kernels_edge.h"
#include "model/ref/message.h"

/* ---- GINE ----------------------------------------------------------------------------------- */

static void gine_gather(struct message *m, const float *x)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width;
    memcpy(m->gathered, x, g->nodes * width * sizeof *x);
    for (size_t i = 0; i < g->nodes; i++)
        for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++) {
            float *message = m->per_edge + k * width;
            kernel_relu_sum(message, x + g->in_source[k] * width,
                            m->edges->value + k * width, width);
            kernel_add(m->gathered + i * width, message, width);
        }
}

static void gine_forward(struct message *m, struct refnet *net, const float *x,
                         float *y)
{
    m->gathered = tape_floats(&net->tape, m->graphs->nodes * m->width);
    m->per_edge = tape_floats(&net->tape, m->graphs->edges * m->width);
    const uint64_t start = message_clock(net);
    gine_gather(m, x);
    message_clock_end(net, start, false);
    message_mlp_forward(m, net, y);
}

static void gine_scatter(const struct message *m, const float *dgathered, float *dx)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width;
    memcpy(dx, dgathered, g->nodes * width * sizeof *dx);
    for (size_t i = 0; i < g->nodes; i++)
        for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++) {
            const float *message = m->per_edge + k * width, *d = dgathered + i * width;
            kernel_add_where(dx + g->in_source[k] * width, d, message, width);
            kernel_add_where(m->edges->grad + k * width, d, message, width);
        }
}

static void gine_backward(struct message *m, struct refnet *net, const float *dy,
                          float *dx)
{
    const size_t mark = tape_mark(&net->tape);
    float *dgathered = tape_floats(&net->tape, m->graphs->nodes * m->width);
    message_mlp_backward(m, dy, dx, dgathered);
    const uint64_t start = message_clock(net);
    gine_scatter(m, dgathered, dx);
    message_clock_end(net, start, true);
    tape_back(&net->tape, mark);
}

const struct message_rule gine_rule = { message_mlp_declare, message_mlp_bind,
                                        gine_forward, gine_backward };

/* ---- GatedGCN -------------------------------------------------------------------------------- */

enum { AT_TARGET, AT_SOURCE, AT_EDGE, OWN, VALUE, GATED_LINEARS };
static const char *const gated_names[GATED_LINEARS] = { "A", "B", "C", "U", "V" };
static const float BELOW_LEAST = 1e-6F;

static int gated_declare(struct refnet *net, size_t width, size_t heads,
                         const char *name)
{
    int rc = 0;
    (void)heads;
    for (int i = 0; i < GATED_LINEARS && rc == 0; i++)
        rc = message_linear_declare(net, width, width, true, name, gated_names[i]);
    return rc;
}

static void gated_bind(struct message *m, struct refnet *net, const char *name)
{
    for (int i = 0; i < GATED_LINEARS; i++)
        message_linear_bind(&m->linears[i], net, name, gated_names[i]);
}

/* Node i's sum over its gates; `below` and the quotient are kept. */
static void gated_node(struct message *m, size_t i, const float *at_target,
                       const float *at_source, float *y)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width;
    float *above = m->gathered + i * width, *below = m->below + i * width;
    kernel_fill(above, 0, width);
    kernel_fill(below, BELOW_LEAST, width);
    for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++) {
        const size_t j = g->in_source[k];
        float *gate = m->per_edge + k * width;
        kernel_gate(gate, at_target + i * width, at_source + j * width, width);
        kernel_add_product(above, gate, m->hidden + j * width, width);
        kernel_add(below, gate, width);
    }
    for (size_t f = 0; f < width; f++)
        above[f] /= below[f];
    kernel_add(y + i * width, above, width);
}

static void gated_forward(struct message *m, struct refnet *net, const float *x,
                          float *y)
{
    const size_t nodes = m->graphs->nodes, n = nodes * m->width;
    m->gathered = tape_floats(&net->tape, n);
    m->below = tape_floats(&net->tape, n);
    m->hidden = tape_floats(&net->tape, n);
    m->per_edge = tape_floats(&net->tape, m->graphs->edges * m->width);
    const size_t mark = tape_mark(&net->tape);
    float *at_target = tape_floats(&net->tape, n),
          *at_source = tape_floats(&net->tape, n);
    linear_forward(&m->linears[AT_TARGET], x, nodes, at_target);
    linear_forward(&m->linears[AT_SOURCE], x, nodes, at_source);
    linear_forward(&m->linears[VALUE], x, nodes, m->hidden);
    linear_forward(&m->linears[OWN], x, nodes, y);
    linear_forward(&m->linears[AT_EDGE], m->edges->value, m->graphs->edges,
                   m->per_edge);
    const uint64_t start = message_clock(net);
    for (size_t i = 0; i < nodes; i++)
        gated_node(m, i, at_target, at_source, y);
    message_clock_end(net, start, false);
    tape_back(&net->tape, mark);
}

struct gated_grads {
    float *above, *below;          /* of one node */
    float *target, *source, *edge; /* of what stands in σ, by linear layer */
    float *value;
};

static void gated_node_backward(const struct message *m, size_t i, const float *dy,
                                const struct gated_grads *d)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width, row = i * width;
    for (size_t f = 0; f < width; f++) {
        d->above[f] = dy[row + f] / m->below[row + f];
        d->below[f] = -d->above[f] * m->gathered[row + f];
    }
    for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++) {
        const size_t source = g->in_source[k] * width;
        float *dgate = d->edge + k * width;
        kernel_gate_grad(dgate, d->value + source, m->per_edge + k * width,
                         m->hidden + source, d->above, d->below, width);
        kernel_add(d->target + row, dgate, width);
        kernel_add(d->source + source, dgate, width);
    }
}

static void gated_backward(struct message *m, struct refnet *net, const float *dy,
                           float *dx)
{
    const size_t nodes = m->graphs->nodes, n = nodes * m->width,
                 on_edges = m->graphs->edges * m->width, mark = tape_mark(&net->tape);
    float *sums = tape_floats(&net->tape, 3 * n);
    float *row = tape_floats(&net->tape, 2 * m->width);
    const struct gated_grads d = { .above = row,
                                   .below = row + m->width,
                                   .target = sums,
                                   .source = sums + n,
                                   .value = sums + 2 * n,
                                   .edge = tape_floats(&net->tape, on_edges) };
    float *through = tape_floats(&net->tape, on_edges > n ? on_edges : n);
    kernel_fill(sums, 0, 3 * n);
    const uint64_t start = message_clock(net);
    for (size_t i = 0; i < nodes; i++)
        gated_node_backward(m, i, dy, &d);
    message_clock_end(net, start, true);
    linear_backward(&m->linears[OWN], dy, dx);
    const float *const grads[] = { d.target, d.source, d.value };
    static const int which[] = { AT_TARGET, AT_SOURCE, VALUE };
    for (int l = 0; l < 3; l++) {
        linear_backward(&m->linears[which[l]], grads[l], through);
        kernel_add(dx, through, n);
    }
    linear_backward(&m->linears[AT_EDGE], d.edge, through);
    kernel_add(m->edges->grad, through, on_edges);
    tape_back(&net->tape, mark);
}

const struct message_rule gated_gcn_rule = { gated_declare, gated_bind, gated_forward,
                                             gated_backward };
