/* events.c: collecting and sorting. See events.h. */
#include "import/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "import/torch.h"

int events_init(struct events *e)
{
    *e = (struct events){ .device = "" };
    arena_init(&e->arena);
    strmap_init(&e->name_index);
    strmap_init(&e->lane_index);
    strmap_init(&e->process_index);
    e->names = calloc(EVENT_NAMES, sizeof *e->names);
    e->lanes = calloc(EVENT_LANES, sizeof *e->lanes);
    e->processes = calloc(EVENT_PROCESSES, sizeof *e->processes);
    if (e->names && e->lanes && e->processes)
        return 0;
    events_release(e);
    return -ENOMEM;
}

void events_release(struct events *e)
{
    free(e->list);
    free(e->names);
    free(e->lanes);
    free(e->processes);
    strmap_release(&e->name_index);
    strmap_release(&e->lane_index);
    strmap_release(&e->process_index);
    arena_release(&e->arena);
}

/* An entry for a key; number −1 without room. */
static long enter(struct strmap *map, const char *key, size_t len, size_t *count,
                  size_t most, bool *ret_added)
{
    uint64_t known;
    *ret_added = false;
    if (strmap_get(map, key, len, &known))
        return (long)known;
    if (*count == most || strmap_put(map, key, len, *count) < 0)
        return -1;
    *ret_added = true;
    return (long)(*count)++;
}

long events_name(struct events *e, const char *text, const char *category)
{
    char key[600];
    bool added;
    const size_t a = strnlen(text, 500), b = strnlen(category, 90);
    memcpy(key, text, a);
    key[a] = '\n';
    memcpy(key + a + 1, category, b);
    const long number = enter(&e->name_index, key, a + 1 + b, &e->name_count,
                              EVENT_NAMES, &added);
    if (!added)
        return number;
    struct event_name *n = &e->names[number];
    n->text = arena_strndup(&e->arena, text, a);
    n->category = arena_strndup(&e->arena, category, b);
    n->file = "";
    if (!n->text || !n->category) {
        e->name_count--;
        return -1;
    }
    torch_classify(n);
    return number;
}

static long process_of(struct events *e, const char *pid)
{
    bool added;
    const size_t len = strnlen(pid, 100);
    const long number = enter(&e->process_index, pid, len, &e->process_count,
                              EVENT_PROCESSES, &added);
    if (added) {
        struct event_process *p = &e->processes[number];
        p->pid = arena_strndup(&e->arena, pid, len);
        p->name = p->labels = "";
        if (!p->pid)
            p->pid = "";
    }
    return number;
}

long events_lane(struct events *e, const char *pid, const char *tid)
{
    char key[220];
    bool added;
    const size_t a = strnlen(pid, 100), b = strnlen(tid, 100);
    memcpy(key, pid, a);
    key[a] = '\n';
    memcpy(key + a + 1, tid, b);
    const long number = enter(&e->lane_index, key, a + 1 + b, &e->lane_count,
                              EVENT_LANES, &added);
    if (!added)
        return number;
    const long process = process_of(e, pid);
    struct event_lane *lane = &e->lanes[number];
    lane->tid = arena_strndup(&e->arena, tid, b);
    lane->name = "";
    lane->process = (uint16_t)(process < 0 ? 0 : process);
    if (process >= 0 && lane->tid)
        return number;
    e->lane_count--;
    return -1;
}

int events_add(struct events *e, const struct event *event)
{
    if (e->count == e->cap) {
        const size_t cap = e->cap ? e->cap * 2 : 1 << 16;
        if (cap > EVENTS_MAX)
            return SONDE_E_LIMIT;
        struct event *grown = realloc(e->list, cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        e->list = grown;
        e->cap = cap;
    }
    e->list[e->count] = *event;
    e->list[e->count].order = (uint32_t)e->count;
    e->count++;
    e->lanes[event->lane].events++;
    return 0;
}

static int64_t length(const struct event *e)
{
    return e->kind == EVENT_ZONE || e->kind == EVENT_STEP ? e->dur_ns : 0;
}

static int in_order(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    if (length(x) != length(y)) /* what lasts longer is outside */
        return length(x) > length(y) ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

void events_sort(struct events *e)
{
    if (e->count)
        qsort(e->list, e->count, sizeof *e->list, in_order);
}
