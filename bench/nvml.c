// link: all
/* nvml.c: what a sample of the cards costs, beside the bare calls it is made of.
 *
 *     nvml [passes=20] [n=200]     one JSON object: nanoseconds
 *     nvml show=1                  the values as nvidia-smi would print them
 *
 * On a machine with a card, side by side (columns in the same order):
 *
 *     build/bench/nvml; build/bench/nvml show=1; nvidia-smi --format=csv,noheader,nounits \
 *       --query-gpu=index,utilization.gpu,memory.used,temperature.gpu,power.draw,clocks.sm,clocks.mem
 *
 * SONDE_NVML=build/progs/fake_nvml.so runs it without one. Floor and monitor take turns,
 * pass by pass; the floor is utilisation, memory, power and temperature of every card,
 * which is what a round of the monitor asks when it asks no slow ones.
 */
#include "measure.h"

#include "capture/monitor/nvml_library.h"
#include "capture/monitor/power_monitors.h"

static struct nvml_library library;
static struct nvml_device *cards[64];
static unsigned card_count;
static void *state;
static uint64_t now_ns = 1;
static uint64_t step_ns;
static const struct monitor_process self[1];

/* ---- Sinks --------------------------------------------------------------------- */

static unsigned long values;

static void count_value(struct monitor_sink *sink, const char *metric,
                        const char *subject, const char *unit, double value)
{
    (void)sink, (void)metric, (void)subject, (void)unit, (void)value;
    values++;
}

static void ignore(struct monitor_sink *sink, const char *metric, const char *why)
{
    (void)sink, (void)metric, (void)why;
}

static struct monitor_sink counting = { .set = count_value, .unavailable = ignore };

static void print_value(struct monitor_sink *sink, const char *metric,
                        const char *subject, const char *unit, double value)
{
    (void)sink;
    (void)printf("%-24s %-8s %12.3f %s\n", metric, subject, value, unit);
}

static void print_why(struct monitor_sink *sink, const char *metric, const char *why)
{
    (void)sink;
    (void)printf("%-24s unavailable: %s\n", metric, why);
}

static struct monitor_sink printing = { .set = print_value, .unavailable = print_why };

/* ---- Loops --------------------------------------------------------------------- */

static void MEASURED utilisation_loop(unsigned long n)
{
    struct nvml_utilisation u;
    while (n--)
        for (unsigned i = 0; i < card_count; i++)
            (void)library.utilisation(cards[i], &u);
}

static void MEASURED memory_loop(unsigned long n)
{
    struct nvml_memory_v2 m;
    while (n--)
        for (unsigned i = 0; i < card_count; i++) {
            m.version = NVML_MEMORY_V2;
            (void)library.memory_v2(cards[i], &m);
        }
}

static void MEASURED power_loop(unsigned long n)
{
    unsigned mw;
    while (n--)
        for (unsigned i = 0; i < card_count; i++)
            (void)library.power(cards[i], &mw);
}

static void MEASURED temperature_loop(unsigned long n)
{
    unsigned celsius;
    while (n--)
        for (unsigned i = 0; i < card_count; i++)
            (void)library.temperature(cards[i], NVML_SENSOR_GPU, &celsius);
}

static void MEASURED clock_loop(unsigned long n)
{
    unsigned mhz;
    while (n--)
        for (unsigned i = 0; i < card_count; i++)
            (void)library.clock(cards[i], NVML_CLOCK_SM, &mhz);
}

static void MEASURED throttle_loop(unsigned long n)
{
    unsigned long long reasons;
    while (n--)
        for (unsigned i = 0; i < card_count; i++)
            (void)library.throttle(cards[i], &reasons);
}

static void MEASURED processes_loop(unsigned long n)
{
    static struct nvml_process list[512];
    while (n--)
        for (unsigned i = 0; i < card_count; i++) {
            unsigned count = 512;
            (void)library.processes(cards[i], &count, list);
        }
}

static void MEASURED energy_loop(unsigned long n)
{
    unsigned long long mj;
    while (n--)
        for (unsigned i = 0; i < card_count; i++)
            (void)library.energy(cards[i], &mj);
}

/* What a fast round asks. */
static void MEASURED floor_loop(unsigned long n)
{
    while (n--) {
        utilisation_loop(1);
        memory_loop(1);
        power_loop(1);
        temperature_loop(1);
    }
}

static void MEASURED sample_loop(unsigned long n)
{
    while (n--) {
        const struct monitor_round round = { .now_ns = now_ns += step_ns,
                                             .elapsed_ns = step_ns,
                                             .processes = self,
                                             .process_count = 1 };
        monitor_nvml.sample(state, &round, &counting);
    }
}

/* ---- Main ---------------------------------------------------------------------- */

static void put_bare(const char *key, loop_fn *loop, bool there, unsigned long n)
{
    if (!there)
        return;
    loop(n / 10 + 1);
    put_number(key, time_loop(loop, n).ns);
}

static void put_bare_calls(unsigned long n)
{
    put_number("cards", card_count);
    put_bare("utilisation_ns", utilisation_loop, library.utilisation, n);
    put_bare("memory_ns", memory_loop, library.memory_v2, n);
    put_bare("power_ns", power_loop, library.power, n);
    put_bare("temperature_ns", temperature_loop, library.temperature, n);
    put_bare("clock_ns", clock_loop, library.clock, n);
    put_bare("throttle_ns", throttle_loop, library.throttle, n);
    put_bare("processes_ns", processes_loop, library.processes, n);
    put_bare("energy_ns", energy_loop, library.energy, 5);
}

static void open_all(void)
{
    const struct monitor_roots roots = { .proc = "", .sys = "" };
    const char *why = "";
    if (monitor_nvml.open(&roots, &state, &why) < 0)
        die("NVML", why);
    if (nvml_library_open(&library, &why) < 0 || library.count(&card_count) != 0)
        die("NVML", why);
    for (unsigned i = 0; i < card_count && i < 64; i++)
        if (library.handle_by_index(i, &cards[i]) != 0)
            die("NVML", "a card without a handle");
}

static void show(void)
{
    const struct monitor_round round = { .now_ns = 1,
                                         .processes = self,
                                         .process_count = 1 };
    monitor_nvml.sample(state, &round, &printing);
}

int main(int argc, char **argv)
{
    (void)argc;
    static struct passes fast, full;
    const unsigned passes = (unsigned)argument_number(argv, "passes", 20);
    const unsigned long n = argument_number(argv, "n", 200);
    open_all();
    if (argument_number(argv, "show", 0)) {
        show();
    } else {
        put_bare_calls(n);
        step_ns = 10000000; /* no slow ones, but for one round in 90 */
        alternate(&fast, passes, n, floor_loop, sample_loop);
        put_timings("floor", fast.floor, fast.count);
        put_timings("fast_round", fast.subject, fast.count);
        step_ns = 1000000000; /* all of it */
        alternate(&full, passes, n, floor_loop, sample_loop);
        put_timings("full_round", full.subject, full.count);
        put_number("values", (double)values);
        put_end();
    }
    monitor_nvml.close(state);
    nvml_library_close(&library);
    return 0;
}
