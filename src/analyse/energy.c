/* energy.c: what a run used, and what that meant for the air.
 *
 * Sources of the numbers below
 *  - World average of the grid: Ember, Global Electricity Review 2026 (April 2026),
 *    year 2025: 458 g CO₂e/kWh, life cycle, generation; 2024: 471.
 *    https://ember-energy.org/latest-insights/global-electricity-review-2026/
 *  - Watts per busy core by class, TDP / cores: Green Algorithms (Lannelongue, Grealey,
 *    Inouye, Advanced Science 2021, doi 10.1002/advs.202100707), its data/TDP_cpu.csv:
 *    EPYC 7552 200 W / 48, Xeon Gold 6148 and 6248 150 W / 20, 12 W for "any".
 *  - 0.3725 W per GiB of memory: the same, data/v2.2/referenceValues.csv, after Karyakin
 *    and Salem 2017.
 * TDP is what a processor draws when all its cores are busy: a model, good to a factor of
 * two or so, not more. Buildings (PUE), disks, networks and making the machine are not in
 * it.
 */
#include "analyse/energy.h"

#include <math.h>
#include <string.h>

#include "analyse/report.h"

const double energy_default_grid = 458;
const char *const energy_grid_source = "world average of 2025, Ember, Global "
                                       "Electricity Review 2026";

static const double DRAM_WATTS_PER_MB = 0.3725 / 1024;
static const double JOULES_PER_KWH = 3.6e6;
static const double LEAST_COVERED = 0.1; /* of the run, to speak for all of it */

static double watts_per_core(const char *cpu)
{
    static const struct {
        const char *word;
        double watts;
    } classes[] = { { "EPYC", 4.2 }, { "Xeon", 7.5 } };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strstr(cpu, classes[i].word))
            return classes[i].watts;
    return 12;
}

/* ---- Measured ------------------------------------------------------------------------ */

/* One counter or meter over the whole run: what was counted, and for the rest of the time
 * its average power. NaN when it saw too little of the run. */
static double whole_run(const struct energy_reading *r, double duration_s)
{
    const bool counted = r->joules >= 0 && r->counted_s > 0;
    const double joules = counted ? r->joules : 0;
    const double counted_s = counted ? r->counted_s : 0;
    if (!(duration_s > 0))
        return counted ? joules : NAN;
    if (counted_s >= duration_s)
        return joules;
    if (counted_s < LEAST_COVERED * duration_s && !(r->watts >= 0))
        return NAN;
    const double watts = r->watts >= 0 ? r->watts : joules / counted_s;
    return joules + watts * (duration_s - counted_s);
}

static const char *const measured_by[ENERGY_PARTS] = {
    [ENERGY_CPU] = "RAPL counters of the processors, whole machine",
    [ENERGY_DRAM] = "RAPL counters of the memory, whole machine",
    [ENERGY_GPU] = "NVML energy counter, else average power, all cards",
    [ENERGY_MACHINE] = "meter of the board or power supply, whole machine",
};

static void add_measured(struct energy *e, const struct energy_inputs *in)
{
    for (size_t i = 0; i < in->reading_count; i++) {
        const struct energy_reading *r = &in->readings[i];
        struct energy_sum *sum = &e->part[r->part];
        const double joules = whole_run(r, in->duration_s);
        if (isnan(joules))
            continue;
        sum->joules = sum->status == ENERGY_MEASURED ? sum->joules + joules : joules;
        sum->status = ENERGY_MEASURED;
        sum->method = measured_by[r->part];
    }
}

/* ---- Modelled ------------------------------------------------------------------------ */

static void model(struct energy_sum *sum, double joules, const char *method)
{
    if (sum->status == ENERGY_MEASURED || !(joules >= 0))
        return;
    *sum = (struct energy_sum){ joules, ENERGY_MODELLED, method };
}

static void add_modelled(struct energy *e, const struct energy_inputs *in)
{
    model(&e->part[ENERGY_CPU], in->cpu_s * e->watts_per_core,
          "CPU seconds of the run × watts per busy core of this class of processor");
    model(&e->part[ENERGY_DRAM], in->memory_mb * DRAM_WATTS_PER_MB * in->duration_s,
          "peak resident memory × 0.3725 W/GiB × duration");
}

/* ---- Together ------------------------------------------------------------------------- */

static void add_up(struct energy *e)
{
    bool measured = false, modelled = false;
    for (int p = ENERGY_CPU; p <= ENERGY_GPU; p++) {
        if (e->part[p].status == ENERGY_UNAVAILABLE)
            continue;
        e->joules = (isnan(e->joules) ? 0 : e->joules) + e->part[p].joules;
        measured |= e->part[p].status == ENERGY_MEASURED;
        modelled |= e->part[p].status == ENERGY_MODELLED;
    }
    e->co2e_g = e->joules / JOULES_PER_KWH * e->grid_g_per_kwh;
    if (measured || modelled)
        e->source = measured && modelled ? "mixed" : measured ? "measured" : "modelled";
}

