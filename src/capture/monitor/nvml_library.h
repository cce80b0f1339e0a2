/* nvml_library.h: NVML, loaded at run time. For the monitors of this folder. */
#ifndef SONDE_CAPTURE_MONITOR_NVML_LIBRARY_H
#define SONDE_CAPTURE_MONITOR_NVML_LIBRARY_H

#include "capture/monitor/nvml_abi.h"

/* NULL: this driver does not have the function. Those up to handle_by_index are always
 * there. */
struct nvml_library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*handle_by_index)(unsigned, struct nvml_device **);
    int (*utilisation)(struct nvml_device *, struct nvml_utilisation *);
    int (*memory)(struct nvml_device *, struct nvml_memory *);
    int (*memory_v2)(struct nvml_device *, struct nvml_memory_v2 *);
    int (*temperature)(struct nvml_device *, int sensor, unsigned *);
    int (*power)(struct nvml_device *, unsigned *mw);
    int (*clock)(struct nvml_device *, int clock, unsigned *mhz);
    int (*throttle)(struct nvml_device *, unsigned long long *reasons);
    int (*energy)(struct nvml_device *, unsigned long long *mj);
    int (*processes)(struct nvml_device *, unsigned *count, struct nvml_process *);
    int (*mig_mode)(struct nvml_device *, unsigned *now, unsigned *pending);
    int (*mig_count)(struct nvml_device *, unsigned *);
    int (*mig_handle)(struct nvml_device *, unsigned, struct nvml_device **);
};

/* Loads $SONDE_NVML or libnvidia-ml.so.1 and starts it. SONDE_E_UNSUPPORTED with what is
 * missing and what to do about it. May take a second where nothing keeps the driver
 * awake (persistence mode off). */
int nvml_library_open(struct nvml_library *ret_library, const char **ret_why);
void nvml_library_close(struct nvml_library *library);

/* What a result of theirs means, for people. */
const char *nvml_result_text(int result);

#endif
