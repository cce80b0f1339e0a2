/* nvml.c: NVIDIA cards, through NVML.
 *
 * What it costs decides how often it is asked (measured on an H200): utilisation, power
 * and temperature 1.2 µs each, memory 7 µs: every round. Clocks, throttle reasons and
 * the list of processes: at most once a second. The energy counter takes 3.4 ms and is a
 * monitor of its own (nvml_energy.c). PCIe throughput is left out: NVML answers it by
 * watching the bus for 20 ms.
 *
 * Cards differ in what they answer. A reading that is not supported is said to be
 * unavailable once and not tried again; one that merely fails is tried again, until it
 * has failed ten times in a row; a card that is lost is left alone, the others go on.
 *
 * A card in MIG mode has no utilisation of its own; its parts ("gpu0-mig1") have memory
 * and processes of theirs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "capture/monitor/nvml_library.h"
#include "capture/monitor/power_monitors.h"

enum {
    DEVICES_MAX = 128, /* 16 cards and 7 parts of each */
    LISTED_MAX = 512,  /* processes on one card */
    OWN_MAX = 1024,    /* processes of the run that ever used cards */
    FAILURES_MAX = 10,
};
static const uint64_t SLOW_NS = 900000000; /* a little less than the usual second */
static const double MIB = 1 << 20;

/* What a card can be asked, in the order of `readings`. */
enum {
    UTILISATION,
    MEMORY,
    POWER,
    TEMPERATURE,
    SM_CLOCK,
    MEMORY_CLOCK,
    THROTTLE,
    PROCESSES,
    READINGS
};

struct device {
    struct nvml_device *handle;
    char subject[24];
    bool is_part, has_parts, lost;
    bool off[READINGS];
    uint8_t failures[READINGS];
};

/* A process of the run with memory on cards, all cards together. */
struct own {
    uint32_t pid;
    char subject[12];
    double used_mib;
    bool listed;
};

struct nvml {
    struct nvml_library library;
    struct device devices[DEVICES_MAX];
    size_t device_count;
    struct own own[OWN_MAX];
    size_t own_count;
    struct nvml_process listed[LISTED_MAX];
    bool in_container; /* numbers of processes may be the host's */
    bool said_container;
    uint64_t slow_ns; /* when the slow ones were asked last */
    const struct monitor_round *round;
    struct monitor_sink *sink;
};

static void set(const struct nvml *m, const struct device *d, const char *metric,
                const char *unit, double value)
{
    m->sink->set(m->sink, metric, d->subject, unit, value);
}

/* ---- Readings: each asks, sets what it got, and returns the library's result ---- */

static int read_utilisation(struct nvml *m, struct device *d)
{
    struct nvml_utilisation u;
    if (!m->library.utilisation)
        return NVML_FUNCTION_NOT_FOUND;
    const int result = m->library.utilisation(d->handle, &u);
    if (result == NVML_OK) {
        set(m, d, "gpu", "percent", u.gpu);
        set(m, d, "gpu_memory_busy", "percent", u.memory);
    }
    return result;
}

/* Without the second version of the call, what the driver reserves counts as used. */
static int ask_memory(struct nvml *m, struct device *d, double *ret_used,
                      double *ret_total)
{
    struct nvml_memory_v2 now = { .version = NVML_MEMORY_V2 };
    struct nvml_memory old;
    if (m->library.memory_v2 && m->library.memory_v2(d->handle, &now) == NVML_OK) {
        *ret_used = (double)now.used;
        *ret_total = (double)now.total;
        return NVML_OK;
    }
    if (!m->library.memory)
        return NVML_FUNCTION_NOT_FOUND;
    const int result = m->library.memory(d->handle, &old);
    if (result == NVML_OK) {
        *ret_used = (double)old.used;
        *ret_total = (double)old.total;
    }
    return result;
}

static int read_memory(struct nvml *m, struct device *d)
{
    double used, total;
    const int result = ask_memory(m, d, &used, &total);
    if (result != NVML_OK)
        return result;
    set(m, d, "gpu_memory", "MiB", used / MIB);
    if (total > 0)
        set(m, d, "gpu_memory_percent", "percent", 100 * used / total);
    return NVML_OK;
}

