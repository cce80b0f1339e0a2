/* operations.c: the call paths of a run, merged over its processes and threads.
 *
 * The key of an operation is the index of its parent and everything that tells it
 * from its siblings; the map from key to index is all the state merging needs.
 */
#include "analyse/operations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
    MAX_OPS = 65536,
    MAX_VALUES_PER_OP = 256,
    NO_OP = 0xffffffff, /* beyond MAX_OPS, or no operation at all */
};

/* ---- The table --------------------------------------------------------------------- */

static int append_op(struct op_table *t, const struct op *op, uint32_t *ret_index)
{
    if (t->count == t->cap) {
        const size_t cap = t->cap ? t->cap * 2 : 128;
        struct op *ops = realloc(t->ops, cap * sizeof(*ops));
        if (!ops)
            return -ENOMEM;
        t->ops = ops;
        t->cap = cap;
    }
    *ret_index = (uint32_t)t->count;
    t->ops[t->count] = *op;
    t->ops[t->count].mem_before_mb = NAN;
    t->ops[t->count].mem_after_mb = NAN;
    t->ops[t->count].mem_peak_mb = NAN;
    t->count++;
    return 0;
}

int op_table_init(struct op_table *table, struct arena *arena)
{
    *table = (struct op_table){ .arena = arena, .index = STRMAP_INIT, .key = BUF_INIT };
    const struct op root = { .kind = OP_ROOT,
                             .name = "",
                             .component = "",
                             .category = "",
                             .file = "",
                             .tags = "" };
    uint32_t index;
    return append_op(table, &root, &index);
}

void op_table_release(struct op_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        distribution_release(&table->ops[i].durations);
    free(table->ops);
    free(table->order);
    strmap_release(&table->index);
    buf_release(&table->key);
    *table = (struct op_table){ 0 };
}

static void make_key(struct buf *key, uint32_t parent, enum op_kind kind,
                     const struct trace_site *s)
{
    const char *const texts[] = { s->name, s->component, s->category, s->file,
                                  s->tags };
    buf_clear(key);
    buf_append(key, &parent, sizeof(parent));
    buf_putc(key, (char)kind);
    buf_append(key, &s->line, sizeof(s->line));
    buf_append(key, &s->phase, sizeof(s->phase));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        buf_append(key, texts[i], strlen(texts[i]) + 1);
}

static const char *keep(struct op_table *t, const char *text, int *rc)
{
    if (text[0] == '\0')
        return "";
    const char *copy = arena_strdup(t->arena, text);
    if (!copy)
        *rc = -ENOMEM;
    return copy ? copy : "";
}

static int new_op(struct op_table *t, uint32_t parent, enum op_kind kind,
                  const struct trace_site *s, uint32_t *ret_index)
{
    int rc = 0;
    struct op op = {
        .kind = kind,
        .parent = parent,
        .depth = t->ops[parent].depth + 1,
        .name = keep(t, s->name, &rc),
        .component = keep(t, s->component, &rc),
        .category = keep(t, s->category, &rc),
        .file = keep(t, s->file, &rc),
        .tags = keep(t, s->tags, &rc),
        .line = s->line,
        .phase = s->phase,
    };
    return rc < 0 ? rc : append_op(t, &op, ret_index);
}

/* Finds or makes the operation; NO_OP when the table is full. */
static int enter_op(struct op_table *t, uint32_t parent, enum op_kind kind,
                    const struct trace_site *s, uint32_t *ret_index)
{
    make_key(&t->key, parent, kind, s);
    if (t->key.error < 0)
        return t->key.error;
    uint64_t known;
    if (strmap_get(&t->index, t->key.data, t->key.len, &known)) {
        *ret_index = (uint32_t)known;
        return 0;
    }
    if (t->count >= MAX_OPS) {
        *ret_index = NO_OP;
        return 0;
    }
    uint32_t index;
    int rc = new_op(t, parent, kind, s, &index);
    if (rc == 0)
        rc = strmap_put(&t->index, t->key.data, t->key.len, index);
    if (rc == 0)
        *ret_index = index;
    return rc;
}

/* ---- Values ---------------------------------------------------------------------------- */

static void value_add(struct op_value *into, const struct trace_value *v)
{
    if (into->count == 0 || v->min < into->min)
        into->min = v->min;
    if (into->count == 0 || v->max > into->max)
        into->max = v->max;
    if (into->count == 0 || v->last_time_ns >= into->last_ns) {
        into->last = v->last;
        into->last_ns = v->last_time_ns;
    }
    into->count += v->count;
    into->sum += v->sum;
}

