/* tree.c: the call paths of one process, as a tree with consistent times. */
#include "analyse/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <sonde/sonde.h>

#include "trace/phases.h"

enum { UNSEEN = 0xffff, CHAIN_MAX = MAX_DEPTH + 8 };

/* The reader checks parents, but a loop here would never end: climb a bounded way. */
static void place(struct tree *t, const struct trace *trace, unsigned number)
{
    uint16_t chain[CHAIN_MAX];
    size_t length = 0;
    unsigned at = number;

    while (t->root[at] == UNSEEN) {
        const struct trace_node *node = trace_node(trace, at);
        if (!node || node->parent == TRACE_NO_NODE) {
            t->root[at] = (uint16_t)at;
            break;
        }
        if (length == CHAIN_MAX || node->parent >= t->node_count)
            return;
        chain[length++] = (uint16_t)at;
        at = node->parent;
    }
    while (length > 0) {
        const unsigned child = chain[--length];
        t->root[child] = t->root[at];
        t->order[t->order_count++] = (uint16_t)child;
    }
}

/* The reader has their time in total_ns already; here it is only told apart. */
static void count_open_time(struct tree *t, const struct trace *trace)
{
    for (unsigned i = 0; i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        for (unsigned k = 0; lane && k < lane->open_count; k++) {
            const int64_t passed = lane->last_time_ns - lane->open[k].begin_ns;
            if (lane->open[k].node < t->node_count && passed > 0)
                t->open_ns[lane->open[k].node] += (double)passed;
        }
    }
}

static unsigned own_phase(const struct trace *trace, unsigned site)
{
    const int phase = trace_site(trace, site)->phase;
    return phase > SONDE_NO_PHASE && phase < SONDE_PHASE_COUNT ? (unsigned)phase : 0;
}

/* Other paths hang from nowhere: their time is also in somebody's self time. */
static void take_other_paths(struct tree *t, const struct trace *trace)
{
    const struct trace_node *other = NODE_OTHER < t->node_count
                                         ? trace_node(trace, NODE_OTHER)
                                         : NULL;
    if (other && isfinite(other->total_ns))
        t->incl_ns[NODE_OTHER] = t->self_ns[NODE_OTHER] = other->total_ns;
}

static void compute_times(struct tree *t, const struct trace *trace)
{
    for (size_t i = 0; i < t->order_count; i++) {
        const unsigned n = t->order[i];
        const struct trace_node *node = trace_node(trace, n);
        const double total = isfinite(node->total_ns) ? node->total_ns : 0;
        const unsigned phase = own_phase(trace, node->site);
        t->incl_ns[n] = fmax(total, 0);
        t->self_ns[n] += t->incl_ns[n] - fmax(node->elsewhere_ns, 0);
        t->self_ns[node->parent] -= t->incl_ns[n];
        t->phase[n] = (uint8_t)phase_below(phase, t->phase[node->parent]);
    }
}

int tree_build(const struct trace *trace, struct tree *ret_tree)
{
    const size_t n = trace_node_count(trace);
    struct tree t = { .node_count = n < UNSEEN ? n : UNSEEN };
    const size_t room = t.node_count + 1;

    t.order = calloc(room, sizeof(*t.order));
    t.root = calloc(room, sizeof(*t.root));
    t.incl_ns = calloc(room, sizeof(*t.incl_ns));
    t.self_ns = calloc(room, sizeof(*t.self_ns));
    t.open_ns = calloc(room, sizeof(*t.open_ns));
    t.phase = calloc(room, sizeof(*t.phase));
    if (!t.order || !t.root || !t.incl_ns || !t.self_ns || !t.open_ns || !t.phase) {
        tree_release(&t);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t.node_count; i++)
        t.root[i] = UNSEEN;
    for (unsigned i = 0; i < t.node_count; i++)
        if (trace_node(trace, i))
            place(&t, trace, i);
    if (trace_info(trace)->alive)
        count_open_time(&t, trace);
    compute_times(&t, trace);
    take_other_paths(&t, trace);
    *ret_tree = t;
    return 0;
}

void tree_release(struct tree *tree)
{
    free(tree->order);
    free(tree->root);
    free(tree->incl_ns);
    free(tree->self_ns);
    free(tree->open_ns);
    free(tree->phase);
    *tree = (struct tree){ 0 };
}
