/* calltree.h: weights by call path, cut to what a picture can show.
 *
 * Node 0 is the root. A child is made after its parent, so numbers grow downwards and
 * one pass backwards sums up. Weights are never negative.
 */
#ifndef SONDE_PRESENT_HTML_CALLTREE_H
#define SONDE_PRESENT_HTML_CALLTREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

struct calltree_node {
    uint32_t parent, site;
    double self, total; /* total: after calltree_put() began */
};

struct calltree {
    struct calltree_node *nodes;
    size_t count, cap;
    uint32_t *index; /* node + 1 by hash; 0 free; a power of two of them */
    size_t index_cap;
    double refused; /* weight that found no room */
    int error;      /* the first one sticks */
};

/* What the app shows above a tree. Texts are ours and plain. */
struct calltree_head {
    const char *id, *title, *unit; /* unit: "s" (weights in ns) or "bytes" */
    const char *note;
    unsigned levels; /* 2: the outermost frames are processes, then threads; 0: calls */
};

void calltree_init(struct calltree *tree);
void calltree_release(struct calltree *tree);

/* The child of `parent` at this site, made when it is not there. 0 when memory or the
 * room for nodes is used up: adding there counts as refused. */
uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint32_t site);
void calltree_add(struct calltree *tree, uint32_t node, double weight);

/* Writes the tree as an element of an array; nothing when it is empty. Small branches
 * become one "(smaller)" each. */
void calltree_put(struct json_writer *w, struct calltree *tree,
                  const struct calltree_head *head);

#endif
