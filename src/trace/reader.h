/* reader.h: a process file, read for analysis.
 *
 * trace_open() takes a private copy of the statistics, brings them up to date by
 * folding in memory what no folder has counted yet, and resolves names and clocks.
 * It never writes, never maps the file (a hostile owner could truncate it under us),
 * and accepts live, sealed, killed and compacted files alike. Everything in the file
 * is checked; a damaged part is left out and named in `damage`.
 *
 * Times are in nanoseconds: durations as double, moments as int64_t since the epoch
 * (CLOCK_REALTIME at the run's clock table).
 */
#ifndef SONDE_TRACE_READER_H
#define SONDE_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/clock.h"
#include "trace/format.h"

struct trace;

struct trace_site {
    const char *name, *file, *component, *category, *tags; /* "" when not given */
    int line;
    int phase;      /* enum sonde_phase */
    unsigned flags; /* enum site_flag */
};

/* Sites from TRACE_BEYOND + 1 on are "(other paths)" of the phase with that number. */
enum { TRACE_NO_NODE = 0xffff, TRACE_BEYOND = 0x10000 };

/* One call path. Node 0 … ROOT_NODES−1 are the roots of lanes (no site); NODE_STEP
 * holds step times, NODE_OTHER the paths beyond the limit that are no phase of their own
 * (their time is self time further out), children of NODE_SPANS
 * are spans. Follow `parent`: numbers say nothing about depth. */
struct trace_node {
    unsigned parent; /* TRACE_NO_NODE for roots */
    unsigned site;   /* index for trace_site(); 0 for roots */
    unsigned depth;  /* 0 for roots, 1 for outermost zones */
    uint64_t count;
    double total_ns, self_ns, mean_ns, std_ns, min_ns, max_ns;
    int64_t first_ns, last_ns; /* begin of the first, end of the last */
    uint64_t truncated;        /* of count: still open when the process died */
    uint64_t unbalanced;       /* of count: closed by the end of an outer zone */
    uint64_t open;             /* still open now (live process): not in count */
    double suspended_ns;       /* spans */
    double elsewhere_ns;       /* zones: of the total, in "(other paths)" of a phase */
    uint64_t spans_open;       /* spans begun, never ended */
    uint64_t op_count;         /* of count: operations, with the fields below */
    double op_cpu_ns;
    double mem_before_mb, mem_after_mb, mem_peak_mb; /* NaN: not measured */
};

struct trace_value {
    unsigned node; /* path it was recorded in; TRACE_NO_NODE for counters, metrics */
    const char *name;
    enum value_kind kind;
    uint64_t count;
    double sum, min, max, last;
    int64_t last_time_ns;
};

/* A thread's stream. Frames are the zones open at the end, outermost first. */
struct trace_lane {
    unsigned number;
    uint32_t tid; /* the last thread that used the lane */
    char name[16];
    bool is_main;
    uint64_t events, orphan_ends, unbalanced, deep_zones, steps, samples;
    int64_t first_time_ns, last_time_ns;
    unsigned open_count;
    const struct trace_frame {
        unsigned node, site;
        int64_t begin_ns;
    } * open;
};

struct trace_info {
    char file[256]; /* name within the run directory */
    uint32_t pid, ppid;
    bool alive;  /* the process still runs */
    bool exited; /* its exit handlers ran */
    bool forked;
    char exe[128], role[32];
    unsigned level;
    int64_t start_ns, last_ns;          /* file created; last event */
    double ns_per_tick, clock_error_ns; /* clock_error: bound on cross-process order */
    uint64_t events, lost, filtered, holes, names_lost, paths_lost;
    uint64_t texts_cut; /* names, tags … longer than MAX_NAME: they end with "…" */
    unsigned lost_reason; /* enum lost_reason bits */
    uint64_t steps, self_folds, waits;
    double wait_ns;
    double unrecorded_ns;  /* the gate was shut (window, pause) and opened again */
    int64_t shut_since_ns; /* it is shut since; 0: it is open */
    double event_cost_ns;  /* of one event, measured when the process began; NaN */
    uint64_t file_bytes, disk_bytes;         /* apparent and allocated */
    uint64_t timeline_words, timeline_zones; /* retained on disk */
    uint64_t unfolded_blocks; /* counted by us now, not yet by a folder */
    bool timeline_complete;   /* no event block was recycled yet */
};

/* Opens one file. `clock` is the run's table, may be NULL (then the file's own
 * reading and, on the same boot, the present are used). */
int trace_open(const char *path, const struct clock_table *clock,
               struct trace **ret_trace);
/* The same from memory (tests, fuzzing, bundles). Bytes are borrowed for the call. */
int trace_open_bytes(const void *bytes, size_t len, const struct clock_table *clock,
                     struct trace **ret_trace);
void trace_free(struct trace *trace);

const struct trace_info *trace_info(const struct trace *trace);
const char *trace_damage(const struct trace *trace); /* "" or what was left out */
size_t trace_node_count(const struct trace *trace);
/* NULL when the number is unused. */
const struct trace_node *trace_node(const struct trace *trace, unsigned node);
/* Never NULL: an unknown number gives a site called "?". */
const struct trace_site *trace_site(const struct trace *trace, unsigned site);
/* Site numbers run from 0 to this, exclusive. Entries with SITE_TAG or SITE_PARAM
 * are no places: name is the key, tags the value; the last one of a key holds. */
size_t trace_site_count(const struct trace *trace);
size_t trace_lane_count(const struct trace *trace);
const struct trace_lane *trace_lane(const struct trace *trace, unsigned index);
size_t trace_value_count(const struct trace *trace);
const struct trace_value *trace_value(const struct trace *trace, unsigned index);

/* Quantile q in 0…1 of a node's durations, within 1 %; NaN when count is 0. */
double trace_node_quantile(const struct trace *trace, unsigned node, double q);
/* Histogram of a node: calls `visit` for each non-empty bucket, ascending. */
typedef void trace_bucket_fn(void *arg, double middle_ns, uint64_t count);
void trace_node_histogram(const struct trace *trace, unsigned node,
                          trace_bucket_fn *visit, void *arg);

/* ---- The timeline: retained events, lane by lane, in order. ------------------ */
enum trace_event_kind {
    TRACE_BEGIN,
    TRACE_END,
    TRACE_VALUE,
    TRACE_STEP,
    TRACE_THREAD,
    TRACE_OP,
    TRACE_SPAN,
    TRACE_MARK,
    TRACE_LOST,
    TRACE_FILTERED,
};
struct trace_event {
    enum trace_event_kind kind;
    int64_t time_ns;
    unsigned lane;
    unsigned site;             /* begin, end, span; name of value and mark */
    unsigned sub;              /* value_kind, step_kind or span_kind */
    double value;              /* value */
    uint64_t number;           /* samples, tid, lost, span id */
    double active_ns, wall_ns; /* span end; end of a step: it was so long ago */
    double cpu_ns, mem_before_mb, mem_after_mb, mem_peak_mb; /* op */
};
/* Calls `visit` for every retained event of every lane (lane by lane, in time
 * order within a lane); stops when it returns non-zero and returns that. Reads
 * block by block: memory does not grow with the trace. When older blocks were
 * recycled the first events of a lane may be ends whose begin is gone. */
typedef int trace_event_fn(void *arg, const struct trace_event *event);
int trace_events(const struct trace *trace, trace_event_fn *visit, void *arg);

#endif
