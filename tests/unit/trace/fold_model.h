/* fold_model.h: what a stream of words means, worked out slowly.
 *
 * Written from the comments of format.h and reader.h, not from fold.c: every duration
 * is kept, paths are found by linear search, self time is attributed as time passes.
 * fold_test.c compares it with the real thing, number by number.
 *
 * What it holds true:
 *  - A word's tick is the one with its low 48 bits nearest to the lane's last event
 *    (or to the block's base, if that is later); a step back counts as no time.
 *  - An end closes the innermost zone of its site; zones further in are closed with it
 *    and are unbalanced. An end without a begin is an orphan.
 *  - At depth MAX_DEPTH zones are counted as deep and not timed.
 *  - Paths beyond the limit, sites having no phases, are "(other paths)": all are counted, with their minimum;
 *    time is added up for those only that are not inside another such zone.
 *  - A THREAD record ends what the thread before left open at that one's last event.
 */
#ifndef SONDE_TESTS_FOLD_MODEL_H
#define SONDE_TESTS_FOLD_MODEL_H

#include "handmade.h"

enum { MODEL_OTHER = -1, MODEL_NO_NODE = INT32_MAX };

/* Nodes are indices from 0; roots and reserved nodes of the format are below −1. */
static inline int model_reserved(unsigned node)
{
    return MODEL_OTHER - 1 - (int)node;
}

static inline int model_root(unsigned lane)
{
    return model_reserved(lane < ROOT_NODES ? lane : ROOT_NODES - 1);
}

struct model_node {
    int parent; /* index, or model_root() for the outermost */
    unsigned site;
    uint64_t *durations;
    size_t count, cap;
    uint64_t total, self, first, last, truncated, unbalanced, begun, suspended;
    uint64_t ops, op_cpu_ns;
    uint32_t before_kb, after_kb, peak_kb;
};

struct model_value {
    int node; /* index, model_root(), MODEL_OTHER or MODEL_NO_NODE */
    unsigned name, kind;
    uint64_t count, last_ticks;
    double sum, min, max, last;
};

struct model_lane {
    uint64_t last; /* tick of the last event, 0 none */
    struct {
        int node;
        unsigned site;
        uint64_t begin;
    } frames[MAX_DEPTH];
    unsigned depth, left_open;
    uint64_t too_deep, events, orphan_ends, unbalanced, deep_zones, steps, samples,
        last_step, filtered;
    uint32_t tid;
};

struct model {
    struct model_node *nodes;
    size_t node_count;
    struct model_node steps, other;
    uint64_t other_count, other_min;
    struct model_value *values;
    size_t value_count;
    struct model_lane lanes[MAX_LANES];
};

enum { MODEL_NODES = MAX_NODES - BEYOND_NODES - FIRST_NODE };

static inline struct model *model_new(void)
{
    struct model *m = calloc(1, sizeof *m);
    m->nodes = calloc(MODEL_NODES, sizeof *m->nodes);
    m->values = calloc(MAX_VALUES, sizeof *m->values);
    m->other_min = UINT64_MAX;
    return m;
}

static inline void model_free(struct model *m)
{
    for (size_t i = 0; i < m->node_count; i++)
        free(m->nodes[i].durations);
    free(m->steps.durations);
    free(m->other.durations);
    free(m->nodes);
    free(m->values);
    free(m);
}

static inline int model_child(struct model *m, int parent, unsigned site)
{
    for (size_t i = 0; i < m->node_count; i++)
        if (m->nodes[i].parent == parent && m->nodes[i].site == site)
            return (int)i;
    if (m->node_count == MODEL_NODES)
        return MODEL_OTHER;
    m->nodes[m->node_count] = (struct model_node){ .parent = parent, .site = site };
    return (int)m->node_count++;
}

