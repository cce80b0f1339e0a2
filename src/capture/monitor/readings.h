/* readings.h: the files of /proc that are read most, as structs.
 *
 * Each takes a kept descriptor and fills its struct, or returns false and leaves it
 * alone. Together they are the "system sample" of the budget.
 */
#ifndef SONDE_CAPTURE_MONITOR_READINGS_H
#define SONDE_CAPTURE_MONITOR_READINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/scan.h"

/* /proc/PID/stat */
struct process_stat {
    char comm[16]; /* cut, NUL-terminated */
    char state;
    int32_t exit_status; /* valid while it is a zombie and we may know */
    uint32_t ppid, threads;
    uint64_t minor_faults, major_faults;
    uint64_t utime, stime, cutime, cstime; /* clock ticks */
    uint64_t start_ticks;
    uint64_t rss_pages;
};

/* /proc/PID/statm, in pages */
struct process_statm {
    uint64_t resident, shared;
};

/* /proc/PID/io, in bytes and calls */
struct process_io {
    uint64_t rchar, wchar, syscr, syscw;               /* all calls */
    uint64_t read_bytes, write_bytes, cancelled_bytes; /* what reached storage */
};

/* A line "cpu…" of /proc/stat, in clock ticks. */
struct cpu_times {
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};

enum { CPUS_MAX = 1024 };
struct system_stat {
    struct cpu_times all;
    uint64_t context_switches, forks;
    uint64_t running, blocked;
    unsigned cpu_count;     /* lines read, at most CPUS_MAX */
    uint16_t cpu[CPUS_MAX]; /* which: some may be offline */
    struct cpu_times of_cpu[CPUS_MAX];
};

bool read_process_stat(int fd, struct process_stat *ret_stat);
/* The same from text already read. */
bool scan_process_stat(struct scan text, struct process_stat *ret_stat);
bool read_process_statm(int fd, struct process_statm *ret_statm);
bool read_process_io(int fd, struct process_io *ret_io);
/* `buffer` holds the file, which is long on machines with many cores. */
bool read_system_stat(int fd, char *buffer, size_t size, struct system_stat *ret_stat);

static inline uint64_t cpu_busy(const struct cpu_times *t)
{
    return t->user + t->nice + t->system + t->irq + t->softirq + t->steal;
}

#endif
