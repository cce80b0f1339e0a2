/* monitors.h: what the monitors of a run saw: series over time, processes, gaps.
 *
 * Read from files of tables of the kind "monitors" (trace/monitor_rows.h), hostile like
 * everything in a run directory. The supervisor's file tells of the whole run. Files of
 * programs that sampled themselves (sonde_monitor_start) stand beside it, their series
 * marked with the process; alone, they are the answer.
 *
 * A series is called `metric`, or `metric/subject` where there are several of a kind:
 * "rss", "rss/4711" (a process), "cpu_core/cpu3", "temperature/k10temp Tctl".
 */
#ifndef SONDE_ANALYSE_MONITORS_H
#define SONDE_ANALYSE_MONITORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

struct series_point {
    double t_s; /* after the start of the run */
    double mean, max;
};

struct report_series {
    const char *name, *metric, *subject, *unit;
    uint64_t count;             /* samples */
    double avg, min, max, last; /* avg is weighted by time */
    double covered_s;           /* the time its samples stand for */
    const struct series_point *points;
    size_t point_count;
};

/* A process of the run, with a trace or without. */
struct watched_process {
    uint32_t pid, ppid;
    const char *exe, *command;                  /* "" unknown */
    double first_s, last_s;                     /* seen, after the start of the run */
    double cpu_s, peak_rss_mb, peak_private_mb; /* NaN unknown, as below */
    double read_mb, written_mb;                 /* by all calls */
    double disk_read_mb, disk_written_mb;       /* from and to storage */
    double voluntary_switches,
        involuntary_switches; /* of all threads; see switches.c */
    bool end_known;
    int end_status; /* as from wait() */
    bool traced;    /* has a trace among report.processes */
};

struct monitor_gap {
    const char *metric, *why;
};

struct report_monitors {
    bool present;
    double interval_s;
    uint64_t rounds;
    double cost_s;                /* time spent in rounds */
    struct report_series *series; /* as they came */
    size_t series_count, series_cap;
    struct watched_process *processes;
    size_t process_count, process_cap;
    struct monitor_gap *gaps;
    size_t gap_count;
    uint64_t series_lost, processes_lost;
};

/* Fills report->monitors. After the traces are known. */
int monitors_read(struct report *report);

/* NULL: no such series. subject "" is the run or the machine. */
const struct report_series *monitors_find(const struct report_monitors *monitors,
                                          const char *metric, const char *subject);
/* NULL: not seen by monitors. Of several with the number, the last. */
const struct watched_process *monitors_process(const struct report_monitors *monitors,
                                               uint32_t pid);

#endif