static inline void model_record(struct model_node *n, uint64_t begin, uint64_t end)
{
    if (n->count == n->cap) {
        n->cap = n->cap ? 2 * n->cap : 16;
        n->durations = realloc(n->durations, n->cap * sizeof *n->durations);
    }
    n->durations[n->count++] = end - begin;
    n->total += end - begin;
    if (n->count == 1 || begin < n->first)
        n->first = begin;
    if (end > n->last)
        n->last = end;
}

/* Closes the innermost frame. */
static inline struct model_node *model_close(struct model *m, struct model_lane *l,
                                             uint64_t end)
{
    l->depth--;
    const uint64_t begin = l->frames[l->depth].begin;
    const int node = l->frames[l->depth].node;
    if (node != MODEL_OTHER) {
        model_record(&m->nodes[node], begin, end);
        return &m->nodes[node];
    }
    m->other_count++;
    if (end - begin < m->other_min)
        m->other_min = end - begin;
    const bool inside = l->depth > 0 && l->frames[l->depth - 1].node == MODEL_OTHER;
    if (!inside)
        model_record(&m->other, begin, end);
    return &m->other;
}

static inline void model_cut(struct model *m, struct model_lane *l)
{
    if (l->depth || l->too_deep)
        l->left_open = l->depth;
    while (l->depth)
        model_close(m, l, l->last)->truncated++;
    l->too_deep = 0;
}

/* The time since the last event belongs to the innermost zone that has a path. */
static inline void model_spend(struct model *m, struct model_lane *l, unsigned depth,
                               uint64_t ticks)
{
    while (depth > 0 && l->frames[depth - 1].node == MODEL_OTHER)
        depth--;
    if (depth > 0)
        m->nodes[l->frames[depth - 1].node].self += ticks;
}

static inline void model_end(struct model *m, struct model_lane *l, unsigned site,
                             uint64_t now)
{
    unsigned at = l->depth;
    if (l->too_deep) {
        l->too_deep--;
        model_spend(m, l, l->depth, now - l->last);
        return;
    }
    while (at > 0 && l->frames[at - 1].site != site)
        at--;
    if (at == 0) {
        l->orphan_ends++;
        model_spend(m, l, l->depth, now - l->last);
        return;
    }
    model_spend(m, l, l->depth, now - l->last);
    while (l->depth > at) {
        model_close(m, l, now)->unbalanced++;
        l->unbalanced++;
    }
    (void)model_close(m, l, now);
}

static inline void model_begin(struct model *m, struct model_lane *l, unsigned lane,
                               unsigned site, uint64_t now)
{
    model_spend(m, l, l->depth, now - l->last);
    if (l->depth == MAX_DEPTH) {
        l->too_deep++;
        l->deep_zones++;
        return;
    }
    int node = MODEL_OTHER;
    if (l->depth == 0)
        node = model_child(m, model_root(lane), site);
    else if (l->frames[l->depth - 1].node != MODEL_OTHER)
        node = model_child(m, l->frames[l->depth - 1].node, site);
    l->frames[l->depth].node = node;
    l->frames[l->depth].site = site;
    l->frames[l->depth].begin = now;
    l->depth++;
}

static inline void model_value(struct model *m, int node, unsigned name, unsigned kind,
                               double x, uint64_t ticks)
{
    size_t i = 0;
    while (i < m->value_count &&
           (m->values[i].node != node || m->values[i].name != name ||
            m->values[i].kind != kind))
        i++;
    if (i == MAX_VALUES)
        return;
    struct model_value *v = &m->values[i];
    if (i == m->value_count)
        *v = (struct model_value){ node, name, kind, 0, 0, 0, x, x, x };
    m->value_count += i == m->value_count;
    v->count++;
    v->sum += x;
    v->min = x < v->min ? x : v->min;
    v->max = x > v->max ? x : v->max;
    if (ticks >= v->last_ticks) {
        v->last = x;
        v->last_ticks = ticks;
    }
}

