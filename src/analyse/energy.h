/* energy.h: joules and CO₂e of a run: measured where somebody measured, else modelled.
 *
 * Measured: RAPL counts processors and memory, NVML the cards. Both belong to the whole
 * machine, so that what others did meanwhile is in them. Modelled, when there is no
 * counter: CPU seconds of the run × watts of a busy core of that class of processor;
 * peak resident memory × watts per GiB × duration. Cards are never modelled.
 *
 * The coefficients, the default of the grid and their sources: energy.c and
 * docs/guide-energy.md.
 */
#ifndef SONDE_ANALYSE_ENERGY_H
#define SONDE_ANALYSE_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

struct report;

enum energy_part {
    ENERGY_CPU,
    ENERGY_DRAM,
    ENERGY_GPU,
    ENERGY_MACHINE, /* a meter around all of it; not added to the sum */
    ENERGY_PARTS
};

enum energy_status { ENERGY_MEASURED, ENERGY_MODELLED, ENERGY_UNAVAILABLE };

/* What one counter or meter said. NaN: did not. */
struct energy_reading {
    enum energy_part part;
    double joules;    /* of a counter … */
    double counted_s; /* … in this time */
    double watts;     /* average of its power */
};

struct energy_inputs {
    bool off;              /* --no-energy */
    double duration_s;     /* of the run; these three may be NaN */
    double cpu_s;          /* of the run, all processes */
    double memory_mb;      /* its peak resident set */
    const char *cpu;       /* model name; "" unknown */
    int gpus;              /* of the machine; 0 none, −1 not known */
    double grid_g_per_kwh; /* NaN: the default */
    const struct energy_reading *readings;
    size_t reading_count;
};

struct energy_sum {
    double joules; /* NaN: unavailable */
    enum energy_status status;
    const char *method; /* how, or why not; static text */
};

struct energy {
    bool off;
    struct energy_sum part[ENERGY_PARTS];
    double joules; /* of CPU, DRAM and GPU as far as known; NaN: of none */
    double co2e_g;
    double grid_g_per_kwh;
    bool grid_is_default;
    const char *source; /* "measured", "modelled", "mixed", "off"; "" without joules */
    double watts_per_core; /* of the model */
};

/* Pure. */
void energy_from(const struct energy_inputs *inputs, struct energy *ret_energy);

extern const double energy_default_grid; /* g CO₂e per kWh */
extern const char *const energy_grid_source;

/* ---- From a run ---------------------------------------------------------------------
 *
 * A series of the monitors, whoever keeps them. Names as the monitors give them:
 * "energy" (J) and "power" (W) of "package-N", "dram-N", "psys", "system"; "gpu_energy"
 * (J) and "gpu_power" (W) of "gpuN"; "cpu_time" (s) of "" for runs whose end nobody saw.
 * Counters are in joules since their first sample. */
struct energy_series {
    const char *metric, *subject;
    double last, average;
    double covered_s; /* from its first sample to its last */
};

struct energy_source {
    /* False beyond the last. */
    bool (*get)(void *arg, size_t index, struct energy_series *ret_series);
    void *arg;
};

/* Fills in report->energy. `source` NULL: nobody measured. */
void energy_read(struct report *report, const struct energy_source *source);

#endif
