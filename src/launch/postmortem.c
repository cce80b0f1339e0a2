/* postmortem.c: watch a program so that its end can be explained. */
#include "launch/postmortem.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "base/moment.h"
#include "launch/crashes.h"
#include "launch/due.h"
#include "launch/growth.h"
#include "launch/hangfile.h"
#include "launch/hints.h"
#include "launch/limitgroup.h"
#include "launch/watchfile.h"

enum { GROUPS_MAX = 4, HANG_FILES = 8 };
static const char PROC[] = "/proc";
static const uint64_t MS = 1000000;
/* Quick looks become rarer while nothing changes. */
static const uint64_t QUICK_NS = 100 * MS, QUICK_MOST_NS = 400 * MS;
static const uint64_t SLOW_NS = 200 * MS, FIRST_NS = 5 * MS, FAMILY_AGE_NS = 50 * MS;
static const uint64_t GROUP_NS = 1000 * MS, GROUP_YOUNG_NS = 5000 * MS;
static const uint64_t KILL_AFTER_NS = 2000 * MS; /* from SIGTERM, over the limit */
/* Looking at hundreds of processes may take a while: at most 1/200 of the time. */
static const uint64_t DEAREST = 200;

struct postmortem {
    struct postmortem_options options;
    struct memcg group[GROUPS_MAX]; /* where the program was, the last is the present */
    unsigned group_count;
    struct limitgroup limit;
    bool has_limit_group;
    struct kernellog log;
    uint64_t host_kills; /* before; MEMCG_UNKNOWN */
    struct filling filling;
    struct family *family; /* borrowed; NULL without /proc */
    struct kin *kin;
    pid_t pid;
    struct growth growth;
    struct watchfile watchfile;
    struct hang hang;
    char hang_zone[64];
    struct hangfile hangfile;
    uint64_t quick_rss, quick_every_ns, slow_every_ns;
    struct due quick, slow;
    uint64_t start_ns, group_ns, looked_ns; /* … at the family */
    bool over_limit;
    uint64_t size_over, kill_ns;
};

/* ---- Before ---------------------------------------------------------------------------- */

static uint64_t read_host_kills(void)
{
    struct buf text = BUF_INIT;
    uint64_t kills = MEMCG_UNKNOWN;
    if (file_read_all("/proc/vmstat", 1 << 18, &text) == 0) {
        const char *at = strstr(text.data, "\noom_kill ");
        if (at)
            kills = strtoull(at + 10, NULL, 10);
    }
    buf_release(&text);
    return kills;
}

static void watch_places(struct postmortem *p)
{
    const char *tmp = getenv("TMPDIR");
    filling_add(&p->filling, "/dev/shm", true);
    filling_add(&p->filling, ".", false);
    filling_add(&p->filling, tmp && *tmp ? tmp : "/tmp", false);
    filling_add(&p->filling, p->options.dir, false);
    for (unsigned i = 0; i < p->filling.count; i++)
        if (strcmp(p->filling.place[i].path, ".") == 0 &&
            !getcwd(p->filling.place[i].path, FILLING_PATH))
            (void)strcpy(p->filling.place[i].path, ".");
}

static void make_limit_group(struct postmortem *p)
{
    char size[HUMAN_LEN];
    const uint64_t limit = p->options.memory_limit;
    if (!limit)
        return;
    /* For tests, and for those who do not want to be moved. */
    const bool allowed = !getenv("SONDE_NO_CGROUP");
    const int rc = p->group_count && allowed
                       ? limitgroup_create(&p->group[0], p->options.run_id, limit,
                                           &p->limit)
                       : SONDE_E_UNSUPPORTED;
    p->has_limit_group = rc == 0;
    if (rc == 0)
        runfile_note(p->options.file,
                     "--memory-limit %s is kept by the kernel (cgroup "
                     "sonde-%s)",
                     human_bytes(size, (double)limit), p->options.run_id);
    else
        runfile_note(
            p->options.file,
            "--memory-limit %s is kept by the supervisor, which looks ten times "
            "a second: no cgroup could be made (%s)",
            human_bytes(size, (double)limit), error_text(rc));
}

struct postmortem *postmortem_new(const struct postmortem_options *options)
{
    struct postmortem *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->options = *options;
    p->group_count = memcg_open(PROC, getpid(), &p->group[0]) == 0;
    (void)kernellog_open(&p->log);
    p->host_kills = read_host_kills();
    watch_places(p);
    make_limit_group(p);
    return p;
}

