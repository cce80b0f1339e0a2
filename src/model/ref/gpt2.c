/* gpt2.c: a language model of GPT-2's shape: learned positions, norm before each part,
 * GELU in its tanh form, the head tied to the token embedding.
 *
 *     x      = tokens[t] + positions
 *     x      = x + attention(norm₁(x))      each layer
 *     x      = x + feed-forward(norm₂(x))
 *     logits = norm(x) · tokensᵀ
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/ref/blas.h"
#include "model/ref/kernels.h"
#include "model/ref/layers.h"

struct block {
    struct norm norm1, norm2;
    struct attention attention;
    struct ffn ffn;
    uint64_t drop_attention, drop_ffn;
};

struct gpt2 {
    struct parameter *tokens, *positions;
    struct block *blocks;
    struct norm last;
    struct linear head; /* its weight is `tokens` */
    size_t *first;      /* where sequences begin */
    const struct batch *batch;
    float *dlogits;
};

static int declare_block(struct refnet *net, size_t i)
{
    const struct model_config *c = &net->config;
    char name[PARAMETER_NAME_LEN];
    (void)snprintf(name, sizeof name, "layers.%zu.norm1", i);
    int rc = norm_declare(net, c->hidden, name);
    (void)snprintf(name, sizeof name, "layers.%zu.attention", i);
    rc = rc < 0 ? rc : attention_declare(net, c->hidden, name);
    (void)snprintf(name, sizeof name, "layers.%zu.norm2", i);
    rc = rc < 0 ? rc : norm_declare(net, c->hidden, name);
    (void)snprintf(name, sizeof name, "layers.%zu.ffn", i);
    return rc < 0 ? rc : ffn_declare(net, c->hidden, config_ffn(c), name);
}

static void bind_block(struct refnet *net, struct block *b, size_t i)
{
    const struct model_config *c = &net->config;
    char name[PARAMETER_NAME_LEN];
    (void)snprintf(name, sizeof name, "layers.%zu.norm1", i);
    norm_bind(&b->norm1, net, name);
    (void)snprintf(name, sizeof name, "layers.%zu.attention", i);
    attention_bind(&b->attention, net, c->heads, c->hidden, name);
    b->attention.causal = true;
    (void)snprintf(name, sizeof name, "layers.%zu.norm2", i);
    norm_bind(&b->norm2, net, name);
    (void)snprintf(name, sizeof name, "layers.%zu.ffn", i);
    ffn_bind(&b->ffn, net, name);
    b->ffn.tanh_form = true;
}

static void bind_all(struct refnet *net, struct gpt2 *t)
{
    const struct model_config *c = &net->config;
    t->tokens = refnet_parameter(net, "tokens.weight");
    t->positions = refnet_parameter(net, "positions.weight");
    t->head.weight = t->tokens;
    norm_bind(&t->last, net, "norm");
    for (size_t i = 0; i < c->layers; i++)
        bind_block(net, &t->blocks[i], i);
    for (size_t i = 0; i <= c->batch; i++)
        t->first[i] = i * c->tokens;
}

static int init(struct refnet *net)
{
    const struct model_config *c = &net->config;
    struct gpt2 *t = calloc(1, sizeof *t);
    net->own = t;
    if (!t || !(t->blocks = calloc(c->layers, sizeof *t->blocks)) ||
        !(t->first = calloc(c->batch + 1, sizeof *t->first)))
        return -ENOMEM;
    int rc = refnet_declare(net, c->vocabulary, c->hidden, "tokens.weight");
    rc = rc < 0 ? rc : refnet_declare(net, c->tokens, c->hidden, "positions.weight");
    for (size_t i = 0; i < c->layers && rc == 0; i++)
        rc = declare_block(net, i);
    rc = rc < 0 ? rc : norm_declare(net, c->hidden, "norm");
    if (rc == 0)
        bind_all(net, t);
    return rc;
}

static void release(struct refnet *net)
{
    struct gpt2 *t = net->own;
    if (t) {
        free(t->blocks);
        free(t->first);
    }
    free(t);
}

/* ---- Forward ------------------------------------------------------------------------------ */

static void embed(const struct gpt2 *t, const struct model_config *c, size_t rows,
                  float *x)
{
    for (size_t r = 0; r < rows; r++)
        kernel_sum(x + r * c->hidden,
                   t->tokens->value + (size_t)t->batch->tokens[r] * c->hidden,
                   t->positions->value + r % c->tokens * c->hidden, c->hidden);
}

static float *attention_part(struct refnet *net, struct block *b, const float *x,
                             size_t rows)
{
    const struct gpt2 *t = net->own;
    const size_t width = net->config.hidden;
    struct part_clock clock = refpart_begin(net, PART_NORM, false);
    float *normed = tape_floats(&net->tape, rows * width);
    norm_forward(&b->norm1, net, x, rows, normed);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_ATTENTION, false);
    float *y = tape_floats(&net->tape, rows * width);
    attention_forward(&b->attention, net, normed, t->first, t->batch->count, y);
    b->drop_attention = refnet_dropout(net, y, rows * width);
    kernel_add(y, x, rows * width);
    refpart_end(&clock);
    return y;
}

