/* tree.h: the call paths of one process, as a tree with consistent times.
 *
 * The reader gives nodes by number with a parent each. Here they stand in an order in
 * which parents come first, each with its root and the phase it counts for. In a live
 * process the time of zones that are still open is part of their path's, or a parent
 * would be shorter than its parts.
 *
 * Always: self_ns[n] + Σ incl_ns[children of n] = incl_ns[n] for zones and spans.
 */
#ifndef SONDE_ANALYSE_TREE_H
#define SONDE_ANALYSE_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "trace/reader.h"

struct tree {
    size_t node_count;
    uint16_t *order; /* nodes with a parent, parents first */
    size_t order_count;
    uint16_t *root;  /* by node: the root it hangs from; itself for roots */
    double *incl_ns; /* by node: ended zones and, in a live process, open ones */
    double *self_ns;
    double *open_ns; /* of incl_ns: time of zones still open now */
    uint8_t
        *phase; /* by node: its own or the nearest ancestor's enum sonde_phase; input
                        below an evaluation is evaluation */
};

int tree_build(const struct trace *trace, struct tree *ret_tree);
void tree_release(struct tree *tree);

/* The root of a lane: the first 31 have their own, the others share one. */
static inline unsigned tree_lane_root(unsigned lane)
{
    return lane < ROOT_NODES ? lane : ROOT_NODES - 1;
}

#endif