void postmortem_free(struct postmortem *p)
{
    if (!p)
        return;
    if (p->has_limit_group)
        (void)limitgroup_remove(&p->limit);
    kernellog_release(&p->log);
    watchfile_close(&p->watchfile);
    hangfile_close(&p->hangfile);
    kin_free(p->kin);
    free(p);
}

const char *postmortem_group(const struct postmortem *p)
{
    return p && p->has_limit_group ? p->limit.procs : NULL;
}

/* A program may change its group (systemd-run, a container runtime), mostly at once. */
static void follow_group(struct postmortem *p, uint64_t now_ns)
{
    if (now_ns < p->group_ns)
        return;
    p->group_ns = now_ns + (now_ns - p->start_ns < GROUP_YOUNG_NS ? 0 : GROUP_NS);
    if (p->group_count && p->group_count < GROUPS_MAX &&
        !memcg_holds(&p->group[p->group_count - 1], PROC, p->pid) &&
        memcg_open(PROC, p->pid, &p->group[p->group_count]) == 0)
        p->group_count++;
}

void postmortem_start(struct postmortem *p, pid_t pid, struct family *family,
                      uint64_t now_ns)
{
    if (!p)
        return;
    p->pid = pid;
    if (kin_new(PROC, &p->kin) == 0)
        p->family = family;
    p->start_ns = now_ns;
    follow_group(p, now_ns);
    watchfile_open(&p->watchfile, p->options.dir, p->options.control,
                   p->group_count ? &p->group[p->group_count - 1] : NULL);
    hang_init(&p->hang, p->options.hang_ns, now_ns);
    p->hangfile = (struct hangfile){ .dir = p->options.dir,
                                     .control = p->options.control };
    p->quick = p->slow = due_exactly_at(now_ns);
    p->slow_every_ns = FIRST_NS;
    p->quick_every_ns = QUICK_NS;
}

/* ---- During ----------------------------------------------------------------------------- */

/* The sum of resident sets counts shared pages once per process; only when that is
 * over the limit is the fair share worth its price. */
static void keep_limit(struct postmortem *p, uint64_t now_ns)
{
    const uint64_t limit = p->options.memory_limit;
    if (!limit || p->has_limit_group || !p->kin)
        return;
    if (p->over_limit) {
        if (now_ns >= p->kill_ns || p->kin->rss > limit + limit / 4)
            kin_signal(p->kin, SIGKILL);
        return;
    }
    if (p->kin->rss <= limit)
        return;
    const uint64_t pss = kin_pss(p->kin);
    const uint64_t size = pss ? pss : p->kin->rss;
    if (size <= limit)
        return;
    p->over_limit = true;
    p->size_over = size;
    p->kill_ns = now_ns + KILL_AFTER_NS;
    (void)kill(p->pid, SIGTERM);
    (void)kill(p->pid, SIGCONT);
}

static void look_quickly(struct postmortem *p, uint64_t now_ns)
{
    if (!p->kin)
        return;
    const uint64_t before = p->quick_rss;
    if (p->looked_ns != now_ns)
        kin_look_again(p->kin);
    growth_add(&p->growth, now_ns, (double)p->kin->rss);
    watchfile_update(&p->watchfile, p->kin->rss, growth_per_s(&p->growth),
                     p->hang.hanging);
    keep_limit(p, now_ns);
    const uint64_t now = p->quick_rss = p->kin->rss;
    const uint64_t change = now > before ? now - before : before - now;
    p->quick_every_ns = p->options.memory_limit || change > before / 100
                            ? QUICK_NS
                            : p->quick_every_ns * 2;
    if (p->quick_every_ns > QUICK_MOST_NS)
        p->quick_every_ns = QUICK_MOST_NS;
}

static void write_hang(struct postmortem *p, uint64_t now_ns)
{
    char why[256], time[HUMAN_LEN];
    (void)snprintf(why, sizeof why, "%s for %s%s%s",
                   p->hang.steps ? "no step" : "no CPU time and no I/O",
                   human_duration(time, (double)(now_ns - p->hang.since_ns)),
                   p->hang_zone[0] ? ", in zone " : "", p->hang_zone);
    if (p->hang.count > HANG_FILES)
        return;
    const int rc = hangfile_write(&p->hangfile, (unsigned)p->hang.count, why,
                                  now_ns - p->hang.since_ns, p->kin);
    if (rc < 0)
        runfile_note(p->options.file,
                     "a hang (%s), and its stacks could not be saved: "
                     "%s",
                     why, error_text(rc));
    else
        runfile_note(p->options.file,
                     "hang: %s; the stacks of every process are in "
                     "hang-%u.txt",
                     why, (unsigned)p->hang.count);
}