static inline void model_span(struct model *m, const uint64_t *p, uint64_t now)
{
    const unsigned kind = p[0] >> 24 & 0xff;
    if (kind != SPAN_BEGIN && kind != SPAN_END)
        return;
    const int at = model_child(m, model_reserved(NODE_SPANS),
                               (p[0] >> 32) & (MAX_SITES - 1));
    struct model_node *n = &m->nodes[at];
    n->begun += kind == SPAN_BEGIN;
    if (kind == SPAN_BEGIN)
        return;
    model_record(n, now - p[2], now);
    n->suspended += p[2] - p[1];
}

static inline void model_long(struct model *m, unsigned lane, unsigned tag,
                              const uint64_t *p, uint64_t now)
{
    struct model_lane *l = &m->lanes[lane];
    const int top = l->depth ? l->frames[l->depth - 1].node : MODEL_OTHER;
    if (tag == TAG_THREAD) {
        model_cut(m, l);
        l->left_open = 0;
        l->tid = (uint32_t)p[0];
        l->last_step = 0;
        return;
    }
    model_spend(m, l, l->depth, now - l->last);
    if (tag == TAG_VALUE) {
        const uint64_t bits = p[0] << 32 | (p[1] & 0xffffffff);
        const unsigned kind = p[1] >> 32 & 0xff;
        double x;
        memcpy(&x, &bits, sizeof x);
        const int node = kind != VALUE_ZONE ? MODEL_NO_NODE
                         : l->depth         ? top
                                            : model_root(lane);
        model_value(m, node, (unsigned)(p[0] >> 32), kind, x, now);
    } else if (tag == TAG_STEP) {
        if (l->last_step)
            model_record(&m->steps, l->last_step, now);
        l->last_step = now;
        l->steps++;
        l->samples += p[0];
    } else if (tag == TAG_OP && top != MODEL_OTHER) {
        struct model_node *n = &m->nodes[top];
        n->peak_kb = !n->ops || p[3] > n->peak_kb ? (uint32_t)p[3] : n->peak_kb;
        n->ops++;
        n->op_cpu_ns += p[0];
        n->before_kb = (uint32_t)p[1];
        n->after_kb = (uint32_t)p[2];
    } else if (tag == TAG_SPAN) {
        model_span(m, p, now);
    } else if (tag == TAG_FILTERED) {
        l->filtered += p[0];
    }
}

static inline unsigned model_payload(unsigned tag)
{
    switch (tag) {
    case TAG_VALUE:
        return 2;
    case TAG_OP:
        return 4;
    case TAG_SPAN:
        return 3;
    case TAG_STEP:
    case TAG_THREAD:
    case TAG_MARK:
    case TAG_LOST:
    case TAG_FILTERED:
        return 1;
    default:
        return 0;
    }
}

/* One block of a lane. */
static inline void model_words(struct model *m, unsigned lane, const uint64_t *words,
                               size_t count, uint64_t base)
{
    struct model_lane *l = &m->lanes[lane];
    for (size_t i = 0; i < count; i++) {
        const unsigned tag = words[i] & 0xffff;
        if (words[i] == 0 || tag == TAG_PAD || tag == TAG_CONT)
            continue;
        const uint64_t near = base > l->last ? base : l->last;
        const uint64_t ahead = ((words[i] >> 16) - near) & 0xffffffffffffULL;
        const uint64_t full = ahead >> 47 ? near - ((1ULL << 48) - ahead)
                                          : near + ahead;
        const uint64_t now = full > l->last ? full : l->last;
        const unsigned need = model_payload(tag);
        uint64_t p[4];
        unsigned have = 0;
        while (have < need && i + 1 + have < count &&
               (words[i + 1 + have] & 0xffff) == TAG_CONT) {
            p[have] = words[i + 1 + have] >> 16;
            have++;
        }
        l->events += tag >= 16 || need > 0;
        if (tag >= 16 && !(tag & 1))
            model_begin(m, l, lane, tag >> 1, now);
        else if (tag >= 16)
            model_end(m, l, tag >> 1, now);
        else if (need && have == need)
            model_long(m, lane, tag, p, now);
        else
            model_spend(m, l, l->depth, now - l->last);
        l->last = now;
    }
}

#endif
