/* exporters.c: the list of exporters, and what they share. */
#include "present/export/export.h"

#include <errno.h>
#include <string.h>

const struct exporter exporters[] = {
    { "chrome", "json", export_chrome,
      "Chrome trace events: ui.perfetto.dev, chrome://tracing" },
    { "folded", "folded", export_folded,
      "sampled stacks with their counts, for flame graphs" },
    { "jsonl", "jsonl", export_jsonl, "every single zone, one JSON object a line" },
};
const size_t exporter_count = sizeof(exporters) / sizeof(exporters[0]);

const struct exporter *exporter_find(const char *name)
{
    for (size_t i = 0; i < exporter_count; i++)
        if (strcmp(exporters[i].name, name) == 0)
            return &exporters[i];
    return NULL;
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

int export_each(const struct run *run, struct export_totals *totals,
                int (*each)(void *arg, const struct trace *trace), void *arg)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < run->file_count; i++) {
        struct trace *trace;
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