int op_value_merge(struct op_value **list, struct arena *arena,
                   const struct trace_value *value)
{
    size_t length = 0;
    struct op_value **at = list;
    for (; *at; at = &(*at)->next, length++)
        if (strcmp((*at)->name, value->name) == 0)
            break;
    if (!*at) {
        if (length == MAX_VALUES_PER_OP)
            return SONDE_E_LIMIT;
        struct op_value *fresh = arena_alloc(arena, sizeof(*fresh));
        const char *name = arena_strdup(arena, value->name);
        if (!fresh || !name)
            return -ENOMEM;
        fresh->name = name;
        *at = fresh;
    }
    value_add(*at, value);
    return 0;
}

/* ---- Merging one trace -------------------------------------------------------------------- */

/* Memory before comes from the first process that measured it, after from the last. */
static void add_resources(struct op *op, const struct trace_node *node)
{
    if (node->op_count == 0)
        return;
    if (isnan(op->mem_before_mb) || node->first_ns < op->mem_first_ns) {
        op->mem_before_mb = node->mem_before_mb;
        op->mem_first_ns = node->first_ns;
    }
    if (isnan(op->mem_after_mb) || node->last_ns >= op->mem_last_ns) {
        op->mem_after_mb = node->mem_after_mb;
        op->mem_last_ns = node->last_ns;
    }
    op->mem_peak_mb = fmax(op->mem_peak_mb, node->mem_peak_mb);
    op->op_count += node->op_count;
    op->cpu_ns += node->op_cpu_ns;
}

static void add_span_of_time(struct op *op, const struct trace_node *node)
{
    if (node->count == 0)
        return;
    if (op->first_ns == 0 || node->first_ns < op->first_ns)
        op->first_ns = node->first_ns;
    if (node->last_ns > op->last_ns)
        op->last_ns = node->last_ns;
}

static int add_node(struct op_table *t, uint32_t index, const struct trace *trace,
                    const struct tree *tree, unsigned number)
{
    struct op *op = &t->ops[index];
    const struct trace_node *node = trace_node(trace, number);

    op->total_ns += tree->incl_ns[number];
    op->open_ns += tree->open_ns[number];
    op->suspended_ns += node->suspended_ns;
    op->elsewhere_ns += node->elsewhere_ns;
    op->truncated += node->truncated;
    op->unbalanced += node->unbalanced;
    op->open += node->open;
    op->spans_open += node->spans_open;
    add_span_of_time(op, node);
    add_resources(op, node);
    return distribution_add_node(&op->durations, trace, number);
}

static const struct trace_site other_site = {
    .name = "(other paths)", .file = "", .component = "", .category = "", .tags = ""
};

static int add_other(struct op_table *t, const struct trace *trace,
                     const struct tree *tree, uint32_t *map)
{
    const struct trace_node *node = trace_node(trace, NODE_OTHER);
    if (!node || node->count == 0)
        return 0;
    uint32_t index = NO_OP;
    int rc = enter_op(t, 0, OP_OTHER, &other_site, &index);
    if (rc < 0 || index == NO_OP)
        return rc;
    map[NODE_OTHER] = index;
    return add_node(t, index, trace, tree, NODE_OTHER);
}

static int add_zone(struct op_table *t, const struct trace *trace,
                    const struct tree *tree, unsigned number, uint32_t *map)
{
    const struct trace_node *node = trace_node(trace, number);
    const unsigned root = tree->root[number];
    const enum op_kind kind = root == NODE_SPANS ? OP_SPAN : OP_ZONE;
    uint32_t parent = node->parent == root ? 0 : map[node->parent];
    uint32_t index = NO_OP;
    int rc = 0;

    if (root >= ROOT_NODES && root != NODE_SPANS)
        return 0;
    if (parent != NO_OP)
        rc = enter_op(t, parent, kind, trace_site(trace, node->site), &index);
    map[number] = index;
    if (rc < 0)
        return rc;
    if (index == NO_OP) {
        t->over_limit += node->count;
        return 0;
    }
    return add_node(t, index, trace, tree, number);
}

static int add_values(struct op_table *t, const struct trace *trace, size_t node_count,
                      const uint32_t *map)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < trace_value_count(trace); i++) {
        const struct trace_value *v = trace_value(trace, i);
        if (!v || v->kind != VALUE_ZONE || v->node >= node_count ||
            map[v->node] == NO_OP)
            continue;
        rc = op_value_merge(&t->ops[map[v->node]].values, t->arena, v);
        if (rc == SONDE_E_LIMIT)
            rc = 0;
    }
    return rc;
}

