/* graph_transformer.c: the reference graph transformer.
 *
 *     x      = encoder(features)
 *     e      = edge_encoder(features of edges)      for gine and gatedgcn
 *     local  = norm₁(x + message passing(x))        each layer
 *     global = norm₂(x + attention(x))
 *     h      = local + global
 *     x      = norm₃(h + feed-forward(h))
 *     logits = head(mean of x over each graph)
 *
 * The sums before the norms are what the norms keep; `h` is what the feed-forward part
 * keeps; nothing else of a layer outlives it but what its parts keep themselves. That is
 * exactly what the cost formulas count as saved.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/ref/kernels.h"
#include "model/ref/layers.h"

struct block {
    struct message message;
    struct attention attention;
    struct ffn ffn;
    struct norm local, global, last;
    uint64_t drop_message, drop_attention, drop_ffn;
};

struct graph_transformer {
    struct linear encoder, head;
    struct edge_features edges;
    struct block *blocks;
    const struct graphs *graphs;
    float *pooled, *dlogits;
    size_t width;
    bool has_message, has_edges;
};

static int declare_block(struct refnet *net, size_t i)
{
    const struct model_config *c = &net->config;
    char name[PARAMETER_NAME_LEN];
    int rc = 0;
    if (c->message != SONDE_NO_MESSAGE) {
        (void)snprintf(name, sizeof name, "layers.%zu.mpnn", i);
        rc = message_declare(net, c->message, c->hidden, c->heads, name);
        (void)snprintf(name, sizeof name, "layers.%zu.norm1", i);
        rc = rc < 0 ? rc : norm_declare(net, c->hidden, name);
    }
    (void)snprintf(name, sizeof name, "layers.%zu.attention", i);
    rc = rc < 0 ? rc : attention_declare(net, c->hidden, name);
    (void)snprintf(name, sizeof name, "layers.%zu.norm2", i);
    rc = rc < 0 ? rc : norm_declare(net, c->hidden, name);
    (void)snprintf(name, sizeof name, "layers.%zu.ffn", i);
    rc = rc < 0 ? rc : ffn_declare(net, c->hidden, config_ffn(c), name);
    (void)snprintf(name, sizeof name, "layers.%zu.norm3", i);
    return rc < 0 ? rc : norm_declare(net, c->hidden, name);
}

static void bind_block(struct refnet *net, struct block *b, size_t i)
{
    const struct model_config *c = &net->config;
    char name[PARAMETER_NAME_LEN];
    if (c->message != SONDE_NO_MESSAGE) {
        (void)snprintf(name, sizeof name, "layers.%zu.mpnn", i);
        message_bind(&b->message, net, c->message, c->hidden, c->heads, name);
        (void)snprintf(name, sizeof name, "layers.%zu.norm1", i);
        norm_bind(&b->local, net, name);
    }
    (void)snprintf(name, sizeof name, "layers.%zu.attention", i);
    attention_bind(&b->attention, net, c->heads, c->hidden, name);
    (void)snprintf(name, sizeof name, "layers.%zu.norm2", i);
    norm_bind(&b->global, net, name);
    (void)snprintf(name, sizeof name, "layers.%zu.ffn", i);
    ffn_bind(&b->ffn, net, name);
    (void)snprintf(name, sizeof name, "layers.%zu.norm3", i);
    norm_bind(&b->last, net, name);
}

static int init(struct refnet *net)
{
    const struct model_config *c = &net->config;
    struct graph_transformer *t = calloc(1, sizeof *t);
    net->own = t;
    if (!t || !(t->blocks = calloc(c->layers, sizeof *t->blocks)))
        return -ENOMEM;
    t->width = c->hidden;
    t->has_message = c->message != SONDE_NO_MESSAGE;
    t->has_edges = config_has_edge_features(c);
    int rc = linear_declare(net, c->features + c->encoding_dim, c->hidden, true,
                            "encoder");
    if (rc == 0 && t->has_edges)
        rc = edge_features_declare(net, c->hidden);
    for (size_t i = 0; i < c->layers && rc == 0; i++)
        rc = declare_block(net, i);
    rc = rc < 0 ? rc : linear_declare(net, c->hidden, c->outputs, true, "head");
    if (rc < 0)
        return rc;
    linear_bind(&t->encoder, net, "encoder");
    if (t->has_edges)
        edge_features_bind(&t->edges, net);
    for (size_t i = 0; i < c->layers; i++)
        bind_block(net, &t->blocks[i], i);
    linear_bind(&t->head, net, "head");
    return 0;
}

static void release(struct refnet *net)
{
    struct graph_transformer *t = net->own;
    if (t)
        free(t->blocks);
    free(t);
}

/* ---- Forward ----------------------------------------------------------------------------- */

