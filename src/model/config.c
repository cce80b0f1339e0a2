/* config.c: see config.h. */
#include "model/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Beyond these nothing fits anywhere, and products stay within 64 bits. */
static const uint64_t WIDTH_LIMIT = 1 << 20, COUNT_LIMIT = 1 << 26;

static const char *const names[FAMILY_COUNT] = {
    [FAMILY_GRAPH_TRANSFORMER] = "graph_transformer",
    [FAMILY_GPT2] = "gpt2",
    [FAMILY_MLP] = "mlp",
};

const char *family_name(enum family family)
{
    return names[family];
}

int family_of(const char *name)
{
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -EINVAL;
}

/* Graph transformer: the sizes of the document's examples, its degree, features and seed.
 * gpt2: small enough to train a step on a laptop; bytes are tokens. */
struct model_config config_default(enum family family)
{
    struct model_config c = { .family = family,
                              .layers = 6,
                              .hidden = 256,
                              .heads = 8,
                              .batch = 1,
                              .nodes = 500,
                              .degree = 5,
                              .features = 16,
                              .outputs = 10,
                              .tokens = 128,
                              .vocabulary = 256,
                              .message = SONDE_GIN,
                              .seed = 42 };
    if (family == FAMILY_GPT2)
        c.batch = 4;
    if (family == FAMILY_MLP) {
        c.layers = 3;
        c.batch = 64;
        c.features = 784;
    }
    return c;
}

uint64_t config_ffn(const struct model_config *c)
{
    return c->ffn ? c->ffn : c->hidden * (c->family == FAMILY_GPT2 ? 4 : 2);
}

uint64_t config_edges(const struct model_config *c)
{
    return c->edges ? c->edges : c->nodes * c->degree;
}

static uint64_t total(const uint64_t *each, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += each[i];
    return sum;
}

static uint64_t all_edges(const struct model_config *c)
{
    return c->graph_edges ? total(c->graph_edges, c->batch)
                          : c->batch * config_edges(c);
}

/* Pairs of nodes that attend to each other; 0 where all graphs are alike. */
static uint64_t all_pairs(const struct model_config *c)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; c->graph_nodes && i < c->batch; i++)
        sum += c->graph_nodes[i] * c->graph_nodes[i];
    return sum;
}

uint64_t config_rows(const struct model_config *c)
{
    switch (c->family) {
    case FAMILY_GRAPH_TRANSFORMER:
        return c->graph_nodes ? total(c->graph_nodes, c->batch) : c->batch * c->nodes;
    case FAMILY_GPT2:
        return c->batch * c->tokens;
    default:
        return c->batch;
    }
}

/* ---- Checking --------------------------------------------------------------------- */

enum { ALL = 7, GRAPH = 1 << FAMILY_GRAPH_TRANSFORMER, GPT = 1 << FAMILY_GPT2 };

static const struct {
    const char *option;
    size_t offset;
    int families;
    bool may_be_zero, count;
} sizes[] = {
#define SIZE(option_, field_, ...)                                                     \
    {                                                                                  \
        .option = (option_), .offset = offsetof(struct model_config, field_),          \
        .families = __VA_ARGS__                                                        \
    }
    SIZE("--num-layers", layers, ALL),
    SIZE("--hidden-dim", hidden, ALL),
    SIZE("--num-heads", heads, GRAPH | GPT),
    SIZE("--ffn-dim", ffn, GRAPH | GPT, .may_be_zero = true),
    SIZE("--batch-size", batch, ALL, .count = true),
    SIZE("--num-nodes", nodes, GRAPH, .count = true),
    SIZE("--avg-degree", degree, GRAPH, .may_be_zero = true, .count = true),
    SIZE("--num-edges", edges, GRAPH, .may_be_zero = true, .count = true),
    SIZE("--features", features, ALL & ~GPT),
    SIZE("--outputs", outputs, ALL & ~GPT),
    SIZE("--seq-len", tokens, GPT, .count = true),
    SIZE("--vocab", vocabulary, GPT),
    SIZE("--pe-dim", encoding_dim, GRAPH, .may_be_zero = true),
#undef SIZE
};

static int check_sizes(const struct model_config *c, char error[CONFIG_ERROR_LEN])
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t value;
        memcpy(&value, (const char *)c + sizes[i].offset, sizeof value);
        const uint64_t limit = sizes[i].count ? COUNT_LIMIT : WIDTH_LIMIT;
        if (!(sizes[i].families >> c->family & 1))
            continue;
        if (value > limit || (value == 0 && !sizes[i].may_be_zero)) {
            (void)snprintf(error, CONFIG_ERROR_LEN,
                           "%s must lie between %d and %" PRIu64 ", got %" PRIu64,
                           sizes[i].option, sizes[i].may_be_zero ? 0 : 1, limit, value);
            return -EINVAL;
        }
    }
    return 0;
}

