/* stacktab.c: see stacktab.h. */
#include "capture/sample/stacktab.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* ---- Pairs of numbers to rows ------------------------------------------------------------ */

static size_t pair_slot(const struct pairmap *m, uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b << 32 | b >> 32)) * 0x9e3779b97f4a7c15ULL;
    return (size_t)(h ^ h >> 31) & m->mask;
}

static struct pairmap_slot *pair_find(const struct pairmap *m, uint64_t a, uint64_t b)
{
    size_t i = pair_slot(m, a, b);
    while (m->slots[i].value && (m->slots[i].a != a || m->slots[i].b != b))
        i = (i + 1) & m->mask;
    return &m->slots[i];
}

static int pair_grow(struct pairmap *m)
{
    if (m->slots && m->count * 2 <= m->mask)
        return 0;
    const size_t cap = m->slots ? (m->mask + 1) * 2 : 1024;
    struct pairmap bigger = { calloc(cap, sizeof *m->slots), m->count, cap - 1 };
    if (!bigger.slots)
        return -ENOMEM;
    for (size_t i = 0; m->slots && i <= m->mask; i++)
        if (m->slots[i].value)
            *pair_find(&bigger, m->slots[i].a, m->slots[i].b) = m->slots[i];
    free(m->slots);
    *m = bigger;
    return 0;
}

/* The slot of a pair, with value 0 when it is new; NULL without memory. */
static struct pairmap_slot *pair_enter(struct pairmap *m, uint64_t a, uint64_t b)
{
    if (pair_grow(m) < 0)
        return NULL;
    struct pairmap_slot *s = pair_find(m, a, b);
    s->a = a;
    s->b = b;
    return s;
}

static void pair_set(struct pairmap *m, struct pairmap_slot *s, uint32_t value)
{
    s->value = value + 1;
    m->count++;
}

/* ---- Open, close ------------------------------------------------------------------------- */

static const struct tables_spec specs[] = {
    { "info", sizeof(struct stack_info_row), 1 },
    { MODULES_TABLE, sizeof(struct stack_module_row), STACKS_MAX_MODULES },
    { FRAMES_TABLE, sizeof(struct stack_frame_row), STACKS_MAX_FRAMES },
    { "nodes", sizeof(struct stack_node_row), STACKS_MAX_NODES },
    { "tasks", sizeof(struct stack_task_row), STACKS_MAX_TASKS },
    { "counts", sizeof(struct stack_count_row), STACKS_MAX_COUNTS },
    { STACK_CODES_TABLE, sizeof(struct stack_code_row), STACKS_MAX_CODES },
    { STACK_MERGED_NODES_TABLE, sizeof(struct stack_node_row), STACKS_MAX_NODES },
    { STACK_MERGED_COUNTS_TABLE, sizeof(struct stack_count_row), STACKS_MAX_COUNTS },
    { STACK_MERGE_TABLE, sizeof(struct stack_merge_row), 1 },
};
enum { SPECS_ALL = sizeof specs / sizeof *specs, SPECS_NATIVE = STACKS_COUNTS };

/* The row that stands for all stacks without room. */
static bool plant(struct stacktab *t, struct stacktab_tree *tree)
{
    uint32_t index;
    struct stack_node_row *other = tables_append(&t->tables, tree->node_table, &index);
    if (other)
        other->key = 1;
    return other != NULL;
}