static float *ffn_part(struct refnet *net, struct block *b, const float *x, size_t rows)
{
    const size_t width = net->config.hidden;
    struct part_clock clock = refpart_begin(net, PART_NORM, false);
    float *normed = tape_floats(&net->tape, rows * width);
    norm_forward(&b->norm2, net, x, rows, normed);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_FFN, false);
    float *y = tape_floats(&net->tape, rows * width);
    ffn_forward(&b->ffn, net, normed, rows, y);
    b->drop_ffn = refnet_dropout(net, y, rows * width);
    kernel_add(y, x, rows * width);
    refpart_end(&clock);
    return y;
}

static double forward(struct refnet *net, const struct batch *batch)
{
    struct gpt2 *t = net->own;
    const struct model_config *c = &net->config;
    const size_t rows = batch->count * c->tokens;
    t->batch = batch;

    struct part_clock clock = refpart_begin(net, PART_ENCODER, false);
    float *x = tape_floats(&net->tape, rows * c->hidden);
    embed(t, c, rows, x);
    refpart_end(&clock);
    for (size_t i = 0; i < c->layers; i++) {
        x = attention_part(net, &t->blocks[i], x, rows);
        x = ffn_part(net, &t->blocks[i], x, rows);
    }

    clock = refpart_begin(net, PART_HEAD, false);
    float *normed = tape_floats(&net->tape, rows * c->hidden);
    float *logits = tape_floats(&net->tape, rows * c->vocabulary);
    t->dlogits = tape_floats(&net->tape, rows * c->vocabulary);
    norm_forward(&t->last, net, x, rows, normed);
    linear_forward(&t->head, normed, rows, logits);
    const double loss = cross_entropy(logits, batch->next, rows, c->vocabulary,
                                      t->dlogits);
    refpart_end(&clock);
    net->output = logits;
    net->output_count = rows * c->vocabulary;
    return loss;
}

/* ---- Backward ------------------------------------------------------------------------------- */

/* x + part(norm(x)): dx = dy + norm's gradient of the part's. `dropped`: dy as the part
 * saw it, with what dropout zeroed. */
static const float *after_dropout(struct refnet *net, const float *dy, size_t n,
                                  uint64_t which)
{
    if (!net->training || !(net->config.dropout > 0))
        return dy;
    float *dropped = tape_floats(&net->tape, n);
    memcpy(dropped, dy, n * sizeof *dropped);
    refnet_dropout_again(net, dropped, n, which);
    return dropped;
}

static void block_backward(struct refnet *net, struct block *b, float *dx, size_t rows)
{
    const size_t n = rows * net->config.hidden, mark = tape_mark(&net->tape);
    float *dnormed = tape_floats(&net->tape, n);

    struct part_clock clock = refpart_begin(net, PART_FFN, true);
    ffn_backward(&b->ffn, net, after_dropout(net, dx, n, b->drop_ffn), dnormed);
    refpart_end(&clock);
    clock = refpart_begin(net, PART_NORM, true);
    norm_backward(&b->norm2, dnormed, dnormed);
    kernel_add(dx, dnormed, n);
    refpart_end(&clock);

    clock = refpart_begin(net, PART_ATTENTION, true);
    attention_backward(&b->attention, net, after_dropout(net, dx, n, b->drop_attention),
                       dnormed);
    refpart_end(&clock);
    clock = refpart_begin(net, PART_NORM, true);
    norm_backward(&b->norm1, dnormed, dnormed);
    kernel_add(dx, dnormed, n);
    refpart_end(&clock);
    tape_back(&net->tape, mark);
}

static void embed_backward(const struct gpt2 *t, const struct model_config *c,
                           size_t rows, const float *dx)
{
    for (size_t r = 0; r < rows; r++) {
        kernel_add(t->tokens->grad + (size_t)t->batch->tokens[r] * c->hidden,
                   dx + r * c->hidden, c->hidden);
        kernel_add(t->positions->grad + r % c->tokens * c->hidden, dx + r * c->hidden,
                   c->hidden);
    }
}

static void backward(struct refnet *net)
{
    struct gpt2 *t = net->own;
    const struct model_config *c = &net->config;
    const size_t rows = t->batch->count * c->tokens;
    struct part_clock clock = refpart_begin(net, PART_HEAD, true);
    float *dx = tape_floats(&net->tape, rows * c->hidden);
    linear_backward(&t->head, t->dlogits, dx);
    norm_backward(&t->last, dx, dx);
    refpart_end(&clock);
    for (size_t i = c->layers; i > 0; i--)
        block_backward(net, &t->blocks[i - 1], dx, rows);
    clock = refpart_begin(net, PART_ENCODER, true);
    embed_backward(t, c, rows, dx);
    refpart_end(&clock);
}

const struct refnet_family gpt2_family = { init, forward, backward, release };