static int read_power(struct nvml *m, struct device *d)
{
    unsigned mw;
    if (!m->library.power)
        return NVML_FUNCTION_NOT_FOUND;
    const int result = m->library.power(d->handle, &mw);
    if (result == NVML_OK)
        set(m, d, "gpu_power", "W", mw / 1e3);
    return result;
}

static int read_temperature(struct nvml *m, struct device *d)
{
    unsigned celsius;
    if (!m->library.temperature)
        return NVML_FUNCTION_NOT_FOUND;
    const int result = m->library.temperature(d->handle, NVML_SENSOR_GPU, &celsius);
    if (result == NVML_OK)
        set(m, d, "gpu_temp", "C", celsius);
    return result;
}

static int read_clock(struct nvml *m, struct device *d, int clock, const char *metric)
{
    unsigned mhz;
    if (!m->library.clock)
        return NVML_FUNCTION_NOT_FOUND;
    const int result = m->library.clock(d->handle, clock, &mhz);
    if (result == NVML_OK)
        set(m, d, metric, "MHz", mhz);
    return result;
}

static int read_sm_clock(struct nvml *m, struct device *d)
{
    return read_clock(m, d, NVML_CLOCK_SM, "gpu_clock");
}

static int read_memory_clock(struct nvml *m, struct device *d)
{
    return read_clock(m, d, NVML_CLOCK_MEMORY, "gpu_memory_clock");
}

/* 0 or 1, so that an average is the share of time. Being idle and clocks somebody set
 * are no throttling. */
static int read_throttle(struct nvml *m, struct device *d)
{
    static const struct {
        const char *metric;
        unsigned reasons;
    } kinds[] = {
        { "gpu_throttled_power", NVML_THROTTLE_POWER_CAP | NVML_THROTTLE_POWER_BRAKE },
        { "gpu_throttled_heat", NVML_THROTTLE_SW_THERMAL | NVML_THROTTLE_HW_THERMAL },
        { "gpu_throttled_hardware", NVML_THROTTLE_HW_SLOWDOWN },
    };
    unsigned long long reasons;
    if (!m->library.throttle)
        return NVML_FUNCTION_NOT_FOUND;
    const int result = m->library.throttle(d->handle, &reasons);
    for (size_t i = 0; result == NVML_OK && i < sizeof kinds / sizeof *kinds; i++)
        set(m, d, kinds[i].metric, "1", (reasons & kinds[i].reasons) != 0);
    return result;
}

/* ---- Processes ---------------------------------------------------------------- */

static bool is_of_run(const struct nvml *m, uint32_t pid)
{
    for (size_t i = 0; i < m->round->process_count; i++)
        if (m->round->processes[i].pid == pid)
            return true;
    return false;
}

/* NULL when there are too many. */
static struct own *own_of(struct nvml *m, uint32_t pid)
{
    for (size_t i = 0; i < m->own_count; i++)
        if (m->own[i].pid == pid)
            return &m->own[i];
    if (m->own_count == OWN_MAX)
        return NULL;
    struct own *own = &m->own[m->own_count++];
    *own = (struct own){ .pid = pid };
    (void)snprintf(own->subject, sizeof own->subject, "%u", pid);
    return own;
}

static void add_own(struct nvml *m, uint32_t pid, double used_mib)
{
    struct own *own = own_of(m, pid);
    if (!own)
        return;
    own->used_mib += used_mib;
    own->listed = true;
}

/* In a container the list may hold the host's numbers: who is foreign cannot be told
 * then. A number that is one of ours still is. */
