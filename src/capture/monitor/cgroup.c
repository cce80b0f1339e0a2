/* cgroup.c: what the program's cgroup allows it, and what that did to it.
 *
 * Both versions, also mixed (v1 controllers beside an empty v2 tree). The path in
 * /proc/PID/cgroup may be the host's while we see only the container's own tree, whose
 * root is that very cgroup: what is not there below the mount is taken from its root.
 * Limits hold for all cgroups above as well: the tightest is the one that counts.
 */
#include "capture/monitor/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "capture/monitor/kept.h"

enum { PATH_LEN = 512 };
static const double MIB = 1 << 20;
static const double UNLIMITED = 1e18; /* v1 says 2^63 less a page */

struct counter {
    bool known;
    uint64_t value;
};

struct cgroup {
    const char *proc, *sys;
    bool opened;
    bool cpu_v1, memory_v1;
    int cpu_stat_fd, quota_fd, period_fd;
    int usage_fd, limit_fd, events_fd, failures_fd;
    struct counter periods, throttled, throttled_time;
};

/* ---- Finding ----------------------------------------------------------------------------- */

/* Where a controller's files of the program are: "" none. */
struct place {
    char mount[PATH_LEN], path[PATH_LEN];
};

static bool is_folder(const char *mount, const char *path)
{
    char full[2 * PATH_LEN];
    struct stat st;
    (void)snprintf(full, sizeof full, "%s%s", mount, path);
    return stat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether "cpu,cpuacct" names "cpu". */
static bool names(const char *list, const char *end, const char *controller)
{
    const size_t len = strlen(controller);
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - list) == len && memcmp(list, controller, len) == 0)
            return true;
        list = stop + 1;
    }
    return false;
}

static void set_place(struct place *p, const char *sys, const char *folder,
                      const char *path, size_t len)
{
    (void)snprintf(p->mount, sizeof p->mount, "%s/fs/cgroup%s", sys, folder);
    if (len <= 1 || len >= sizeof p->path)
        len = 0; /* "/" is the mount itself */
    memcpy(p->path, path, len);
    p->path[len] = '\0';
    if (!is_folder(p->mount, p->path))
        p->path[0] = '\0';
    if (!is_folder(p->mount, ""))
        p->mount[0] = '\0';
}

/* "4:memory:/path" or "0::/path". True when the line is about this controller;
 * controller NULL: the one tree of v2. */
static bool scan_line(struct scan s, const char *controller, const char *sys,
                      struct place *ret)
{
    const char *nl = memchr(s.at, '\n', (size_t)(s.end - s.at));
    const char *end = nl ? nl : s.end;
    const char *list = memchr(s.at, ':', (size_t)(end - s.at));
    const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
    char folder[64];
    if (!path)
        return false;
    list++;
    if (controller ? !names(list, path, controller) : list != path)
        return false;
    if (controller) {
        (void)snprintf(folder, sizeof folder, "/%.*s", (int)(path - list), list);
        set_place(ret, sys, folder, path + 1, (size_t)(end - path - 1));
        if (!ret->mount[0]) { /* mounted by one name where there are two */
            (void)snprintf(folder, sizeof folder, "/%s", controller);
            set_place(ret, sys, folder, path + 1, (size_t)(end - path - 1));
        }
        return ret->mount[0] != '\0';
    }
    set_place(ret, sys, "", path + 1, (size_t)(end - path - 1));
    return ret->mount[0] != '\0';
}

static bool find_place(const char *text, size_t len, const char *controller,
                       const char *sys, struct place *ret)
{
    struct scan s = { text, text + len };
    *ret = (struct place){ "", "" };
    do
        if (scan_line(s, controller, sys, ret))
            return true;
    while (scan_next_line(&s));
    return false;
}

/* ---- Opening ------------------------------------------------------------------------------- */

static int open_in(const struct place *p, const char *file)
{
    return p->mount[0]
               ? kept_open(p->mount, "%s/%s", p->path[0] ? p->path + 1 : ".", file)
               : -ENOENT;
}

