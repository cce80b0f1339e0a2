/* power_monitors.h: the monitors of power and cards, for the list in monitors.c. */
#ifndef SONDE_CAPTURE_MONITOR_POWER_MONITORS_H
#define SONDE_CAPTURE_MONITOR_POWER_MONITORS_H

#include "capture/monitor/monitor.h"

extern const struct monitor_ops monitor_power;       /* power.c */
extern const struct monitor_ops monitor_nvml;        /* nvml.c */
extern const struct monitor_ops monitor_nvml_energy; /* nvml_energy.c */

#endif
