/* baselinefile.h: a baseline as JSON, schema sonde.baseline/1.
 *
 * What `sonde baseline set` stores and `sonde baseline export` writes for a file kept in
 * git: the command, what it ran on, and the samples of each metric. Read on machines
 * that have no store: hostile input, limited in size and number.
 */
#ifndef SONDE_STORE_BASELINEFILE_H
#define SONDE_STORE_BASELINEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

enum { BASELINE_METRICS = 16, BASELINE_SAMPLES = 1000, BASELINE_WORDS = 4096 };

struct baseline_metric {
    const char *name;
    double *values;
    size_t count;
};

struct baseline_doc {
    const char *name, *run, *cwd; /* "" unknown, as below */
    const char *machine;          /* what times depend on: processor and cores */
    const char *environment;      /* settings that change times, one a line … */
    bool has_environment;         /* … when it says so; earlier versions did not */
    const char *fingerprint;      /* fingerprint.h */
    bool profiled; /* its times and memory are those of runs under the profiler */
    char **command;
    size_t command_count;
    int64_t created_ns;
    struct baseline_metric metrics[BASELINE_METRICS];
    size_t metric_count;
};

/* Memory of the arena. SONDE_E_FORMAT with a message. */
int baseline_parse(const char *json, size_t len, struct arena *arena,
                   struct baseline_doc *ret_doc, struct buf *ret_message);
int baseline_write(const struct baseline_doc *doc, struct buf *out);

/* NULL without. */
const struct baseline_metric *baseline_find(const struct baseline_doc *doc,
                                            const char *name);

#endif
