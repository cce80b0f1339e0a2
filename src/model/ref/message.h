/* message.h: the kinds of message passing behind layers.h. Private to message*.c.
 *
 * Edges are walked in the order of the incoming lists (graphs.h): position k belongs to the
 * node whose list holds it. Everything that stands per edge (features, messages, gates) is
 * kept in that order. Gradients that go back to an edge's source are added edge by edge,
 * always in the same order: the same seed gives the same bits.
 */
#ifndef SONDE_MODEL_REF_MESSAGE_H
#define SONDE_MODEL_REF_MESSAGE_H

#include "model/ref/layers.h"

struct message_rule {
    int (*declare)(struct refnet *net, size_t width, size_t heads, const char *name);
    void (*bind)(struct message *m, struct refnet *net, const char *name);
    void (*forward)(struct message *m, struct refnet *net, const float *x, float *y);
    void (*backward)(struct message *m, struct refnet *net, const float *dy, float *dx);
};

extern const struct message_rule gin_rule, gcn_rule, sage_rule, gine_rule, gat_rule,
    gated_gcn_rule, pna_rule;

/* linear, relu, linear: GIN's and GINE's, over m->gathered. */
int message_mlp_declare(struct refnet *net, size_t width, size_t heads,
                        const char *name);
void message_mlp_bind(struct message *m, struct refnet *net, const char *name);
void message_mlp_forward(struct message *m, struct refnet *net, float *y);
/* `scratch` and `dgathered` of nodes × width. */
void message_mlp_backward(struct message *m, const float *dy, float *scratch,
                          float *dgathered);

/* "NAME.part" declared or bound. */
int message_linear_declare(struct refnet *net, size_t in, size_t out, bool bias,
                           const char *name, const char *part);
void message_linear_bind(struct linear *l, struct refnet *net, const char *name,
                         const char *part);

/* What is done per edge has its own clock. */
uint64_t message_clock(const struct refnet *net);
void message_clock_end(struct refnet *net, uint64_t start, bool backward);

static inline uint32_t incoming(const struct graphs *g, size_t node)
{
    return g->in_first[node + 1] - g->in_first[node];
}

#endif
