// link: none
/* fake_nvml: stands in for libnvidia-ml.so.1 where there is no card (SONDE_NVML).
 *
 * FAKE_NVML is a script of words:
 *     cards=N     how many cards (default 2)
 *     mig=C       card C is in MIG mode: two parts, numbers 0 and 2, and no utilisation
 *     broken=C    card C has no handle
 *     lost=C@N    card C is lost from the N-th question after its power on
 *     shaky=C     every other question for the temperature of card C times out
 *     init=R      nvmlInit fails with R
 *     pid=P       P has 1000 MiB on card 0 and 500 on card 1
 *     noenergy    there is no energy counter
 *     watts=W     what each card draws (default 250)
 * Answers, card c: use 40 + 10 c percent; memory 80 GiB, 20 + c GiB used, 1 reserved;
 * 60 + c degrees; W watts; clocks 1500 + c and 2600 MHz; card 1 is throttled by power
 * and heat; a foreign process 77 has 300 MiB on card 0. Energy follows the clock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    OK = 0,
    INVALID = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    TIMEOUT = 10,
    LOST = 15
};

struct device {
    unsigned card, part; /* part 0: the card itself */
};
static struct device devices[16][4];
static int cards, mig, broken, lost, lost_after, shaky, pid, no_energy;
static double watts;
static unsigned power_calls, temperature_calls;

static int word(const char *key, int fallback)
{
    const char *script = getenv("FAKE_NVML");
    const char *at = script ? strstr(script, key) : NULL;
    if (!at)
        return fallback;
    at += strlen(key);
    return *at == '=' ? atoi(at + 1) : 1;
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    const char *at = getenv("FAKE_NVML") ? strstr(getenv("FAKE_NVML"), "lost=") : NULL;
    cards = word("cards", 2);
    mig = word("mig", -1);
    broken = word("broken", -1);
    shaky = word("shaky", -1);
    pid = word("pid", 0);
    no_energy = word("noenergy", 0);
    watts = word("watts", 250);
    lost = word("lost", -1);
    lost_after = at && strchr(at, '@') ? atoi(strchr(at, '@') + 1) : 0;
    power_calls = temperature_calls = 0;
    for (unsigned c = 0; c < 16; c++)
        for (unsigned p = 0; p < 4; p++)
            devices[c][p] = (struct device){ c, p };
    return word("init", 0);
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)cards;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device)
{
    if ((int)index >= cards)
        return INVALID;
    if ((int)index == broken)
        return LOST;
    *device = &devices[index][0];
    return OK;
}

int nvmlDeviceGetMigMode(struct device *d, unsigned *now, unsigned *pending);
int nvmlDeviceGetMigMode(struct device *d, unsigned *now, unsigned *pending)
{
    if (d->card > 0 && mig < 0)
        return NOT_SUPPORTED;
    *now = *pending = (int)d->card == mig;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(struct device *d, unsigned *count);
int nvmlDeviceGetMaxMigDeviceCount(struct device *d, unsigned *count)
{
    *count = (int)d->card == mig ? 7 : 0;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, unsigned index,
                                        struct device **part);
int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, unsigned index,
                                        struct device **part)
{
    if (index != 0 && index != 2)
        return NOT_FOUND;
    *part = &devices[d->card][index + 1];
    return OK;
}

static int state_of(const struct device *d)
{
    return (int)d->card == lost && (int)power_calls >= lost_after ? LOST : OK;
}

struct utilisation {
    unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(struct device *d, struct utilisation *u);
int nvmlDeviceGetUtilizationRates(struct device *d, struct utilisation *u)
{
    if ((int)d->card == mig)
        return NOT_SUPPORTED;
    u->gpu = 40 + 10 * d->card;
    u->memory = 5;
    return state_of(d);
}

struct memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
static const unsigned long long GIB = 1ULL << 30;
int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory *m);
int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory *m)
{
    if (m->version != (sizeof *m | 2 << 24))
        return INVALID;
    m->total = (d->part ? 10 : 80) * GIB;
    m->reserved = GIB;
    m->used = (d->part ? d->part : 20 + d->card) * GIB;
    m->free = m->total - m->used - m->reserved;
    return state_of(d);
}

int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *celsius);
int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *celsius)
{
    if (sensor != 0 || d->part)
        return INVALID;
    if ((int)d->card == shaky && temperature_calls++ % 2)
        return TIMEOUT;
    *celsius = 60 + d->card;
    return state_of(d);
}

int nvmlDeviceGetPowerUsage(struct device *d, unsigned *mw);
int nvmlDeviceGetPowerUsage(struct device *d, unsigned *mw)
{
    if (d->part)
        return INVALID;
    if ((int)d->card == lost)
        power_calls++;
    *mw = (unsigned)(watts * 1e3);
    return state_of(d);
}

int nvmlDeviceGetClockInfo(struct device *d, int clock, unsigned *mhz);
int nvmlDeviceGetClockInfo(struct device *d, int clock, unsigned *mhz)
{
    *mhz = clock == 1 ? 1500 + d->card : 2600;
    return d->part ? INVALID : state_of(d);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *d, unsigned long long *r);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *d, unsigned long long *r)
{
    *r = d->card == 1 ? 0x04 | 0x20 : 0x01;
    return d->part ? INVALID : state_of(d);
}

int nvmlDeviceGetTotalEnergyConsumption(struct device *d, unsigned long long *mj);
int nvmlDeviceGetTotalEnergyConsumption(struct device *d, unsigned long long *mj)
{
    if (no_energy || d->part)
        return NOT_SUPPORTED;
    *mj = (unsigned long long)(now_s() * watts * 1e3);
    return state_of(d);
}

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned *count,
                                            struct process *list);
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned *count,
                                            struct process *list)
{
    const unsigned room = *count;
    unsigned n = 0;
    struct process all[2];
    if (d->card == 0 && d->part < 2)
        all[n++] = (struct process){ 77, 300ULL << 20, 0, 0 };
    if (pid && d->card < 2 && d->part < 2)
        all[n++] = (struct process){ (unsigned)pid, (d->card ? 500ULL : 1000ULL) << 20,
                                     0, 0 };
    *count = n;
    if (n > room)
        return TOO_SMALL;
    memcpy(list, all, n * sizeof *all);
    return state_of(d);
}
