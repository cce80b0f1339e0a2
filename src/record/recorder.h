/* recorder.h: the inside of the recording library.
 *
 *     api.c       public functions; finds the one recorder of the process (copies.c)
 *     recorder.c  its state: off or on, the trace file, fork
 *     sites.c     names and sites get numbers, in memory and in the file
 *     lanes.c     threads get streams; blocks are filled, sealed, replaced
 *     records.c   values, marks, steps, spans, operations as longer records
 *     session.c   start and stop without a supervisor; drainer.c its thread
 *
 * Slow paths run with all signals blocked, so none can be entered twice by one
 * thread, and take one spin lock at most. No allocation but mmap, no stdio streams.
 */
#ifndef SONDE_RECORD_RECORDER_H
#define SONDE_RECORD_RECORDER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "trace/control.h"
#include "trace/file.h"
#include "trace/folder.h"

/* A lane as its thread and the recorder see it; begins with the public part. */
struct lane {
    uint64_t cursor; /* sonde_lane.cursor */
    uint32_t state;  /* enum lane_state, atomic */
    uint32_t index;
    uint32_t block, seq; /* of the open block; block 0: none */
    uint32_t tid;
    uint32_t told_tid;    /* thread named in the stream so far */
    uint64_t retry_ticks; /* no block to be had: do not ask again before this */
    /* Slow mode only (struct recorder): */
    uint64_t slow_cursor;
    uint64_t held_ticks; /* a begin that waits to see whether its zone is short */
    uint32_t held_tag;
    uint32_t refusals; /* in a row: how often no block was to be had */
    uint32_t depth;    /* sonde_lane.depth, .open */
    uint16_t open[SONDE_OPEN_ZONES];
};
_Static_assert(sizeof(struct lane) == sizeof(struct sonde_lane) &&
                   offsetof(struct lane, depth) == offsetof(struct sonde_lane, depth) &&
                   offsetof(struct lane, open) == offsetof(struct sonde_lane, open),
               "same object");

/* Memory that a forked child finds zeroed (MADV_WIPEONFORK): a child sees at its
 * first slow path that it is one, however it was made (fork, clone, _Fork). */
struct wiped {
    uint32_t alive; /* 1 in the process that set this up */
    uint32_t sites_lock, lanes_lock, start_lock, operations_lock;
    uint32_t sampler_runs; /* thread of operations.c */
    uint32_t pad[10];
    struct lane lanes[MAX_LANES];
    uint8_t touched[MAX_BLOCKS / 8]; /* blocks whose pages this process has mapped */
    /* By lane: the session in which its thread was last in a slow path, 0 none. It has not
     * been between a gate test and a store of an earlier one since. */
    uint32_t seen[MAX_LANES];
};

struct recorder {
    bool ready;  /* memory is set up */
    bool on;     /* a session: control and dir are valid */
    bool failed; /* this process could not make its file: stays off */
    bool quiet;
    /* Slow mode: no usable tick counter, or short zones are to be left out. The
     * lanes' public cursor stays 0, so that every event comes to the slow path. */
    bool slow;
    uint32_t session; /* how many were started here */
    uint32_t pid;     /* process that the file belongs to */
    struct wiped *wiped;
    uint32_t *gate; /* fixed address: an OFF page, or the live page of the file */
    struct control *control;
    struct tracefile file;
    struct folder self; /* for threads that must fold themselves */
    char dir[900];
    char error[200];
};
extern struct recorder recorder;

static inline struct trace_live *recorder_live(void)
{
    return tracefile_live(&recorder.file);
}

static inline bool recorder_has_file(void)
{
    return recorder.on && !recorder.failed && recorder.file.base;
}

/* Brings the recorder of this process into being, from the environment, or after a
 * fork; true when there is a file to record into. Signals are blocked. */
bool recorder_ensure(void);
/* Connects to a run directory made by somebody (supervisor, session). */
int recorder_start(const char *dir, struct control *control);
void recorder_stop(void);
/* After that, once nothing of the session is read here any more. */
void recorder_retire(void);
/* Recording wanted by everybody: program, window of steps? Sets the gate. */
void recorder_update_gate(void);
void recorder_say(const char *text); /* one line on stderr, unless quiet */

/* Signals off for a slow path. */
void signals_block(sigset_t *ret_old);
void signals_restore(const sigset_t *old);
void spin_lock(uint32_t *lock);
void spin_unlock(uint32_t *lock);

/* Whether a thread may still be about to write into the file of that session. */
bool lanes_hold(uint32_t session);

/* ---- sites.c ---- */
struct site_spec {
    const char *name, *file, *component, *category, *tags;
    int line, phase;
    unsigned flags;
};
/* The number of a site, the same for the same spec; SITE_OTHER when there is no
 * room. In the file before it returns. */
uint32_t sites_intern(const struct site_spec *spec);
/* Makes the registry; once, before any other thread can ask for a site. */
bool sites_prepare(void);
/* Registers a static site: sets id and, unless it was switched off, word. */
void sites_register(struct sonde_site *site);
struct sonde_site *sites_named(const struct site_spec *spec);
/* Writes all sites known so far into a new file. */
void sites_copy_to_file(void);
const char *sites_string(uint32_t id); /* our copy of a site's name */

/* ---- lanes.c ---- */
/* This thread's lane, with a block to write into; NULL: drop the event. */
struct lane *lanes_mine(void);
/* Records one begin or end, through the slow path. */
void lanes_event(uint32_t tag);
/* Whether this thread is in a zone of the site. */
bool lanes_is_open(const struct sonde_site *site);
/* A lane that is not ready must fail the slot test for ever, although each failed
 * attempt moves its cursor on by a word. */
static inline void lane_rewind(struct sonde_lane *lane)
{
    if (lane && __atomic_load_n(&lane->cursor, __ATOMIC_RELAXED) < BLOCK_SIZE)
        __atomic_store_n(&lane->cursor, 0, __ATOMIC_RELAXED);
}
/* A record of 1 + count words; safe in handlers. */
void lanes_record(unsigned tag, const uint64_t *payload, unsigned count);
void lanes_name_thread(const char *name);
void lanes_drop(uint64_t events, unsigned reason);
/* Remembers a copy's thread pointer, to clear it when the thread ends. */
void lanes_share(struct sonde_lane **slot);
/* Keeps *slot, a thread variable of the caller's copy, pointing at the calling thread's
 * lane, now and when it gets one later; NULL while it has none. For those who ask in
 * which zone a thread is without recording anything. */
void lanes_follow(struct sonde_lane **slot);

#endif