static bool is_stopped(const struct postmortem *p)
{
    const struct family_member *program = p->family && family_count(p->family)
                                              ? family_at(p->family, 0)
                                              : NULL;
    return program && (program->state == 'T' || program->state == 't');
}

static void look_for_hang(struct postmortem *p, uint64_t now_ns, uint64_t steps)
{
    if (p->hang.least_ns == 0 || !p->kin || p->kin->count == 0)
        return;
    const struct hang_signs signs = { .now_ns = now_ns,
                                      .steps = steps,
                                      .cpu_ticks = p->kin->cpu_ticks,
                                      .io_bytes = steps ? 0 : kin_io(p->kin),
                                      .stopped = is_stopped(p) };
    const enum hang_change change = hang_look(&p->hang, &signs);
    char time[HUMAN_LEN];
    if (change == HANG_SUSPECTED) {
        const bool open = hangfile_zones_open(p->options.dir, p->hang_zone,
                                              sizeof p->hang_zone);
        hang_confirm(&p->hang, now_ns, open);
        if (open)
            write_hang(p, now_ns);
    } else if (change == HANG_BEGINS) {
        (void)hangfile_zones_open(p->options.dir, p->hang_zone, sizeof p->hang_zone);
        write_hang(p, now_ns);
    } else if (change == HANG_ENDS && p->hang.count <= HANG_FILES) {
        hangfile_ended(&p->hangfile, now_ns - p->hang.since_ns);
        runfile_note(p->options.file, "the hang ended by itself after %s",
                     human_duration(time, (double)(now_ns - p->hang.since_ns)));
    }
}

static void look_around(struct postmortem *p, uint64_t now_ns)
{
    follow_group(p, now_ns);
    kernellog_read(&p->log);
    if (!p->family || !p->kin)
        return;
    family_fresh(p->family, now_ns, FAMILY_AGE_NS);
    kin_look(p->kin, p->family, now_ns);
    p->looked_ns = now_ns;
}

/* Often at first, for short programs have children too. */
static void plan_slow(struct postmortem *p, uint64_t now_ns, uint64_t cost_ns)
{
    uint64_t longest = p->options.memory_limit ? QUICK_NS : SLOW_NS;
    if (p->hang.least_ns && p->hang.least_ns / 8 < longest)
        longest = p->hang.least_ns / 8;
    p->slow_every_ns = p->slow_every_ns * 2 < longest ? p->slow_every_ns * 2 : longest;
    const uint64_t dear = cost_ns * DEAREST;
    p->slow = due_at(now_ns + (dear > p->slow_every_ns ? dear : p->slow_every_ns),
                     now_ns);
}

uint64_t postmortem_tick(struct postmortem *p, uint64_t now_ns, uint64_t steps)
{
    if (!p || !p->pid)
        return 0;
    filling_look(&p->filling);
    if (is_due(p->slow, now_ns)) {
        const uint64_t before = moment_ns(CLOCK_THREAD_CPUTIME_ID);
        look_around(p, now_ns);
        plan_slow(p, now_ns, moment_ns(CLOCK_THREAD_CPUTIME_ID) - before);
        look_for_hang(p, now_ns, steps);
    }
    hang_count_steps(&p->hang, steps, now_ns);
    if (is_due(p->quick, now_ns)) {
        look_quickly(p, now_ns);
        p->quick = due_at(now_ns + p->quick_every_ns, now_ns);
    }
    const uint64_t next = p->slow.at < p->quick.at ? p->slow.at : p->quick.at;
    return next < now_ns + QUICK_NS ? next : now_ns + QUICK_NS;
}

/* ---- After ---------------------------------------------------------------------------------- */

