/* judge.c: why did it end? */
#include "launch/judge.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/human.h"
#include "base/signame.h"

static const double MIB = 1048576;

/* ---- Words --------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(struct runfile_death *d,
                                                      const char *fmt, ...)
{
    const size_t used = strlen(d->text);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(d->text + used, sizeof d->text - used, fmt, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void found_by(struct runfile_death *d,
                                                           const char *fmt, ...)
{
    const size_t used = strlen(d->method);
    va_list args;
    va_start(args, fmt);
    (void)snprintf(d->method + used, sizeof d->method - used, used ? "; " : "");
    (void)vsnprintf(d->method + strlen(d->method), sizeof d->method - strlen(d->method),
                    fmt, args);
    va_end(args);
}

static double mb(uint64_t bytes)
{
    return bytes == MEMCG_UNKNOWN ? NAN : (double)bytes / MIB;
}

static const char *bytes_text(double mib, char ret_text[HUMAN_LEN])
{
    return human_bytes(ret_text, mib * MIB);
}

/* "exit 3" or "SIGKILL" */
static void say_status(struct runfile_death *d, int status)
{
    char name[SIGNAL_NAME_LEN];
    if (WIFSIGNALED(status))
        say(d, "%s", signal_name(WTERMSIG(status), name));
    else
        say(d, "exit %d", WEXITSTATUS(status));
}

/* ---- Who ----------------------------------------------------------------------------- */

