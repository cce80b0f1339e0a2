/* cpu.c: CPU time of the run's processes, of every core, of the machine; and what else
 * stands in the same files: page faults, threads.
 *
 * Of a process the kernel tells nanoseconds through its CPU clock and hundredths of a
 * second through stat; the clock is used where there is one (not in a laid-out /proc).
 *
 * The sum over the tree must not fall when a process ends. When its parent waits for
 * it, its time appears in the parent's cutime and cstime; when nobody does (SIGCHLD
 * ignored, orphans) it is gone. So for each process that has gone we expect at least
 * what it had at the nearest ancestor still there, and what does not turn up there is
 * kept as `unclaimed`. Processes too short to be seen count through their parents too.
 */
#include "capture/monitor/list.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/proctab.h"
#include "capture/monitor/readings.h"

enum { BUFFER = 256 << 10 };

struct cpu_slot {
    struct proc_slot base;
    int fd;
    bool known;
    uint32_t ppid;
    uint64_t own_ns, waited_ns; /* itself; children it has waited for */
    uint64_t expected_ns;       /* of descendants that are gone */
    uint64_t minor_faults, major_faults;
};

struct cpu {
    const char *proc;
    bool clocks; /* the processes are those of this machine */
    uint64_t tick_ns;
    int stat_fd, load_fd;
    struct proctab tab;
    bool any;
    uint64_t tree_ns, unclaimed_ns;
    uint64_t before_ns; /* of the sum, used before the run */
    struct system_stat now, before;
    cpu_set_t allowed; /* cores this run may use, where those are not all */
    bool confined;
    char (*core_names)[12];
    char buffer[BUFFER];
};

/* ---- Processes --------------------------------------------------------------------- */

static void slot_open(void *owner, void *at)
{
    const struct cpu *c = owner;
    struct cpu_slot *slot = at;
    slot->fd = kept_open(c->proc, "%u/stat", slot->base.process.pid);
}

static void slot_close(void *owner, void *at)
{
    struct cpu_slot *slot = at;
    (void)owner;
    kept_close(&slot->fd);
}

/* Nobody lives there any more: what it used must turn up somewhere. */
static void bury(struct cpu *c, const struct cpu_slot *gone, const bool *is_gone)
{
    const uint64_t used = gone->own_ns + gone->waited_ns + gone->expected_ns;
    const struct cpu_slot *child = gone;
    for (int step = 0; step < 64; step++) {
        struct cpu_slot *parent = proctab_find(&c->tab, child->ppid);
        if (!parent)
            break;
        const size_t index = (size_t)((char *)parent - c->tab.slots) / c->tab.slot_size;
        if (!is_gone[index]) {
            parent->expected_ns += used;
            return;
        }
        child = parent;
    }
    c->unclaimed_ns += used;
}

static void bury_gone(struct cpu *c, const struct monitor_round *round)
{
    bool small[512] = { false };
    bool *gone = c->tab.count <= 512 ? small : calloc(c->tab.count, sizeof *gone);
    size_t at = 0, dead = 0;
    if (!gone)
        return;
    for (size_t i = 0; i < c->tab.count; i++)
        dead += gone[i] = proctab_gone(&c->tab, i, round, &at);
    for (size_t i = 0; dead && i < c->tab.count; i++)
        if (gone[i])
            bury(c, proctab_at(&c->tab, i), gone);
    if (gone != small)
        free(gone);
}

static bool clock_of(uint32_t pid, uint64_t *ret_ns)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid((pid_t)pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return false;
    *ret_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    return true;
}

/* What was expected of the dead came with `waited_ns`, or never will. Two ticks each
 * way are lost in rounding. */
static void settle(struct cpu *c, struct cpu_slot *slot, uint64_t waited_ns)
{
    const uint64_t came = waited_ns - slot->waited_ns;
    if (slot->expected_ns > came + 4 * c->tick_ns)
        c->unclaimed_ns += slot->expected_ns - came;
    slot->expected_ns = 0;
}

/* Of all processes, in this round. */
struct sums {
    uint32_t threads;
    uint64_t minor_faults, major_faults;
};

static void add_stat(struct cpu_slot *slot, const struct process_stat *stat,
                     struct sums *sums)
{
    sums->threads += stat->threads;
    if (slot->known) {
        sums->minor_faults += stat->minor_faults - slot->minor_faults;
        sums->major_faults += stat->major_faults - slot->major_faults;
    }
    slot->minor_faults = stat->minor_faults;
    slot->major_faults = stat->major_faults;
    slot->ppid = stat->ppid;
}

