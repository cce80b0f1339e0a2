/* nvml_abi.h: the part of NVIDIA's management library that we call.
 *
 * Our own declarations of its stable C interface: the header is not needed to build, the
 * library only to run, and not even that. Names in NVML's documentation: nvmlReturn_t,
 * nvmlUtilization_t and so on; values and layouts are theirs and never change, newer
 * ones get a new name (_v2, _v3). tests/system/libs/fake_nvml.c implements the same.
 */
#ifndef SONDE_CAPTURE_MONITOR_NVML_ABI_H
#define SONDE_CAPTURE_MONITOR_NVML_ABI_H

#include <stdint.h>

struct nvml_device; /* opaque: a pointer of theirs */

enum nvml_result {
    NVML_OK = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_VERSION_MISMATCH = 18, /* library and kernel module: after an upgrade */
    NVML_UNKNOWN = 999,
};

enum { NVML_SENSOR_GPU = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

/* Percent of the time since the driver's last look (1/6 s to 1 s, by card). */
struct nvml_utilisation {
    unsigned gpu, memory;
};

struct nvml_memory {
    unsigned long long total, free, used; /* used: with what the driver reserves */
};

/* As nvidia-smi has it: what the driver reserves stands apart. */
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)

/* Of _v2 and _v3; the first version had two fields and is not used. */
struct nvml_process {
    unsigned pid;
    unsigned long long used; /* bytes; NVML_NO_VALUE: not known */
    unsigned gpu_instance, compute_instance;
};
#define NVML_NO_VALUE UINT64_MAX

/* Why clocks are below what they could be (nvmlClocksEventReason…). */
enum nvml_throttle {
    NVML_THROTTLE_POWER_CAP = 0x04,
    NVML_THROTTLE_HW_SLOWDOWN = 0x08,
    NVML_THROTTLE_SW_THERMAL = 0x20,
    NVML_THROTTLE_HW_THERMAL = 0x40,
    NVML_THROTTLE_POWER_BRAKE = 0x80,
};

#endif