static const char *why_no_gpu(int gpus)
{
    return gpus > 0 ? "the cards were not measured (sonde doctor)"
                    : "no card was measured";
}

void energy_from(const struct energy_inputs *in, struct energy *ret_energy)
{
    struct energy e = { .off = in->off, .source = "", .joules = NAN, .co2e_g = NAN };
    e.grid_is_default = !(in->grid_g_per_kwh >= 0);
    e.grid_g_per_kwh = e.grid_is_default ? energy_default_grid : in->grid_g_per_kwh;
    e.watts_per_core = watts_per_core(in->cpu);
    for (int p = 0; p < ENERGY_PARTS; p++)
        e.part[p] = (struct energy_sum){ NAN, ENERGY_UNAVAILABLE,
                                         in->off ? "switched off (--no-energy)"
                                                 : "neither measured nor known enough "
                                                   "to be modelled" };
    if (in->off) {
        e.source = "off";
    } else {
        e.part[ENERGY_GPU].method = why_no_gpu(in->gpus);
        e.part[ENERGY_MACHINE].method = "no meter";
        add_measured(&e, in);
        add_modelled(&e, in);
        add_up(&e);
    }
    *ret_energy = e;
}

/* ---- From a run ------------------------------------------------------------------------- */

enum { READINGS_MAX = 96 };

struct gathered {
    struct energy_reading readings[READINGS_MAX];
    const char *subjects[READINGS_MAX];
    size_t count;
    double cpu_s;
};

/* A metric and the start of its subject, and what it counts. */
static const struct name {
    const char *metric, *subject;
    enum energy_part part;
    bool is_counter;
} names[] = {
    { "energy", "package-", ENERGY_CPU, true },
    { "power", "package-", ENERGY_CPU, false },
    { "energy", "dram-", ENERGY_DRAM, true },
    { "power", "dram-", ENERGY_DRAM, false },
    { "energy", "psys", ENERGY_MACHINE, true },
    { "power", "psys", ENERGY_MACHINE, false },
    { "power", "system", ENERGY_MACHINE, false },
    { "gpu_energy", "gpu", ENERGY_GPU, true },
    { "gpu_power", "gpu", ENERGY_GPU, false },
};

static struct energy_reading *reading_of(struct gathered *g, const char *subject,
                                         enum energy_part part)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->readings[i].part == part && strcmp(g->subjects[i], subject) == 0)
            return &g->readings[i];
    if (g->count == READINGS_MAX)
        return NULL;
    g->subjects[g->count] = subject;
    g->readings[g->count] = (struct energy_reading){ part, NAN, NAN, NAN };
    return &g->readings[g->count++];
}

static void gather(struct gathered *g, const struct energy_series *s)
{
    if (strcmp(s->metric, "cpu_time") == 0 && !s->subject[0])
        g->cpu_s = s->last;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct name *n = &names[i];
        if (strcmp(s->metric, n->metric) != 0 ||
            strncmp(s->subject, n->subject, strlen(n->subject)) != 0)
            continue;
        struct energy_reading *r = reading_of(g, s->subject, n->part);
        if (r && n->is_counter) {
            r->joules = s->last;
            r->counted_s = s->covered_s;
        } else if (r) {
            r->watts = s->average;
        }
    }
}

/* With psys and a meter around the machine the outer one is the truth. */
static void drop_inner_meter(struct gathered *g)
{
    const struct energy_reading *outer = NULL;
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->subjects[i], "system") == 0)
            outer = &g->readings[i];
    for (size_t i = 0; outer && i < g->count; i++)
        if (strncmp(g->subjects[i], "psys", 4) == 0)
            g->readings[i].joules = g->readings[i].watts = NAN;
}

void energy_read(struct report *report, const struct energy_source *source)
{
    const struct run_meta *m = &report->run->meta;
    struct gathered g = { .count = 0, .cpu_s = NAN };
    struct energy_series series;
    for (size_t i = 0; source && source->get(source->arg, i, &series); i++)
        gather(&g, &series);
    drop_inner_meter(&g);
    const double cpu_s = m->cpu_user_s + m->cpu_system_s;
    const struct energy_inputs inputs = {
        .off = m->energy_off,
        .duration_s = report_duration_s(report),
        .cpu_s = isnan(cpu_s) ? g.cpu_s : cpu_s,
        .memory_mb = m->max_rss_mb,
        .cpu = m->cpu,
        .gpus = m->gpus,
        .grid_g_per_kwh = m->grid_g_per_kwh,
        .readings = g.readings,
        .reading_count = g.count,
    };
    energy_from(&inputs, &report->energy);
}
