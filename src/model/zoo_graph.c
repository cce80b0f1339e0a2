/* zoo_graph.c: graph nets of the public leaderboards and papers. */
#include "model/zoo.h"

struct graph_net {
    uint64_t nodes, edges, layers, width;
    int message;
    uint64_t heads;
    int no_bias;
};

static void convolutions(struct layer_list *list, const struct graph_net *g,
                         uint64_t in, uint64_t out, uint64_t count)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_MESSAGE,
                                         .repeat = count,
                                         .rows = g->nodes,
                                         .edges = g->edges,
                                         .in = in,
                                         .out = out,
                                         .message = g->message,
                                         .no_bias = g->no_bias,
                                         .heads = g->heads });
}

static void norms(struct layer_list *list, uint64_t rows, uint64_t width,
                  uint64_t count)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_NORM,
                                         .repeat = count,
                                         .rows = rows,
                                         .in = width });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ACTIVATION,
                                         .repeat = count,
                                         .rows = rows,
                                         .in = width });
}

static void linear(struct layer_list *list, uint64_t rows, uint64_t in, uint64_t out)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                         .component = "head",
                                         .rows = rows,
                                         .in = in,
                                         .out = out });
}

/* Node classes 3 in and 2 out; the readout halves the width twice. */
static void pattern(struct layer_list *list, struct graph_net g)
{
    g.nodes = 118; /* the data set's average */
    g.edges = 6079;
    g.layers = 16;
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_EMBEDDING,
                                         .rows = g.nodes,
                                         .in = 3,
                                         .out = g.width });
    convolutions(list, &g, g.width, g.width, g.layers);
    norms(list, g.nodes, g.width, g.layers);
    if (g.message == SONDE_GATED_GCN) { /* edges have features too */
        linear(list, g.edges, 1, g.width);
        norms(list, g.edges, g.width, g.layers);
    }
    linear(list, g.nodes, g.width, g.width / 2);
    linear(list, g.nodes, g.width / 2, g.width / 4);
    linear(list, g.nodes, g.width / 4, 2);
}

void zoo_gcn_pattern(struct layer_list *list)
{
    pattern(list, (struct graph_net){ .width = 172, .message = SONDE_GCN });
}

void zoo_gatedgcn_pattern(struct layer_list *list)
{
    pattern(list, (struct graph_net){ .width = 78, .message = SONDE_GATED_GCN });
}

void zoo_gat_pattern(struct layer_list *list)
{
    pattern(list, (struct graph_net){
                      .width = 176, .message = SONDE_GAT, .heads = 8, .no_bias = 1 });
}

static void arxiv(struct layer_list *list, int message)
{
    const struct graph_net g = {
        .nodes = 169343, .edges = 2315598, .width = 256, .message = message
    };
    convolutions(list, &g, 128, g.width, 1);
    convolutions(list, &g, g.width, g.width, 1);
    convolutions(list, &g, g.width, 40, 1);
    norms(list, g.nodes, g.width, 2);
}

void zoo_gcn_arxiv(struct layer_list *list)
{
    arxiv(list, SONDE_GCN);
}

void zoo_sage_arxiv(struct layer_list *list)
{
    arxiv(list, SONDE_SAGE);
}

/* ---- A graph transformer -------------------------------------------------------------- */

/* Atoms of 28 types and 20 steps of random walks, normalised, become 36 + 28 features;
 * bonds of 4 types 64. */
static void zinc_encoders(struct layer_list *list, uint64_t nodes, uint64_t edges)
{
    list_add(list,
             (struct sonde_layer){
                 .kind = SONDE_LAYER_EMBEDDING, .rows = nodes, .in = 28, .out = 36 });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_NORM,
                                         .component = "encoder",
                                         .rows = nodes,
                                         .in = 20 });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                         .component = "encoder",
                                         .rows = nodes,
                                         .in = 20,
                                         .out = 28 });
    list_add(list,
             (struct sonde_layer){
                 .kind = SONDE_LAYER_EMBEDDING, .rows = edges, .in = 4, .out = 64 });
}

/* Each layer: GINE and attention side by side, a feed-forward part, three batch norms. The
 * head halves the width twice. */
void zoo_gps_zinc(struct layer_list *list)
{
    enum { LAYERS = 10, WIDTH = 64 };
    const struct graph_net g = { .nodes = 23, .edges = 50, .message = SONDE_GINE };
    zinc_encoders(list, g.nodes, g.edges);
    convolutions(list, &g, WIDTH, WIDTH, LAYERS);
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ATTENTION,
                                         .repeat = LAYERS,
                                         .rows = g.nodes,
                                         .in = WIDTH,
                                         .heads = 4 });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_FFN,
                                         .repeat = LAYERS,
                                         .rows = g.nodes,
                                         .in = WIDTH,
                                         .hidden = 2 * WIDTH,
                                         .activation = SONDE_RELU });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_NORM,
                                         .repeat = 3 * LAYERS,
                                         .rows = g.nodes,
                                         .in = WIDTH });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ELEMENTS,
                                         .component = "residual",
                                         .repeat = 4 * LAYERS,
                                         .rows = g.nodes,
                                         .in = WIDTH });
    linear(list, 1, WIDTH, WIDTH / 2);
    linear(list, 1, WIDTH / 2, WIDTH / 4);
    linear(list, 1, WIDTH / 4, 1);
}