static bool first_rows(struct stacktab *t, bool merging)
{
    uint32_t index;
    t->info = tables_append(&t->tables, STACKS_INFO, &index);
    if (!t->info || !plant(t, &t->native))
        return false;
    if (merging) {
        t->merge = tables_append(&t->tables, STACKS_MERGE, &index);
        if (!t->merge || !plant(t, &t->merged))
            return false;
        __atomic_store_n(&t->merge->key, 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&t->info->key, 1, __ATOMIC_RELEASE);
    return true;
}

static int open_tables(struct stacktab *t, const char *dir, struct control *control,
                       bool merging)
{
    *t = (struct stacktab){
        .native = { .node_table = STACKS_NODES, .count_table = STACKS_COUNTS },
        .merged = { .node_table = STACKS_MERGED_NODES,
                    .count_table = STACKS_MERGED_COUNTS },
    };
    strmap_init(&t->modules);
    strmap_init(&t->tasks);
    strmap_init(&t->texts);
    strmap_init(&t->codes);
    const int rc = tables_create(dir, STACKS_KIND, control, specs,
                                 merging ? SPECS_ALL : SPECS_NATIVE, &t->tables);
    if (rc < 0)
        return rc;
    if (!first_rows(t, merging)) {
        stacktab_close(t);
        return -ENOSPC;
    }
    return 0;
}

int stacktab_open(struct stacktab *t, const char *dir, struct control *control)
{
    return open_tables(t, dir, control, false);
}

int stacktab_open_merging(struct stacktab *t, const char *dir, struct control *control)
{
    return open_tables(t, dir, control, true);
}

void stacktab_close(struct stacktab *t)
{
    tables_close(&t->tables);
    free(t->frames.slots);
    free(t->native.nodes.slots);
    free(t->native.counts.slots);
    free(t->merged.nodes.slots);
    free(t->merged.counts.slots);
    strmap_release(&t->modules);
    strmap_release(&t->tasks);
    strmap_release(&t->texts);
    strmap_release(&t->codes);
    *t = (struct stacktab){ .info = NULL };
}

/* ---- Names ---------------------------------------------------------------------------------- */

uint32_t stacktab_text(struct stacktab *t, const char *text)
{
    const size_t len = strlen(text);
    bool added;
    struct strmap_entry *e = len ? strmap_enter(&t->texts, text, len, &added) : NULL;
    if (!e)
        return 0;
    if (added)
        e->value = tables_text(&t->tables, text, len);
    return (uint32_t)e->value;
}

uint32_t stacktab_module(struct stacktab *t, const struct stack_module_row *row,
                         const char *path)
{
    struct buf key = BUF_INIT;
    bool added = false;
    uint32_t index;
    buf_append(&key, row->build_id, row->build_id_len);
    buf_printf(&key, "|%u|%llu|%s", row->pid, (unsigned long long)row->inode, path);
    struct strmap_entry *e = key.error
                                 ? NULL
                                 : strmap_enter(&t->modules, key.data, key.len, &added);
    buf_release(&key);
    if (!e)
        return UINT32_MAX;
    if (added) {
        struct stack_module_row *r = tables_append(&t->tables, STACKS_MODULES, &index);
        e->value = r ? index : UINT32_MAX;
        if (r) {
            *r = *row;
            r->key = 0;
            r->path = stacktab_text(t, path);
            __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
        }
    }
    return (uint32_t)e->value;
}

uint32_t stacktab_task(struct stacktab *t, uint32_t pid, const char *process,
                       const char *thread)
{
    struct buf key = BUF_INIT;
    bool added = false;
    uint32_t index;
    buf_printf(&key, "%u|%s|%s", pid, process, thread);
    struct strmap_entry *e = key.error
                                 ? NULL
                                 : strmap_enter(&t->tasks, key.data, key.len, &added);
    buf_release(&key);
    if (!e)
        return STACKS_MAX_TASKS;
    if (added) {
        struct stack_task_row *r = tables_append(&t->tables, STACKS_TASKS, &index);
        e->value = r ? index : STACKS_MAX_TASKS;
        if (r) {
            r->pid = pid;
            r->process = stacktab_text(t, process);
            r->thread = stacktab_text(t, thread);
            __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
        }
    }
    return (uint32_t)e->value;
}

/* ---- Counting --------------------------------------------------------------------------------- */

static bool frame_number(struct stacktab *t, const struct stack_place *p,
                         uint32_t *ret_frame)
{
    struct pairmap_slot *s = pair_enter(&t->frames, p->key,
                                        (uint64_t)p->module << 32 | p->flags);
    if (!s)
        return false;
    if (!s->value) {
        struct stack_frame_row *r = tables_append(&t->tables, STACKS_FRAMES, ret_frame);
        if (!r)
            return false;
        r->module = p->module;
        r->flags = p->flags;
        __atomic_store_n(&r->key, p->key, __ATOMIC_RELEASE);
        pair_set(&t->frames, s, *ret_frame);
    }
    *ret_frame = s->value - 1;
    return true;
}

static bool node_number(struct stacktab *t, struct stacktab_tree *tree, uint32_t parent,
                        uint32_t frame, uint32_t *ret_node)
{
    struct pairmap_slot *s = pair_enter(&tree->nodes, parent, frame);
    if (!s)
        return false;
    if (!s->value) {
        struct stack_node_row *r = tables_append(&t->tables, tree->node_table,
                                                 ret_node);
        if (!r)
            return false;
        r->frame = frame;
        r->parent = parent;
        __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
        pair_set(&tree->nodes, s, *ret_node);
    }
    *ret_node = s->value - 1;
    return true;
}

static bool add(struct stacktab *t, struct stacktab_tree *tree, uint32_t task,
                uint32_t node, uint32_t weight)
{
    struct pairmap_slot *s = pair_enter(&tree->counts, node, task);
    uint32_t index;
    if (!s)
        return false;
    if (s->value) {
        struct stack_count_row *r = tables_row(&t->tables, tree->count_table,
                                               s->value - 1);
        __atomic_store_n(&r->samples, r->samples + weight, __ATOMIC_RELAXED);
        return true;
    }
    struct stack_count_row *r = tables_append(&t->tables, tree->count_table, &index);
    if (!r)
        return false;
    r->node = node;
    r->task = task;
    r->samples = weight;
    __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
    pair_set(&tree->counts, s, index);
    return true;
}

/* False: there was no room for the path, it is one of the others. */
static bool count(struct stacktab *t, struct stacktab_tree *tree, uint32_t task,
                  const struct stack_place *stack, unsigned depth, uint32_t weight)
{
    uint32_t node = STACK_OTHER, frame;
    bool whole = true;
    for (unsigned i = depth; whole && i-- > 0;)
        whole = frame_number(t, &stack[i], &frame) &&
                node_number(t, tree, node, frame, &node);
    if (whole && depth > 0 && add(t, tree, task, node, weight))
        return true;
    (void)add(t, tree, task, STACK_OTHER, weight);
    return false;
}

void stacktab_count(struct stacktab *t, uint32_t task, const struct stack_place *stack,
                    unsigned depth, uint32_t weight)
{
    if (!count(t, &t->native, task, stack, depth, weight))
        t->info->other += weight;
    t->info->taken++;
    __atomic_store_n(&t->info->samples, t->info->samples + weight, __ATOMIC_RELAXED);
}

void stacktab_count_merged(struct stacktab *t, uint32_t task,
                           const struct stack_place *stack, unsigned depth,
                           uint32_t weight)
{
    (void)count(t, &t->merged, task, stack, depth, weight);
}

/* ---- Python ------------------------------------------------------------------------------------ */

static bool code_number(struct stacktab *t, const char *name, const char *file,
                        uint32_t first_line, uint32_t *ret_code)
{
    struct buf key = BUF_INIT;
    bool added = false;
    buf_printf(&key, "%u|%s|%s", first_line, name, file);
    struct strmap_entry *e = key.error
                                 ? NULL
                                 : strmap_enter(&t->codes, key.data, key.len, &added);
    buf_release(&key);
    if (!e)
        return false;
    if (added) {
        struct stack_code_row *r = tables_append(&t->tables, STACKS_CODES, ret_code);
        e->value = r ? *ret_code : UINT32_MAX;
        if (r) {
            r->name = stacktab_text(t, name);
            r->file = stacktab_text(t, file);
            r->first_line = first_line;
            __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
        }
    }
    *ret_code = (uint32_t)e->value;
    return *ret_code != UINT32_MAX;
}

bool stacktab_python(struct stacktab *t, const char *name, const char *file,
                     uint32_t first_line, uint32_t line, struct stack_place *ret_place)
{
    uint32_t code;
    if (!t->python_module)
        t->python_module = stacktab_module(t, &(struct stack_module_row){ .key = 1 },
                                           STACK_PYTHON_MODULE) +
                           1;
    if (!t->python_module || !code_number(t, name, file, first_line, &code))
        return false;
    *ret_place = (struct stack_place){ .key = ((uint64_t)code << 32 | line) + 1,
                                       .module = t->python_module - 1,
                                       .flags = STACK_FRAME_PYTHON };
    return true;
}
