/* phases.c: every second of the main thread in exactly one phase. */
#include "analyse/phases.h"

#include <math.h>
#include <string.h>

unsigned phase_main_root(const struct trace *trace)
{
    for (unsigned i = 0; i < trace_lane_count(trace); i++) {
        const struct trace_lane *lane = trace_lane(trace, i);
        if (lane && lane->is_main)
            return tree_lane_root(lane->number);
    }
    return TRACE_NO_NODE;
}

static int phase_of(const struct tree *tree, unsigned node)
{
    const int phase = tree->phase[node];
    return phase == SONDE_NO_PHASE ? SONDE_OTHER : phase;
}

/* A zone enters its phase unless it is already inside it. */
static uint64_t entries(const struct trace_node *node, const struct tree *tree,
                        unsigned n)
{
    const bool outermost = node->parent == tree->root[n];
    if (tree->phase[n] == SONDE_NO_PHASE)
        return 0;
    if (!outermost && tree->phase[n] == tree->phase[node->parent])
        return 0;
    return node->count + node->open;
}

static void add_lane(struct phase_split *s, const struct trace *trace,
                     const struct tree *tree, unsigned root)
{
    for (size_t i = 0; i < tree->order_count; i++) {
        const unsigned n = tree->order[i];
        if (tree->root[n] != root)
            continue;
        const int phase = phase_of(tree, n);
        s->total_ns[phase] += fmax(tree->self_ns[n], 0);
        s->count[phase] += entries(trace_node(trace, n), tree, n);
    }
}

int phase_of_device_counter(const char *name)
{
    static const char prefix[] = "device_s:";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return SONDE_NO_PHASE;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++)
        if (strcmp(name + sizeof prefix - 1, sonde_phase_name(p)) == 0)
            return p;
    return SONDE_NO_PHASE;
}

static bool is(const struct trace_value *v, const char *name)
{
    return strcmp(v->name, name) == 0;
}

bool phase_is_device_counter(const char *name)
{
    static const char *const others[] = { "device_busy_s", "device_launch_share",
                                          "device_calls", "device_timed" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return phase_of_device_counter(name) != SONDE_NO_PHASE;
}

static void add_device(struct phase_split *s, const struct trace *trace)
{
    for (unsigned i = 0; i < trace_value_count(trace); i++) {
        const struct trace_value *v = trace_value(trace, i);
        if (!v || v->kind != VALUE_COUNTER || !(v->sum >= 0))
            continue;
        const int phase = phase_of_device_counter(v->name);
        if (is(v, "device_busy_s")) {
            s->has_busy = true;
            s->busy_s += v->sum;
        } else if (is(v, "device_launch_share")) {
            s->has_launch = true;
            s->launch_share = fmin(v->sum, 1);
        } else if (is(v, "device_calls")) {
            s->device_calls += v->sum;
        } else if (is(v, "device_timed")) {
            s->device_timed += v->sum;
        } else if (phase) {
            s->has_device = true;
            s->device_s[phase] += v->sum;
        }
    }
}

bool phase_device_is_sampled(const struct phase_split *s)
{
    return s->has_device && s->device_timed > 0 && s->device_timed < s->device_calls;
}

void phase_split_read(const struct trace *trace, const struct tree *tree,
                      struct phase_split *ret_split)
{
    struct phase_split s = { 0 };
    const unsigned root = phase_main_root(trace);
    if (root != TRACE_NO_NODE) {
        s.has_main = true;
        add_lane(&s, trace, tree, root);
        add_device(&s, trace);
    }
    *ret_split = s;
}

/* Time that was not recorded is in no phase: it looks like time outside zones, or like
 * the rest of a zone around a window, which has none either. */
static void take_unrecorded(struct phase_split *split, double unrecorded_ns)
{
    if (!(unrecorded_ns > 0))
        return;
    const double taken = fmin(unrecorded_ns, split->total_ns[SONDE_OTHER]);
    split->total_ns[SONDE_OTHER] -= taken;
    split->wall_ns -= taken;
    split->unrecorded_ns = taken;
}

void phase_split_close(struct phase_split *split, double wall_ns, double unrecorded_ns)
{
    double zones = 0;
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        zones += split->total_ns[p];
    const double outside = isfinite(wall_ns) ? fmax(wall_ns - zones, 0) : 0;
    split->total_ns[SONDE_OTHER] += outside;
    split->wall_ns = zones + outside;
    take_unrecorded(split, unrecorded_ns);
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        split->share[p] = split->wall_ns > 0 ? split->total_ns[p] / split->wall_ns : 0;
}

int phase_largest(const struct phase_split *split)
{
    int best = SONDE_NO_PHASE;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++)
        if (split->total_ns[p] > split->total_ns[best])
            best = p;
    return best;
}
