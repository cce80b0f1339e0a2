/* message.c: which kind of message passing, and the features of edges. See layers.h. */
#include "model/ref/message.h"

#include <stdio.h>

#include "base/error.h"
#include "base/moment.h"
#include "model/ref/kernels.h"

static const struct message_rule *const rules[SONDE_MESSAGE_COUNT] = {
    [SONDE_GIN] = &gin_rule,   [SONDE_GCN] = &gcn_rule,
    [SONDE_GINE] = &gine_rule, [SONDE_GAT] = &gat_rule,
    [SONDE_PNA] = &pna_rule,   [SONDE_GATED_GCN] = &gated_gcn_rule,
    [SONDE_SAGE] = &sage_rule,
};

int message_declare(struct refnet *net, int kind, size_t width, size_t heads,
                    const char *name)
{
    return rules[kind] ? rules[kind]->declare(net, width, heads, name)
                       : SONDE_E_UNSUPPORTED;
}

void message_bind(struct message *m, struct refnet *net, int kind, size_t width,
                  size_t heads, const char *name)
{
    m->kind = kind;
    m->width = width;
    m->heads = heads;
    rules[kind]->bind(m, net, name);
}

void message_forward(struct message *m, struct refnet *net, const float *x,
                     const struct graphs *graphs, const struct edge_features *edges,
                     float *y)
{
    m->graphs = graphs;
    m->edges = edges;
    rules[m->kind]->forward(m, net, x, y);
}

void message_backward(struct message *m, struct refnet *net, const float *dy, float *dx)
{
    rules[m->kind]->backward(m, net, dy, dx);
}

/* ---- What the kinds share ---------------------------------------------------------------- */

int message_linear_declare(struct refnet *net, size_t in, size_t out, bool bias,
                           const char *name, const char *part)
{
    char full[PARAMETER_NAME_LEN];
    (void)snprintf(full, sizeof full, "%s.%s", name, part);
    return linear_declare(net, in, out, bias, full);
}

void message_linear_bind(struct linear *l, struct refnet *net, const char *name,
                         const char *part)
{
    char full[PARAMETER_NAME_LEN];
    (void)snprintf(full, sizeof full, "%s.%s", name, part);
    linear_bind(l, net, full);
}

uint64_t message_clock(const struct refnet *net)
{
    return moment_ns(net->clock);
}

void message_clock_end(struct refnet *net, uint64_t start, bool backward)
{
    struct part_time *time = &net->inner[INNER_MESSAGES];
    *(backward ? &time->backward_ns : &time->forward_ns) += moment_ns(net->clock) -
                                                            start;
}

/* ---- Features of edges -------------------------------------------------------------------- */

int edge_features_declare(struct refnet *net, size_t width)
{
    return linear_declare(net, EDGE_FEATURES, width, true, "edge_encoder");
}

void edge_features_bind(struct edge_features *e, struct refnet *net)
{
    linear_bind(&e->encoder, net, "edge_encoder");
}

/* Each edge: 1, and 1/√(incoming edges + 1) of its source and target. Any graph has them. */
static void structure_of(const struct graphs *g, float *features)
{
    for (size_t i = 0; i < g->nodes; i++)
        for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++) {
            features[k * EDGE_FEATURES] = 1;
            features[k * EDGE_FEATURES + 1] = g->gcn_scale[g->in_source[k]];
            features[k * EDGE_FEATURES + 2] = g->gcn_scale[i];
        }
}

void edge_features_forward(struct edge_features *e, struct refnet *net,
                           const struct graphs *g)
{
    const size_t n = g->edges * e->encoder.weight->rows;
    float *features = tape_floats(&net->tape, g->edges * EDGE_FEATURES);
    e->value = tape_floats(&net->tape, n);
    structure_of(g, features);
    linear_forward(&e->encoder, features, g->edges, e->value);
}

void edge_features_backward_begin(struct edge_features *e, struct refnet *net)
{
    const size_t n = e->encoder.rows * e->encoder.weight->rows;
    e->grad = tape_floats(&net->tape, n);
    kernel_fill(e->grad, 0, n);
}

void edge_features_backward(struct edge_features *e)
{
    linear_backward(&e->encoder, e->grad, NULL);
}
