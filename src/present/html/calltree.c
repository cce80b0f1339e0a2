/* calltree.c: weights by call path, cut to what a picture can show. */
#include "present/html/calltree.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    NODES_MOST = 400000, /* in memory: 13 MB */
    NODES_SHOWN = 5000,  /* in the document: some 100 kB */
    NO_SITE = 0xffffffff,
};

void calltree_init(struct calltree *tree)
{
    *tree = (struct calltree){ 0 };
}

void calltree_release(struct calltree *tree)
{
    free(tree->nodes);
    free(tree->index);
    *tree = (struct calltree){ 0 };
}

static size_t slot_of(const struct calltree *t, uint32_t parent, uint32_t site)
{
    uint64_t h = ((uint64_t)parent << 32 | site) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    size_t at = (size_t)h & (t->index_cap - 1);
    while (t->index[at]) {
        const struct calltree_node *n = &t->nodes[t->index[at] - 1];
        if (n->parent == parent && n->site == site)
            break;
        at = (at + 1) & (t->index_cap - 1);
    }
    return at;
}

static bool grow_index(struct calltree *t)
{
    const size_t cap = t->index_cap ? t->index_cap * 2 : 1024;
    uint32_t *index = calloc(cap, sizeof(*index));
    if (!index)
        return false;
    free(t->index);
    t->index = index;
    t->index_cap = cap;
    for (size_t i = 1; i < t->count; i++)
        t->index[slot_of(t, t->nodes[i].parent, t->nodes[i].site)] = (uint32_t)i + 1;
    return true;
}

static bool make_room(struct calltree *t)
{
    if (t->count == t->cap) {
        const size_t cap = t->cap ? t->cap * 2 : 256;
        struct calltree_node *nodes = realloc(t->nodes, cap * sizeof(*nodes));
        if (!nodes)
            return false;
        t->nodes = nodes;
        t->cap = cap;
    }
    if (t->count == 0)
        t->nodes[t->count++] = (struct calltree_node){ .site = NO_SITE };
    return 2 * t->count < t->index_cap || grow_index(t);
}

uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint32_t site)
{
    if (tree->error == 0 && !make_room(tree))
        tree->error = -ENOMEM;
    if (tree->error < 0)
        return 0;
    const size_t at = slot_of(tree, parent, site);
    if (tree->index[at])
        return tree->index[at] - 1;
    if (tree->count >= NODES_MOST)
        return 0;
    tree->nodes[tree->count] = (struct calltree_node){ .parent = parent, .site = site };
    tree->index[at] = (uint32_t)++tree->count;
    return (uint32_t)tree->count - 1;
}

void calltree_add(struct calltree *tree, uint32_t node, double weight)
{
    if (!(weight > 0) || !isfinite(weight))
        return;
    if (node == 0)
        tree->refused += weight;
    else
        tree->nodes[node].self += weight;
}

/* ---- Writing ------------------------------------------------------------------------- */

static void sum_up(struct calltree *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->nodes[i].total = t->nodes[i].self;
    for (size_t i = t->count; i-- > 1;)
        t->nodes[t->nodes[i].parent].total += t->nodes[i].total;
}

static int largest_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The total below which branches are not shown. */
static double threshold(const struct calltree *t)
{
    double *totals = malloc(t->count * sizeof(*totals));
    if (!totals)
        return t->nodes[0].total / NODES_SHOWN;
    for (size_t i = 0; i < t->count; i++)
        totals[i] = t->nodes[i].total;
    qsort(totals, t->count, sizeof(*totals), largest_first);
    const double least = t->nodes[0].total * 2e-5;
    const double cut = t->count > NODES_SHOWN ? totals[NODES_SHOWN] : 0;
    free(totals);
    return fmax(least, cut);
}

struct shown {
    uint32_t parent, site; /* parent: a number among those shown */
    double self;
};

/* Where the nodes that are shown stand: number + 1, 0 for the others. */
static size_t choose(const struct calltree *t, uint32_t *place, struct shown *shown)
{
    const double cut = threshold(t);
    size_t count = 0;
    for (size_t i = 0; i < t->count && count < 2 * NODES_SHOWN; i++) {
        const struct calltree_node *n = &t->nodes[i];
        if (i > 0 && (n->total <= cut || !place[n->parent]))
            continue;
        shown[count] = (struct shown){ i ? place[n->parent] - 1 : 0, n->site, n->self };
        place[i] = (uint32_t)++count;
    }
    return count;
}

/* What is not shown, gathered under the nearest shown node around it. */
static size_t gather(const struct calltree *t, const uint32_t *place,
                     struct shown *shown, size_t count)
{
    uint32_t *rest = calloc(count, sizeof(*rest)); /* by shown parent */
    for (size_t i = 1; rest && i < t->count; i++) {
        const uint32_t parent = t->nodes[i].parent;
        if (place[i] || !place[parent] || !(t->nodes[i].total > 0))
            continue;
        const uint32_t of = place[parent] - 1;
        if (!rest[of]) {
            rest[of] = (uint32_t)count;
            shown[count++] = (struct shown){ of, NO_SITE, 0 };
        }
        shown[rest[of]].self += t->nodes[i].total;
    }
    free(rest);
    return count;
}

static void put_column(struct json_writer *w, const char *key,
                       const struct shown *shown, size_t count, int column)
{
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        if (column == 0)
            json_put_uint(w, shown[i].parent);
        else if (column == 1)
            json_put_int(w, shown[i].site == NO_SITE ? -1 : (int64_t)shown[i].site);
        else
            json_put_fixed(w, shown[i].self, 0);
    }
    json_array_end(w);
}

static void put_head(struct json_writer *w, const struct calltree *t,
                     const struct calltree_head *head)
{
    const char *const fields[][2] = { { "id", head->id },
                                      { "title", head->title },
                                      { "unit", head->unit },
                                      { "note", head->note } };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        json_key(w, fields[i][0]);
        json_put_string(w, fields[i][1]);
    }
    json_key(w, "levels");
    json_put_uint(w, head->levels);
    json_key(w, "nodes");
    json_put_uint(w, t->count - 1);
    json_key(w, "refused");
    json_put_fixed(w, t->refused, 0);
}

void calltree_put(struct json_writer *w, struct calltree *tree,
                  const struct calltree_head *head)
{
    if (tree->error < 0 || tree->count < 2)
        return;
    sum_up(tree);
    uint32_t *place = calloc(tree->count, sizeof(*place));
    struct shown *shown = calloc(4 * (size_t)NODES_SHOWN, sizeof(*shown));
    if (!place || !shown || !(tree->nodes[0].total > 0)) {
        tree->error = place && shown ? 0 : -ENOMEM;
        goto done;
    }
    size_t count = choose(tree, place, shown);
    count = gather(tree, place, shown, count);
    json_object_begin(w);
    put_head(w, tree, head);
    put_column(w, "parent", shown, count, 0);
    put_column(w, "site", shown, count, 1);
    put_column(w, "self", shown, count, 2);
    json_object_end(w);
done:
    free(place);
    free(shown);
}
