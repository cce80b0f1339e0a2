/* launch.h: run a program under a supervisor that keeps its trace folded.
 *
 *     launch_prepare   run directory, control file, drain. On failure nothing has
 *                      happened: run the program without Sonde.
 *     launch_start     spawns it.
 *     launch_follow    drains, forwards signals, opens and shuts the window, until
 *                      the program has ended.
 *     launch_finish    folds the rest and writes the final run.json.
 *
 * The program never waits for us, and never depends on us: killed at any instant,
 * the supervisor leaves a run that adopt.h finishes later.
 */
#ifndef SONDE_LAUNCH_LAUNCH_H
#define SONDE_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/captures.h"
#include "launch/child.h"
#include "launch/due.h"
#include "launch/postmortem.h"
#include "launch/rundir.h"
#include "trace/runfile.h"
#include "launch/signals.h"

/* Borrowed for the life of the launch. */
struct launch_options {
    char *const *argv;
    int argc;
    const char *sonde_dir;
    const char *output;                      /* NULL: a new directory in sonde_dir */
    const char *name;                        /* NULL: none */
    const char *const *tags, *const *params; /* "key=value" */
    size_t tag_count, param_count;
    int level;          /* enum sonde_level, not SONDE_LEVEL_DEFAULT */
    uint64_t max_trace; /* bytes; 0 = default */
    uint64_t min_zone_ns;
    uint64_t first_step, last_step; /* both included, from 1; last 0 = open end */
    const char *steps;              /* the same as the user wrote it */
    uint64_t after_ns, duration_ns; /* window of time; 0 = none */
    uint64_t timeout_ns;            /* end the program then; 0 = never */
    uint64_t
        hang_ns; /* no progress for so long is a hang; 0: 60 s, UINT64_MAX: never */
    bool lossy, redact;
    bool attached; /* argv is that of a program which runs already */
    struct capture_options capture;
    /* Somebody who shows how it goes; NULL: nobody. tick() is called a few times a
     * second while the program runs, hide() before we stop with it (Ctrl-Z). */
    const struct launch_watcher {
        void (*tick)(void *arg, const char *dir, pid_t pid, uint64_t steps);
        void (*hide)(void *arg);
        void *arg;
    } * watcher;
};

struct launch {
    const struct launch_options *options;
    struct rundir dir; /* where the files are now */
    char *home;        /* where they will be, when that is somewhere else; owned */
    struct runfile file;
    char *cwd;
    struct control *control;
    struct drain *drain;
    struct signals signals;
    bool signals_taken;
    struct child child;
    struct captures captures;
    struct postmortem *postmortem;
    int asked_signal;    /* that the post-mortem was told of */
    struct due fold;     /* next pass over the traces */
    struct due watch;    /* next tick of the post-mortem */
    bool works;          /* its first step has been seen */
    uint64_t capture_ns; /* next tick of the captures, monotonic; 0: none */
    struct due show;     /* next tick of the watcher */
    int drain_error;     /* first failure of a pass */
    uint64_t started_ns; /* monotonic, like the moments below; 0 = none or past */
    uint64_t open_ns, shut_ns, terminate_ns, kill_ns;
    bool timed_out;
};

/* −ENOTEMPTY when the output directory holds something already. */
int launch_prepare(struct launch *ret_launch, const struct launch_options *options);
/* −errno; *ret_no_exec tells a program that cannot be executed from a system that
 * has no room for another process. −EINTR: we were asked to end meanwhile;
 * launch_abandon() then lets that happen. */
int launch_start(struct launch *launch, bool *ret_no_exec);
void launch_follow(struct launch *launch);
int launch_finish(struct launch *launch);

/* Undoes prepare: removes the run, gives the signals back. */
void launch_abandon(struct launch *launch);
void launch_release(struct launch *launch);

#endif