void postmortem_scheduler(char *ret_text, size_t len)
{
    static const struct {
        const char *variable, *name;
        bool is_id;
    } systems[] = {
        { "SLURM_JOB_ID", "Slurm job", true },
        { "PBS_JOBID", "PBS job", true },
        { "LSB_JOBID", "LSF job", true },
        { "FLUX_JOB_ID", "Flux job", true },
        { "KUBERNETES_SERVICE_HOST", "Kubernetes", false },
    };
    ret_text[0] = '\0';
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        const char *value = getenv(systems[i].variable);
        if (!value || !*value)
            continue;
        (void)snprintf(ret_text, len, "%s%s%.20s", systems[i].name,
                       systems[i].is_id ? " " : "", systems[i].is_id ? value : "");
        return;
    }
}

void postmortem_asked(struct postmortem *p, int signal)
{
    char scheduler[64];
    if (!p)
        return;
    postmortem_scheduler(scheduler, sizeof scheduler);
    watchfile_asked(&p->watchfile, signal, scheduler[0] != '\0');
}

static void look_at_groups(const struct postmortem *p, struct memcg_news *ret_news)
{
    for (unsigned i = p->group_count; i-- > 0;) {
        struct memcg_news news;
        memcg_look(&p->group[i], &news);
        if (i == p->group_count - 1 || (news.readable && news.kills))
            *ret_news = news;
    }
}

static void collect(struct postmortem *p, const struct postmortem_facts *facts,
                    struct evidence *e)
{
    const uint64_t kills = read_host_kills();
    look_around(p, facts->now_ns);
    /* It may have gone on just before its end. */
    if (p->hang.hanging && facts->steps > p->hang.steps)
        look_for_hang(p, facts->now_ns, facts->steps);
    filling_look(&p->filling);
    look_at_groups(p, &e->group);
    if (kills != MEMCG_UNKNOWN && p->host_kills != MEMCG_UNKNOWN)
        e->host_kills = kills - p->host_kills;
    e->kin = p->kin;
    e->growth = growth_per_s(&p->growth);
    e->over_limit = p->over_limit;
    e->memory_limit = p->options.memory_limit;
    e->limit_is_group = p->has_limit_group;
    e->size_over = p->size_over;
    e->log = p->log.fd >= 0 ? &p->log : NULL;
    e->filling = &p->filling;
    e->hang = &p->hang;
    if (p->kin) {
        hints_read(p->options.dir, p->kin, &e->hint);
        crashes_find(p->options.dir, p->kin, e->log, facts->status, &e->fault);
    }
}

static void note_unexpected(const struct postmortem *p, const struct evidence *e,
                            struct runfile *file)
{
    if (e->group.readable && e->group.kills && strncmp(file->exit.cause, "oom", 3) != 0)
        runfile_note(
            file, "the OOM killer killed %llu process%s in cgroup %s meanwhile",
            (unsigned long long)e->group.kills, e->group.kills == 1 ? "" : "es",
            e->group.path[0] ? e->group.path : "of the program");
    if (p && p->family && family_missed(p->family))
        runfile_note(file, "%llu processes were too many to be followed",
                     (unsigned long long)family_missed(p->family));
}

/* Processes that outlive the program keep their group, and so their limit. */
static void leave_group(struct postmortem *p, struct runfile *file)
{
    const struct timespec moment = { 0, 5000000 };
    int rc = -EBUSY;
    if (!p || !p->has_limit_group)
        return;
    for (int i = 0; i < 20 && rc == -EBUSY; i++) {
        rc = limitgroup_remove(&p->limit); /* the killed take a moment to go */
        if (rc == -EBUSY)
            (void)nanosleep(&moment, NULL);
    }
    p->has_limit_group = false;
    if (rc < 0)
        runfile_note(file,
                     "processes outlived the program: remove their cgroup later "
                     "(rmdir %s)",
                     p->limit.dir);
}

void postmortem_finish(struct postmortem *p, const struct postmortem_facts *facts,
                       struct runfile *file)
{
    struct evidence e = {
        .status = facts->status,
        .now_ns = facts->now_ns,
        .max_rss = facts->max_rss,
        .growth = NAN,
        .timed_out = facts->timed_out,
        .timeout_ns = facts->timeout_ns,
        .asked = facts->asked,
        .host_kills = MEMCG_UNKNOWN,
        .fault = { .shm_free = MEMCG_UNKNOWN },
    };
    if (p && p->pid)
        collect(p, facts, &e);
    if (e.asked.signal)
        postmortem_scheduler(e.asked.scheduler, sizeof e.asked.scheduler);
    judge(&e, &file->exit, &file->death);
    note_unexpected(p, &e, file);
    leave_group(p, file);
}
