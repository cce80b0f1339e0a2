/* launch.c: the supervisor. */
#include "launch/launch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/files.h"
#include "base/moment.h"
#include "launch/place.h"
#include "trace/process.h"
#include "launch/spawn.h"
#include "launch/symbolise.h"
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
static const uint64_t SHOW_EVERY_NS = 250000000;

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
        .started_ns = (int64_t)moment_ns(CLOCK_REALTIME),
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
        .attached = o->attached,
    };
    for (size_t i = 0; i < RUN_ID_LEN; i++)
        f->id[i] = l->dir.id[i];
    (void)process_boot_id(f->boot_id);
    machine_read(&f->machine);
    f->has_git = l->cwd && git_read(l->cwd, &f->git);
}

/* On file systems that cannot keep live files the run lives in scratch until its end.
 * Without scratch it stays where it is: slow is better than nothing. */
static void choose_place(struct launch *l)
{
    char scratch[4096];
    struct place home;
    if (!place_wants_scratch(l->dir.path) || place_of(l->dir.path, &home) < 0)
        return;
    int rc = place_make_scratch(l->dir.id, scratch, sizeof scratch);
    char *path = rc == 0 ? strdup(scratch) : NULL;
    if (!path) {
        runfile_note(&l->file, "the run lies on %s, and no scratch could be made: %s",
                     home.type, error_text(rc < 0 ? rc : -ENOMEM));
        return;
    }
    l->home = l->dir.path;
    l->dir.path = path;
    l->file.live = path;
    runfile_note(
        &l->file,
        "live files were kept in %s and brought here at the end, for this is %s", path,
        home.type);
}

static int write_runfile(struct launch *l)
{
    const int rc = runfile_write(&l->file, l->dir.path);
    return rc < 0 || !l->home ? rc : runfile_write(&l->file, l->home);
}

/* Ends with the files where the user wanted them, or a note that tells where they are. */
static int bring_home(struct launch *l)
{
    struct runfile *f = &l->file;
    if (!l->home)
        return runfile_write(f, l->dir.path);
    const char *live = f->live;
    f->live = NULL;
    int rc = runfile_write(f, l->dir.path);
    if (rc == 0)
        rc = place_bring_home(l->dir.path, l->home);
    if (rc < 0) {
        f->live = live;
        runfile_note(f, "the run is still in %s: it could not be brought here (%s)",
                     live, error_text(rc));
        (void)runfile_write(f, l->home);
        return 0; /* it can be read where it is */
    }
    free(l->dir.path);
    l->dir.path = l->home;
    l->home = NULL;
    return 0;
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
        .redact = l->options->redact,
        .attached = l->options->attached,
        .after_ns = l->options->after_ns,
        .duration_ns = l->options->duration_ns,
    };
    captures_prepare(&l->captures, &context);
}

static void prepare_postmortem(struct launch *l)
{
    const struct postmortem_options options = {
        .dir = l->dir.path,
        .run_id = l->dir.id,
        .file = &l->file,
        .control = l->control,
        .memory_limit = l->options->capture.memory_limit,
        .hang_ns = l->options->hang_ns,
    };
    l->postmortem = postmortem_new(&options);
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
        choose_place(&l);
        rc = open_trace(&l);
    }
    /* Before the program starts: whatever happens to us, the run has a name. */
    if (rc == 0)
        rc = write_runfile(&l);
    if (rc == 0 && setenv("SONDE_RUN", l.dir.path, 1) < 0)
        rc = -errno;
    if (rc < 0) {
        launch_abandon(&l);
        return rc;
    }
    *ret_launch = l;
    prepare_postmortem(ret_launch);
    prepare_captures(ret_launch);
    return 0;
}

void launch_abandon(struct launch *launch)
{
    (void)unsetenv("SONDE_RUN");
    if (launch->home) {
        (void)file_remove_tree(launch->dir.path);
        free(launch->dir.path);
        launch->dir.path = launch->home;
        launch->home = NULL;
    }
    rundir_discard(&launch->dir);
    if (launch->signals_taken)
        signals_give_back(&launch->signals);
    launch->signals_taken = false;
    launch_release(launch);
}

void launch_release(struct launch *launch)
{
    witness_end(&launch->child.witness);
    captures_release(&launch->captures);
    postmortem_free(launch->postmortem);
    drain_free(launch->drain);
    control_unmap(launch->control);
    runfile_release(&launch->file);
    rundir_release(&launch->dir);
    free(launch->home);
    launch->home = NULL;
    free(launch->cwd);
    launch->postmortem = NULL;
    launch->drain = NULL;
    launch->control = NULL;
    launch->cwd = NULL;
}

static void set_moments(struct launch *l)
{
    const struct launch_options *o = l->options;
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    l->started_ns = start;
    l->open_ns = o->after_ns ? start + o->after_ns : 0;
    l->shut_ns = o->duration_ns ? start + o->after_ns + o->duration_ns : 0;
    l->terminate_ns = o->timeout_ns ? start + o->timeout_ns : 0;
}

static void before_end(void *arg)
{
    struct launch *l = arg;
    captures_ending(&l->captures);
}

static void attach_captures(void *arg, pid_t pid)
{
    struct launch *l = arg;
    captures_attach(&l->captures, pid);
}

