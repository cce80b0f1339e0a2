/* watch.h: look at the Python processes of a run, again and again.
 *
 *     watch_new                     the book of this run
 *     watch_look(pids)              one round over these processes
 *     watch_free
 *
 * A process is tried as it may become Python later (exec, a late dlopen), at growing
 * intervals; one that is of an unknown version is left alone, with a reason.
 */
#ifndef SONDE_CAPTURE_PYTHON_WATCH_H
#define SONDE_CAPTURE_PYTHON_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/control.h"

struct watch_process {
    uint32_t pid;
    uint64_t start_ticks;
};

struct watch;

int watch_new(const char *dir, struct control *control, uint64_t period_ns,
              struct watch **ret_watch);
void watch_free(struct watch *watch);

/* One round. Processes not in the list any more are let go. */
void watch_look(struct watch *watch, const struct watch_process *processes,
                size_t count, uint64_t now_ns);
/* Whether no thread of any of them ran since the last round but one. */
bool watch_is_idle(const struct watch *watch);
/* How many Python processes are being looked at. */
size_t watch_count(const struct watch *watch);

#endif
