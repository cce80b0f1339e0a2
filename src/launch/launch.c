/* launch.c: the supervisor. */
#include "launch/launch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "trace/process.h"
#include "launch/spawn.h"
#include "trace/control.h"
#include "trace/drain.h"
#include "trace/file.h"
#include "trace/guard.h"

enum {
    BUSY_FOLDED = 8,          /* a pass that found as much is repeated at once */
    RETRY_US = 50000,         /* after a pass that failed */
    KILL_AFTER_S = 10,        /* from SIGTERM to SIGKILL on a timeout */
    COMPACT_BELOW = 16 << 20, /* larger files would delay the end */
};
static const uint64_t DEFAULT_MAX_TRACE = 1ULL << 30;
static const uint64_t SECOND_NS = 1000000000;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static const char *level_name(int level)
{
    return level == SONDE_BASIC           ? "basic"
           : level == SONDE_COMPREHENSIVE ? "comprehensive"
                                          : "detailed";
}

/* ---- Before ----------------------------------------------------------------- */

static void describe(struct launch *l)
{
    const struct launch_options *o = l->options;
    struct runfile *f = &l->file;
    *f = (struct runfile){
        .name = o->name,
        .command = o->argv,
        .command_len = o->argc,
        .cwd = l->cwd,
        .started_ns = (int64_t)now_ns(CLOCK_REALTIME),
        .supervisor = getpid(),
        .supervisor_start = process_start_ticks((uint32_t)getpid()),
        .pid_namespace = process_pid_namespace(),
        .tags = o->tags,
        .tag_count = o->tag_count,
        .params = o->params,
        .param_count = o->param_count,
        .level = level_name(o->level),
        .max_trace = o->max_trace ? o->max_trace : DEFAULT_MAX_TRACE,
        .min_zone_ns = o->min_zone_ns,
        .after_ns = o->after_ns,
        .duration_ns = o->duration_ns,
        .timeout_ns = o->timeout_ns,
        .steps = o->steps,
        .no_energy = o->capture.no_energy,
        .grid_given = o->capture.grid_given,
        .grid_g_per_kwh = o->capture.grid_g_per_kwh,
        .lossy = o->lossy,
        .redact = o->redact,
    };
    for (size_t i = 0; i < RUN_ID_LEN; i++)
        f->id[i] = l->dir.id[i];
    (void)process_boot_id(f->boot_id);
    machine_read(&f->machine);
    f->has_git = l->cwd && git_read(l->cwd, &f->git);
}

static int open_trace(struct launch *l)
{
    const struct launch_options *o = l->options;
    const struct control_options options = {
        .run_id = l->dir.id,
        .level = (unsigned)o->level,
        .max_trace = o->max_trace,
        .min_zone_ns = o->min_zone_ns,
        .first_step = o->first_step,
        .last_step = o->last_step,
        .gate_off = o->after_ns > 0,
        .lossy = o->lossy,
        .supervised = true,
    };
    const mode_t old = umask(077);
    int rc = control_create(l->dir.path, &options, &l->control);
    (void)umask(old);
    return rc < 0 ? rc : drain_new(l->dir.path, l->control, &l->drain);
}

/* After this the launch stays where it is: captures point into it. */
static void prepare_captures(struct launch *l)
{
    const struct capture_context context = {
        .options = &l->options->capture,
        .dir = l->dir.path,
        .control = l->control,
        .file = &l->file,
        .level = l->options->level,
    };
    captures_prepare(&l->captures, &context);
}

int launch_prepare(struct launch *ret_launch, const struct launch_options *options)
{
    struct launch l = { .options = options, .signals_taken = true };
    signals_take(&l.signals);
    guard_install();
    int rc = rundir_create(options->sonde_dir, options->output, &l.dir);
    if (rc == 0) {
        l.cwd = getcwd(NULL, 0);
        describe(&l);
        rc = open_trace(&l);
    }
    /* Before the program starts: whatever happens to us, the run has a name. */
    if (rc == 0)
        rc = runfile_write(&l.file, l.dir.path);
    if (rc == 0 && setenv("SONDE_RUN", l.dir.path, 1) < 0)
        rc = -errno;
    if (rc < 0) {
        launch_abandon(&l);
        return rc;
    }
    *ret_launch = l;
    prepare_captures(ret_launch);
    return 0;
}

void launch_abandon(struct launch *launch)
{
    (void)unsetenv("SONDE_RUN");
    rundir_discard(&launch->dir);
    if (launch->signals_taken)
        signals_give_back(&launch->signals);
    launch->signals_taken = false;
    launch_release(launch);
}

void launch_release(struct launch *launch)
{
    captures_release(&launch->captures);
    drain_free(launch->drain);
    control_unmap(launch->control);
    runfile_release(&launch->file);
    rundir_release(&launch->dir);
    free(launch->cwd);
    launch->drain = NULL;
    launch->control = NULL;
    launch->cwd = NULL;
}

static void set_moments(struct launch *l)
{
    const struct launch_options *o = l->options;
    const uint64_t start = now_ns(CLOCK_MONOTONIC);
    l->started_ns = start;
    l->open_ns = o->after_ns ? start + o->after_ns : 0;
    l->shut_ns = o->duration_ns ? start + o->after_ns + o->duration_ns : 0;
    l->terminate_ns = o->timeout_ns ? start + o->timeout_ns : 0;
}