/* The divisor of `hidden` that is nearest to the number of heads asked for. */
static uint64_t near_divisor(uint64_t hidden, uint64_t heads)
{
    uint64_t best = 1;
    for (uint64_t h = 1; h <= hidden && h <= 2 * heads; h++) {
        const uint64_t old = best > heads ? best - heads : heads - best;
        if (hidden % h == 0 && (h > heads ? h - heads : heads - h) <= old)
            best = h;
    }
    return best;
}

int config_check(const struct model_config *c, char ret_error[CONFIG_ERROR_LEN])
{
    const int rc = check_sizes(c, ret_error);
    if (rc < 0)
        return rc;
    if (c->family != FAMILY_MLP && c->hidden % c->heads) {
        (void)snprintf(ret_error, CONFIG_ERROR_LEN,
                       "--num-heads %" PRIu64 " does not divide --hidden-dim %" PRIu64
                       " (%" PRIu64 " would)",
                       c->heads, c->hidden, near_divisor(c->hidden, c->heads));
        return -EINVAL;
    }
    if (!(c->dropout >= 0 && c->dropout < 1)) {
        (void)snprintf(ret_error, CONFIG_ERROR_LEN,
                       "--dropout must lie between 0 and 1, got %g", c->dropout);
        return -EINVAL;
    }
    if (c->family == FAMILY_GRAPH_TRANSFORMER &&
        (c->encoding == SONDE_NO_ENCODING) != (c->encoding_dim == 0)) {
        (void)snprintf(ret_error, CONFIG_ERROR_LEN,
                       "--pe and --pe-dim go together: a kind and a size, or neither");
        return -EINVAL;
    }
    return 0;
}

int config_has_edge_features(const struct model_config *c)
{
    return c->family == FAMILY_GRAPH_TRANSFORMER &&
           (c->message == SONDE_GINE || c->message == SONDE_GATED_GCN);
}

/* ---- Layers ------------------------------------------------------------------------ */

/* A general, powerful, scalable graph transformer (Rampášek et al. 2022) layer:
 *
 *     local  = norm(x + message passing(x))
 *     global = norm(x + attention(x))
 *     h      = local + global
 *     x      = norm(h + feed-forward(h))
 */
static void graph_layer(const struct model_config *c, struct layer_list *list)
{
    const uint64_t rows = config_rows(c), edges = all_edges(c);
    const struct sonde_layer norm = { .kind = SONDE_LAYER_NORM,
                                      .component = "norm",
                                      .repeat = c->layers,
                                      .rows = rows,
                                      .in = c->hidden };
    struct sonde_layer sum = norm;
    sum.kind = SONDE_LAYER_ELEMENTS;
    sum.component = "residual";
    if (c->message != SONDE_NO_MESSAGE) {
        list_add(list,
                 (struct sonde_layer){ .kind = SONDE_LAYER_MESSAGE,
                                       .component = "mpnn",
                                       .repeat = c->layers,
                                       .rows = rows,
                                       .edges = edges,
                                       .in = c->hidden,
                                       .out = c->hidden,
                                       .heads = c->message == SONDE_GAT ? c->heads : 1,
                                       .message = c->message });
        list_add(list, sum);
        list_add(list, norm);
        list_add(list, sum); /* local + global */
    }
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ATTENTION,
                                         .repeat = c->layers,
                                         .rows = rows,
                                         .in = c->hidden,
                                         .heads = c->heads,
                                         .sequences = c->batch,
                                         .pairs = all_pairs(c) });
    list_add(list, sum);
    list_add(list, norm);
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_FFN,
                                         .repeat = c->layers,
                                         .rows = rows,
                                         .in = c->hidden,
                                         .hidden = config_ffn(c),
                                         .activation = SONDE_GELU });
    list_add(list, sum);
    list_add(list, norm);
}

static void encoding_layer(const struct model_config *c, struct layer_list *list,
                           uint64_t nodes, uint64_t edges, uint64_t graphs)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ENCODING,
                                         .component = "pe",
                                         .rows = nodes,
                                         .edges = edges,
                                         .out = c->encoding_dim,
                                         .encoding = c->encoding,
                                         .sequences = graphs });
}

static void graph_transformer_layers(const struct model_config *c,
                                     struct layer_list *list)
{
    const uint64_t rows = config_rows(c);
    if (c->encoding != SONDE_NO_ENCODING && !c->graph_nodes)
        encoding_layer(c, list, rows, all_edges(c), c->batch);
    for (uint64_t i = 0;
         c->encoding != SONDE_NO_ENCODING && c->graph_nodes && i < c->batch; i++)
        encoding_layer(c, list, c->graph_nodes[i], c->graph_edges[i], 1);
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                         .component = "encoder",
                                         .rows = rows,
                                         .in = c->features + c->encoding_dim,
                                         .out = c->hidden,
                                         .no_grad = 1 });
    if (config_has_edge_features(c) && all_edges(c) > 0)
        list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                             .component = "encoder",
                                             .rows = all_edges(c),
                                             .in = CONFIG_EDGE_FEATURES,
                                             .out = c->hidden,
                                             .no_grad = 1 });
    graph_layer(c, list);
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_POOL,
                                         .component = "head",
                                         .rows = rows,
                                         .in = c->hidden,
                                         .kernel = 1 });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                         .component = "head",
                                         .rows = c->batch,
                                         .in = c->hidden,
                                         .out = c->outputs });
}