int launch_start(struct launch *launch, bool *ret_no_exec)
{
    const struct due at_once = due_exactly_at(1);
    *ret_no_exec = false;
    if (signals_waiting(&launch->signals))
        return -EINTR; /* the program could not get what came before it was there */
    const struct spawn_options options = {
        .argv = launch->options->argv,
        .signals = &launch->signals,
        .before_exec = attach_captures,
        .arg = launch,
        .group = postmortem_group(launch->postmortem),
    };
    witness_start(&launch->child.witness);
    launch->file.started_ns = (int64_t)moment_ns(CLOCK_REALTIME);
    const int rc = spawn(&options, &launch->child.pid, ret_no_exec);
    if (rc < 0)
        return rc;
    set_moments(launch);
    launch->child.before_end = before_end;
    launch->child.arg = launch;
    captures_start(&launch->captures, launch->child.pid);
    postmortem_start(launch->postmortem, launch->child.pid,
                     launch->captures.context.family, launch->started_ns);
    launch->fold = launch->watch = at_once;
    launch->capture_ns = 1;
    if (launch->options->watcher) {
        launch->show = at_once;
        launch->child.before_stop = launch->options->watcher->hide;
        launch->child.stop_arg = launch->options->watcher->arg;
    }
    launch->file.pid = launch->child.pid;
    launch->file.pid_start = process_start_ticks((uint32_t)launch->child.pid);
    /* Only adoption after our death needs it: a full disk is no reason to stop, and
     * of a program that has ended already (no start) there is nothing to say yet. */
    if (launch->file.pid_start)
        (void)write_runfile(launch);
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

/* Folds once; returns when to do it again. */
static uint64_t drain_once(struct launch *l, uint64_t now)
{
    const int folded = drain_pass(l->drain);
    if (folded >= BUSY_FOLDED)
        return now;
    if (folded < 0 && l->drain_error == 0)
        l->drain_error = folded;
    return now + (folded < 0 ? RETRY_US : drain_pause_us(l->drain)) * 1000ULL;
}

static void do_what_is_due(struct launch *l)
{
    const uint64_t now = moment_ns(CLOCK_MONOTONIC);
    if (is_due(l->fold, now))
        l->fold = due_with_others(drain_once(l, now), now);
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
    if (!l->works && drain_steps(l->drain) > 0) {
        l->works = true;
        captures_work_begins(&l->captures, now);
        l->capture_ns = now;
    }
    if (l->capture_ns)
        l->capture_ns = captures_tick(&l->captures, now);
    if (is_due(l->watch, now))
        l->watch = due_with_others(
            postmortem_tick(l->postmortem, now, drain_steps(l->drain)), now);
    if (is_due(l->show, now)) {
        const struct launch_watcher *w = l->options->watcher;
        w->tick(w->arg, l->dir.path, l->child.pid, drain_steps(l->drain));
        l->show = due_at(now + SHOW_EVERY_NS, now);
    }
}

static int64_t until_next_moment_us(const struct launch *l)
{
    const uint64_t moments[] = { l->fold.at,      l->open_ns, l->shut_ns,
                                 l->terminate_ns, l->kill_ns, l->capture_ns,
                                 l->watch.at,     l->show.at };
    const uint64_t now = moment_ns(CLOCK_MONOTONIC);
    uint64_t soonest = UINT64_MAX;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        if (moments[i] && moments[i] < soonest)
            soonest = moments[i];
    return soonest <= now ? 0 : (int64_t)((soonest - now) / 1000) + 1;
}

void launch_follow(struct launch *launch)
{
    do {
        do_what_is_due(launch);
        (void)child_wait(&launch->child, until_next_moment_us(launch));
        if (launch->child.asked.signal != launch->asked_signal) {
            launch->asked_signal = launch->child.asked.signal;
            postmortem_asked(launch->postmortem, launch->asked_signal);
        }
    } while (!launch->child.ended);
    launch->file.ended_ns = (int64_t)moment_ns(CLOCK_REALTIME);
}

/* ---- After ------------------------------------------------------------------ */

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void record_exit(struct launch *l)
{
    const struct child *c = &l->child;
    struct postmortem_facts facts = {
        .status = c->status,
        .now_ns = moment_ns(CLOCK_MONOTONIC),
        .max_rss = (uint64_t)c->usage.ru_maxrss * 1024,
        .steps = drain_steps(l->drain),
        .timed_out = l->timed_out,
        .timeout_ns = l->options->timeout_ns,
        .asked = { .signal = c->asked.signal,
                   .sender = c->asked.sender,
                   .at_ns = c->asked.at_ns },
    };
    (void)memcpy(facts.asked.comm, c->asked.comm, sizeof facts.asked.comm);
    postmortem_finish(l->postmortem, &facts, &l->file);
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

static void name_addresses(struct launch *l)
{
    const int rc = symbolise_run(l->dir.path, l->control);
    if (rc < 0)
        runfile_note(&l->file, "functions could not be named: %s", error_text(rc));
}

int launch_finish(struct launch *launch)
{
    struct runfile *f = &launch->file;
    if (!launch->options->attached)
        record_exit(launch); /* first: evidence does not keep */
    captures_finish(&launch->captures, launch->child.status);
    name_addresses(launch);
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
    if (!launch->options->attached)
        record_usage(launch);
    return bring_home(launch);
}
