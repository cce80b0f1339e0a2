/* drain.c: look after the files of one run directory. See drain.h. */
#include "trace/drain.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "trace/folder.h"
#include "trace/guard.h"
#include "trace/recover.h"

enum {
    PASS_BLOCKS = 64,         /* per file and pass: every file gets its turn */
    COMPACT_BELOW = 64 << 20, /* during the run; larger files wait for the end */
    PASS_WANTED = 4,          /* blocks of all files together */
    PAUSE_LEAST_US = 200,
    PAUSE_MOST_US = 100000,
};

enum file_state { FILE_LIVE, FILE_DONE, FILE_DAMAGED };

struct drained {
    char name[96];
    enum file_state state;
    struct tracefile file;
    struct folder folder;
    bool alive;
    uint64_t steps;
};

struct drain {
    char dir[900];
    struct control *control;
    struct drained **files;
    size_t count, cap;
    uint64_t seen_processes; /* control.processes at the last look */
    uint64_t scan_ticks, check_ticks;
    unsigned pause_us;
    uint64_t blocks, events;
};

int drain_new(const char *dir, struct control *control, struct drain **ret_drain)
{
    struct drain *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    if (snprintf(d->dir, sizeof d->dir, "%s", dir) >= (int)sizeof d->dir) {
        free(d);
        return -ENAMETOOLONG;
    }
    d->control = control;
    d->pause_us = 1000;
    d->seen_processes = UINT64_MAX;
    __atomic_store_n(&control->drainer_pid, (uint32_t)getpid(), __ATOMIC_RELAXED);
    *ret_drain = d;
    return 0;
}

static void let_go(struct drained *f)
{
    folder_release(&f->folder);
    tracefile_close(&f->file);
}

void drain_free(struct drain *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++) {
        if (d->files[i]->state == FILE_LIVE)
            let_go(d->files[i]);
        free(d->files[i]);
    }
    free(d->files);
    free(d);
}

/* ---- Finding files --------------------------------------------------------------- */

static bool known(const struct drain *d, const char *name)
{
    for (size_t i = d->count; i-- > 0;)
        if (strcmp(d->files[i]->name, name) == 0)
            return true;
    return false;
}

static int add_file(struct drain *d, const char *name)
{
    if (d->count == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 16;
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers it is */
        struct drained **files = realloc(d->files, cap * sizeof *files);
        if (!files)
            return -ENOMEM;
        d->files = files;
        d->cap = cap;
    }
    struct drained *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    char path[1024];
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s", d->dir, name);
    int rc = tracefile_open(path, d->control, &f->file);
    if (rc == SONDE_E_FORMAT) {
        free(f);
        return 0; /* not complete yet, or compacted: look again at the next scan */
    }
    f->state = rc < 0 ? FILE_DAMAGED : FILE_LIVE;
    f->alive = true;
    if (rc == 0)
        folder_init(&f->folder, &f->file);
    d->files[d->count++] = f;
    return 0;
}

/* "<digits>-…sonde", which control.sonde and strangers are not. */
static bool is_process_file(const char *name)
{
    size_t len = strlen(name);
    return len > 7 && len < 96 && name[0] >= '0' && name[0] <= '9' &&
           strcmp(name + len - 6, ".sonde") == 0;
}

static void scan(struct drain *d)
{
    DIR *dir = opendir(d->dir);
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));)
        if (is_process_file(e->d_name) && !known(d, e->d_name))
            (void)add_file(d, e->d_name);
    (void)closedir(dir);
}

static bool elapsed(uint64_t *since, double ns)
{
    uint64_t now = ticks_now();
    if (*since && (double)(now - *since) < ns * ticks_per_ns())
        return false;
    *since = now;
    return true;
}

static void scan_if_due(struct drain *d)
{
    uint64_t processes = __atomic_load_n(&d->control->processes, __ATOMIC_ACQUIRE);
    if (processes == d->seen_processes && !elapsed(&d->scan_ticks, 1e9))
        return;
    d->seen_processes = processes;
    scan(d);
}

/* ---- Folding --------------------------------------------------------------------- */

static uint64_t file_bytes(const struct drained *f)
{
    return (uint64_t)tracefile_live(&f->file)->next_block * BLOCK_SIZE;
}

/* Rewrites a dead process's file in compact form, which counts what is not counted
 * yet, and gives its blocks back to the living. False: it stays as it is. */
static bool pack(struct drain *d, struct drained *f)
{
    uint64_t blocks = file_bytes(f) / BLOCK_SIZE, after_bytes = 0, before;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", d->dir, f->name);
    if (compact_file(path, &before, &after_bytes) < 0)
        return false;
    uint64_t after = (after_bytes + BLOCK_SIZE - 1) / BLOCK_SIZE;
    if (after < blocks)
        control_give(d->control, blocks - after);
    return true;
}

static bool is_alive(struct drained *f, bool thorough)
{
    const struct trace_head *h = tracefile_head(&f->file);
    if (tracefile_live(&f->file)->flags & LIVE_EXITED)
        return false; /* its session is over, whatever else it does */
    if (kill((pid_t)h->pid, 0) != 0 && errno == ESRCH)
        return false;
    return !thorough || tracefile_owner_alive(h);
}

