/* message_pna.c: principal neighbourhood aggregation.
 *
 *     m_k = W [x_i, x_j] + b                                   for each edge
 *     a_i = mean, max, min and deviation of i's m_k            4 × width
 *     y   = L · P [x_i, a_i, a_i · s_i, a_i / s_i]             13 × width
 *
 * s_i = log(d_i + 1) / δ with δ its mean over all nodes; a node without edges counts as
 * having one, and what it aggregates is 0 (the deviation √1e-5).
 */
#include <math.h>
#include <string.h>

#include "model/ref/kernels.h"
#include "model/ref/kernels_edge.h"
#include "model/ref/message.h"

enum { MEAN, MAX, MIN, DEVIATION, AGGREGATES };
enum { SCALERS = 3, WIDE = AGGREGATES * SCALERS + 1 };
enum { PRE, POST, LAST };

static int pna_declare(struct refnet *net, size_t width, size_t heads, const char *name)
{
    (void)heads;
    int rc = message_linear_declare(net, 2 * width, width, true, name, "pre");
    rc = rc < 0 ? rc
                : message_linear_declare(net, WIDE * width, width, true, name, "post");
    return rc < 0 ? rc : message_linear_declare(net, width, width, true, name, "lin");
}

static void pna_bind(struct message *m, struct refnet *net, const char *name)
{
    message_linear_bind(&m->linears[PRE], net, name, "pre");
    message_linear_bind(&m->linears[POST], net, name, "post");
    message_linear_bind(&m->linears[LAST], net, name, "lin");
}

static float log_degree(const struct graphs *g, size_t i)
{
    return logf((float)(incoming(g, i) ? incoming(g, i) : 1) + 1);
}

static float mean_log_degree(const struct graphs *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->nodes; i++)
        sum += (double)log_degree(g, i);
    return (float)(sum / (double)g->nodes);
}

/* [x_i, x_j] of every edge. */
static void put_pairs(const struct message *m, const float *x, float *pairs)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width, bytes = width * sizeof *x;
    for (size_t i = 0; i < g->nodes; i++)
        for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++) {
            memcpy(pairs + 2 * k * width, x + i * width, bytes);
            memcpy(pairs + (2 * k + 1) * width, x + g->in_source[k] * width, bytes);
        }
}

/* The four aggregates of node i, behind each other in `a`. */
static void aggregate(const struct message *m, size_t i, float *a, float *scratch)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width;
    const struct moments all = { .sum = scratch,
                                 .squares = scratch + width,
                                 .max = a + MAX * width,
                                 .min = a + MIN * width };
    const bool any = incoming(g, i) > 0;
    kernel_fill(scratch, 0, 2 * width);
    kernel_fill(all.max, any ? -INFINITY : 0, width);
    kernel_fill(all.min, any ? INFINITY : 0, width);
    for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++)
        kernel_moments(&all, m->per_edge + k * width, width);
    kernel_moments_end(a + MEAN * width, a + DEVIATION * width, &all,
                       any ? (float)incoming(g, i) : 1, width);
}

static void pna_node(const struct message *m, size_t i, const float *x, float *scratch)
{
    const size_t width = m->width, four = AGGREGATES * width;
    float *wide = m->gathered + i * WIDE * width, *a = wide + width;
    const float scale = log_degree(m->graphs, i) / m->mean_log_degree;
    memcpy(wide, x + i * width, width * sizeof *x);
    aggregate(m, i, a, scratch);
    memcpy(a + four, a, four * sizeof *a);
    kernel_scale(a + four, scale, four);
    memcpy(a + 2 * four, a, four * sizeof *a);
    kernel_scale(a + 2 * four, 1 / scale, four);
}

static void pna_forward(struct message *m, struct refnet *net, const float *x, float *y)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width;
    float *pairs = tape_floats(&net->tape, 2 * g->edges * width);
    m->per_edge = tape_floats(&net->tape, g->edges * width);
    m->gathered = tape_floats(&net->tape, g->nodes * WIDE * width);
    m->hidden = tape_floats(&net->tape, g->nodes * width);
    m->mean_log_degree = mean_log_degree(g);
    const size_t mark = tape_mark(&net->tape);
    float *scratch = tape_floats(&net->tape, 2 * width);
    const uint64_t start = message_clock(net);
    put_pairs(m, x, pairs);
    linear_forward(&m->linears[PRE], pairs, g->edges, m->per_edge);
    for (size_t i = 0; i < g->nodes; i++)
        pna_node(m, i, x, scratch);
    message_clock_end(net, start, false);
    linear_forward(&m->linears[POST], m->gathered, g->nodes, m->hidden);
    linear_forward(&m->linears[LAST], m->hidden, g->nodes, y);
    tape_back(&net->tape, mark);
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* The gradients of node i's messages, from that of its wide row, which is used up. */
static void pna_node_backward(const struct message *m, size_t i, float *dwide,
                              float *dmessages)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width, four = AGGREGATES * width;
    const float *a = m->gathered + i * WIDE * width + width;
    float *da = dwide + width;
    const float scale = log_degree(g, i) / m->mean_log_degree;
    kernel_add_scaled(da, da + four, scale, four);
    kernel_add_scaled(da, da + 2 * four, 1 / scale, four);
    const struct moments_grad grads = {
        .mean = a + MEAN * width,
        .std = a + DEVIATION * width,
        .max = a + MAX * width,
        .min = a + MIN * width,
        .dmean = da + MEAN * width,
        .dstd = da + DEVIATION * width,
        .dmax = da + MAX * width,
        .dmin = da + MIN * width,
    };
    for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++)
        kernel_moments_grad(dmessages + k * width, m->per_edge + k * width, &grads,
                            (float)incoming(g, i), width);
}

/* Back to the nodes: each edge's halves to its target and source, the first column of the
 * wide rows to the nodes themselves. */
static void take_pairs(const struct message *m, const float *dpairs, const float *dwide,
                       float *dx)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width;
    for (size_t i = 0; i < g->nodes; i++)
        memcpy(dx + i * width, dwide + i * WIDE * width, width * sizeof *dx);
    for (size_t i = 0; i < g->nodes; i++)
        for (uint32_t k = g->in_first[i]; k < g->in_first[i + 1]; k++) {
            kernel_add(dx + i * width, dpairs + 2 * k * width, width);
            kernel_add(dx + g->in_source[k] * width, dpairs + (2 * k + 1) * width,
                       width);
        }
}

static void pna_backward(struct message *m, struct refnet *net, const float *dy,
                         float *dx)
{
    const struct graphs *g = m->graphs;
    const size_t width = m->width, mark = tape_mark(&net->tape);
    float *dwide = tape_floats(&net->tape, g->nodes * WIDE * width);
    float *dmessages = tape_floats(&net->tape, g->edges * width);
    float *dpairs = tape_floats(&net->tape, 2 * g->edges * width);
    linear_backward(&m->linears[LAST], dy, dx); /* dx serves as the hidden gradient */
    linear_backward(&m->linears[POST], dx, dwide);
    const uint64_t start = message_clock(net);
    for (size_t i = 0; i < g->nodes; i++)
        pna_node_backward(m, i, dwide + i * WIDE * width, dmessages);
    linear_backward(&m->linears[PRE], dmessages, dpairs);
    take_pairs(m, dpairs, dwide, dx);
    message_clock_end(net, start, true);
    tape_back(&net->tape, mark);
}

const struct message_rule pna_rule = { pna_declare, pna_bind, pna_forward,
                                       pna_backward };
