/* perf.h: samples of a process and all its children from the kernel's perf_event.
 *
 * One event per CPU, inherited by every thread and process that the program starts, and
 * one ring per CPU in memory shared with the kernel. Opened before the program is
 * executed, they begin with it: nothing of it is missed.
 *
 * The clock is the task clock: a period of CPU time of each thread. It needs no
 * hardware counters, which virtual machines rarely have.
 */
#ifndef SONDE_CAPTURE_SAMPLE_PERF_H
#define SONDE_CAPTURE_SAMPLE_PERF_H

#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/sample/cfi.h"

struct perf_options {
    pid_t pid;
    uint64_t period_ns;
    bool on_exec;        /* begin when the process executes a program; else at once,
                          * with all threads it has */
    uint32_t stack_size; /* bytes of the user's stack in a sample; 0: none */
    bool at_once;        /* perf_wait() ends with every sample */
};

struct perf_ring {
    int fd, cpu;
    struct perf_event_mmap_page *page;
    const uint8_t *data;
    uint64_t size, head, tail;
    uint64_t time; /* of the record at tail; valid while tail < head */
};

struct perf {
    struct perf_ring *rings;
    unsigned ring_count;
    bool kernel_seen; /* time in the kernel is sampled too */
    bool has_stack;
    bool build_ids;
    uint32_t ring_bytes; /* data of one */
    uint8_t *scratch;    /* for records across the end of a ring */
    struct perf_event_attr attr;
    int *events; /* one for each CPU and thread that was asked for */
    size_t event_count, event_cap;
    struct pollfd *waits; /* for perf_wait(), one for each ring */
};

/* −EACCES, −EPERM: not allowed (perf_event_paranoid, a container's filter); −ENOSYS;
 * −EMFILE. */
int perf_open(struct perf *ret_perf, const struct perf_options *options);
void perf_close(struct perf *perf);
/* Samples stop and start again. While they do not come, nothing else is told either: of
 * mappings and names, of processes that come and go. */
void perf_switch(struct perf *perf, bool on);
/* The same, but the program has no events at all in between, which cost it something at
 * every switch of its threads and every mapping even when they are off. Afterwards each
 * of its threads is to be watched anew. */
void perf_leave(struct perf *perf);
/* Those that have ended meanwhile, or are more than the kernel allows, are not seen; the
 * report's coverage says so. */
void perf_watch_all(struct perf *perf, const pid_t *tids, size_t count);

/* One sample, taken apart. Pointers into the ring: valid during the call. */
struct perf_sample {
    uint32_t pid, tid;
    uint64_t ip, time;
    bool in_kernel;
    bool has_regs;
    uint64_t regs[CFI_REGS];
    struct cfi_memory stack;   /* len 0: none */
    const uint64_t *callchain; /* of user code, innermost first; with markers */
    size_t callchain_len;
};

struct perf_visitor {
    void (*sample)(void *arg, const struct perf_sample *sample);
    /* Any other record of the kernel; `len` bytes in all. */
    void (*other)(void *arg, const struct perf_event_header *record, size_t len);
    bool (*enough)(void *arg); /* asked after each record */
    void *arg;
};

/* Hands over what the rings hold, in the order of time. False: stopped by enough(). */
bool perf_read(struct perf *perf, const struct perf_visitor *visitor);

/* Until there is something to read, at most so long. For another thread than the one that
 * reads: it touches nothing else. */
void perf_wait(const struct perf *perf, int timeout_ms);

/* Which sysctl value forbids it; −1 unknown. */
int perf_paranoid_level(void);

#endif