static bool good(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool died_of(int status, int signal)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

static const struct kin_process *program_of(const struct evidence *e)
{
    return e->kin && e->kin->count ? &e->kin->process[0] : NULL;
}

/* The first process but the program that died so; NULL. */
static const struct kin_process *first_dead(const struct evidence *e, int signal)
{
    const struct kin_process *best = NULL;
    for (size_t i = 1; e->kin && i < e->kin->count; i++) {
        const struct kin_process *p = &e->kin->process[i];
        if (!p->alive && p->status_known && died_of(p->status, signal) &&
            (!best || p->order < best->order))
            best = p;
    }
    return best;
}

static void copy_stack(const struct evidence *e, struct runfile_death *d)
{
    if (e->fault.frame_count == 0)
        return;
    d->frame_count = e->fault.frame_count;
    (void)memcpy(d->frame, e->fault.frame, sizeof d->frame);
}

static void name_process(struct runfile_death *d, const struct kin_process *p)
{
    if (!p)
        return;
    d->pid = p->pid;
    (void)snprintf(d->process, sizeof d->process, "%s", p->comm);
}

/* "the program" or "process 12 (python)" */
static void say_who(const struct evidence *e, struct runfile_death *d,
                    const struct kin_process *p)
{
    if (!p || p == program_of(e))
        say(d, "the program");
    else
        say(d, "%s %u (%s)", p->is_worker ? "worker" : "process", p->pid, p->comm);
}

/* ---- Memory --------------------------------------------------------------------------- */

static double size_of(const struct evidence *e, const struct kin_process *p,
                      const struct kernellog_kill *kill)
{
    if (kill && kill->rss)
        return mb(kill->rss);
    uint64_t bytes = p ? p->peak_rss : 0;
    if ((!p || p == program_of(e)) && e->max_rss > bytes)
        bytes = e->max_rss;
    return bytes ? mb(bytes) : NAN;
}

static void say_size(const struct evidence *e, struct runfile_death *d,
                     const struct kin_process *p)
{
    char text[HUMAN_LEN];
    if (isnan(d->size_mb))
        return;
    say_who(e, d, p);
    say(d, " had %s", bytes_text(d->size_mb, text));
    if (e->growth > MIB / 10) {
        d->growth_mb_per_s = e->growth / MIB;
        say(d, " (+%s/s)", bytes_text(d->growth_mb_per_s, text));
    }
}

/* Killed for memory: by a kill that the log names, or that the group counted. */
struct oom {
    const struct kin_process *victim;
    const struct kernellog_kill *logged;
    bool by_group;
};

static bool logged_kill(const struct evidence *e, struct oom *o)
{
    for (size_t i = 0; e->log && e->kin && i < e->kin->count; i++) {
        const struct kin_process *p = &e->kin->process[i];
        const struct kernellog_kill *k = kernellog_find_kill(e->log, (pid_t)p->pid,
                                                             p->comm);
        if (!k)
            continue;
        *o = (struct oom){ p, k, k->by_group };
        return true;
    }
    return false;
}

/* Somebody of ours was killed, and the counters say by whom. Where the group's cannot
 * be read the machine's must do, which counts other people's kills as well. */
static bool counted_kill(const struct evidence *e, struct oom *o)
{
    const bool killed = died_of(e->status, SIGKILL);
    const struct kin_process *victim = killed ? program_of(e) : first_dead(e, SIGKILL);
    const bool shell_says = WIFEXITED(e->status) &&
                            WEXITSTATUS(e->status) == 128 + SIGKILL;
    if (!killed && !victim && !shell_says)
        return false;
    const bool counted = e->group.readable
                             ? e->group.kills > 0
                             : e->host_kills != MEMCG_UNKNOWN && e->host_kills > 0;
    *o = (struct oom){ victim, NULL, e->group.at_limit };
    return counted;
}

static void explain_group(const struct evidence *e, const struct oom *o,
                          struct runfile_death *d)
{
    char text[HUMAN_LEN];
    const char *group = o->logged && o->logged->group[0] ? o->logged->group
                                                         : e->group.path;
    if (e->limit_is_group && e->memory_limit) {
        d->limit_mb = mb(e->memory_limit);
        say(d, "killed by the OOM killer at --memory-limit %s: ",
            bytes_text(d->limit_mb, text));
        return;
    }
    (void)snprintf(d->group, sizeof d->group, "%.255s", group);
    d->limit_mb = mb(e->group.limit);
    say(d, "killed by the OOM killer of cgroup %s: ", group[0] ? group : "?");
    if (!isnan(d->limit_mb))
        say(d, "limit %s, ", bytes_text(d->limit_mb, text));
}

static bool out_of_memory(const struct evidence *e, struct runfile_exit *x,
                          struct runfile_death *d)
{
    struct oom o;
    const bool logged = logged_kill(e, &o);
    if (good(e->status) || (!logged && !counted_kill(e, &o)))
        return false;
    x->cause = o.by_group ? "oom_cgroup" : "oom_host";
    name_process(d, o.victim);
    d->size_mb = size_of(e, o.victim, o.logged);
    if (o.by_group)
        explain_group(e, &o, d);
    else
        say(d, "killed by the OOM killer: the machine was out of memory, ");
    say_size(e, d, o.victim);
    if (isnan(d->size_mb))
        say(d, "size not known");
    if (logged)
        found_by(d, "kernel log");
    if (e->group.readable && e->group.kills)
        found_by(d, "oom_kill of the cgroup +%" PRIu64, e->group.kills);
    else if (e->host_kills != MEMCG_UNKNOWN && e->host_kills)
        found_by(d, "oom_kill of /proc/vmstat +%" PRIu64, e->host_kills);
    return true;
}

static bool over_our_limit(const struct evidence *e, struct runfile_exit *x,
                           struct runfile_death *d)
{
    char limit[HUMAN_LEN], size[HUMAN_LEN];
    (void)x;
    if (!e->over_limit)
        return false;
    d->limit_mb = mb(e->memory_limit);
    d->size_mb = mb(e->size_over);
    say(d, "ended by Sonde at --memory-limit %s: the program and its children had %s",
        bytes_text(d->limit_mb, limit), bytes_text(d->size_mb, size));
    if (e->growth > MIB / 10) {
        d->growth_mb_per_s = e->growth / MIB;
        say(d, " (+%s/s)", bytes_text(d->growth_mb_per_s, size));
    }
    name_process(d, program_of(e));
    found_by(d, "resident sets read by the supervisor");
    return true;
}

/* ---- Time ------------------------------------------------------------------------------ */

static bool hung(const struct evidence *e, struct runfile_exit *x,
                 struct runfile_death *d)
{
    char time[HUMAN_LEN];
    const bool by_hand = WIFSIGNALED(e->status) &&
                         (WTERMSIG(e->status) == SIGKILL || e->asked.signal);
    if (!e->hang || !e->hang->hanging || !(by_hand || e->timed_out || e->asked.signal))
        return false;
    x->cause = "hang";
    say(d, "hung: no %s for %s; ended by ",
        e->hang->steps ? "step" : "CPU time and no I/O with zones open",
        human_duration(time, (double)(e->now_ns - e->hang->since_ns)));
    if (e->timed_out)
        say(d, "--timeout");
    else
        say_status(d, e->status);
    name_process(d, program_of(e));
    found_by(d, "supervisor; stacks of every process in hang-%" PRIu64 ".txt",
             e->hang->count);
    return true;
}

static bool ran_out_of_time(const struct evidence *e, struct runfile_exit *x,
                            struct runfile_death *d)
{
    char time[HUMAN_LEN];
    if (!e->timed_out)
        return false;
    x->cause = "timeout";
    say(d, "ended by --timeout after %s", human_duration(time, (double)e->timeout_ns));
    return true;
}

static bool preempted(const struct evidence *e, struct runfile_exit *x,
                      struct runfile_death *d)
{
    char time[HUMAN_LEN];
    if (e->asked.signal != SIGTERM || (!e->asked.scheduler[0] && e->asked.sender != 0))
        return false;
    x->cause = "preempted";
    say(d, "preempted: SIGTERM from %s %s before the end, then ",
        e->asked.scheduler[0] ? e->asked.scheduler : "outside the container",
        human_duration(time, (double)(e->now_ns - e->asked.at_ns)));
    say_status(d, e->status);
    found_by(d, "signal seen by the supervisor");
    return true;
}

/* ---- From inside --------------------------------------------------------------------------- */

static bool hinted(const struct evidence *e, struct runfile_exit *x,
                   struct runfile_death *d)
{
    if (e->hint.pid == 0 || good(e->status))
        return false;
    x->cause = e->hint.cause;
    d->pid = (uint32_t)e->hint.pid;
    for (size_t i = 0; e->kin && i < e->kin->count; i++)
        if (e->kin->process[i].pid == d->pid)
            name_process(d, &e->kin->process[i]);
    say(d, "%s", e->hint.text[0] ? e->hint.text : e->hint.cause);
    found_by(d, "told by process %d", (int)e->hint.pid);
    return true;
}

/* ---- Space ----------------------------------------------------------------------------------- */

/* Whoever got SIGBUS, the program first. */
static bool bus_error(const struct evidence *e, const struct kin_process **ret_who)
{
    *ret_who = died_of(e->status, SIGBUS) ? program_of(e) : first_dead(e, SIGBUS);
    return died_of(e->status, SIGBUS) || *ret_who ||
           (WIFEXITED(e->status) && WEXITSTATUS(e->status) == 128 + SIGBUS);
}

/* What the process that got SIGBUS saw itself: between two looks of ours it may fill up
 * and, with that process, be empty again. */
static bool seen_full_by_victim(const struct evidence *e,
                                struct filling_place *ret_place)
{
    for (unsigned i = 0; e->filling && i < e->filling->count; i++) {
        *ret_place = e->filling->place[i];
        ret_place->least_free = e->fault.shm_free;
        if (ret_place->is_shm && e->fault.signal == SIGBUS &&
            e->fault.shm_free < (64 << 10))
            return true;
    }
    return false;
}

static bool space_gone(const struct evidence *e, struct runfile_exit *x,
                       struct runfile_death *d, bool shm)
{
    char left[HUMAN_LEN], total[HUMAN_LEN];
    const struct filling_place *p = e->filling ? filling_full(e->filling, shm) : NULL;
    const struct kin_process *who;
    struct filling_place seen;
    const bool bus = bus_error(e, &who);
    if (!p && shm && seen_full_by_victim(e, &seen))
        p = &seen;
    if (!p || good(e->status) || (WIFSIGNALED(e->status) && !bus))
        return false;
    x->cause = shm ? "shm_exhausted" : "disk_full";
    if (bus) {
        say_who(e, d, who);
        say(d, " got SIGBUS: ");
        name_process(d, who);
    } else {
        say(d, "failed with ");
        say_status(d, e->status);
        say(d, " when ");
    }
    d->limit_mb = mb(p->total);
    say(d, "%s was full (%s of %s free)", p->path,
        human_bytes(left, (double)p->least_free), human_bytes(total, (double)p->total));
    found_by(d, "statvfs while it ran");
    return true;
}

static bool shm_gone(const struct evidence *e, struct runfile_exit *x,
                     struct runfile_death *d)
{
    return space_gone(e, x, d, true);
}

static bool disk_gone(const struct evidence *e, struct runfile_exit *x,
                      struct runfile_death *d)
{
    return space_gone(e, x, d, false);
}

/* ---- Workers ----------------------------------------------------------------------------------- */

/* Requests to end are how programs put their own workers away. */
static bool is_request(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
           signal == SIGPIPE || signal == SIGQUIT;
}

/* Commands that a shell runs may fail as they like; a process that runs the program's
 * own file is a part of it. A signal's death counts for both. */
static bool died_badly(const struct kin_process *p)
{
    if (p->alive || !p->status_known)
        return false;
    if (WIFSIGNALED(p->status))
        return !is_request(WTERMSIG(p->status));
    return p->is_worker && WEXITSTATUS(p->status) != 0;
}

static bool is_shell(const char *comm)
{
    static const char *const shells[] = {
        "sh", "dash", "bash", "zsh", "ksh", "busybox"
    };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(comm, shells[i]) == 0)
            return true;
    return false;
}