/* What the program wrote is not to be trusted: a truncated file is a SIGBUS. */
struct pass {
    struct drain *drain;
    struct drained *file;
    bool thorough;
    uint64_t pack_below; /* dead and smaller: packed at once, else folded in place */
    int folded;
    bool done;
};

static void pass_over_file(void *arg)
{
    struct pass *p = arg;
    struct drained *f = p->file;
    f->steps = tracefile_live(&f->file)->steps;
    /* Asked before folding: a process that dies meanwhile is dead next time. */
    if (f->alive)
        f->alive = is_alive(f, p->thorough);
    if (!f->alive && file_bytes(f) < p->pack_below && pack(p->drain, f)) {
        p->done = true;
        return;
    }
    if (!folder_needed(&f->folder, f->alive))
        return;
    uint64_t events = f->folder.events;
    p->folded = folder_pass(&f->folder, f->alive, PASS_BLOCKS);
    p->drain->events += f->folder.events - events;
    p->done = f->folder.finished;
}

/* One pass over one file; blocks folded. */
static int pass_file(struct drain *d, struct drained *f, bool thorough,
                     uint64_t pack_below)
{
    struct pass pass = { d, f, thorough, pack_below, 0, false };
    if (guard_run(pass_over_file, &pass) < 0)
        f->state = FILE_DAMAGED;
    else if (pass.done)
        f->state = FILE_DONE;
    if (f->state != FILE_LIVE)
        let_go(f); /* and the lock with it */
    return pass.folded > 0 ? pass.folded : 0;
}

/* Recording threads that are out of space wait for us only while this is young. */
static void beat(struct drain *d)
{
    __atomic_store_n(&d->control->drainer_beat, ticks_now(), __ATOMIC_RELAXED);
}

/* So that a pass finds a few blocks: busy programs are looked at often, those that fill
 * a block now and then cost next to nothing. */
static unsigned next_pause(unsigned pause_us, int folded)
{
    const unsigned next = folded > 0 ? pause_us * PASS_WANTED / (unsigned)folded
                                     : pause_us * 3 / 2;
    return next < PAUSE_LEAST_US  ? PAUSE_LEAST_US
           : next > PAUSE_MOST_US ? PAUSE_MOST_US
                                  : next;
}

int drain_pass(struct drain *d)
{
    int folded = 0;
    beat(d);
    control_tick_clock(d->control);
    scan_if_due(d);
    /* Reading /proc for every file costs; do it often only when the dead hold space
     * that the living wait for. */
    uint64_t used = __atomic_load_n(&d->control->used_blocks, __ATOMIC_RELAXED);
    bool tight = used > d->control->max_blocks / 4 * 3;
    bool thorough = elapsed(&d->check_ticks, tight ? 20e6 : 0.5e9);
    for (size_t i = 0; i < d->count; i++) {
        struct drained *f = d->files[i];
        if (f->state != FILE_LIVE)
            continue;
        folded += pass_file(d, f, thorough, COMPACT_BELOW);
        beat(d);
    }
    d->blocks += (uint64_t)folded;
    d->pause_us = next_pause(d->pause_us, folded);
    return folded;
}

unsigned drain_pause_us(const struct drain *d)
{
    return d->pause_us;
}

void drain_status(const struct drain *d, struct drain_status *ret_status)
{
    struct drain_status s = { .blocks_folded = d->blocks, .events_folded = d->events };
    for (size_t i = 0; i < d->count; i++) {
        s.files++;
        s.alive += d->files[i]->state == FILE_LIVE && d->files[i]->alive;
        s.damaged += d->files[i]->state == FILE_DAMAGED;
    }
    *ret_status = s;
}

static void set_gate(void *arg)
{
    struct drained *f = arg;
    control_settle_gate(f->file.control, tracefile_live(&f->file));
}

void drain_set_gate(struct drain *d, bool on)
{
    __atomic_store_n(&d->control->gate, on ? 0 : SONDE_GATE_OFF, __ATOMIC_SEQ_CST);
    scan(d); /* after the store: a process that starts now reads the new value */
    for (size_t i = 0; i < d->count; i++)
        if (d->files[i]->state == FILE_LIVE)
            (void)guard_run(set_gate, d->files[i]);
}

uint64_t drain_steps(const struct drain *d)
{
    uint64_t most = 0;
    for (size_t i = 0; i < d->count; i++)
        if (d->files[i]->steps > most)
            most = d->files[i]->steps;
    return most;
}

int drain_finish(struct drain *d, uint64_t compact_below)
{
    bool outlived = false;
    control_append_clock(d->control); /* nothing of the run lies beyond its readings */
    scan(d);
    for (size_t i = 0; i < d->count; i++) {
        struct drained *f = d->files[i];
        /* Bounded: a dead file has finitely many blocks; a live one gets one pass. */
        for (int round = 0; f->state == FILE_LIVE && round < 100000; round++)
            if (pass_file(d, f, true, compact_below) == 0 || f->alive)
                break;
        outlived |= f->state == FILE_LIVE && f->alive;
    }
    if (!outlived)
        control_finish_clock(d->control);
    return 0;
}
