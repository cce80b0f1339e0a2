/* list.h: the monitors by name, for monitors.c and their tests. */
#ifndef SONDE_CAPTURE_MONITOR_LIST_H
#define SONDE_CAPTURE_MONITOR_LIST_H

#include "capture/monitor/monitor.h"

extern const struct monitor_ops monitor_cpu, monitor_mem, monitor_cgroup,
    monitor_pressure, monitor_disk, monitor_net, monitor_temp, monitor_switches,
    monitor_shm;

#endif
