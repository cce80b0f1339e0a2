/* postmortem.h: watch a program so that its end can be explained.
 *
 *     prepare   before it starts: counters of the OOM killer, the kernel log, free
 *               space; with --memory-limit a control group, if we may make one
 *     start     its family
 *     tick      sizes and free space ten times a second, processes and progress every
 *               second; ends a program that is over its limit
 *     finish    the evidence goes before the judge (judge.h)
 *
 * Part of the supervisor, not a capture that may be left out. What cannot be watched is
 * unknown; nothing here fails a run.
 */
#ifndef SONDE_LAUNCH_POSTMORTEM_H
#define SONDE_LAUNCH_POSTMORTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch/judge.h"
#include "trace/runfile.h"

struct postmortem_options {
    const char *dir; /* of the run; borrowed */
    const char *run_id;
    struct runfile *file;    /* for notes; borrowed */
    struct control *control; /* borrowed; may be NULL */
    uint64_t memory_limit;   /* bytes for the whole tree; 0: none */
    uint64_t hang_ns;        /* 0: default; UINT64_MAX: off */
};

struct postmortem;

/* NULL without memory: everything below takes it. */
struct postmortem *postmortem_new(const struct postmortem_options *options);
void postmortem_free(struct postmortem *p);

/* The file through which the program enters its control group; NULL: none. */
const char *postmortem_group(const struct postmortem *p);
struct family;
/* The family is borrowed; NULL: its processes are not known. */
void postmortem_start(struct postmortem *p, pid_t pid, struct family *family,
                      uint64_t now_ns);
/* Returns when it wants the next tick. `steps` as from drain_steps(). */
uint64_t postmortem_tick(struct postmortem *p, uint64_t now_ns, uint64_t steps);

/* Somebody asked for the end. */
void postmortem_asked(struct postmortem *p, int signal);

struct postmortem_facts {
    int status;
    uint64_t now_ns;
    uint64_t max_rss; /* bytes, from wait4 */
    uint64_t steps;   /* of the run, as far as they are folded */
    bool timed_out;
    uint64_t timeout_ns;
    struct asked asked;
};
/* Fills in file->exit and file->death and adds notes. Works without a postmortem. */
void postmortem_finish(struct postmortem *p, const struct postmortem_facts *facts,
                       struct runfile *file);

/* The batch system we run under, in words; "" for none. */
void postmortem_scheduler(char *ret_text, size_t len);

#endif