static void sample_process(struct cpu *c, size_t i, const struct monitor_round *round,
                           struct monitor_sink *sink, struct sums *sums)
{
    struct cpu_slot *slot = proctab_at(&c->tab, i);
    struct process_stat stat;
    if (!read_process_stat(slot->fd, &stat) ||
        stat.start_ticks != slot->base.process.start_ticks)
        return;
    uint64_t own = (stat.utime + stat.stime) * c->tick_ns;
    uint64_t exact;
    if (c->clocks && clock_of(slot->base.process.pid, &exact) &&
        exact + 2 * c->tick_ns > own)
        own = exact;
    if (own < slot->own_ns)
        own = slot->own_ns;
    const uint64_t waited = (stat.cutime + stat.cstime) * c->tick_ns;
    settle(c, slot, waited);
    if (slot->known && round->elapsed_ns)
        sink->set_process(sink, i, "cpu", "percent",
                          100.0 * (double)(own - slot->own_ns) /
                              (double)round->elapsed_ns);
    sink->total(sink, i, TOTAL_CPU_S, (double)own / 1e9);
    sink->total(sink, i, TOTAL_THREADS, stat.threads);
    if (!slot->known && monitor_lived_before(round, &slot->base.process))
        c->before_ns += own + waited;
    slot->own_ns = own;
    slot->waited_ns = waited;
    add_stat(slot, &stat, sums);
    slot->known = true;
}

static void sample_tree(struct cpu *c, const struct monitor_round *round,
                        struct monitor_sink *sink)
{
    uint64_t sum = 0;
    struct sums sums = { 0 };
    bury_gone(c, round);
    proctab_follow(&c->tab, round);
    for (size_t i = 0; i < c->tab.count; i++) {
        const struct cpu_slot *slot = proctab_at(&c->tab, i);
        sample_process(c, i, round, sink, &sums);
        sum += slot->own_ns + slot->waited_ns;
    }
    sum += c->unclaimed_ns;
    if (sum < c->tree_ns) /* rounding of ticks */
        sum = c->tree_ns;
    if (c->any && round->elapsed_ns)
        sink->set(sink, "cpu", "", "percent",
                  100.0 * (double)(sum - c->tree_ns) / (double)round->elapsed_ns);
    sink->set(sink, "cpu_time", "", "s", (double)(sum - c->before_ns) / 1e9);
    sink->set(sink, "processes", "", "1", (double)round->process_count);
    if (sums.threads)
        sink->set(sink, "threads", "", "1", sums.threads);
    if (c->any && round->elapsed_ns) {
        const double s = (double)round->elapsed_ns / 1e9;
        sink->set(sink, "page_faults", "", "1/s", (double)sums.minor_faults / s);
        sink->set(sink, "page_faults_major", "", "1/s", (double)sums.major_faults / s);
    }
    c->tree_ns = sum;
    c->any = true;
}

/* ---- The machine --------------------------------------------------------------------- */

static double share(const struct cpu *c, const struct monitor_round *round,
                    uint64_t now, uint64_t before)
{
    /* iowait and steal are known to step back now and then */
    return now > before ? 100.0 * (double)((now - before) * c->tick_ns) /
                              (double)round->elapsed_ns
                        : 0;
}

/* A core was busy for what it did of what it was there: measured against its own total,
 * which is right although ticks come in steps. */
static double core_busy(const struct cpu_times *now, const struct cpu_times *before)
{
    const uint64_t busy = cpu_busy(now) - cpu_busy(before);
    const uint64_t rest = now->idle + now->iowait - before->idle - before->iowait;
    if ((int64_t)busy < 0 || (int64_t)rest < 0 || busy + rest == 0)
        return -1;
    return 100.0 * (double)busy / (double)(busy + rest);
}

static void sample_cores(struct cpu *c, struct monitor_sink *sink)
{
    const struct system_stat *now = &c->now, *before = &c->before;
    for (unsigned i = 0; i < now->cpu_count && i < before->cpu_count; i++) {
        if (now->cpu[i] != before->cpu[i] || now->cpu[i] >= CPUS_MAX)
            continue; /* one was switched off or on: next time */
        const double busy = core_busy(&now->of_cpu[i], &before->of_cpu[i]);
        if (busy >= 0)
            sink->set(sink, "cpu_core", c->core_names[now->cpu[i]], "percent", busy);
    }
}

/* In a job's cpuset or under taskset the neighbours' cores are nothing to the run: what
 * counts is how busy its own are. */
