/* proctab.c: see proctab.h. */
#include "capture/monitor/proctab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_of(const struct proc_slot *slot, const struct monitor_process *p)
{
    return slot->process.pid == p->pid && slot->process.start_ticks == p->start_ticks;
}

void *proctab_find(const struct proctab *t, uint32_t pid)
{
    for (size_t i = 0; i < t->count; i++) {
        struct proc_slot *slot = proctab_at(t, i);
        if (slot->process.pid == pid)
            return slot;
    }
    return NULL;
}

bool proctab_gone(const struct proctab *t, size_t i, const struct monitor_round *round,
                  size_t *at)
{
    if (*at < round->process_count && is_of(proctab_at(t, i), &round->processes[*at])) {
        (*at)++;
        return false;
    }
    return true;
}

static bool append(struct proctab *t, size_t at, const struct monitor_process *p)
{
    if (at == t->cap) {
        const size_t cap = t->cap ? t->cap * 2 : 8;
        char *more = realloc(t->slots, cap * t->slot_size);
        if (!more)
            return false;
        t->slots = more;
        t->cap = cap;
    }
    struct proc_slot *slot = proctab_at(t, at);
    memset(slot, 0, t->slot_size);
    slot->process = *p;
    (void)snprintf(slot->subject, sizeof slot->subject, "%u", p->pid);
    t->open(t->owner, slot);
    return true;
}

void proctab_follow(struct proctab *t, const struct monitor_round *round)
{
    const size_t before = t->count;
    size_t old = 0, kept = 0;
    for (size_t i = 0; i < round->process_count; i++) {
        while (old < before && !is_of(proctab_at(t, old), &round->processes[i]))
            t->close(t->owner, proctab_at(t, old++));
        if (old < before) {
            if (kept != old)
                memcpy(proctab_at(t, kept), proctab_at(t, old), t->slot_size);
            old++;
        } else if (!append(t, kept, &round->processes[i])) {
            break;
        }
        kept++;
    }
    while (old < before)
        t->close(t->owner, proctab_at(t, old++));
    t->count = kept;
}

void proctab_release(struct proctab *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->close(t->owner, proctab_at(t, i));
    free(t->slots);
    t->slots = NULL;
    t->count = t->cap = 0;
}
