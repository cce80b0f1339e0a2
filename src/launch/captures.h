/* captures.h: what the supervisor does besides draining: a list of captures.
 *
 * Each one is a row of ops in captures.c. None can stop a run: what fails says so in a
 * note of the run and is left out. They share the supervisor's only thread, so a tick
 * must be short (a millisecond at most); draining goes on between ticks.
 */
#ifndef SONDE_LAUNCH_CAPTURES_H
#define SONDE_LAUNCH_CAPTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/due.h"
#include "trace/control.h"
#include "trace/runfile.h"

/* Zero is the default of everything. */
struct capture_options {
    bool no_monitors, no_preload, no_stacks, no_energy, no_python;
    uint64_t interval_ns;       /* of monitors; 0: 1 s */
    unsigned rate_hz;           /* of stacks; 0: the level's default */
    bool trace_alloc, trace_io; /* every event, not only counters */
    bool grid_given;            /* else the default */
    double grid_g_per_kwh;
    bool trace_stacks; /* with the call path of each allocation */
    bool no_sites;     /* of allocations, calls and bytes alone */
    const char *const *alerts;
    size_t alert_count;
    uint64_t memory_limit; /* bytes for the whole tree; 0: none */
    bool no_native;        /* no native stacks, whatever the rate */
    bool syscalls;         /* count them (syscalls.h) */
    bool merge_stacks;     /* native and Python's, as one */
    const char *monitors;  /* names of those wanted, commas between; NULL: all */
};

struct capture_context {
    const struct capture_options *options;
    const char *dir; /* of the run */
    bool redact;
    struct control *control;
    struct runfile *file;           /* for runfile_note() */
    int level;                      /* enum sonde_level */
    pid_t pid;                      /* of the program; 0 before it is started */
    bool attached;                  /* it ran before we came */
    uint64_t after_ns, duration_ns; /* window of recording; 0: none */
    struct family
        *family; /* its processes; NULL before it is started, or without /proc */
};

struct capture_ops {
    const char *name;
    /* Before the program starts: its environment may be changed with setenv(). May be
     * NULL, as all of these. */
    int (*prepare)(const struct capture_context *context, void **ret_state);
    /* The program has just started. */
    int (*start)(void *state, const struct capture_context *context);
    /* Before that: the process is there and waits, it has not executed the program. */
    int (*attach)(void *state, const struct capture_context *context);
    /* The first step has been seen; a tick follows at once. */
    void (*work_begins)(void *state, uint64_t now_ns);
    /* Something is due. Returns when it wants the next tick, 0: never. Monotonic ns. */
    uint64_t (*tick)(void *state, uint64_t now_ns);
    /* A tick may come a little early (due.h): it asks itself how much time has passed. */
    bool at_any_time;
    /* The program has ended but is still in /proc, as a zombie: a last look, short. */
    void (*ending)(void *state);
    /* The program has ended with `status` (as from wait). Longer work is allowed. */
    void (*finish)(void *state, int status);
    /* After finish, or without it when the program never started. */
    void (*release)(void *state);
};

/* Whether each name of the list (capture_options.monitors) is that of a monitor. */
bool capture_monitors_exist(const char *names);

enum { CAPTURES_MAX = 12 };
struct captures {
    struct capture_context context;
    struct {
        void *state;
        bool on;
        struct due next;
    } one[CAPTURES_MAX];
};

void captures_prepare(struct captures *ret_captures,
                      const struct capture_context *context);
void captures_attach(struct captures *captures, pid_t pid);
void captures_start(struct captures *captures, pid_t pid);
/* Once, when the program has made its first step. */
void captures_work_begins(struct captures *captures, uint64_t now_ns);
/* Does what is due; returns when the next is, 0: nothing more. */
uint64_t captures_tick(struct captures *captures, uint64_t now_ns);
void captures_ending(struct captures *captures);
void captures_finish(struct captures *captures, int status);
void captures_release(struct captures *captures);

#endif
