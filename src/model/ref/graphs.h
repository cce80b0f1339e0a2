/* graphs.h: a batch of graphs laid end to end, edges as lists per node.
 *
 * Nodes of graph g are first[g] … first[g + 1] − 1. Every edge stands in two lists: among
 * the incoming ones of its target and the outgoing ones of its source, so that sums run
 * over one node's list, forward as backward.
 */
#ifndef SONDE_MODEL_REF_GRAPHS_H
#define SONDE_MODEL_REF_GRAPHS_H

#include <stddef.h>
#include <stdint.h>

struct graphs {
    size_t count, nodes, edges;
    size_t features, outputs;       /* per node; per graph */
    size_t *first;                  /* count + 1 */
    uint32_t *source, *target;      /* of each edge, as given */
    uint32_t *in_first, *in_source; /* nodes + 1; edges */
    uint32_t *out_first, *out_target;
    float *gcn_scale; /* 1/√(incoming edges + 1) of each node */
    float *x;         /* nodes × features */
    float *labels;    /* count × outputs, 0 or 1 */
};

/* Room for a batch; everything zero. −ENOMEM, or −ERANGE beyond 2^32 − 2 nodes or edges. */
int graphs_alloc(struct graphs *g, size_t count, size_t nodes, size_t edges,
                 size_t features, size_t outputs);
void graphs_release(struct graphs *g);

/* After first, source and target are filled: the lists and scales. −EINVAL when an edge
 * names a node that is not there. */
int graphs_index(struct graphs *g);

/* Random graphs of `nodes` each, `edges` directed edges in pairs there and back, normal
 * features. Each graph's features are shifted up or down by dimension; the labels say which
 * way, so that there is something to learn. */
int graphs_synthetic(struct graphs *g, size_t count, size_t nodes, size_t edges,
                     size_t features, size_t outputs, uint64_t seed);

/* Appends `more` columns to every row of x: positional encodings. −ENOMEM. */
int graphs_append_features(struct graphs *g, const float *columns, size_t more);

#endif