static void sample_allowed(const struct cpu *c, struct monitor_sink *sink)
{
    const struct system_stat *now = &c->now, *before = &c->before;
    double sum = 0;
    for (unsigned i = 0; i < now->cpu_count && i < before->cpu_count; i++) {
        if (now->cpu[i] != before->cpu[i])
            return;
        if (now->cpu[i] >= CPU_SETSIZE || !CPU_ISSET(now->cpu[i], &c->allowed))
            continue;
        const double busy = core_busy(&now->of_cpu[i], &before->of_cpu[i]);
        sum += busy > 0 ? busy : 0;
    }
    sink->set(sink, "cpu_allowed", "", "percent", sum);
}

static void sample_system(struct cpu *c, const struct monitor_round *round,
                          struct monitor_sink *sink)
{
    if (!read_system_stat(c->stat_fd, c->buffer, sizeof c->buffer, &c->now))
        return;
    const struct system_stat *now = &c->now, *before = &c->before;
    if (round->elapsed_ns && before->cpu_count) {
        const double busy = core_busy(&now->all, &before->all);
        if (busy >= 0)
            sink->set(sink, "cpu_system", "", "percent", busy * now->cpu_count);
        sink->set(sink, "cpu_iowait", "", "percent",
                  share(c, round, now->all.iowait, before->all.iowait));
        sink->set(sink, "cpu_steal", "", "percent",
                  share(c, round, now->all.steal, before->all.steal));
        sink->set(sink, "context_switches", "", "1/s",
                  (double)(now->context_switches - before->context_switches) * 1e9 /
                      (double)round->elapsed_ns);
        sample_cores(c, sink);
        if (c->confined)
            sample_allowed(c, sink);
    }
    sink->set(sink, "runnable", "", "1", (double)now->running);
    const struct system_stat *from = &c->now;
    memcpy(&c->before, from,
           offsetof(struct system_stat, of_cpu) +
               from->cpu_count * sizeof from->of_cpu[0]);
}

static void sample_load(const struct cpu *c, struct monitor_sink *sink)
{
    char buffer[128];
    struct scan s;
    double load;
    if (kept_read(c->load_fd, buffer, sizeof buffer, &s) && scan_decimal(&s, &load))
        sink->set(sink, "load", "", "1", load);
}

/* ---- The monitor ----------------------------------------------------------------------- */

static void cpu_close(void *state)
{
    struct cpu *c = state;
    if (!c)
        return;
    proctab_release(&c->tab);
    kept_close(&c->stat_fd);
    kept_close(&c->load_fd);
    free(c->core_names);
    free(c);
}

static void name_cores(struct cpu *c)
{
    for (unsigned i = 0; i < CPUS_MAX; i++) {
        char *p = c->core_names[i] + 3;
        unsigned unit = i >= 1000 ? 1000 : i >= 100 ? 100 : i >= 10 ? 10 : 1;
        memcpy(c->core_names[i], "cpu", 3);
        for (; unit; unit /= 10)
            *p++ = (char)('0' + i / unit % 10);
    }
}

static void note_allowed(struct cpu *c)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    c->confined = c->clocks &&
                  sched_getaffinity(0, sizeof c->allowed, &c->allowed) == 0 &&
                  CPU_COUNT(&c->allowed) < online;
}

static int cpu_open(const struct monitor_roots *roots, void **ret_state,
                    const char **ret_why)
{
    struct cpu *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->proc = proc_root(roots);
    c->clocks = strcmp(c->proc, "/proc") == 0;
    c->tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    c->tab = (struct proctab){ .slot_size = sizeof(struct cpu_slot),
                               .owner = c,
                               .open = slot_open,
                               .close = slot_close };
    c->stat_fd = kept_open(c->proc, "stat");
    c->load_fd = kept_open(c->proc, "loadavg");
    c->core_names = calloc(CPUS_MAX, sizeof *c->core_names);
    if (!c->core_names) {
        cpu_close(c);
        return -ENOMEM;
    }
    name_cores(c);
    note_allowed(c);
    if (c->stat_fd < 0 && c->load_fd < 0) {
        *ret_why = "no /proc";
        cpu_close(c);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = c;
    return 0;
}

static void cpu_sample(void *state, const struct monitor_round *round,
                       struct monitor_sink *sink)
{
    struct cpu *c = state;
    sample_tree(c, round, sink);
    sample_system(c, round, sink);
    sample_load(c, sink);
}

const struct monitor_ops monitor_cpu = {
    .name = "cpu",
    .what = "CPU time of the run, per process and core; load, steal, I/O wait",
    .open = cpu_open,
    .sample = cpu_sample,
    .close = cpu_close,
};