static bool worker_died(const struct evidence *e, struct runfile_exit *x,
                        struct runfile_death *d)
{
    const struct kin_process *first = NULL;
    if (good(e->status) || WIFSIGNALED(e->status))
        return false; /* whoever was killed takes its workers with it */
    for (size_t i = 1; e->kin && i < e->kin->count; i++) {
        const struct kin_process *p = &e->kin->process[i];
        const bool subshell = WIFEXITED(p->status) && is_shell(p->comm);
        if (died_badly(p) && !subshell && (!first || p->order < first->order))
            first = p;
    }
    if (!first)
        return false;
    x->cause = "worker_died";
    name_process(d, first);
    d->size_mb = first->peak_rss ? mb(first->peak_rss) : NAN;
    say_who(e, d, first);
    say(d, WIFSIGNALED(first->status) ? " was killed by " : " ended with ");
    say_status(d, first->status);
    if (e->fault.signal && (uint32_t)e->fault.pid == first->pid && e->fault.place[0])
        say(d, " in %s", e->fault.place);
    say(d, ", then the program with exit %d", WEXITSTATUS(e->status));
    found_by(d, "pidfds of the processes");
    return true;
}

/* One that lived between two of our looks: nobody but itself saw how it ended. */
static bool unseen_died(const struct evidence *e, struct runfile_exit *x,
                        struct runfile_death *d)
{
    const struct kin_process *program = program_of(e);
    char name[SIGNAL_NAME_LEN];
    if (good(e->status) || WIFSIGNALED(e->status) || e->fault.signal == 0 || !program ||
        (uint32_t)e->fault.pid == program->pid)
        return false;
    x->cause = "worker_died";
    d->pid = (uint32_t)e->fault.pid;
    say(d, "process %d was killed by %s", (int)e->fault.pid,
        signal_name(e->fault.signal, name));
    if (e->fault.place[0])
        say(d, " in %s", e->fault.place);
    say(d, ", then the program with exit %d", WEXITSTATUS(e->status));
    found_by(d, "fault seen by the preload library");
    return true;
}

