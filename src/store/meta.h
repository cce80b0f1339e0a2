/* meta.h: what run.json says about a run.
 *
 * The file is written by the launcher or a session and read by everybody, possibly
 * on another machine years later, possibly after somebody edited it: hostile input.
 * Whatever is missing or of the wrong type is unknown, and unknown is never zero:
 * texts are "", numbers NaN or −1, moments 0 (no run was started in 1970).
 */
#ifndef SONDE_STORE_META_H
#define SONDE_STORE_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct json_t; /* jansson's; not included here: its macros meet base/json.h */

/* One tag or parameter. */
struct run_pair {
    const char *key, *value;
};

struct run_exit {
    bool known;        /* the run has ended and somebody saw it */
    int code;          /* −1: none, a signal ended it */
    int signal;        /* 0: none */
    const char *cause; /* DESIGN §6: "ok", "error", "signal" … or "" */
};

/* Why it ended, as far as the supervisor found out; text "" for nothing. */
struct run_death {
    const char *text, *process, *group, *method;
    uint32_t pid; /* 0 none */
    double limit_mb, size_mb, growth_mb_per_s;
    const char **stack; /* innermost first */
    size_t stack_count;
};

struct run_meta {
    bool present;     /* run.json was there and readable */
    bool attached;    /* to a program that ran already */
    bool session;     /* recorded from inside: may end before its program does */
    bool imported;    /* made of another tool's file */
    const char *live; /* where its files are while they are not here; "" here */
    const char *id, *name, *cwd, *host, *level, *parent_run, *sonde;
    const char **command;
    size_t command_count;
    int64_t started_ns, ended_ns; /* since the epoch */
    struct run_exit exit;
    struct run_death death;
    uint32_t pid; /* of the program; 0 unknown */
    uint64_t pid_start;
    uint32_t supervisor_pid;
    uint64_t supervisor_start;
    int rank, world_size;
    struct run_pair *tags, *params;
    size_t tag_count, param_count;
    const char **notes;
    size_t note_count;
    const char *cpu;
    int cores, gpus;
    double memory_mb;
    double cpu_user_s, cpu_system_s, max_rss_mb, minor_faults, major_faults;
    double supervisor_cpu_s, supervisor_rss_mb;
    bool energy_off;       /* --no-energy */
    double grid_g_per_kwh; /* --grid; NaN: the default */
    struct json_t
        *root; /* the whole document for what is passed on as it is; may be NULL */
};

/* A run about which nothing is known. */
void run_meta_init(struct run_meta *ret_meta);
/* Reads DIR/run.json into memory of the arena. −ENOENT, SONDE_E_LIMIT (too large),
 * SONDE_E_FORMAT (no JSON object). On failure ret_meta is untouched. */
int run_meta_read(const char *dir, struct arena *arena, struct run_meta *ret_meta);
void run_meta_release(struct run_meta *meta);

/* Whether the supervisor or the program still runs on this machine. */
bool run_meta_alive(const struct run_meta *meta);

#endif
