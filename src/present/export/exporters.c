/* exporters.c: the list of exporters, and what they share. */
#include "present/export/export.h"

#include <errno.h>
#include <string.h>

#include "analyse/stacks.h"

#define BIT(what) (1u << (what))
enum {
    TABLES = BIT(EXPORT_ZONES) | BIT(EXPORT_MONITORS) | BIT(EXPORT_ALLOC_EVENTS) |
             BIT(EXPORT_IO_EVENTS),
    PATHS = BIT(EXPORT_ZONES) | BIT(EXPORT_STACKS) | BIT(EXPORT_PYTHON) |
            BIT(EXPORT_MERGED) | BIT(EXPORT_ALLOCATIONS),
};

const struct exporter exporters[] = {
    { "chrome", "json", export_chrome,
      "Chrome trace events: ui.perfetto.dev, chrome://tracing", 0, EXPORT_ALL, false },
    { "perfetto", "pftrace", export_perfetto,
      "the same in Perfetto's own form, half the size", 0, EXPORT_ALL, true },
    { "speedscope", "speedscope.json", export_speedscope,
      "flame graphs over time: www.speedscope.app", PATHS, EXPORT_ZONES, false },
    { "pprof", "pb.gz", export_pprof, "profiles for go tool pprof, Pyroscope", PATHS,
      EXPORT_STACKS, true },
    { "folded", "folded", export_folded,
      "call paths with their weights, one a line, for flame graphs", PATHS,
      EXPORT_STACKS, false },
    { "otlp", "json", export_otlp,
      "OpenTelemetry (OTLP/HTTP JSON): zones as spans, monitors as metrics",
      BIT(EXPORT_ZONES) | BIT(EXPORT_MONITORS), EXPORT_ZONES, false },
    { "bundle", "tgz", export_bundle, "the whole run in one file that every verb opens",
      0, EXPORT_ALL, true },
    { "prometheus", "prom", export_prometheus,
      "the report's numbers as Prometheus text", 0, EXPORT_ALL, false },
    { "jsonl", "jsonl", export_jsonl, "every single zone, one JSON object a line",
      TABLES, EXPORT_ZONES, false },
    { "csv", "csv", export_csv, "the same as a table; without --what the operations",
      TABLES, EXPORT_ALL, false },
};

const char *const export_what_names[EXPORT_WHATS] = {
    [EXPORT_ALL] = "all",
    [EXPORT_ZONES] = "zones",
    [EXPORT_STACKS] = "stacks",
    [EXPORT_PYTHON] = "python",
    [EXPORT_MERGED] = "merged",
    [EXPORT_ALLOCATIONS] = "allocations",
    [EXPORT_MONITORS] = "monitors",
    [EXPORT_ALLOC_EVENTS] = "alloc-events",
    [EXPORT_IO_EVENTS] = "io-events",
};

const size_t exporter_count = sizeof(exporters) / sizeof(exporters[0]);

const struct exporter *exporter_find(const char *name)
{
    for (size_t i = 0; i < exporter_count; i++)
        if (strcmp(exporters[i].name, name) == 0)
            return &exporters[i];
    return NULL;
}

enum export_what export_usual(const struct exporter *exporter, const struct run *run)
{
    struct stacks *stacks;
    if (exporter->usual != EXPORT_STACKS || stacks_open(run->dir, &stacks) < 0)
        return exporter->usual;
    const bool merged = stacks->has_merged && stacks->info.samples > 0;
    stacks_free(stacks);
    return merged ? EXPORT_MERGED : EXPORT_STACKS;
}

int64_t export_origin_ns(const struct run *run)
{
    int64_t first = 0;
    if (run->meta.started_ns)
        return run->meta.started_ns;
    for (size_t i = 0; i < run->file_count; i++) {
        struct trace *trace;
        if (run_trace_open(run, i, &trace) < 0)
            continue;
        const int64_t start = trace_info(trace)->start_ns;
        if (start && (!first || start < first))
            first = start;
        trace_free(trace);
    }
    return first;
}

int export_put(FILE *out, const void *bytes, size_t len)
{
    errno = 0;
    if (fwrite(bytes, 1, len, out) == len)
        return 0;
    return errno > 0 ? -errno : -EIO;
}

int export_each(const struct export_job *job, struct export_totals *totals,
                int (*each)(void *arg, const struct trace *trace), void *arg)
{
    const struct run *run = job->run;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < run->file_count; i++) {
        struct trace *trace;
        if (job->progress)
            job->progress(job->progress_arg, (double)i / (double)run->file_count);
        const int opened = run_trace_open(run, i, &trace);
        if (opened == -ENOMEM)
            return opened;
        if (opened < 0) {
            totals->unreadable++;
            continue;
        }
        totals->traces++;
        totals->incomplete += !trace_info(trace)->timeline_complete;
        rc = each(arg, trace);
        trace_free(trace);
    }
    return rc;
}