/* sum = x + part(x), normalised into `ret_y`. */
static void local_forward(struct refnet *net, struct block *b, const float *x,
                          float *ret_y)
{
    const struct graph_transformer *t = net->own;
    const struct graphs *g = t->graphs;
    const size_t n = g->nodes * b->message.width;
    struct part_clock clock = refpart_begin(net, PART_MESSAGE, false);
    float *sum = tape_floats(&net->tape, n);
    message_forward(&b->message, net, x, g, &t->edges, sum);
    b->drop_message = refnet_dropout(net, sum, n);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_NORM, false);
    kernel_add(sum, x, n);
    norm_forward(&b->local, net, sum, g->nodes, ret_y);
    refpart_end(&clock);
}

static void global_forward(struct refnet *net, struct block *b, const struct graphs *g,
                           const float *x, float *ret_y)
{
    const size_t n = g->nodes * b->attention.width;
    struct part_clock clock = refpart_begin(net, PART_ATTENTION, false);
    float *sum = tape_floats(&net->tape, n);
    attention_forward(&b->attention, net, x, g->first, g->count, sum);
    b->drop_attention = refnet_dropout(net, sum, n);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_NORM, false);
    kernel_add(sum, x, n);
    norm_forward(&b->global, net, sum, g->nodes, ret_y);
    refpart_end(&clock);
}

static void ffn_part_forward(struct refnet *net, struct block *b, size_t rows,
                             size_t width, const float *h, float *ret_y)
{
    struct part_clock clock = refpart_begin(net, PART_FFN, false);
    float *sum = tape_floats(&net->tape, rows * width);
    ffn_forward(&b->ffn, net, h, rows, sum);
    b->drop_ffn = refnet_dropout(net, sum, rows * width);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_NORM, false);
    kernel_add(sum, h, rows * width);
    norm_forward(&b->last, net, sum, rows, ret_y);
    refpart_end(&clock);
}

static const float *block_forward(struct refnet *net, struct block *b, const float *x)
{
    const struct graph_transformer *t = net->own;
    const size_t n = t->graphs->nodes * t->width;
    float *h = tape_floats(&net->tape, n);
    global_forward(net, b, t->graphs, x, h);
    if (t->has_message) {
        /* The next layer's input is written last: until then it holds local. */
        float *y = tape_floats(&net->tape, n);
        local_forward(net, b, x, y);
        kernel_add(h, y, n);
        ffn_part_forward(net, b, t->graphs->nodes, t->width, h, y);
        return y;
    }
    float *y = tape_floats(&net->tape, n);
    ffn_part_forward(net, b, t->graphs->nodes, t->width, h, y);
    return y;
}

static void pool(const struct graph_transformer *t, const float *x, float *pooled)
{
    const struct graphs *g = t->graphs;
    kernel_fill(pooled, 0, g->count * t->width);
    for (size_t i = 0; i < g->count; i++) {
        const float share = 1 / (float)(g->first[i + 1] - g->first[i]);
        for (size_t r = g->first[i]; r < g->first[i + 1]; r++)
            kernel_add_scaled(pooled + i * t->width, x + r * t->width, share, t->width);
    }
}

static double forward(struct refnet *net, const struct batch *batch)
{
    struct graph_transformer *t = net->own;
    const struct graphs *g = t->graphs = batch->graphs;
    const size_t outputs = net->config.outputs;

    struct part_clock clock = refpart_begin(net, PART_ENCODER, false);
    float *x = tape_floats(&net->tape, g->nodes * t->width);
    linear_forward(&t->encoder, g->x, g->nodes, x);
    if (t->has_edges)
        edge_features_forward(&t->edges, net, g);
    refpart_end(&clock);
    const float *y = x;
    for (size_t i = 0; i < net->config.layers; i++)
        y = block_forward(net, &t->blocks[i], y);

    clock = refpart_begin(net, PART_HEAD, false);
    t->pooled = tape_floats(&net->tape, g->count * t->width);
    float *logits = tape_floats(&net->tape, g->count * outputs);
    t->dlogits = tape_floats(&net->tape, g->count * outputs);
    pool(t, y, t->pooled);
    linear_forward(&t->head, t->pooled, g->count, logits);
    const double loss = binary_cross_entropy(logits, g->labels, g->count * outputs,
                                             t->dlogits);
    refpart_end(&clock);
    net->output = logits;
    net->output_count = g->count * outputs;
    return loss;
}

