/* layers.h: the layers that nets are put together from, forward and backward in pairs.
 *
 * A layer holds its parameters and what its last forward pass left for the backward pass:
 * pointers into the tape. Conventions: rows of `in` floats come in, rows of `out` go out;
 * `dy` is the gradient of the result, `dx` that of the input and is overwritten; gradients
 * of parameters are added to.
 */
#ifndef SONDE_MODEL_REF_LAYERS_H
#define SONDE_MODEL_REF_LAYERS_H

#include "model/ref/net.h"

/* y = x · Wᵀ + b with W of out × in, as torch keeps it. */
struct linear {
    struct parameter *weight, *bias; /* bias NULL: none */
    const float *x;
    size_t rows;
};
int linear_declare(struct refnet *net, size_t in, size_t out, bool bias,
                   const char *name);
void linear_bind(struct linear *l, struct refnet *net, const char *name);
void linear_forward(struct linear *l, const float *x, size_t rows, float *y);
/* dx NULL: nobody wants it. */
void linear_backward(struct linear *l, const float *dy, float *dx);

/* Layer norm over rows. */
struct norm {
    struct parameter *weight, *bias;
    const float *x;
    float *mean, *rstd;
    size_t rows;
};
int norm_declare(struct refnet *net, size_t width, const char *name);
void norm_bind(struct norm *n, struct refnet *net, const char *name);
void norm_forward(struct norm *n, struct refnet *net, const float *x, size_t rows,
                  float *y);
void norm_backward(struct norm *n, const float *dy, float *dx); /* dx may be dy */

/* linear, GELU, linear; "NAME.0" and "NAME.2" as in a torch.nn.Sequential. */
struct ffn {
    struct linear up, down;
    bool tanh_form;
    float *before, *after; /* the activation */
};
int ffn_declare(struct refnet *net, size_t width, size_t hidden, const char *name);
void ffn_bind(struct ffn *f, struct refnet *net, const char *name);
void ffn_forward(struct ffn *f, struct refnet *net, const float *x, size_t rows,
                 float *y);
void ffn_backward(struct ffn *f, struct refnet *net, const float *dy, float *dx);

/* Multi-head attention within each of `count` groups of rows: group g is rows first[g] to
 * first[g + 1]. "NAME.qkv" holds the three projections in one matrix of 3·width × width. */
struct attention {
    struct linear qkv, out;
    size_t heads, width;
    bool causal;
    const size_t *first;
    size_t groups;
    float *projected;     /* rows × 3·width */
    float *probabilities; /* all groups, all heads, n × n each */
    float *context;       /* rows × width */
};
int attention_declare(struct refnet *net, size_t width, const char *name);
void attention_bind(struct attention *a, struct refnet *net, size_t heads, size_t width,
                    const char *name);
void attention_forward(struct attention *a, struct refnet *net, const float *x,
                       const size_t *first, size_t groups, float *y);
void attention_backward(struct attention *a, struct refnet *net, const float *dy,
                        float *dx);

/* Features of edges as gine and gatedgcn look at them: three that any graph has (the
 * degrees at both ends), brought to the net's width by one linear layer, "edge_encoder".
 * Rows in the order of the incoming lists. */
enum { EDGE_FEATURES = CONFIG_EDGE_FEATURES };
struct edge_features {
    struct linear encoder;
    float *value, *grad; /* edges × width */
};
int edge_features_declare(struct refnet *net, size_t width);
void edge_features_bind(struct edge_features *e, struct refnet *net);
void edge_features_forward(struct edge_features *e, struct refnet *net,
                           const struct graphs *graphs);
/* Before the layers add to the gradient, and after. */
void edge_features_backward_begin(struct edge_features *e, struct refnet *net);
void edge_features_backward(struct edge_features *e);

/* Message passing: one of enum sonde_message. What the fields hold beside the first line
 * is told where each kind is computed: message_sum.c, _edge.c, _gat.c, _pna.c. */
struct message {
    int kind;
    size_t width, heads; /* heads: gat */
    struct linear linears[5];
    struct parameter *own[3];
    const struct graphs *graphs;
    const struct edge_features *edges; /* gine and gatedgcn, else NULL */
    float *gathered, *hidden, *below;  /* per node */
    float *per_edge;
    float mean_log_degree;
};
int message_declare(struct refnet *net, int kind, size_t width, size_t heads,
                    const char *name);
void message_bind(struct message *m, struct refnet *net, int kind, size_t width,
                  size_t heads, const char *name);
void message_forward(struct message *m, struct refnet *net, const float *x,
                     const struct graphs *graphs, const struct edge_features *edges,
                     float *y);
void message_backward(struct message *m, struct refnet *net, const float *dy,
                      float *dx);

/* Mean cross-entropy of rows of logits; `ret_dlogits` its gradient. */
double cross_entropy(const float *logits, const int32_t *classes, size_t rows,
                     size_t columns, float *ret_dlogits);
/* Mean of the binary cross-entropies of all logits: several labels at once. */
double binary_cross_entropy(const float *logits, const float *labels, size_t n,
                            float *ret_dlogits);

#endif
