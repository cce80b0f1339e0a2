/* components.c: operations summed up by component. */
#include "analyse/parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strmap.h"

static bool is_inside_itself(const struct op_table *t, const struct op *op)
{
    for (uint32_t at = op->parent; at; at = t->ops[at].parent)
        if (strcmp(t->ops[at].component, op->component) == 0)
            return true;
    return false;
}

static int longest_first(const void *a, const void *b)
{
    const struct component_sum *x = a;
    const struct component_sum *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void add(struct component_sum *sum, const struct op_table *t,
                const struct op *op)
{
    sum->name = op->component;
    sum->operations++;
    sum->calls += op->durations.count + op->open;
    if (op->kind == OP_ZONE)
        sum->self_ns += op->self_ns;
    if (!is_inside_itself(t, op))
        sum->total_ns += op->total_ns;
}

/* Entry i of the map is component i. */
static int number_components(const struct op_table *t, struct strmap *map)
{
    for (size_t i = 1; i < t->count; i++) {
        const char *name = t->ops[i].component;
        bool added;
        if (!name[0])
            continue;
        struct strmap_entry *e = strmap_enter(map, name, strlen(name), &added);
        if (!e)
            return -ENOMEM;
        if (added)
            e->value = map->count - 1;
    }
    return 0;
}

int components_sum(struct report *report)
{
    const struct op_table *t = &report->ops;
    struct strmap map = STRMAP_INIT;
    struct component_sum *sums = NULL;
    int rc = number_components(t, &map);
    if (rc < 0)
        goto done;
    sums = arena_alloc_array(&report->arena, map.count + 1, sizeof(*sums));
    if (!sums) {
        rc = -ENOMEM;
        goto done;
    }
    for (size_t i = 1; i < t->count; i++) {
        uint64_t number;
        const char *name = t->ops[i].component;
        if (strmap_get(&map, name, strlen(name), &number))
            add(&sums[number], t, &t->ops[i]);
    }
    qsort(sums, map.count, sizeof(*sums), longest_first);
    report->components = sums;
    report->component_count = map.count;
done:
    strmap_release(&map);
    return rc;
}