static void set_shares(struct nvml *m, struct device *d, double run_mib,
                       double foreign_mib, unsigned foreign)
{
    set(m, d, "gpu_run_memory", "MiB", run_mib);
    if (!m->in_container) {
        set(m, d, "gpu_foreign", "1", foreign);
        set(m, d, "gpu_foreign_memory", "MiB", foreign_mib);
    } else if (!m->said_container) {
        m->sink->unavailable(m->sink, "gpu_foreign",
                             "in a container the driver may give the host's process "
                             "numbers (run it with --pid=host)");
        m->said_container = true;
    }
}

static int read_processes(struct nvml *m, struct device *d)
{
    unsigned count = LISTED_MAX;
    if (!m->library.processes)
        return NVML_FUNCTION_NOT_FOUND;
    if (d->has_parts) /* theirs are listed there */
        return NVML_OK;
    const int result = m->library.processes(d->handle, &count, m->listed);
    if (result != NVML_OK)
        return result;
    double run_mib = 0, foreign_mib = 0;
    unsigned foreign = 0;
    for (unsigned i = 0; i < count && i < LISTED_MAX; i++) {
        const struct nvml_process *p = &m->listed[i];
        const double mib = p->used == NVML_NO_VALUE ? 0 : (double)p->used / MIB;
        if (is_of_run(m, p->pid)) {
            run_mib += mib;
            if (p->used != NVML_NO_VALUE)
                add_own(m, p->pid, mib);
        } else {
            foreign_mib += mib;
            foreign++;
        }
    }
    set_shares(m, d, run_mib, foreign_mib, foreign);
    return NVML_OK;
}

/* All cards have been asked. Slots are not used again: their texts are known to the
 * sink by address. */
static void set_own(struct nvml *m)
{
    for (size_t i = 0; i < m->own_count; i++) {
        struct own *own = &m->own[i];
        if (own->listed) /* else it has ended, or let go of the card */
            m->sink->set(m->sink, "gpu_process_memory", own->subject, "MiB",
                         own->used_mib);
        own->used_mib = 0;
        own->listed = false;
    }
}

/* ---- A round --------------------------------------------------------------------- */

static const struct reading {
    const char *metric;
    int (*read)(struct nvml *, struct device *);
    bool slow;
} readings[READINGS] = {
    [UTILISATION] = { "gpu", read_utilisation, false },
    [MEMORY] = { "gpu_memory", read_memory, false },
    [POWER] = { "gpu_power", read_power, false },
    [TEMPERATURE] = { "gpu_temp", read_temperature, false },
    [SM_CLOCK] = { "gpu_clock", read_sm_clock, true },
    [MEMORY_CLOCK] = { "gpu_memory_clock", read_memory_clock, true },
    [THROTTLE] = { "gpu_throttled", read_throttle, true },
    [PROCESSES] = { "gpu_process_memory", read_processes, true },
};

static void say_why(struct nvml *m, const struct device *d, const char *metric,
                    int result)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/%s", metric, d->subject);
    m->sink->unavailable(m->sink, name, nvml_result_text(result));
}

static void judge(struct nvml *m, struct device *d, int which, int result)
{
    if (result == NVML_OK) {
        d->failures[which] = 0;
    } else if (result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED) {
        d->lost = true;
        say_why(m, d, "gpu", result);
    } else if (result == NVML_NOT_SUPPORTED || result == NVML_NO_PERMISSION ||
               result == NVML_FUNCTION_NOT_FOUND ||
               ++d->failures[which] == FAILURES_MAX) {
        d->off[which] = true;
        /* Of parts of a card it is known that they lack most of it. */
        if (!d->is_part)
            say_why(m, d, readings[which].metric, result);
    }
}

static void nvml_sample(void *state, const struct monitor_round *round,
                        struct monitor_sink *sink)
{
    struct nvml *m = state;
    const bool slow = !m->slow_ns || round->now_ns - m->slow_ns >= SLOW_NS;
    m->round = round;
    m->sink = sink;
    for (size_t i = 0; i < m->device_count; i++)
        for (int which = 0; which < READINGS && !m->devices[i].lost; which++)
            if (!m->devices[i].off[which] && (slow || !readings[which].slow))
                judge(m, &m->devices[i], which,
                      readings[which].read(m, &m->devices[i]));
    if (slow) {
        set_own(m);
        m->slow_ns = round->now_ns;
    }
}

