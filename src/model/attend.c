/* attend.c: multi-head attention, with the memory of its score matrices.
 *
 * Dense by default, even where a causal mask throws half of the scores away: that is
 * what an unfused implementation computes and what published figures count. `causal`
 * counts the triangle alone, as fused kernels compute it; `sparse_ratio` a part of the
 * pairs; `flash` the same work without ever writing the matrices: the backward pass
 * computes the scores again.
 */
#include <errno.h>

#include "model/cost.h"

struct shape {
    double rows, in, out, heads, kv_heads, head, sequences, queries, keys, pairs;
};

/* `pairs`: (query, key) computed per head, over all sequences. */
static struct shape shape_of(const struct sonde_layer *l)
{
    struct shape s = { .rows = (double)l->rows, .in = (double)l->in };
    s.out = (double)(l->out ? l->out : l->in);
    s.heads = l->heads ? (double)l->heads : 1;
    s.kv_heads = l->kv_heads ? (double)l->kv_heads : s.heads;
    s.head = l->key_dim ? (double)l->key_dim : s.in / s.heads;
    s.sequences = l->sequences ? (double)l->sequences : 1;
    s.queries = s.rows / s.sequences;
    s.keys = l->keys ? (double)l->keys : s.queries;
    s.pairs = s.sequences * s.queries * s.keys;
    if (l->pairs)
        s.pairs = (double)l->pairs;
    else if (l->causal)
        s.pairs = s.sequences * s.queries * (s.queries + 1) / 2;
    if (l->sparse_ratio > 0)
        s.pairs *= l->sparse_ratio;
    return s;
}

static void projections_cost(struct costing *c, const struct shape *s)
{
    const bool bias = !c->layer->no_bias;
    const double kv_rows = s->sequences * s->keys;
    cost_product(
        c, (struct product){
               .rows = s->rows, .in = s->in, .out = s->heads * s->head, .bias = bias });
    for (int k_and_v = 0; k_and_v < 2; k_and_v++)
        cost_product(c, (struct product){ .rows = kv_rows,
                                          .in = s->in,
                                          .out = s->kv_heads * s->head,
                                          .bias = bias });
    cost_product(c, (struct product){ .rows = s->rows,
                                      .in = s->heads * s->head,
                                      .out = s->out,
                                      .bias = bias });
}

/* Q·Kᵀ and P·V over the pairs, the softmax between them. */
static void pairs_cost(struct costing *c, const struct shape *s)
{
    const struct sonde_counting *rules = &c->rules;
    const double scores = s->heads * s->pairs, macs = scores * s->head;
    const double vectors = s->heads * s->head * s->sequences * (s->queries + s->keys);
    c->cost.forward.macs += 2 * macs;
    c->cost.backward.macs += (c->layer->flash ? 5 : 4) * macs;
    cost_fused(c, scores * (rules->softmax + rules->simple),
               scores * (SOFTMAX_BACKWARD + rules->simple));
    cost_move(c, 2 * vectors, 4 * vectors);
    if (!c->layer->flash) /* scores written; read, written by the softmax; read */
        cost_move(c, 4 * scores, 7 * scores);
}

void attention_cost(struct costing *c)
{
    const struct shape s = shape_of(c->layer);
    const double matrices = c->layer->flash ? s.heads * s.rows : s.heads * s.pairs;
    projections_cost(c, &s);
    pairs_cost(c, &s);
    c->cost.attention += matrices;
    cost_save(c, s.rows * s.in + 2 * s.rows * s.heads * s.head +
                     2 * s.sequences * s.keys * s.kv_heads * s.head + matrices);
}

int sonde_attention_memory(const struct sonde_layer *attention,
                           const struct sonde_counting *counting,
                           struct sonde_attention_memory *ret_memory)
{
    struct sonde_cost unused = { .size = sizeof unused };
    const int rc = sonde_layer_cost(attention, counting, &unused);
    if (rc < 0)
        return rc;
    if (attention->kind != SONDE_LAYER_ATTENTION)
        return -EINVAL;
    const struct shape s = shape_of(attention);
    const double size = counting && counting->element_bytes > 0
                            ? counting->element_bytes
                            : sizeof(float);
    struct sonde_attention_memory m = { .size = ret_memory->size };
    m.qkv = size * s.head * (s.rows * s.heads + 2 * s.sequences * s.keys * s.kv_heads);
    m.scores = attention->flash ? 0 : size * s.heads * s.pairs;
    m.probabilities = size * (attention->flash ? s.heads * s.rows : s.heads * s.pairs);
    m.output = size * s.rows * s.out;
    m.total = m.qkv + m.scores + m.probabilities + m.output;
    *ret_memory = m;
    return 0;
}
