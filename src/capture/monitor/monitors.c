/* monitors.c: all monitors there are. To add one, copy skeleton.c and put it here. */
#include "capture/monitor/list.h"

#include <stddef.h>

const struct monitor_ops *const monitor_list[] = {
    &monitor_cpu,
    &monitor_mem,
    NULL,
};