/* ---- Plain ends ------------------------------------------------------------------------------------ */

static void explain_kill(const struct evidence *e, struct runfile_death *d)
{
    say(d, "killed by SIGKILL from outside");
    if (e->group.readable)
        say(d, ", not by the OOM killer: %s counted no kill",
            e->group.path[0] ? e->group.path : "its cgroup");
    else if (e->host_kills != MEMCG_UNKNOWN)
        say(d, ", not by the OOM killer: this machine counted no kill");
    else
        say(d, "; whether by the OOM killer cannot be told here");
    found_by(d,
             e->group.readable ? "oom_kill of the cgroup" : "oom_kill of /proc/vmstat");
}

static void explain_fault(const struct evidence *e, struct runfile_death *d, int signal)
{
    const struct kin_process *program = program_of(e);
    char name[SIGNAL_NAME_LEN];
    if (e->fault.signal == 0 || (program && (uint32_t)e->fault.pid != program->pid))
        return; /* a worker's is not the program's */
    say(d, "killed by %s", signal_name(signal, name));
    if (signal != SIGABRT)
        say(d, " at address %#" PRIx64, e->fault.address);
    if (e->fault.place[0])
        say(d, " in %s", e->fault.place);
    found_by(d, "fault seen by the kernel or the preload library");
}

static bool plain(const struct evidence *e, struct runfile_exit *x,
                  struct runfile_death *d)
{
    const int signal = WIFSIGNALED(e->status) ? WTERMSIG(e->status) : 0;
    char name[SIGNAL_NAME_LEN];
    (void)x;
    if (signal == SIGKILL)
        explain_kill(e, d);
    else if (signal && signal == e->asked.signal && e->asked.sender) {
        say(d, "killed by %s from process %d", signal_name(signal, name),
            (int)e->asked.sender);
        if (e->asked.comm[0])
            say(d, " (%s)", e->asked.comm);
    } else if (signal) {
        explain_fault(e, d, signal);
    }
    if (d->text[0])
        name_process(d, program_of(e));
    return true;
}

/* ---- The list ------------------------------------------------------------------------------------------ */

typedef bool rule(const struct evidence *, struct runfile_exit *,
                  struct runfile_death *);
static rule *const rules[] = { over_our_limit,  out_of_memory, hung,     preempted,
                               ran_out_of_time, hinted,        shm_gone, disk_gone,
                               worker_died,     unseen_died,   plain };

void judge(const struct evidence *evidence, struct runfile_exit *ret_exit,
           struct runfile_death *ret_death)
{
    const int status = evidence->status;
    struct runfile_death d = { .limit_mb = NAN,
                               .size_mb = NAN,
                               .growth_mb_per_s = NAN };
    struct runfile_exit x = { .code = -1 };
    if (WIFSIGNALED(status)) {
        x.signal = WTERMSIG(status);
        x.cause = "signal";
    } else {
        x.code = WEXITSTATUS(status);
        x.cause = x.code == 0 ? "ok" : "error";
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i](evidence, &x, &d))
            break;
    if (d.text[0])
        copy_stack(evidence, &d);
    *ret_exit = x;
    *ret_death = d;
}