int op_table_add(struct op_table *table, const struct trace *trace,
                 const struct tree *tree)
{
    uint32_t *map = malloc((tree->node_count + 1) * sizeof(*map));
    if (!map)
        return -ENOMEM;
    for (size_t i = 0; i < tree->node_count; i++)
        map[i] = i < ROOT_NODES ? 0 : NO_OP;

    int rc = add_other(table, trace, tree, map);
    for (size_t i = 0; rc == 0 && i < tree->order_count; i++)
        rc = add_zone(table, trace, tree, tree->order[i], map);
    if (rc == 0)
        rc = add_values(table, trace, tree->node_count, map);
    free(map);
    return rc;
}

/* The operation of every node below `root`; they are all in the table, or were too
 * many. */
int op_table_mark_main(struct op_table *table, const struct trace *trace,
                       const struct tree *tree, unsigned root)
{
    int rc = 0;
    uint32_t *map = calloc(tree->node_count + 1, sizeof(*map));
    if (!map)
        return -ENOMEM;
    for (size_t i = 0; rc == 0 && i < tree->order_count; i++) {
        const unsigned n = tree->order[i];
        const struct trace_node *node = trace_node(trace, n);
        uint64_t index;
        if (tree->root[n] != root || map[node->parent] == NO_OP)
            continue;
        make_key(&table->key, map[node->parent], OP_ZONE,
                 trace_site(trace, node->site));
        rc = table->key.error;
        if (!strmap_get(&table->index, table->key.data, table->key.len, &index)) {
            map[n] = NO_OP;
            continue;
        }
        map[n] = (uint32_t)index;
        table->ops[index].main_ns += tree->incl_ns[n];
        table->ops[index].main_self_ns += tree->self_ns[n];
        table->ops[index].main_count += node->count + node->open;
    }
    free(map);
    return rc;
}

/* ---- Finishing -------------------------------------------------------------------------------- */

/* Zones before spans before the rest, then the longest, then by name. */
static int longest_first(const void *a, const void *b, void *arg)
{
    const struct op *x = (const struct op *)arg + *(const uint32_t *)a;
    const struct op *y = (const struct op *)arg + *(const uint32_t *)b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    const int names = strcmp(x->name, y->name);
    return names ? names : (x > y) - (x < y);
}

/* Entering the shortest first leaves every list with the longest in front. */
static void link_children(struct op_table *t, const uint32_t *sorted, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        struct op *op = &t->ops[sorted[i]];
        struct op *parent = &t->ops[op->parent];
        op->next_sibling = parent->first_child;
        parent->first_child = sorted[i];
    }
}

static void compute_self(struct op_table *t)
{
    t->ops[0].total_ns = 0;
    for (size_t i = 1; i < t->count; i++)
        t->ops[i].self_ns = t->ops[i].total_ns - t->ops[i].elsewhere_ns;
    for (size_t i = 1; i < t->count; i++) {
        const struct op *op = &t->ops[i];
        t->ops[0].total_ns -= op->elsewhere_ns;
        if (op->kind == OP_ZONE && op->parent == 0)
            t->ops[0].total_ns += op->total_ns;
        else if (op->parent != 0)
            t->ops[op->parent].self_ns -= op->total_ns;
    }
    t->ops[0].self_ns = 0;
}

/* Down first, then along, then back up: no recursion, however deep. */
static void walk(struct op_table *t)
{
    uint32_t at = t->ops[0].first_child;
    while (at) {
        t->order[t->order_count++] = at;
        if (t->ops[at].first_child) {
            at = t->ops[at].first_child;
            continue;
        }
        while (at && !t->ops[at].next_sibling)
            at = t->ops[at].parent;
        if (at)
            at = t->ops[at].next_sibling;
    }
}

int op_table_finish(struct op_table *table)
{
    const size_t n = table->count - 1;
    uint32_t *sorted = malloc((n + 1) * sizeof(*sorted));
    table->order = malloc((n + 1) * sizeof(*table->order));
    if (!sorted || !table->order) {
        free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = (uint32_t)i + 1;
    compute_self(table);
    qsort_r(sorted, n, sizeof(*sorted), longest_first, table->ops);
    link_children(table, sorted, n);
    walk(table);
    free(sorted);
    return 0;
}
