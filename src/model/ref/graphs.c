/* graphs.c: see graphs.h. */
#include "model/ref/graphs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/ref/random.h"

int graphs_alloc(struct graphs *g, size_t count, size_t nodes, size_t edges,
                 size_t features, size_t outputs)
{
    if (nodes > UINT32_MAX - 2 || edges > UINT32_MAX - 2)
        return -ERANGE;
    *g = (struct graphs){ .count = count,
                          .nodes = nodes,
                          .edges = edges,
                          .features = features,
                          .outputs = outputs };
    g->first = calloc(count + 1, sizeof *g->first);
    g->source = calloc(edges + 1, sizeof *g->source);
    g->target = calloc(edges + 1, sizeof *g->target);
    g->in_first = calloc(nodes + 1, sizeof *g->in_first);
    g->in_source = calloc(edges + 1, sizeof *g->in_source);
    g->out_first = calloc(nodes + 1, sizeof *g->out_first);
    g->out_target = calloc(edges + 1, sizeof *g->out_target);
    g->gcn_scale = calloc(nodes + 1, sizeof *g->gcn_scale);
    g->x = calloc(nodes * features + 1, sizeof *g->x);
    g->labels = calloc(count * outputs + 1, sizeof *g->labels);
    if (g->first && g->source && g->target && g->in_first && g->in_source &&
        g->out_first && g->out_target && g->gcn_scale && g->x && g->labels)
        return 0;
    graphs_release(g);
    return -ENOMEM;
}

void graphs_release(struct graphs *g)
{
    free(g->first);
    free(g->source);
    free(g->target);
    free(g->in_first);
    free(g->in_source);
    free(g->out_first);
    free(g->out_target);
    free(g->gcn_scale);
    free(g->x);
    free(g->labels);
    *g = (struct graphs){ 0 };
}

/* Lists of the other ends, by counting: how many, where each list begins, then fill. */
static void list_edges(const uint32_t *of, const uint32_t *other, size_t nodes,
                       size_t edges, uint32_t *first, uint32_t *list)
{
    memset(first, 0, (nodes + 1) * sizeof *first);
    for (size_t e = 0; e < edges; e++)
        first[of[e] + 1]++;
    for (size_t i = 0; i < nodes; i++)
        first[i + 1] += first[i];
    for (size_t e = 0; e < edges; e++)
        list[first[of[e]]++] = other[e];
    for (size_t i = nodes; i > 0; i--) /* filling moved every beginning to its end */
        first[i] = first[i - 1];
    first[0] = 0;
}

int graphs_index(struct graphs *g)
{
    for (size_t e = 0; e < g->edges; e++)
        if (g->source[e] >= g->nodes || g->target[e] >= g->nodes)
            return -EINVAL;
    list_edges(g->target, g->source, g->nodes, g->edges, g->in_first, g->in_source);
    list_edges(g->source, g->target, g->nodes, g->edges, g->out_first, g->out_target);
    for (size_t i = 0; i < g->nodes; i++)
        g->gcn_scale[i] = 1 / sqrtf((float)(g->in_first[i + 1] - g->in_first[i] + 1));
    return 0;
}

/* Two different nodes of the graph that begins at `base`. */
static void draw_edge(struct prng *r, size_t base, size_t nodes, uint32_t *ret_a,
                      uint32_t *ret_b)
{
    const uint64_t a = prng_below(r, nodes);
    const uint64_t b = nodes > 1 ? (a + 1 + prng_below(r, nodes - 1)) % nodes : a;
    *ret_a = (uint32_t)(base + a);
    *ret_b = (uint32_t)(base + b);
}

static void draw_edges(struct graphs *g, struct prng *r, size_t graph, size_t edges)
{
    const size_t base = g->first[graph], nodes = g->first[graph + 1] - base;
    uint32_t *source = g->source + graph * edges, *target = g->target + graph * edges;
    for (size_t e = 0; e < edges; e += 2) {
        draw_edge(r, base, nodes, &source[e], &target[e]);
        if (e + 1 < edges) {
            source[e + 1] = target[e];
            target[e + 1] = source[e];
        }
    }
}

static void draw_features(struct graphs *g, struct prng *r, size_t graph)
{
    static const float SHIFT = 0.5F;
    float *labels = g->labels + graph * g->outputs;
    for (size_t k = 0; k < g->outputs; k++)
        labels[k] = (float)prng_below(r, 2);
    for (size_t i = g->first[graph]; i < g->first[graph + 1]; i++)
        for (size_t f = 0; f < g->features; f++) {
            const float shift = f < g->outputs ? (labels[f] > 0 ? SHIFT : -SHIFT) : 0;
            g->x[i * g->features + f] = random_normal(r) + shift;
        }
}

int graphs_synthetic(struct graphs *g, size_t count, size_t nodes, size_t edges,
                     size_t features, size_t outputs, uint64_t seed)
{
    int rc = graphs_alloc(g, count, count * nodes, count * edges, features, outputs);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        struct prng random;
        g->first[i + 1] = g->first[i] + nodes;
        prng_init(&random, seed * 7919 + i);
        draw_edges(g, &random, i, edges);
        draw_features(g, &random, i);
    }
    return graphs_index(g);
}

int graphs_append_features(struct graphs *g, const float *columns, size_t more)
{
    const size_t wide = g->features + more;
    float *x = malloc((g->nodes * wide + 1) * sizeof *x);
    if (!x)
        return -ENOMEM;
    for (size_t i = 0; i < g->nodes; i++) {
        memcpy(x + i * wide, g->x + i * g->features, g->features * sizeof *x);
        memcpy(x + i * wide + g->features, columns + i * more, more * sizeof *x);
    }
    free(g->x);
    g->x = x;
    g->features = wide;
    return 0;
}