/* ---- Opening ---------------------------------------------------------------------- */

static struct device *add_device(struct nvml *m, struct nvml_device *handle)
{
    if (m->device_count == DEVICES_MAX)
        return NULL;
    struct device *d = &m->devices[m->device_count++];
    d->handle = handle;
    return d;
}

static void add_parts(struct nvml *m, struct device *card, unsigned number)
{
    unsigned now = 0, pending, count = 0;
    struct nvml_device *handle;
    const struct nvml_library *l = &m->library;
    if (!l->mig_mode || !l->mig_count || !l->mig_handle ||
        l->mig_mode(card->handle, &now, &pending) != NVML_OK || !now ||
        l->mig_count(card->handle, &count) != NVML_OK)
        return;
    for (unsigned i = 0; i < count && i < 16; i++) {
        if (l->mig_handle(card->handle, i, &handle) != NVML_OK)
            continue; /* parts need not be numbered without holes */
        struct device *part = add_device(m, handle);
        if (!part)
            return;
        (void)snprintf(part->subject, sizeof part->subject, "gpu%u-mig%u", number, i);
        part->is_part = true;
        card->has_parts = true;
        /* Power and heat are the card's; these answer with errors or the card's own. */
        part->off[POWER] = part->off[TEMPERATURE] = part->off[SM_CLOCK] = true;
        part->off[MEMORY_CLOCK] = part->off[THROTTLE] = true;
    }
}

static int find_devices(struct nvml *m, const char **ret_why)
{
    unsigned count = 0;
    struct nvml_device *handle;
    int result = m->library.count(&count);
    for (unsigned i = 0; result == NVML_OK && i < count; i++) {
        const int one = m->library.handle_by_index(i, &handle);
        if (one != NVML_OK) {
            *ret_why = nvml_result_text(one);
            continue; /* one broken card is no reason to be silent on the others */
        }
        struct device *card = add_device(m, handle);
        if (!card)
            break;
        (void)snprintf(card->subject, sizeof card->subject, "gpu%u", i);
        add_parts(m, card, i);
    }
    if (m->device_count)
        return 0;
    if (result != NVML_OK)
        *ret_why = nvml_result_text(result);
    else if (count == 0)
        *ret_why = "the NVIDIA driver is there, but it shows no card (in a container: "
                   "start it with --gpus all)";
    return SONDE_E_UNSUPPORTED;
}

/* The first namespace of processes has this number on every kernel since 3.8. */
static bool looks_contained(const struct monitor_roots *roots)
{
    char path[4096], link[64];
    const char *proc = roots->proc && *roots->proc ? roots->proc : "/proc";
    (void)snprintf(path, sizeof path, "%s/self/ns/pid", proc);
    const ssize_t len = readlink(path, link, sizeof link - 1);
    if (len <= 0)
        return true; /* not known: claim nothing */
    link[len] = '\0';
    return strcmp(link, "pid:[4026531836]") != 0;
}

static void nvml_close(void *state)
{
    struct nvml *m = state;
    if (!m)
        return;
    nvml_library_close(&m->library);
    free(m);
}

static int nvml_open(const struct monitor_roots *roots, void **ret_state,
                     const char **ret_why)
{
    struct nvml *m = calloc(1, sizeof *m);
    if (!m) {
        *ret_why = "out of memory";
        return SONDE_E_UNSUPPORTED;
    }
    int rc = nvml_library_open(&m->library, ret_why);
    if (rc == 0)
        rc = find_devices(m, ret_why);
    if (rc < 0) {
        nvml_close(m);
        return rc;
    }
    m->in_container = looks_contained(roots);
    *ret_state = m;
    return 0;
}

const struct monitor_ops monitor_nvml = {
    .name = "nvml",
    .what = "NVIDIA cards: use, memory, power, heat, clocks, throttling, processes",
    .open = nvml_open,
    .sample = nvml_sample,
    .close = nvml_close,
};
