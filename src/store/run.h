/* run.h: a run directory, opened for reading.
 *
 * A run is its directory: run.json, control.sonde and one trace per process. Any of
 * them may be missing or damaged; what is left opens all the same, and `notes` says
 * what is not there. Only a place with neither run.json nor a trace is no run.
 *
 * Traces are opened one at a time with run_trace_open(): a run of 400 workers needs
 * the memory of one.
 */
#ifndef SONDE_STORE_RUN_H
#define SONDE_STORE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "store/meta.h"
#include "trace/clock.h"
#include "trace/reader.h"

/* What control.sonde says besides the clock. */
struct run_budget {
    bool known;
    uint64_t max_bytes, used_bytes;
    uint64_t processes;       /* files created */
    uint64_t refused;         /* processes that found no room */
    uint64_t capture_refused; /* files of allocations and I/O that found none */
    bool lossy, supervised;
    uint64_t first_step, last_step; /* window, 0 none */
};

struct run {
    struct arena arena;
    const char *dir; /* as given, without final slashes */
    const char *id;  /* from run.json, else the directory's name; never "" */
    struct run_meta meta;
    struct clock_table clock; /* count 0: none, traces use their own readings */
    struct run_budget budget;
    const char **files; /* names of traces within dir, oldest first */
    size_t file_count;
    bool single;   /* one trace was asked for, not the run it belongs to */
    bool unpacked; /* from a bundle: `dir` is a folder of ours, gone with the run */
    const char **notes; /* what is missing or odd, in words */
    size_t note_count, note_cap;
};

/* Opens a run directory, a bundle (bundle.h), or a single trace of a run (then `files`
 * has just that).
 * SONDE_E_NOTFOUND when it is neither. */
int run_open(const char *path, struct run **ret_run);
void run_free(struct run *run);

/* Adds a note (copied). Losing one for want of memory is accepted. */
void run_note(struct run *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Opens the trace files[index]; the caller frees it. */
int run_trace_open(const struct run *run, size_t index, struct trace **ret_trace);

/* True when the directory holds something run_open() would take. */
bool run_is_directory(const char *path);

#endif
