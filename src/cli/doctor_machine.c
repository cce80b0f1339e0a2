/* doctor_machine.c: sensors, GPUs, and what kind of machine this is. */
#include "cli/doctor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"

/* Entries of a directory below a root whose name begins so. */
static unsigned count_entries(const char *root, const char *where, const char *prefix,
                              const char *file, bool *ret_readable)
{
    struct buf path = BUF_INIT;
    unsigned count = 0;
    path_join(&path, root, where);
    DIR *dir = path.error ? NULL : opendir(path.data);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        char name[512], text[64];
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        (void)snprintf(name, sizeof name, "%s/%.100s/%s", where, e->d_name, file);
        struct buf full = BUF_INIT;
        path_join(&full, root, name);
        if (access(full.data, F_OK) == 0) {
            count++;
            *ret_readable |= doctor_read(root, name, text, sizeof text) && text[0];
        }
        buf_release(&full);
    }
    if (dir)
        (void)closedir(dir);
    buf_release(&path);
    return count;
}

static void probe_energy(const struct doctor_roots *roots, struct doctor_answer *a)
{
    bool readable = false;
    const unsigned zones = count_entries(roots->sys, "class/powercap",
                                         "intel-rapl:", "energy_uj", &readable);
    if (zones && readable) {
        doctor_found(a, DOCTOR_OK, "%u RAPL zones", zones);
    } else if (zones) {
        doctor_found(a, DOCTOR_LIMITED, "%u RAPL zones, closed to us", zones);
        doctor_why(a, "energy of the CPU is modelled, not measured");
        doctor_fix(a, "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj");
    } else {
        doctor_found(a, DOCTOR_UNAVAILABLE, "no RAPL");
        doctor_why(a, "energy of the CPU is modelled; virtual machines have no meter");
    }
}

static void probe_heat(const struct doctor_roots *roots, struct doctor_answer *a)
{
    bool readable = false;
    const unsigned sensors = count_entries(roots->sys, "class/hwmon", "hwmon",
                                           "temp1_input", &readable);
    const unsigned zones = count_entries(roots->sys, "class/thermal", "thermal_zone",
                                         "temp", &readable);
    if (readable)
        doctor_found(a, DOCTOR_OK, "%u sensors, %u thermal zones", sensors, zones);
    else {
        doctor_found(a, DOCTOR_UNAVAILABLE, "no sensors");
        doctor_why(a, "virtual machines seldom have any");
    }
}

/* ---- NVIDIA ---------------------------------------------------------------------------- */

static void *open_nvml(void)
{
    const char *given = getenv("SONDE_NVML");
    void *library = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    return library ? library : dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
}

static void probe_nvml(const struct doctor_roots *roots, struct doctor_answer *a)
{
    char driver[256];
    unsigned count = 0;
    void *library = open_nvml();
    if (!library) {
        doctor_found(a, DOCTOR_UNAVAILABLE, "libnvidia-ml.so.1 was not found");
        doctor_why(a, "no NVIDIA driver here, or not handed to this container");
        if (doctor_read(roots->proc, "driver/nvidia/version", driver, sizeof driver))
            doctor_fix(a, "docker run --gpus all, with NVIDIA_DRIVER_CAPABILITIES=all");
        return;
    }
    int (*init)(void) = NULL, (*get)(unsigned *) = NULL, (*end)(void) = NULL;
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&get = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&end = dlsym(library, "nvmlShutdown");
    const int rc = init && get && end ? init() : -1;
    if (rc == 0 && get(&count) == 0 && count) {
        doctor_found(a, DOCTOR_OK, "%u GPU%s", count, count == 1 ? "" : "s");
    } else {
        doctor_found(a, DOCTOR_UNAVAILABLE, "NVML is there but no GPU answers (%d)",
                     rc);
        doctor_why(a, "the driver is not loaded, or does not fit the library");
        doctor_fix(a, "nvidia-smi tells more");
    }
    if (rc == 0)
        (void)end();
    (void)dlclose(library);
}

static void probe_cupti(const struct doctor_roots *roots, struct doctor_answer *a)
{
    static const char *const names[] = {
        "libcupti.so.13", "libcupti.so.12", "libcupti.so",
        "/usr/local/cuda/lib64/libcupti.so",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"
    };
    (void)roots;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (!library)
            continue;
        (void)dlclose(library);
        doctor_found(a, DOCTOR_OK, "%s", names[i]);
        return;
    }
    doctor_found(a, DOCTOR_UNAVAILABLE, "libcupti was not found");
    doctor_why(a, "kernels of the GPU are not recorded; torch brings its own, which "
                  "is found from inside the program");
    doctor_fix(a, "pip install nvidia-cuda-cupti-cu12");
}

/* ---- What it is -------------------------------------------------------------------------- */

static const char *container(const struct doctor_roots *roots)
{
    static const struct {
        const char *sign, *name;
    } signs[] = { { "kubepods", "Kubernetes" },
                  { "docker", "Docker" },
                  { "libpod", "Podman" },
                  { "lxc", "LXC" },
                  { "containerd", "containerd" } };
    static char text[4096];
    if (access("/.dockerenv", F_OK) == 0)
        return "Docker";
    if (access("/run/.containerenv", F_OK) == 0)
        return "Podman";
    if (getenv("SINGULARITY_NAME") || getenv("APPTAINER_NAME"))
        return "Apptainer";
    if (doctor_read(roots->proc, "1/cgroup", text, sizeof text))
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (strstr(text, signs[i].sign))
                return signs[i].name;
    return NULL;
}

static void probe_machine(const struct doctor_roots *roots, struct doctor_answer *a)
{
    static char cpu[1 << 16];
    char vendor[64] = "", product[64] = "";
    const char *box = container(roots);
    const bool known = doctor_read(roots->proc, "cpuinfo", cpu, sizeof cpu);
    const bool virtual = known && strstr(cpu, " hypervisor") != NULL;
    (void)doctor_read(roots->sys, "class/dmi/id/sys_vendor", vendor, sizeof vendor);
    (void)doctor_read(roots->sys, "class/dmi/id/product_name", product, sizeof product);
    doctor_found(a, DOCTOR_OK, "%s%s%s%s%s%s%s",
                 virtual ? "virtual machine" : "bare metal",
                 box ? ", in a container: " : "", box ? box : "", vendor[0] ? " (" : "",
                 vendor, product[0] ? " " : "", product);
    const size_t end = strlen(a->found);
    if (vendor[0] && end + 1 < sizeof a->found)
        (void)snprintf(a->found + end, sizeof a->found - end, ")");
}

const struct doctor_check doctor_machine[] = {
    { "machine", "machine", false, probe_machine },
    { "energy", "energy (RAPL)", false, probe_energy },
    { "heat", "temperatures", false, probe_heat },
    { "nvml", "NVIDIA (NVML)", false, probe_nvml },
    { "cupti", "CUPTI", false, probe_cupti },
    { 0 },
};
