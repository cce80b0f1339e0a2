/* monitors.c: all monitors there are. To add one, copy skeleton.c and put it here. */
#include "capture/monitor/list.h"
#include "capture/monitor/power_monitors.h"

#include <stddef.h>

/* Those of processes first: they are read closest to the moment of the round. */
const struct monitor_ops *const monitor_list[] = {
    &monitor_cpu,
    &monitor_mem,
    &monitor_disk,
    &monitor_switches,
    &monitor_cgroup,
    &monitor_pressure,
    &monitor_net,
    &monitor_temp,
    &monitor_power,
    &monitor_nvml,
    &monitor_nvml_energy,
    &monitor_shm,
    NULL,
};
