/* nvml_library.c: finds NVML and its functions.
 *
 * Which functions there are depends on the driver. One that is missing costs its own
 * metric and nothing else. The library is NVIDIA's: it is loaded into the supervisor,
 * and into a program only when it asks to be sampled from inside.
 */
#include "capture/monitor/nvml_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MEMBER(name) offsetof(struct nvml_library, name)

/* The newest name first. */
static const struct symbol {
    size_t member;
    bool needed;
    const char *names[3];
} symbols[] = {
    { MEMBER(init), true, { "nvmlInit_v2", "nvmlInit" } },
    { MEMBER(shutdown), true, { "nvmlShutdown" } },
    { MEMBER(count), true, { "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount" } },
    { MEMBER(handle_by_index),
      true,
      { "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex" } },
    { MEMBER(utilisation), false, { "nvmlDeviceGetUtilizationRates" } },
    { MEMBER(memory), false, { "nvmlDeviceGetMemoryInfo" } },
    { MEMBER(memory_v2), false, { "nvmlDeviceGetMemoryInfo_v2" } },
    { MEMBER(temperature), false, { "nvmlDeviceGetTemperature" } },
    { MEMBER(power), false, { "nvmlDeviceGetPowerUsage" } },
    { MEMBER(clock), false, { "nvmlDeviceGetClockInfo" } },
    { MEMBER(throttle),
      false,
      { "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons" } },
    { MEMBER(energy), false, { "nvmlDeviceGetTotalEnergyConsumption" } },
    { MEMBER(processes),
      false,
      { "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2" } },
    { MEMBER(mig_mode), false, { "nvmlDeviceGetMigMode" } },
    { MEMBER(mig_count), false, { "nvmlDeviceGetMaxMigDeviceCount" } },
    { MEMBER(mig_handle), false, { "nvmlDeviceGetMigDeviceHandleByIndex" } },
};

const char *nvml_result_text(int result)
{
    switch (result) {
    case NVML_NOT_SUPPORTED:
        return "this card does not have it";
    case NVML_NO_PERMISSION:
        return "the driver wants root for it (try as root, or ask the administrator)";
    case NVML_DRIVER_NOT_LOADED:
        return "NVIDIA's kernel module is not loaded (sudo modprobe nvidia)";
    case NVML_FUNCTION_NOT_FOUND:
        return "this driver does not have it (a newer driver does)";
    case NVML_GPU_IS_LOST:
        return "the card has fallen off the bus (dmesg | grep -i xid; reboot)";
    case NVML_RESET_REQUIRED:
        return "the card must be reset (sudo nvidia-smi --gpu-reset)";
    case NVML_VERSION_MISMATCH:
        return "libnvidia-ml and the kernel module differ in version: the driver was "
               "upgraded under it (reboot)";
    case NVML_NOT_FOUND:
        return "there is no such card";
    case NVML_TIMEOUT:
        return "the card does not answer";
    default:
        return "the driver fails (nvidia-smi tells more)";
    }
}

static bool find_symbols(struct nvml_library *library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = NULL;
        for (size_t n = 0; n < 3 && !found && symbols[i].names[n]; n++)
            found = dlsym(library->handle, symbols[i].names[n]);
        if (!found && symbols[i].needed)
            return false;
        /* As dlsym(3) wants it: C has no way to turn an object into a function. */
        memcpy((char *)library + symbols[i].member, &found, sizeof found);
    }
    return true;
}

int nvml_library_open(struct nvml_library *ret_library, const char **ret_why)
{
    struct nvml_library library = { 0 };
    const char *file = secure_getenv("SONDE_NVML");
    library.handle = dlopen(file && *file ? file : "libnvidia-ml.so.1",
                            RTLD_NOW | RTLD_LOCAL);
    if (!library.handle) {
        *ret_why = "no libnvidia-ml.so.1: no NVIDIA driver here (in a container: start "
                   "it with --gpus all; SONDE_NVML names another file)";
        return SONDE_E_UNSUPPORTED;
    }
    if (!find_symbols(&library)) {
        *ret_why = "libnvidia-ml.so.1 lacks functions that every driver since 2013 has";
        (void)dlclose(library.handle);
        return SONDE_E_UNSUPPORTED;
    }
    const int result = library.init();
    if (result != NVML_OK) {
        *ret_why = nvml_result_text(result);
        (void)dlclose(library.handle);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_library = library;
    return 0;
}

void nvml_library_close(struct nvml_library *library)
{
    if (!library->handle)
        return;
    (void)library->shutdown();
    (void)dlclose(library->handle);
    *library = (struct nvml_library){ 0 };
}