int launch_start(struct launch *launch, bool *ret_no_exec)
{
    *ret_no_exec = false;
    if (signals_waiting(&launch->signals))
        return -EINTR; /* the program could not get what came before it was there */
    const struct spawn_options options = {
        .argv = launch->options->argv,
        .signals = &launch->signals,
    };
    launch->file.started_ns = (int64_t)now_ns(CLOCK_REALTIME);
    const int rc = spawn(&options, &launch->child.pid, ret_no_exec);
    if (rc < 0)
        return rc;
    set_moments(launch);
    captures_start(&launch->captures, launch->child.pid);
    launch->capture_ns = 1;
    launch->file.pid = launch->child.pid;
    launch->file.pid_start = process_start_ticks((uint32_t)launch->child.pid);
    /* Only adoption after our death needs it: a full disk is no reason to stop, and
     * of a program that has ended already (no start) there is nothing to say yet. */
    if (launch->file.pid_start)
        (void)runfile_write(&launch->file, launch->dir.path);
    return 0;
}

/* ---- During ----------------------------------------------------------------- */

static bool reached(uint64_t *moment, uint64_t now)
{
    if (*moment == 0 || now < *moment)
        return false;
    *moment = 0;
    return true;
}

static void do_what_is_due(struct launch *l)
{
    const uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (reached(&l->open_ns, now))
        drain_set_gate(l->drain, true);
    if (reached(&l->shut_ns, now))
        drain_set_gate(l->drain, false);
    if (reached(&l->terminate_ns, now)) {
        l->timed_out = true;
        l->kill_ns = now + KILL_AFTER_S * SECOND_NS;
        (void)kill(l->child.pid, SIGTERM);
        (void)kill(l->child.pid, SIGCONT); /* a stopped program could not obey */
    }
    if (reached(&l->kill_ns, now))
        (void)kill(l->child.pid, SIGKILL);
    if (reached(&l->capture_ns, now))
        l->capture_ns = captures_tick(&l->captures, now);
}

static int64_t until_next_moment_us(const struct launch *l, int64_t pause_us)
{
    const uint64_t moments[] = { l->open_ns, l->shut_ns, l->terminate_ns, l->kill_ns,
                                 l->capture_ns };
    const uint64_t now = now_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        if (moments[i] == 0)
            continue;
        const int64_t left = moments[i] <= now
                                 ? 0
                                 : (int64_t)((moments[i] - now) / 1000) + 1;
        if (left < pause_us)
            pause_us = left;
    }
    return pause_us;
}

/* Folds once; returns how long to wait before the next time. */
static int64_t drain_once(struct launch *l)
{
    const int folded = drain_pass(l->drain);
    if (folded < 0) {
        if (l->drain_error == 0)
            l->drain_error = folded;
        return RETRY_US;
    }
    return folded >= BUSY_FOLDED ? 0 : (int64_t)drain_pause_us(l->drain);
}

void launch_follow(struct launch *launch)
{
    do {
        int64_t pause_us = drain_once(launch);
        do_what_is_due(launch);
        pause_us = until_next_moment_us(launch, pause_us);
        (void)child_wait(&launch->child, pause_us);
    } while (!launch->child.ended);
    launch->file.ended_ns = (int64_t)now_ns(CLOCK_REALTIME);
}

/* ---- After ------------------------------------------------------------------ */

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void record_exit(struct launch *l)
{
    const int status = l->child.status;
    struct runfile_exit *e = &l->file.exit;
    *e = (struct runfile_exit){ .code = -1 };
    if (WIFSIGNALED(status)) {
        e->signal = WTERMSIG(status);
        e->cause = "signal";
    } else {
        e->code = WEXITSTATUS(status);
        e->cause = e->code == 0 ? "ok" : "error";
    }
    if (l->timed_out)
        e->cause = "timeout";
}

static void record_usage(struct launch *l)
{
    const struct rusage *u = &l->child.usage;
    struct runfile *f = &l->file;
    f->has_usage = true;
    f->cpu_user_s = seconds(u->ru_utime);
    f->cpu_system_s = seconds(u->ru_stime);
    f->max_rss_mb = (double)u->ru_maxrss / 1024;
    f->minor_faults = u->ru_minflt;
    f->major_faults = u->ru_majflt;
    struct rusage self;
    f->supervisor_cpu_s = getrusage(RUSAGE_SELF, &self) == 0
                              ? seconds(self.ru_utime) + seconds(self.ru_stime)
                              : NAN;
    f->supervisor_rss_mb = process_peak_mb();
}

int launch_finish(struct launch *launch)
{
    struct runfile *f = &launch->file;
    captures_finish(&launch->captures, launch->child.status);
    int finished = drain_finish(launch->drain, COMPACT_BELOW);
    struct drain_status status = { 0 };
    drain_status(launch->drain, &status);
    if (launch->drain_error < 0)
        runfile_note(f, "draining failed at times: %s",
                     error_text(launch->drain_error));
    if (finished < 0)
        runfile_note(f, "the trace could not be finished: %s (sonde recover @last)",
                     error_text(finished));
    if (status.damaged > 0)
        runfile_note(f, "%u trace files are damaged and were left alone",
                     status.damaged);
    if (status.alive > 0)
        runfile_note(f, "%u recording process%s outlived the program and may record on",
                     status.alive, status.alive == 1 ? "" : "es");
    if (launch->timed_out)
        runfile_note(f, "ended by --timeout after %.3g s",
                     (double)launch->options->timeout_ns / 1e9);
    record_exit(launch);
    record_usage(launch);
    return runfile_write(f, launch->dir.path);
}
