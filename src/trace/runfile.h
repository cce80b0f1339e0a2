/* runfile.h: run.json as the launcher writes it, schema sonde.run/1.
 *
 * Written when the program is about to start and again when it has ended; each time
 * the whole file, atomically. What is not known yet is null. Secrets are out of it
 * before it is written, unless `redact` is off.
 */
#ifndef SONDE_TRACE_RUNFILE_H
#define SONDE_TRACE_RUNFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "trace/git.h"
#include "trace/machine.h"
#include "trace/process.h"

#define RUNFILE_NAME   "run.json"
#define RUNFILE_SCHEMA "sonde.run/1"

enum { RUN_ID_LEN = 9, RUNFILE_NOTES = 16 };

struct runfile_exit {
    int code;          /* −1: none, a signal ended it */
    int signal;        /* 0: none */
    const char *cause; /* one of DESIGN §6; NULL while the program runs */
};

enum { DEATH_TEXT = 768, DEATH_PROCESS = 16, DEATH_GROUP = 256, DEATH_FRAMES = 24 };

/* What explains the end, beyond its cause. Numbers are NaN where nobody knows. */
struct runfile_death {
    char text[DEATH_TEXT]; /* a sentence without capital and full stop; "": nothing */
    uint32_t pid;          /* the process it is about; 0: none */
    char process[DEATH_PROCESS];
    char group[DEATH_GROUP]; /* control group whose limit it was */
    double limit_mb, size_mb, growth_mb_per_s;
    char method[DEATH_GROUP]; /* how that was found out */
    unsigned frame_count;     /* of the stack, innermost first */
    char frame[DEATH_FRAMES][DEATH_GROUP];
};

/* Pointers are borrowed and must outlive the struct, except notes. */
struct runfile {
    char id[RUN_ID_LEN];
    const char *name; /* NULL: none */
    char *const *command;
    int command_len;
    const char *cwd;              /* NULL: unknown */
    const char *live;             /* where its files lie while it runs; NULL: here */
    int64_t started_ns, ended_ns; /* since the epoch; ended 0: not yet */
    struct runfile_exit exit;
    struct runfile_death death;
    pid_t pid; /* 0: not started yet */
    uint64_t pid_start;
    pid_t supervisor;
    uint64_t supervisor_start;
    char boot_id[BOOT_ID_LEN];
    uint64_t pid_namespace;
    struct machine machine;
    struct git_state git;
    bool has_git;
    const char *const *tags, *const *params; /* "key=value" */
    size_t tag_count, param_count;
    const char *level;
    bool has_usage;
    double cpu_user_s, cpu_system_s, max_rss_mb;
    long minor_faults, major_faults;
    double supervisor_cpu_s, supervisor_rss_mb; /* NaN: not measured */
    uint64_t max_trace, min_zone_ns, after_ns, duration_ns, timeout_ns;
    const char *steps;
    bool no_energy, grid_given;
    double grid_g_per_kwh; /* when given */
    bool lossy, redact;
    bool attached;   /* to a program that ran already: its end is not ours to see */
    bool session;    /* recorded from inside; it may end before its program does */
    bool imported;   /* made of another tool's file */
    const char *gpu; /* what the cards are called, where they are known … */
    int gpus;        /* … and how many there are */
    char *notes[RUNFILE_NOTES]; /* owned */
    size_t note_count;
};

void runfile_release(struct runfile *file);

/* Adds a sentence on what could not be done; those that do not fit are lost. */
void runfile_note(struct runfile *file, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Replaces DIR/run.json, mode 0600. */
int runfile_write(const struct runfile *file, const char *dir);

/* "2025-03-04T05:06:07.890Z" */
enum { ISO_TIME_LEN = 32 };
const char *iso_time(int64_t ns, char ret_text[ISO_TIME_LEN]);

#endif
