/* sampler.h: rounds over all monitors; what they say is kept, bounded, on disk.
 *
 * Whoever samples (the supervisor, a thread of the program) makes a sampler and calls
 * sampler_round() when one is due. Values go into running statistics and a fixed number
 * of points per series (trace/monitor_rows.h), in a file of the run directory that is
 * valid at every instant; without a directory they are kept in memory only.
 *
 * One thread at a time. Nothing is allocated in a round but for what is new: a series,
 * a process.
 */
#ifndef SONDE_CAPTURE_MONITOR_SAMPLER_H
#define SONDE_CAPTURE_MONITOR_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/monitor/monitor.h"
#include "trace/control.h"
#include "trace/monitor_rows.h"

enum { SAMPLER_SERIES_MAX = 16384, SAMPLER_PROCESSES_MAX = 32768 };
#define SAMPLER_INTERVAL_MIN_NS     10000000ull      /* 10 ms */
#define SAMPLER_INTERVAL_MAX_NS     3600000000000ull /* an hour */
#define SAMPLER_INTERVAL_DEFAULT_NS 1000000000ull

/* For who wants to see values as they come (alerts). Each may be NULL. */
struct sampler_hooks {
    /* Once: returns a sink that gets every value and passes it on to `sink`. Only set
     * and unavailable are used: values of processes come with their pid as subject. */
    struct monitor_sink *(*attach)(void *arg, struct monitor_sink *sink);
    void (*round_begins)(void *arg, const struct monitor_round *round);
    void (*round_ended)(void *arg);
    void *arg;
};

struct sampler_options {
    const char *dir;            /* of the run; NULL: memory only */
    struct control *control;    /* its budget; may be NULL */
    struct monitor_roots roots; /* strings are borrowed; run_dir is set from dir */
    uint64_t interval_ns;       /* 0: default */
    uint32_t pid;               /* the program */
    bool inside;                /* the program samples itself */
    bool joined;                /* the program lived before the run */
    bool keep_secrets;          /* --no-redact */
    const struct monitor_ops *const *list; /* NULL: monitor_list */
    const struct sampler_hooks *hooks;     /* borrowed; NULL: none */
};

struct sampler;

int sampler_new(const struct sampler_options *options, struct sampler **ret_sampler);
void sampler_free(struct sampler *sampler);

/* Samples everything that is due. The order of processes that stay must not change. */
void sampler_round(struct sampler *sampler, uint64_t now_ns,
                   const struct monitor_process *processes, size_t count);
/* The next round is the last: those that cost and are read seldom are read in it too. */
void sampler_last_round(struct sampler *sampler);
/* The same in pieces, one monitor each, for who has other things to do in between:
 * begin, then step until it returns false. The processes must stay where they are. */
void sampler_begin(struct sampler *sampler, uint64_t now_ns,
                   const struct monitor_process *processes, size_t count);
bool sampler_step(struct sampler *sampler, uint64_t now_ns);
/* When the next round is wanted: early ones at 10, 30, 70 … ms, so that short programs
 * have numbers too, then every interval. */
uint64_t sampler_next_ns(const struct sampler *sampler);
/* How a process ended, when somebody saw it. */
void sampler_ended(struct sampler *sampler, const struct monitor_process *process,
                   int status);

/* The last value of a series, and its statistics so far. False: there is none. */
bool sampler_current(const struct sampler *sampler, const char *metric,
                     const char *subject, double *ret_value);
bool sampler_stats(const struct sampler *sampler, const char *metric,
                   const char *subject, struct monitor_stats *ret_stats);
/* All series, for who wants to see them; NULL beyond the last. Strings live as long as
 * the sampler. */
struct sampler_series {
    const char *metric, *subject, *unit;
    struct monitor_stats stats;
};
bool sampler_series(const struct sampler *sampler, size_t index,
                    struct sampler_series *ret_series);

#endif