/* ---- Backward ------------------------------------------------------------------------------ */

static void pool_backward(const struct graph_transformer *t, const float *dpooled,
                          float *dx)
{
    const struct graphs *g = t->graphs;
    kernel_fill(dx, 0, g->nodes * t->width);
    for (size_t i = 0; i < g->count; i++) {
        const float share = 1 / (float)(g->first[i + 1] - g->first[i]);
        for (size_t r = g->first[i]; r < g->first[i + 1]; r++)
            kernel_add_scaled(dx + r * t->width, dpooled + i * t->width, share,
                              t->width);
    }
}

/* dy of `norm(x + part(x))`: dsum goes to x directly and through the part. `dsum` is
 * scratch; the sum of both is added to dx. */
static void global_backward(struct refnet *net, struct block *b, size_t n,
                            const float *dy, float *dsum, float *dx)
{
    struct part_clock clock = refpart_begin(net, PART_NORM, true);
    norm_backward(&b->global, dy, dsum);
    kernel_add(dx, dsum, n);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_ATTENTION, true);
    const size_t mark = tape_mark(&net->tape);
    float *through = tape_floats(&net->tape, n);
    refnet_dropout_again(net, dsum, n, b->drop_attention);
    attention_backward(&b->attention, net, dsum, through);
    kernel_add(dx, through, n);
    tape_back(&net->tape, mark);
    refpart_end(&clock);
}

static void local_backward(struct refnet *net, struct block *b, size_t n,
                           const float *dy, float *dsum, float *dx)
{
    struct part_clock clock = refpart_begin(net, PART_NORM, true);
    norm_backward(&b->local, dy, dsum);
    kernel_add(dx, dsum, n);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_MESSAGE, true);
    const size_t mark = tape_mark(&net->tape);
    float *through = tape_floats(&net->tape, n);
    refnet_dropout_again(net, dsum, n, b->drop_message);
    message_backward(&b->message, net, dsum, through);
    kernel_add(dx, through, n);
    tape_back(&net->tape, mark);
    refpart_end(&clock);
}

/* dy of the block becomes dh. */
static void ffn_part_backward(struct refnet *net, struct block *b, size_t n, float *dy,
                              float *dh)
{
    struct part_clock clock = refpart_begin(net, PART_NORM, true);
    norm_backward(&b->last, dy, dy);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_FFN, true);
    const size_t mark = tape_mark(&net->tape);
    const float *dpart = dy;
    if (net->training && net->config.dropout > 0) {
        float *dropped = tape_floats(&net->tape, n);
        kernel_fill(dropped, 0, n);
        kernel_add(dropped, dy, n);
        refnet_dropout_again(net, dropped, n, b->drop_ffn);
        dpart = dropped;
    }
    ffn_backward(&b->ffn, net, dpart, dh);
    kernel_add(dh, dy, n);
    tape_back(&net->tape, mark);
    refpart_end(&clock);
}

/* The gradient of a block's result, in `dy`, becomes that of its input. */
static void block_backward(struct refnet *net, struct block *b, float *dy)
{
    const struct graph_transformer *t = net->own;
    const size_t n = t->graphs->nodes * t->width, mark = tape_mark(&net->tape);
    float *dh = tape_floats(&net->tape, n), *dsum = tape_floats(&net->tape, n);
    ffn_part_backward(net, b, n, dy, dh);
    kernel_fill(dy, 0, n);
    if (t->has_message)
        local_backward(net, b, n, dh, dsum, dy);
    global_backward(net, b, n, dh, dsum, dy);
    tape_back(&net->tape, mark);
}

static void backward(struct refnet *net)
{
    struct graph_transformer *t = net->own;
    const struct graphs *g = t->graphs;
    struct part_clock clock = refpart_begin(net, PART_HEAD, true);
    float *dx = tape_floats(&net->tape, g->nodes * t->width);
    float *dpooled = tape_floats(&net->tape, g->count * t->width);
    linear_backward(&t->head, t->dlogits, dpooled);
    pool_backward(t, dpooled, dx);
    refpart_end(&clock);
    if (t->has_edges)
        edge_features_backward_begin(&t->edges, net);
    for (size_t i = net->config.layers; i > 0; i--)
        block_backward(net, &t->blocks[i - 1], dx);
    clock = refpart_begin(net, PART_ENCODER, true);
    linear_backward(&t->encoder, dx, NULL);
    if (t->has_edges)
        edge_features_backward(&t->edges);
    refpart_end(&clock);
}

const struct refnet_family graph_transformer_family = { init, forward, backward,
                                                        release };
