/* proctab.h: what a monitor keeps per process, in step with the round's processes.
 *
 * A slot is the monitor's own struct, beginning with struct proc_slot. After
 * proctab_follow() slot i belongs to the round's process i. Processes that stay keep
 * their order (monitor.h), so one walk over both lists does it.
 */
#ifndef SONDE_CAPTURE_MONITOR_PROCTAB_H
#define SONDE_CAPTURE_MONITOR_PROCTAB_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/monitor/monitor.h"

struct proc_slot {
    struct monitor_process process;
    char subject[12]; /* its pid in digits */
};

struct proctab {
    char *slots;
    size_t slot_size, count, cap;
    void *owner;                           /* passed to open and close */
    void (*open)(void *owner, void *slot); /* the slot is zeroed but for proc_slot */
    void (*close)(void *owner, void *slot);
};

static inline void *proctab_at(const struct proctab *t, size_t i)
{
    return t->slots + i * t->slot_size;
}

/* NULL: none such. */
void *proctab_find(const struct proctab *tab, uint32_t pid);
/* Whether slot `i` has no process in the round. Ask for slots in order, with *at = 0
 * at the first. */
bool proctab_gone(const struct proctab *tab, size_t i,
                  const struct monitor_round *round, size_t *at);
/* Closes the slots of those that are gone, opens slots for new ones. For want of memory
 * the last processes have none. */
void proctab_follow(struct proctab *tab, const struct monitor_round *round);
void proctab_release(struct proctab *tab);

#endif