/* "max" is no number: no limit. */
static double limit_of(int fd)
{
    double bytes;
    return kept_number(fd, &bytes) && bytes > 0 && bytes < UNLIMITED ? bytes
                                                                     : UNLIMITED;
}

static int open_tightest(struct place p, const char *file)
{
    int best = open_in(&p, file);
    while (p.path[0]) {
        *strrchr(p.path, '/') = '\0';
        int above = open_in(&p, file);
        if (limit_of(above) < limit_of(best)) {
            const int swap = best;
            best = above;
            above = swap;
        }
        kept_close(&above);
    }
    return best;
}

static void open_cpu(struct cgroup *c, const struct place *p)
{
    c->cpu_stat_fd = open_in(p, "cpu.stat");
    c->quota_fd = open_in(p, c->cpu_v1 ? "cpu.cfs_quota_us" : "cpu.max");
    c->period_fd = c->cpu_v1 ? open_in(p, "cpu.cfs_period_us") : -1;
}

static void open_memory(struct cgroup *c, const struct place *p)
{
    const bool v1 = c->memory_v1;
    c->usage_fd = open_in(p, v1 ? "memory.usage_in_bytes" : "memory.current");
    c->limit_fd = open_tightest(*p, v1 ? "memory.limit_in_bytes" : "memory.max");
    c->events_fd = open_in(p, v1 ? "memory.oom_control" : "memory.events");
    c->failures_fd = v1 ? open_in(p, "memory.failcnt") : -1;
}

static void open_of_program(struct cgroup *c, uint32_t pid)
{
    char text[4096];
    struct scan s;
    struct place v1, v2;
    int fd = kept_open(c->proc, "%u/cgroup", pid);
    const bool there = kept_read(fd, text, sizeof text, &s);
    kept_close(&fd);
    c->opened = true;
    if (!there)
        return;
    const size_t len = (size_t)(s.end - s.at);
    (void)find_place(text, len, NULL, c->sys, &v2);
    c->cpu_v1 = find_place(text, len, "cpu", c->sys, &v1);
    open_cpu(c, c->cpu_v1 ? &v1 : &v2);
    c->memory_v1 = find_place(text, len, "memory", c->sys, &v1);
    open_memory(c, c->memory_v1 ? &v1 : &v2);
}

/* ---- Sampling --------------------------------------------------------------------------------- */

/* How much it rose; −1 when that is not known. */
static double rise(struct counter *c, uint64_t now)
{
    const double by = c->known && now >= c->value ? (double)(now - c->value) : -1;
    *c = (struct counter){ true, now };
    return by;
}

static void sample_cpu(struct cgroup *c, const struct monitor_round *round,
                       struct monitor_sink *sink)
{
    char buffer[1024];
    struct scan s;
    uint64_t periods = 0, throttled = 0, time = 0;
    bool any = false;
    if (!kept_read(c->cpu_stat_fd, buffer, sizeof buffer, &s))
        return;
    do {
        if (scan_word(&s, "nr_periods "))
            any |= scan_u64(&s, &periods);
        else if (scan_word(&s, "nr_throttled "))
            (void)scan_u64(&s, &throttled);
        else if (scan_word(&s, "throttled_time ")) /* v1, ns */
            (void)scan_u64(&s, &time);
        else if (scan_word(&s, "throttled_usec ") && scan_u64(&s, &time))
            time *= 1000;
    } while (scan_next_line(&s));
    if (!any)
        return; /* no limit can be set here, so nothing is throttled: not 0, nothing */
    const double p = rise(&c->periods, periods), t = rise(&c->throttled, throttled);
    const double ns = rise(&c->throttled_time, time);
    if (p > 0 && t >= 0)
        sink->set(sink, "cgroup_throttled", "", "percent", 100 * t / p);
    else if (p == 0) /* periods only pass while it runs, and only with a limit */
        sink->set(sink, "cgroup_throttled", "", "percent", 0);
    if (ns >= 0 && round->elapsed_ns)
        sink->set(sink, "cgroup_throttled_time", "", "percent",
                  100 * ns / (double)round->elapsed_ns);
}

