/* limitgroup.h: --memory-limit by the kernel: a control group for the program.
 *
 * A group below our own with the limit set, which the program enters before exec. Made
 * where we may: v1 as root, v2 where the memory controller is handed down to us. Where
 * not, the supervisor watches the sizes itself (postmortem.c). Never RLIMIT_AS: CUDA
 * and torch reserve far more addresses than they use.
 */
#ifndef SONDE_LAUNCH_LIMITGROUP_H
#define SONDE_LAUNCH_LIMITGROUP_H

#include <stdint.h>

#include "launch/memcg.h"

struct limitgroup {
    char dir[MEMCG_PATH + 32];
    char procs[MEMCG_PATH + 64]; /* write "0" here to enter */
};

/* −errno, or SONDE_E_UNSUPPORTED when the group would have no limit; nothing is left
 * behind then. */
int limitgroup_create(const struct memcg *ours, const char *id, uint64_t bytes,
                      struct limitgroup *ret_group);
/* −EBUSY while somebody is left in it. */
int limitgroup_remove(const struct limitgroup *group);

#endif
