/* monitor.h: what a monitor is.
 *
 * A monitor reads one source (a file of /proc, NVML) and turns it into samples of named
 * metrics. All of them stand in one list (monitors.c); skeleton.c is the one to copy.
 *
 *     open     finds out whether the source is there and keeps its descriptors open.
 *              SONDE_E_UNSUPPORTED with a reason: not on this machine, no harm done.
 *     sample   reads it again (pread, no allocation, no open) and sets values.
 *     close    gives everything back.
 *
 * Missing is not zero: a metric that is not set in a round has no value in that round.
 * Monitors of processes get the processes of the run from whoever samples (`processes`)
 * and keep per-process descriptors themselves.
 */
#ifndef SONDE_CAPTURE_MONITOR_MONITOR_H
#define SONDE_CAPTURE_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where /proc and /sys are; tests lay out machines we do not have. "" means "/proc" and
 * "/sys" themselves. Outlives the monitors opened with it. */
struct monitor_roots {
    const char *proc, *sys;
    const char *run_dir; /* files mapped from here are Sonde's own; NULL: none */
};

/* A process of the run, as the sampler knows it. */
struct monitor_process {
    uint32_t pid;
    uint64_t start_ticks; /* pid and start together are the process */
};

/* What a process has used, for its row in the table of processes: monitors say since it
 * began, and of a process that lived before the run the sampler takes off what it had
 * used by then. */
enum monitor_total {
    TOTAL_CPU_S,
    TOTAL_PEAK_RSS_MB,     /* Sonde's own mappings not included */
    TOTAL_PEAK_PRIVATE_MB, /* pages no other process has */
    TOTAL_READ_BYTES,      /* by all calls, from wherever */
    TOTAL_WRITTEN_BYTES,
    TOTAL_DISK_READ_BYTES, /* from and to storage */
    TOTAL_DISK_WRITTEN_BYTES,
    TOTAL_THREADS, /* at the moment */
    TOTAL_VOLUNTARY_SWITCHES,
    TOTAL_INVOLUNTARY_SWITCHES,
    MONITOR_TOTALS,
};

/* Where samples go. `subject` tells several of a kind apart: "" the run or machine,
 * "cpu3", "nvme0n1", "gpu0", or the pid of a process. Interned by the sink: cheap to
 * call with the same pointers again. Units: "percent" (100 = one core where it is CPU),
 * "MiB", "MiB/s", "1/s", "C", "W", "J", "MHz", "s", "1". */
struct monitor_sink {
    void (*set)(struct monitor_sink *sink, const char *metric, const char *subject,
                const char *unit, double value);
    /* What cannot be measured and why; once is enough. */
    void (*unavailable)(struct monitor_sink *sink, const char *metric, const char *why);
    /* The same for a process, the subject being its pid; `process` is an index into the
     * round's processes. A process has series of its own once it is 0.1 s old: of
     * thousands of short ones the totals must do. */
    void (*set_process)(struct monitor_sink *sink, size_t process, const char *metric,
                        const char *unit, double value);
    void (*total)(struct monitor_sink *sink, size_t process, enum monitor_total what,
                  double value);
};

struct monitor_round {
    uint64_t now_ns;      /* CLOCK_MONOTONIC */
    uint64_t elapsed_ns;  /* since this monitor's last; 0 in the first: no rates yet */
    uint64_t interval_ns; /* between rounds, as planned */
    const struct monitor_process *processes; /* the first is the program itself; the
                                                order of those that stay does not change */
    size_t process_count;
    /* Processes of this start (clock ticks since boot) or an earlier one lived before the
     * run: sessions, `sonde attach`. 0: all began with the run or after. */
    uint64_t joined_ticks;
};

static inline bool monitor_lived_before(const struct monitor_round *round,
                                        const struct monitor_process *process)
{
    return round->joined_ticks && process->start_ticks <= round->joined_ticks;
}

struct monitor_ops {
    const char *name; /* "cpu", as in --no-monitor and doctor */
    const char *what; /* one line for doctor */
    int (*open)(const struct monitor_roots *roots, void **ret_state,
                const char **ret_why);
    void (*sample)(void *state, const struct monitor_round *round,
                   struct monitor_sink *sink);
    void (*close)(void *state);
    uint64_t
        slowest_ns; /* sample no more often than this, because it costs; 0: always */
};

/* Ends with NULL. */
extern const struct monitor_ops *const monitor_list[];

#endif