/* As published: learned positions, norm before each part, the head tied to the token
 * embedding. Scores are counted dense: that is what the unfused product computes. */
static void gpt2_layers(const struct model_config *c, struct layer_list *list)
{
    const uint64_t rows = config_rows(c);
    const struct sonde_layer norm = { .kind = SONDE_LAYER_NORM,
                                      .component = "norm",
                                      .rows = rows,
                                      .in = c->hidden,
                                      .repeat = 2 * c->layers + 1 };
    struct sonde_layer sum = norm;
    sum.kind = SONDE_LAYER_ELEMENTS;
    sum.component = "residual";
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_EMBEDDING,
                                         .rows = rows,
                                         .in = c->vocabulary,
                                         .out = c->hidden });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_EMBEDDING,
                                         .rows = rows,
                                         .in = c->tokens,
                                         .out = c->hidden });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ATTENTION,
                                         .repeat = c->layers,
                                         .rows = rows,
                                         .in = c->hidden,
                                         .heads = c->heads,
                                         .sequences = c->batch });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_FFN,
                                         .repeat = c->layers,
                                         .rows = rows,
                                         .in = c->hidden,
                                         .hidden = config_ffn(c),
                                         .activation = SONDE_GELU_TANH });
    list_add(list, norm);
    list_add(list, sum);
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                         .component = "head",
                                         .rows = rows,
                                         .in = c->hidden,
                                         .out = c->vocabulary,
                                         .no_bias = 1,
                                         .shared = 1 });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_SOFTMAX,
                                         .component = "loss",
                                         .rows = rows,
                                         .in = c->vocabulary });
}

static void mlp_layers(const struct model_config *c, struct layer_list *list)
{
    for (uint64_t i = 0; i < c->layers; i++) {
        const bool last = i + 1 == c->layers;
        list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                             .rows = c->batch,
                                             .no_grad = i == 0,
                                             .in = i ? c->hidden : c->features,
                                             .out = last ? c->outputs : c->hidden });
        if (!last)
            list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ACTIVATION,
                                                 .rows = c->batch,
                                                 .in = c->hidden });
    }
}

void config_layers(const struct model_config *config, struct layer_list *list)
{
    static void (*const families[FAMILY_COUNT])(const struct model_config *,
                                                struct layer_list *) = {
        [FAMILY_GRAPH_TRANSFORMER] = graph_transformer_layers,
        [FAMILY_GPT2] = gpt2_layers,
        [FAMILY_MLP] = mlp_layers,
    };
    families[config->family](config, list);
}

/* ---- For others ---------------------------------------------------------------------- */

static uint64_t or_default(uint64_t given, uint64_t standard)
{
    return given ? given : standard;
}

int sonde_estimate_model(const struct sonde_model_sizes *given,
                         const struct sonde_counting *counting,
                         struct sonde_estimate *ret_estimate, char *ret_error,
                         size_t len)
{
    char error[CONFIG_ERROR_LEN] = "";
    const int family = given->family ? family_of(given->family)
                                     : FAMILY_GRAPH_TRANSFORMER;
    (void)snprintf(ret_error, len, "there is no such family of models");
    if (family < 0 || given->size < sizeof *given)
        return -EINVAL;
    struct model_config c = config_default((enum family)family);
    c.layers = or_default(given->layers, c.layers);
    c.hidden = or_default(given->hidden, c.hidden);
    c.heads = or_default(given->heads, c.heads);
    c.ffn = given->ffn;
    c.batch = or_default(given->batch, c.batch);
    c.nodes = or_default(given->nodes, c.nodes);
    c.edges = given->edges;
    c.features = or_default(given->features, c.features);
    c.outputs = or_default(given->outputs, c.outputs);
    c.tokens = or_default(given->tokens, c.tokens);
    c.vocabulary = or_default(given->vocabulary, c.vocabulary);
    c.message = given->message;
    c.encoding = given->encoding;
    c.encoding_dim = given->encoding_dim;
    int rc = config_check(&c, error);
    (void)snprintf(ret_error, len, "%s", error);
    if (rc < 0)
        return rc;
    struct layer_list list = LAYER_LIST_INIT;
    config_layers(&c, &list);
    rc = list_estimate(&list, counting, ret_estimate);
    list_release(&list);
    return rc;
}
