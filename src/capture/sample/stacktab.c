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
};

int stacktab_open(struct stacktab *t, const char *dir, struct control *control)
{
    uint32_t index;
    *t = (struct stacktab){ .info = NULL };
    strmap_init(&t->modules);
    strmap_init(&t->tasks);
    strmap_init(&t->texts);
    int rc = tables_create(dir, STACKS_KIND, control, specs,
                           sizeof specs / sizeof *specs, &t->tables);
    if (rc < 0)
        return rc;
    t->info = tables_append(&t->tables, STACKS_INFO, &index);
    struct stack_node_row *other = tables_append(&t->tables, STACKS_NODES, &index);
    if (!t->info || !other) {
        stacktab_close(t);
        return -ENOSPC;
    }
    other->key = 1;
    __atomic_store_n(&t->info->key, 1, __ATOMIC_RELEASE);
    return 0;
}

void stacktab_close(struct stacktab *t)
{
    tables_close(&t->tables);
    free(t->frames.slots);
    free(t->nodes.slots);
    free(t->counts.slots);
    strmap_release(&t->modules);
    strmap_release(&t->tasks);
    strmap_release(&t->texts);
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

static bool node_number(struct stacktab *t, uint32_t parent, uint32_t frame,
                        uint32_t *ret_node)
{
    struct pairmap_slot *s = pair_enter(&t->nodes, parent, frame);
    if (!s)
        return false;
    if (!s->value) {
        struct stack_node_row *r = tables_append(&t->tables, STACKS_NODES, ret_node);
        if (!r)
            return false;
        r->frame = frame;
        r->parent = parent;
        __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
        pair_set(&t->nodes, s, *ret_node);
    }
    *ret_node = s->value - 1;
    return true;
}

static bool add(struct stacktab *t, uint32_t task, uint32_t node, uint32_t weight)
{
    struct pairmap_slot *s = pair_enter(&t->counts, node, task);
    uint32_t index;
    if (!s)
        return false;
    if (s->value) {
        struct stack_count_row *r = tables_row(&t->tables, STACKS_COUNTS, s->value - 1);
        __atomic_store_n(&r->samples, r->samples + weight, __ATOMIC_RELAXED);
        return true;
    }
    struct stack_count_row *r = tables_append(&t->tables, STACKS_COUNTS, &index);
    if (!r)
        return false;
    r->node = node;
    r->task = task;
    r->samples = weight;
    __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
    pair_set(&t->counts, s, index);
    return true;
}

void stacktab_count(struct stacktab *t, uint32_t task, const struct stack_place *stack,
                    unsigned depth, uint32_t weight)
{
    uint32_t node = STACK_OTHER, frame;
    bool whole = true;
    for (unsigned i = depth; whole && i-- > 0;)
        whole = frame_number(t, &stack[i], &frame) &&
                node_number(t, node, frame, &node);
    if (!whole || depth == 0 || !add(t, task, node, weight)) {
        t->info->other += weight;
        (void)add(t, task, STACK_OTHER, weight);
    }
    t->info->taken++;
    __atomic_store_n(&t->info->samples, t->info->samples + weight, __ATOMIC_RELAXED);
}
