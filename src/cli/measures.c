/* measures.c: see measures.h. */
#include "cli/measures.h"

#include <math.h>
#include <string.h>

#include "analyse/flops.h"

const char measure_names[] =
    "wall, cpu, memory, syscalls; with a profile: flops, allocations, allocated_bytes (or "
    "bytes), io_calls, io_bytes, calls, calls.ZONE, time.ZONE, steps, step_ms, "
    "samples_per_s, energy_j, metrics.X";

/* ---- From a profile ----------------------------------------------------------------- */

/* NULL: of all zones. */
static double of_zones(const struct report *r, const char *name, bool time)
{
    double sum = NAN;
    for (size_t i = 1; i < r->ops.count; i++) {
        const struct op *op = &r->ops.ops[i];
        if (name && strcmp(op->name, name) != 0)
            continue;
        const double one = time ? op->total_ns / 1e9 : (double)op->durations.count;
        sum = isnan(sum) ? one : sum + one;
    }
    return sum;
}

static double calls(const struct report *r)
{
    return of_zones(r, NULL, false);
}

static double of_metric(const struct report *r, const char *name)
{
    for (const struct op_value *v = r->metrics; v; v = v->next)
        if (strcmp(v->name, name) == 0)
            return v->last;
    return NAN;
}

static double allocations(const struct report *r)
{
    return r->allocations.known ? (double)r->allocations.count : NAN;
}

static double allocated_bytes(const struct report *r)
{
    return r->allocations.known ? (double)r->allocations.bytes : NAN;
}

/* The table of I/O begins with the first call. Where the same library told of
 * allocations, and missed no process, none means that there was no call. */
static bool io_is_known(const struct report *r)
{
    return r->io.captured || (r->allocations.known && !r->allocations.unseen_count);
}

static double io_calls(const struct report *r)
{
    return io_is_known(r) ? (double)(r->io.total[0].calls + r->io.total[1].calls) : NAN;
}

static double io_bytes(const struct report *r)
{
    return io_is_known(r) ? (double)(r->io.total[0].bytes + r->io.total[1].bytes) : NAN;
}

static double steps(const struct report *r)
{
    return r->steps.calls ? (double)r->steps.calls : NAN;
}

static double step_ms(const struct report *r)
{
    const uint64_t count = r->steps.durations.count;
    return count ? r->steps.total_ns / (double)count / 1e6 : NAN;
}

static double samples_per_s(const struct report *r)
{
    return step_samples_per_s(&r->steps);
}

static double energy_j(const struct report *r)
{
    return r->energy.joules;
}

static double cpu(const struct report *r)
{
    return report_cpu_percent(r) / 100 * report_duration_s(r);
}

/* ---- Names -------------------------------------------------------------------------- */

static const char no_preload[] = "no process was captured: is the program static?";
static const char no_steps[] = "the program tells no steps (sonde_step)";

static const struct {
    const char *name;
    enum measure_source source;
    double (*of)(const struct report *r); /* NULL: no profile has it */
    const char *hint;
    bool more_is_better;
} known[] = {
    { "wall", MEASURE_PLAIN, report_duration_s, "", false },
    { "cpu", MEASURE_PLAIN, cpu, "", false },
    { "memory", MEASURE_PLAIN, report_peak_rss_mb, "", false },
    { "syscalls", MEASURE_COUNTED, NULL, "measure the baseline anew with -m syscalls",
      false },
    { "flops", MEASURE_PROFILED, report_flops,
      "the program tells none: a metric flops (all), or flops_per_step and steps",
      false },
    { "allocations", MEASURE_PROFILED, allocations, no_preload, false },
    { "allocated_bytes", MEASURE_PROFILED, allocated_bytes, no_preload, false },
    { "io_calls", MEASURE_PROFILED, io_calls, no_preload, false },
    { "io_bytes", MEASURE_PROFILED, io_bytes, no_preload, false },
    { "calls", MEASURE_PROFILED, calls, "the program has no zones (SONDE_ZONE)",
      false },
    { "steps", MEASURE_PROFILED, steps, no_steps, false },
    { "step_ms", MEASURE_PROFILED, step_ms, no_steps, false },
    { "samples_per_s", MEASURE_PROFILED, samples_per_s,
      "the program tells no samples (sonde_step_samples)", true },
    { "energy_j", MEASURE_PROFILED, energy_j, "sonde doctor tells what is there",
      false },
};

/* Words people use for them. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    { "bytes", "allocated_bytes" },
    { "FLOPs", "flops" },
    { "energy", "energy_j" },
};

/* Families: the rest of the name says of what. */
static const struct {
    const char *prefix, *hint;
} families[] = {
    { "calls.", "no zone has that name" },
    { "time.", "no zone has that name" },
    { "metrics.", "the program tells no metric of that name" },
};

enum { KNOWN = sizeof known / sizeof *known };

static size_t index_of(const char *name)
{
    size_t i = 0;
    while (i < KNOWN && strcmp(known[i].name, name) != 0)
        i++;
    return i;
}

static const char *family_hint(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const size_t len = strlen(families[i].prefix);
        if (strncmp(name, families[i].prefix, len) == 0 && name[len])
            return families[i].hint;
    }
    return NULL;
}

bool measure_find(const char *name, struct measure *ret_measure)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(name, aliases[i].alias) == 0)
            name = aliases[i].name;
    const size_t i = index_of(name);
    if (i == KNOWN && !family_hint(name))
        return false;
    *ret_measure = (struct measure){ .name = i < KNOWN ? known[i].name : name,
                                     .source = MEASURE_PROFILED };
    if (i < KNOWN) {
        ret_measure->source = known[i].source;
        ret_measure->more_is_better = known[i].more_is_better;
    }
    return true;
}

double measure_of_report(const struct report *r, const char *name)
{
    const size_t i = index_of(name);
    if (i < KNOWN)
        return known[i].of ? known[i].of(r) : NAN;
    const char *rest = strchr(name, '.') + 1;
    return name[0] == 'c'   ? of_zones(r, rest, false)
           : name[0] == 't' ? of_zones(r, rest, true)
                            : of_metric(r, rest);
}

const char *measure_hint(const char *name)
{
    const size_t i = index_of(name);
    const char *hint = i < KNOWN ? known[i].hint : family_hint(name);
    return hint ? hint : "";
}
