/* message.c: message passing over N nodes and E directed edges.
 *
 * Each kind as PyTorch Geometric (GatedGCN: the authors' code) computes it. Norms and
 * activations around the layer are layers of their own. Aggregation with a weight per
 * edge is multiply-adds (a sparse matrix product), plain sums are element-wise.
 */
#include "model/cost.h"

struct graph {
    double nodes, edges, in, out, edge_dim, heads;
};

static struct product transform(const struct graph *g, double in, double out, bool bias)
{
    return (struct product){ .rows = g->nodes, .in = in, .out = out, .bias = bias };
}

/* Gathers from the source of each edge and adds up at the target. */
static void sum_messages(struct costing *c, const struct graph *g, double width)
{
    cost_fused(c, g->edges * width, g->edges * width);
    cost_move(c, g->edges * width + 2 * g->nodes * width + 2 * g->edges,
              g->edges * width + 2 * g->nodes * width + 2 * g->edges);
}

static void weigh_messages(struct costing *c, const struct graph *g, double edges,
                           double width, bool weights_learn)
{
    c->cost.forward.macs += edges * width;
    c->cost.backward.macs += edges * width * (weights_learn ? 2 : 1);
    cost_move(c, edges * (width + 3) + 2 * g->nodes * width,
              edges * (width + 3) + 2 * g->nodes * width);
}

/* D^-½ (A + I) D^-½ X W + b */
static void gcn(struct costing *c, const struct graph *g)
{
    cost_product(c, transform(g, g->in, g->out, false));
    weigh_messages(c, g, g->edges + g->nodes, g->out, false);
    cost_elements(c, g->nodes * g->out, c->rules.simple, c->rules.simple);
    cost_parameters(c, g->out);
    cost_save(c, g->nodes * g->in);
}

/* MLP((1 + ε) x + Σ messages); the MLP is linear, relu, linear; ε is fixed. */
static void gin_mlp(struct costing *c, const struct graph *g)
{
    cost_elements(c, g->nodes * g->in, 2 * c->rules.simple, c->rules.simple);
    cost_product(c, transform(g, g->in, g->out, true));
    cost_elements(c, g->nodes * g->out, c->rules.simple, c->rules.simple);
    cost_product(c, transform(g, g->out, g->out, true));
    cost_save(c, g->nodes * (g->in + g->out));
}

static void gin(struct costing *c, const struct graph *g)
{
    sum_messages(c, g, g->in);
    gin_mlp(c, g);
}

/* Messages are relu(x_j + W e_ji); without edge_dim the edges have `in` features. */
static void gine(struct costing *c, const struct graph *g)
{
    if (g->edge_dim > 0) {
        cost_product(
            c, (struct product){
                   .rows = g->edges, .in = g->edge_dim, .out = g->in, .bias = true });
        cost_save(c, g->edges * g->edge_dim);
    }
    cost_elements(c, g->edges * g->in, 2 * c->rules.simple, 2 * c->rules.simple);
    cost_save(c, g->edges * g->in);
    sum_messages(c, g, g->in);
    gin_mlp(c, g);
}

/* α_ji = softmax over incoming edges of leaky_relu(a_s·Wx_j + a_t·Wx_i) */
static void gat(struct costing *c, const struct graph *g)
{
    const double scores = (g->edges + g->nodes) * g->heads; /* with self loops */
    cost_product(c, transform(g, g->in, g->out, false));
    c->cost.forward.macs += 2 * g->nodes * g->out;
    c->cost.backward.macs += 4 * g->nodes * g->out;
    cost_parameters(c, (c->layer->no_bias ? 2 : 3) * g->out); /* a_s, a_t, bias */
    cost_elements(c, scores, 2 * c->rules.simple, 2 * c->rules.simple);
    cost_elements(c, scores, c->rules.softmax, SOFTMAX_BACKWARD);
    weigh_messages(c, g, g->edges + g->nodes, g->out, true);
    if (!c->layer->no_bias)
        cost_elements(c, g->nodes * g->out, c->rules.simple, c->rules.simple);
    cost_save(c, g->nodes * (g->in + g->out) + 2 * scores);
}

/* ê = A x_i + B x_j + C e;  x_i ← U x_i + Σ σ(ê) ⊙ V x_j / (Σ σ(ê) + ε) */
static void gated_gcn(struct costing *c, const struct graph *g)
{
    const double on_edges = g->edges * g->out;
    for (int w = 0; w < 4; w++)
        cost_product(c, transform(g, g->in, g->out, true));
    cost_product(c, (struct product){
                        .rows = g->edges, .in = g->in, .out = g->out, .bias = true });
    cost_elements(c, on_edges, 2 * c->rules.simple, 0);
    cost_elements(c, on_edges, c->rules.smooth, 2 * c->rules.smooth);
    cost_elements(c, on_edges, c->rules.simple, 2 * c->rules.simple);
    sum_messages(c, g, g->out);
    sum_messages(c, g, g->out);
    cost_elements(c, g->nodes * g->out, 3 * c->rules.simple, 4 * c->rules.simple);
    cost_save(c, g->nodes * (g->in + 3 * g->out) + g->edges * g->in + 3 * on_edges);
}

/* Mean, max, min and deviation of relu-free messages W [x_i, x_j], each times three
 * degree scalers, beside x itself, into one linear layer and a second one. */
static void pna(struct costing *c, const struct graph *g)
{
    enum { AGGREGATORS = 4, SCALERS = 3, READ = 6 };
    const double wide = (AGGREGATORS * SCALERS + 1) * g->in;
    const double message = (g->edge_dim > 0 ? 3 : 2) * g->in;
    if (g->edge_dim > 0)
        cost_product(
            c, (struct product){
                   .rows = g->edges, .in = g->edge_dim, .out = g->in, .bias = true });
    cost_product(c, (struct product){
                        .rows = g->edges, .in = message, .out = g->in, .bias = true });
    cost_elements(c, g->edges * g->in, READ * c->rules.simple, READ * c->rules.simple);
    cost_elements(c, g->nodes * (wide - g->in), c->rules.simple, c->rules.simple);
    cost_product(c, transform(g, wide, g->out, true));
    cost_product(c, transform(g, g->out, g->out, true));
    cost_save(c, g->edges * (message + g->in) + g->nodes * (wide + g->out));
}

/* W₁ · mean of neighbours + b + W₂ x */
static void sage(struct costing *c, const struct graph *g)
{
    sum_messages(c, g, g->in);
    cost_elements(c, g->nodes * g->in, c->rules.simple, c->rules.simple);
    cost_product(c, transform(g, g->in, g->out, true));
    cost_product(c, transform(g, g->in, g->out, false));
    cost_elements(c, g->nodes * g->out, c->rules.simple, 0);
    cost_save(c, 2 * g->nodes * g->in);
}

static void (*const kinds[SONDE_MESSAGE_COUNT])(struct costing *,
                                                const struct graph *) = {
    [SONDE_GIN] = gin,   [SONDE_GCN] = gcn, [SONDE_GINE] = gine,
    [SONDE_GAT] = gat,   [SONDE_PNA] = pna, [SONDE_GATED_GCN] = gated_gcn,
    [SONDE_SAGE] = sage,
};

void message_cost(struct costing *c)
{
    const struct sonde_layer *l = c->layer;
    const struct graph g = {
        .nodes = (double)l->rows,
        .edges = (double)l->edges,
        .in = (double)l->in,
        .out = (double)(l->out ? l->out : l->in),
        .edge_dim = (double)l->edge_dim,
        .heads = l->heads ? (double)l->heads : 1,
    };
    if (kinds[l->message])
        kinds[l->message](c, &g);
}
