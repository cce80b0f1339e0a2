/* nvml_energy.c: the energy counters of NVIDIA cards.
 *
 * A monitor of its own because one reading takes 3.4 ms (H200, driver 570): sampled every
 * 10 s, in the first round and in the last. Millijoules since the driver was loaded
 * become joules since the first reading. Cards before Volta have no counter; analyse/
 * energy.c then adds up the power readings.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "capture/monitor/nvml_library.h"
#include "capture/monitor/power_monitors.h"

enum { CARDS_MAX = 64, FAILURES_MAX = 3 };

struct card {
    struct nvml_device *handle;
    char subject[16];
    bool off, started;
    unsigned failures;
    unsigned long long first_mj, last_mj;
};

struct nvml_energy {
    struct nvml_library library;
    struct card cards[CARDS_MAX];
    size_t count;
};

static void give_up(struct card *card, int result, struct monitor_sink *sink)
{
    char name[40];
    (void)snprintf(name, sizeof name, "gpu_energy/%s", card->subject);
    sink->unavailable(sink, name, nvml_result_text(result));
    card->off = true;
}

static void sample_card(const struct nvml_energy *m, struct card *card,
                        struct monitor_sink *sink)
{
    unsigned long long mj;
    const int result = m->library.energy(card->handle, &mj);
    if (result != NVML_OK) {
        const bool again = result == NVML_TIMEOUT || result == NVML_UNKNOWN;
        if (!again || ++card->failures == FAILURES_MAX)
            give_up(card, result, sink);
        return;
    }
    /* The counter falls only when the driver was loaded anew or the card reset: what
     * was counted before stays, the gap is lost. */
    if (!card->started || mj < card->last_mj)
        card->first_mj = mj - (card->started ? card->last_mj - card->first_mj : 0);
    card->started = true;
    card->last_mj = mj;
    sink->set(sink, "gpu_energy", card->subject, "J",
              (double)(mj - card->first_mj) / 1e3);
}

static void nvml_energy_sample(void *state, const struct monitor_round *round,
                               struct monitor_sink *sink)
{
    struct nvml_energy *m = state;
    (void)round;
    for (size_t i = 0; i < m->count; i++)
        if (!m->cards[i].off)
            sample_card(m, &m->cards[i], sink);
}

static void nvml_energy_close(void *state)
{
    struct nvml_energy *m = state;
    if (!m)
        return;
    nvml_library_close(&m->library);
    free(m);
}

static int find_cards(struct nvml_energy *m, const char **ret_why)
{
    unsigned count = 0;
    *ret_why = nvml_result_text(NVML_FUNCTION_NOT_FOUND);
    if (!m->library.energy || m->library.count(&count) != NVML_OK)
        return SONDE_E_UNSUPPORTED;
    for (unsigned i = 0; i < count && m->count < CARDS_MAX; i++) {
        struct card *card = &m->cards[m->count];
        const int result = m->library.handle_by_index(i, &card->handle);
        if (result != NVML_OK) {
            *ret_why = nvml_result_text(result);
            continue;
        }
        (void)snprintf(card->subject, sizeof card->subject, "gpu%u", i);
        m->count++;
    }
    return m->count ? 0 : SONDE_E_UNSUPPORTED;
}

static int nvml_energy_open(const struct monitor_roots *roots, void **ret_state,
                            const char **ret_why)
{
    (void)roots;
    struct nvml_energy *m = calloc(1, sizeof *m);
    if (!m) {
        *ret_why = "out of memory";
        return SONDE_E_UNSUPPORTED;
    }
    int rc = nvml_library_open(&m->library, ret_why);
    if (rc == 0)
        rc = find_cards(m, ret_why);
    if (rc < 0) {
        nvml_energy_close(m);
        return rc;
    }
    *ret_state = m;
    return 0;
}

const struct monitor_ops monitor_nvml_energy = {
    .name = "nvml_energy",
    .what = "energy of NVIDIA cards (counter, every 10 s: it is slow)",
    .open = nvml_energy_open,
    .sample = nvml_energy_sample,
    .close = nvml_energy_close,
    .slowest_ns = 10000000000,
};
