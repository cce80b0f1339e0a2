/* plan.c: see plan.h. */
#include "model/ref/plan.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/scan.h"

static double max(double a, double b)
{
    return a > b ? a : b;
}

static double largest_graph(const struct model_config *c)
{
    uint64_t largest = c->family == FAMILY_GPT2 ? c->tokens : c->nodes;
    for (uint64_t i = 0; c->graph_nodes && i < c->batch; i++)
        largest = i == 0 || c->graph_nodes[i] > largest ? c->graph_nodes[i] : largest;
    return (double)largest;
}

/* In rows of `width`: what is alive at the worst moment of the backward pass.
 *
 *   all the while     the gradient that flows back
 *   graph block       two more beside it, and then the worst of
 *     attention         its own result, dcontext and dprojected, one head's dp
 *     message passing   its own result and what its kind needs (message_scratch)
 *   gpt2 block        one more, and then the same without the own result
 *   feed-forward      its hidden gradient */
/* As message_*.c allocate it, beside the result. */
static double message_scratch(const struct model_config *c, double on_nodes,
                              double on_edges)
{
    switch (c->message) {
    case SONDE_GATED_GCN:
        return 3 * on_nodes + on_edges + max(on_nodes, on_edges);
    case SONDE_PNA:
        return 13 * on_nodes + 3 * on_edges;
    case SONDE_NO_MESSAGE:
        return 0;
    default:
        return on_nodes;
    }
}

/* All the while: the features of edges and their gradient. */
static double edge_floats(const struct model_config *c, double on_edges)
{
    return config_has_edge_features(c) ? 2 * on_edges : 0;
}

/* The formula counts GatedGCN as torch keeps it: with x, the edges' features and the
 * values of each edge per layer. The net reads those where they stand. */
static double kept_less(const struct model_config *c, double on_nodes, double on_edges)
{
    const bool gated = c->family == FAMILY_GRAPH_TRANSFORMER &&
                       c->message == SONDE_GATED_GCN;
    return gated ? (double)c->layers * (on_nodes + 3 * on_edges) : 0;
}

static double on_edges(const struct model_config *c)
{
    return (double)(c->batch * config_edges(c)) * (double)c->hidden;
}

static double scratch_floats(const struct model_config *c)
{
    const double rows = (double)config_rows(c), width = (double)c->hidden;
    const double n = largest_graph(c), ffn = rows * (double)config_ffn(c);
    const double dropped = c->dropout > 0 ? rows * width : 0;
    const double attention = 4 * rows * width + n * n;
    switch (c->family) {
    case FAMILY_GRAPH_TRANSFORMER:
        return 3 * rows * width + edge_floats(c, on_edges(c)) +
               max(max(attention + rows * width, ffn + dropped),
                   rows * width + message_scratch(c, rows * width, on_edges(c)));
    case FAMILY_GPT2: /* logits, beside their gradient that counts as saved */
        return 2 * rows * width + rows * (double)c->vocabulary + max(attention, ffn) +
               2 * dropped;
    default: /* every layer's gradient stays until the step is over */
        return rows * (width * ((double)c->layers - 1) + 2 * (double)c->outputs);
    }
}

static double data_bytes(const struct model_config *c)
{
    const double rows = (double)config_rows(c);
    switch (c->family) {
    case FAMILY_GRAPH_TRANSFORMER:
        return 4 * (rows * ((double)(c->features + c->encoding_dim) + 3) +
                    4 * (double)(c->batch * config_edges(c)));
    case FAMILY_GPT2:
        return 8 * rows;
    default:
        return 4 * rows; /* the rows themselves are the first layer's saved input */
    }
}

int plan_training(const struct model_config *config, struct plan *ret_plan)
{
    struct layer_list list = LAYER_LIST_INIT;
    struct sonde_estimate e = { .size = sizeof e };
    config_layers(config, &list);
    const int rc = list_estimate(&list, NULL, &e);
    list_release(&list);
    if (rc < 0)
        return rc;
    const double nodes = (double)config_rows(config) * (double)config->hidden;
    *ret_plan = (struct plan){
        .parameters = 16 * e.total.parameters,
        .activations = 4 * (e.total.saved - kept_less(config, nodes, on_edges(config))),
        .scratch = 4 * scratch_floats(config),
        .data = data_bytes(config),
    };
    ret_plan->total = ret_plan->parameters + ret_plan->activations + ret_plan->scratch +
                      ret_plan->data;
    return 0;
}

/* ---- What there is -------------------------------------------------------------------- */

/* The number in the first line that begins with `key`; NaN when there is none. */
static double number_in(const char *path, const char *key)
{
    struct buf text = BUF_INIT;
    double found = NAN;
    if (file_read_all(path, 1 << 16, &text) == 0) {
        struct scan s = { text.data, text.data + text.len };
        do {
            uint64_t value;
            if (scan_word(&s, key) && scan_u64(&s, &value)) {
                found = (double)value;
                break;
            }
        } while (scan_next_line(&s));
    }
    buf_release(&text);
    return found;
}

double plan_available(void)
{
    const double memory = 1024 * number_in("/proc/meminfo", "MemAvailable:");
    const double limit = number_in("/sys/fs/cgroup/memory.max", ""),
                 used = number_in("/sys/fs/cgroup/memory.current", "");
    struct rlimit space;
    double available = fmin(memory, limit - used); /* fmin ignores a NaN */
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
        const double mapped = 4096 * number_in("/proc/self/statm", "");
        available = fmin(available, (double)space.rlim_cur - mapped);
    }
    return available;
}
