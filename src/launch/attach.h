/* attach.h: watch a program that somebody else started.
 *
 *     attach_target    its command line, and whether we may look at it
 *     launch_prepare   as for a program of ours
 *     attach_follow    captures from outside until it ends, the time is up or somebody
 *                      interrupts us
 *     launch_finish
 *
 * Nothing is injected: no zones, no allocations. The program is not stopped, and does
 * not notice; it is not our child, so nobody tells us how it ends.
 */
#ifndef SONDE_LAUNCH_ATTACH_H
#define SONDE_LAUNCH_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/launch.h"

struct attach_target {
    pid_t pid;
    uint64_t start; /* of the process, in clock ticks since boot */
    char **argv;    /* its command line; owned */
    int argc;
    char *run; /* directory of the run it is recorded in already, or NULL; owned */
};

/* −ESRCH: no such process; −EACCES: it is somebody else's; −EINVAL: ourselves, or a
 * thread of the kernel. */
int attach_target_find(pid_t pid, struct attach_target *ret_target);
void attach_target_release(struct attach_target *target);

/* Returns when the target has ended (launch->child.ended), after duration_ns (0: no
 * limit), or on SIGINT, SIGTERM, SIGHUP (launch->child.interrupted). */
void attach_follow(struct launch *launch, const struct attach_target *target,
                   uint64_t duration_ns);

#endif