static void sample_quota(const struct cgroup *c, struct monitor_sink *sink)
{
    char buffer[64];
    struct scan s;
    double quota = -1, period = -1;
    uint64_t q, p;
    if (c->cpu_v1) {
        if (!kept_number(c->quota_fd, &quota) || !kept_number(c->period_fd, &period))
            return;
    } else if (kept_read(c->quota_fd, buffer, sizeof buffer, &s) && scan_u64(&s, &q) &&
               scan_u64(&s, &p)) { /* "max 100000": no limit */
        quota = (double)q;
        period = (double)p;
    }
    if (quota > 0 && period > 0)
        sink->set(sink, "cgroup_cpu_limit", "", "percent", 100 * quota / period);
}

static void sample_events(const struct cgroup *c, struct monitor_sink *sink)
{
    char buffer[512];
    struct scan s;
    uint64_t n;
    double failures;
    if (kept_number(c->failures_fd, &failures))
        sink->set(sink, "cgroup_memory_at_limit", "", "1", failures);
    if (!kept_read(c->events_fd, buffer, sizeof buffer, &s))
        return;
    do {
        if (scan_word(&s, "oom_kill ") && scan_u64(&s, &n))
            sink->set(sink, "cgroup_oom_kills", "", "1", (double)n);
        else if (scan_word(&s, "max ") && scan_u64(&s, &n))
            sink->set(sink, "cgroup_memory_at_limit", "", "1", (double)n);
        else if (scan_word(&s, "high ") && scan_u64(&s, &n))
            sink->set(sink, "cgroup_memory_high", "", "1", (double)n);
    } while (scan_next_line(&s));
}

static void sample_memory(const struct cgroup *c, struct monitor_sink *sink)
{
    double used;
    if (kept_number(c->usage_fd, &used))
        sink->set(sink, "cgroup_memory", "", "MiB", used / MIB);
    const double limit = limit_of(c->limit_fd);
    if (limit < UNLIMITED)
        sink->set(sink, "cgroup_memory_limit", "", "MiB", limit / MIB);
    sample_events(c, sink);
}

static void cgroup_sample(void *state, const struct monitor_round *round,
                          struct monitor_sink *sink)
{
    struct cgroup *c = state;
    if (!c->opened && round->process_count)
        open_of_program(c, round->processes[0].pid);
    sample_cpu(c, round, sink);
    sample_quota(c, sink);
    sample_memory(c, sink);
}

/* ---- The monitor ---------------------------------------------------------------------------- */

static void cgroup_close(void *state)
{
    struct cgroup *c = state;
    if (!c)
        return;
    int *const fds[] = { &c->cpu_stat_fd, &c->quota_fd,  &c->period_fd,  &c->usage_fd,
                         &c->limit_fd,    &c->events_fd, &c->failures_fd };
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        kept_close(fds[i]);
    free(c);
}

static int cgroup_open(const struct monitor_roots *roots, void **ret_state,
                       const char **ret_why)
{
    struct cgroup *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->proc = proc_root(roots);
    c->sys = sys_root(roots);
    c->cpu_stat_fd = c->quota_fd = c->period_fd = c->usage_fd = -1;
    c->limit_fd = c->events_fd = c->failures_fd = -1;
    if (!is_folder(c->sys, "/fs/cgroup")) {
        *ret_why = "no cgroups are mounted at /sys/fs/cgroup";
        cgroup_close(c);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = c;
    return 0;
}

const struct monitor_ops monitor_cgroup = {
    .name = "cgroup",
    .what = "limits of the program's cgroup: CPU throttling, memory, OOM kills",
    .open = cgroup_open,
    .sample = cgroup_sample,
    .close = cgroup_close,
};
