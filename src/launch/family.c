/* family.c: the processes of a run; see family.h for where they are looked for.
 *
 * Kernels without /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN) make us list all of
 * /proc at every look instead of every few seconds. A pid is judged once, when it
 * appears in the list: by its parent, then by its environment. Foreign ones stay
 * foreign for as long as they stay in the list.
 */
#include "launch/family.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/moment.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/readings.h"
#include "trace/format.h"
#include "trace/tables.h"

enum {
    ENVIRON_MOST = 256 << 10,
    CHILDREN_MOST = 64 << 10,
    DEAR = 300, /* a search may cost one part in so many of the time */
    PIDS_MOST = 1 << 20,
};
static const uint64_t DEFAULT_SCAN_NS = 3000000000;

struct member {
    struct family_member pub;
    int stat_fd, children_fd;
};

/* Pids in ascending order, as /proc lists them. */
struct pid_list {
    uint32_t *pid;
    size_t count, cap;
};

/* Names of files whose owner is known, by hash. */
struct file_set {
    uint64_t *hash; /* 0: free */
    size_t count, cap;
};

struct family {
    char proc[512];
    char run[1100]; /* "SONDE_RUN=…"; "" without a run directory */
    size_t count, living;
    uint64_t total, missed;
    bool has_children;
    uint64_t scan_ns, next_scan_ns, next_search_ns, looked_ns, first_ns;
    struct timespec dir_changed;
    struct file_set files;
    struct pid_list before, now;
    char *text; /* for environments and lists of children */
    struct member member[FAMILY_MAX];
};

static const char *run_dir(const struct family *f)
{
    return f->run[0] ? f->run + strlen("SONDE_RUN=") : NULL;
}

/* ---- Members ----------------------------------------------------------------------- */

static void member_close(struct member *m)
{
    kept_close(&m->stat_fd);
    kept_close(&m->children_fd);
}

static struct member *find(struct family *f, uint32_t pid)
{
    for (size_t i = f->count; i-- > 0;)
        if (f->member[i].pub.pid == pid && f->member[i].pub.alive)
            return &f->member[i];
    return NULL;
}

/* Makes room by forgetting the dead, the program apart. */
static void forget_dead(struct family *f)
{
    size_t kept = 1;
    for (size_t i = 1; i < f->count; i++)
        if (f->member[i].pub.alive)
            f->member[kept++] = f->member[i];
    f->count = kept;
}

static void member_update(struct member *m, const struct process_stat *s,
                          uint64_t now_ns)
{
    m->pub.ppid = s->ppid;
    m->pub.state = s->state;
    m->pub.threads = s->threads;
    m->pub.last_ns = now_ns;
    (void)memcpy(m->pub.comm, s->comm, sizeof m->pub.comm);
    m->pub.cpu_ticks = s->utime + s->stime;
    if (s->rss_pages) /* a zombie has none */
        m->pub.rss_pages = s->rss_pages;
    if (s->state == 'Z' || s->state == 'X') {
        m->pub.exit_known = true;
        m->pub.exit_status = s->exit_status;
    }
}

/* start_ticks 0: whichever. The descriptor of stat decides who it is. */
static struct member *admit(struct family *f, uint32_t pid, uint64_t start_ticks,
                            enum family_source source, uint64_t now_ns)
{
    struct process_stat stat;
    int fd = kept_open(f->proc, "%u/stat", pid);
    if (!read_process_stat(fd, &stat) ||
        (start_ticks && stat.start_ticks != start_ticks)) {
        kept_close(&fd);
        return NULL;
    }
    if (f->count == FAMILY_MAX)
        forget_dead(f);
    if (f->count == FAMILY_MAX || f->living >= FAMILY_LIVING_MAX) {
        f->missed++;
        kept_close(&fd);
        return NULL;
    }
    struct member *m = &f->member[f->count++];
    *m = (struct member){
        .pub = { .pid = pid,
                 .parent = stat.ppid,
                 .start_ticks = stat.start_ticks,
                 .source = source,
                 .alive = true,
                 .seen_ns = now_ns },
        .stat_fd = fd,
        .children_fd = f->has_children
                           ? kept_open(f->proc, "%u/task/%u/children", pid, pid)
                           : -1,
    };
    member_update(m, &stat, now_ns);
    f->living++;
    f->total++;
    return m;
}

static void check_living(struct family *f, uint64_t now_ns)
{
    for (size_t i = 0; i < f->count; i++) {
        struct member *m = &f->member[i];
        struct process_stat stat;
        if (!m->pub.alive)
            continue;
        if (read_process_stat(m->stat_fd, &stat) &&
            stat.start_ticks == m->pub.start_ticks) {
            member_update(m, &stat, now_ns);
            continue;
        }
        m->pub.alive = false;
        f->living--;
        member_close(m);
    }
}

/* ---- Children ---------------------------------------------------------------------- */

static void admit_children(struct family *f, int fd, uint64_t now_ns)
{
    struct scan s;
    uint64_t pid;
    if (!kept_read(fd, f->text, CHILDREN_MOST, &s))
        return;
    while (scan_u64(&s, &pid))
        if (pid && pid < UINT32_MAX && !find(f, (uint32_t)pid))
            (void)admit(f, (uint32_t)pid, 0, FAMILY_CHILD, now_ns);
}

/* Children belong to the thread that made them. */
static void search_threads(struct family *f, struct member *m, uint64_t now_ns)
{
    const uint32_t pid = m->pub.pid;
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%u/task", f->proc, pid);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir));) {
        if (!isdigit((unsigned char)e->d_name[0]) ||
            strtoul(e->d_name, NULL, 10) == pid)
            continue;
        int fd = kept_open(path, "%.20s/children", e->d_name);
        admit_children(f, fd, now_ns);
        kept_close(&fd);
    }
    (void)closedir(dir);
}

static void search_children(struct family *f, uint64_t now_ns)
{
    for (size_t i = 0; i < f->count; i++) { /* grows: children of children */
        if (!f->member[i].pub.alive)
            continue;
        admit_children(f, f->member[i].children_fd, now_ns);
        if (f->member[i].pub.threads > 1)
            search_threads(f, &f->member[i], now_ns);
    }
}

/* ---- Files of the run directory ------------------------------------------------------ */

/* "[kind-]<start>-<pid>-<rand>.suffix": the last but one number. 0: none. */
static uint32_t pid_in_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || (strcmp(dot, ".sonde") != 0 && strcmp(dot, ".tables") != 0))
        return 0;
    const char *end = memrchr(name, '-', (size_t)(dot - name));
    const char *begin = end ? memrchr(name, '-', (size_t)(end - name)) : NULL;
    uint64_t pid;
    struct scan s = { begin ? begin + 1 : name, end };
    return begin && scan_u64(&s, &pid) && s.at == end && pid < UINT32_MAX
               ? (uint32_t)pid
               : 0;
}

/* When the owner of the file was born, as its head says; 0: unreadable. */
static uint64_t start_in_file(const char *dir, const char *name)
{
    union {
        struct trace_head trace;
        struct tables_head tables;
    } head = { 0 };
    int fd = kept_open(dir, "%s", name);
    const ssize_t n = fd < 0 ? -1 : pread(fd, &head, sizeof head, 0);
    kept_close(&fd);
    if (n >= (ssize_t)sizeof head.tables && head.tables.magic == TABLES_MAGIC)
        return head.tables.proc_start;
    return n >= (ssize_t)sizeof head.trace && head.trace.magic == TRACE_MAGIC
               ? head.trace.proc_start
               : 0;
}

static uint64_t hash_of(const char *name)
{
    uint64_t h = 14695981039346656037ull;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 1099511628211ull;
    return h | 1;
}

static uint64_t *file_place(const struct file_set *set, uint64_t hash)
{
    size_t at = hash & (set->cap - 1);
    while (set->hash[at] && set->hash[at] != hash)
        at = (at + 1) & (set->cap - 1);
    return &set->hash[at];
}

static bool file_is_known(const struct file_set *set, uint64_t hash)
{
    return set->cap && *file_place(set, hash) == hash;
}

/* Without memory files are judged again: slower, no less right. */
static void file_remember(struct file_set *set, uint64_t hash)
{
    if (set->count * 2 >= set->cap) {
        struct file_set more = { .cap = set->cap ? set->cap * 2 : 256 };
        more.hash = calloc(more.cap, sizeof *more.hash);
        if (!more.hash)
            return;
        for (size_t i = 0; i < set->cap; i++)
            if (set->hash[i])
                *file_place(&more, set->hash[i]) = set->hash[i];
        more.count = set->count;
        free(set->hash);
        *set = more;
    }
    *file_place(set, hash) = hash;
    set->count++;
}

static void judge_file(struct family *f, const char *name, uint64_t now_ns)
{
    const uint32_t pid = pid_in_name(name);
    if (!pid || pid == (uint32_t)getpid() || file_is_known(&f->files, hash_of(name)))
        return;
    const uint64_t start = start_in_file(run_dir(f), name);
    if (!start)
        return; /* not written yet */
    file_remember(&f->files, hash_of(name));
    if (!find(f, pid))
        (void)admit(f, pid, start, FAMILY_FILE, now_ns);
}

static void search_files(struct family *f, uint64_t now_ns)
{
    struct stat st;
    if (!run_dir(f) || stat(run_dir(f), &st) < 0 ||
        (st.st_mtim.tv_sec == f->dir_changed.tv_sec &&
         st.st_mtim.tv_nsec == f->dir_changed.tv_nsec))
        return;
    DIR *dir = opendir(run_dir(f));
    if (!dir)
        return;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec - st.st_mtim.tv_sec > 1) /* else look again: its clock is coarse */
        f->dir_changed = st.st_mtim;
    for (const struct dirent *e; (e = readdir(dir));)
        judge_file(f, e->d_name, now_ns);
    (void)closedir(dir);
}

/* ---- All of /proc -------------------------------------------------------------------- */

static bool environment_is_ours(struct family *f, uint32_t pid)
{
    if (!f->run[0])
        return false;
    int fd = kept_open(f->proc, "%u/environ", pid);
    const ssize_t n = fd < 0 ? -1 : read(fd, f->text, ENVIRON_MOST - 1);
    kept_close(&fd);
    const size_t len = strlen(f->run);
    for (const char *p = f->text, *end = f->text + (n > 0 ? n : 0); p < end;
         p += strnlen(p, (size_t)(end - p)) + 1)
        if ((size_t)(end - p) >= len && memcmp(p, f->run, len) == 0 &&
            (p + len == end || p[len] == '\0'))
            return true;
    return false;
}

static void judge(struct family *f, uint32_t pid, uint64_t now_ns)
{
    struct process_stat stat;
    int fd = kept_open(f->proc, "%u/stat", pid);
    const bool there = read_process_stat(fd, &stat);
    kept_close(&fd);
    /* Older than the program: not its doing. */
    if (!there || pid == (uint32_t)getpid() ||
        stat.start_ticks < f->member[0].pub.start_ticks || find(f, pid))
        return;
    if (find(f, stat.ppid))
        (void)admit(f, pid, stat.start_ticks, FAMILY_CHILD, now_ns);
    else if (environment_is_ours(f, pid))
        (void)admit(f, pid, stat.start_ticks, FAMILY_ENVIRON, now_ns);
}

static bool list_add(struct pid_list *l, uint32_t pid)
{
    if (l->count == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 512;
        uint32_t *more = cap > PIDS_MOST ? NULL : realloc(l->pid, cap * sizeof *more);
        if (!more)
            return false;
        l->pid = more;
        l->cap = cap;
    }
    l->pid[l->count++] = pid;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool list_read(struct family *f, struct pid_list *l)
{
    DIR *dir = opendir(f->proc);
    bool sorted = true;
    if (!dir)
        return false;
    l->count = 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        uint64_t pid;
        struct scan s = { e->d_name, e->d_name + strlen(e->d_name) };
        if (!scan_u64(&s, &pid) || s.at != s.end || !pid || pid >= UINT32_MAX)
            continue;
        sorted &= !l->count || l->pid[l->count - 1] < pid;
        if (!list_add(l, (uint32_t)pid))
            break;
    }
    (void)closedir(dir);
    if (!sorted) /* a laid-out /proc: the real one is in order */
        qsort(l->pid, l->count, sizeof *l->pid, by_number);
    return true;
}

static void search_all(struct family *f, uint64_t now_ns)
{
    if (!list_read(f, &f->now))
        return;
    size_t old = 0;
    for (size_t i = 0; i < f->now.count; i++) {
        const uint32_t pid = f->now.pid[i];
        while (old < f->before.count && f->before.pid[old] < pid)
            old++;
        if (old == f->before.count || f->before.pid[old] != pid)
            judge(f, pid, now_ns);
    }
    const struct pid_list swap = f->before;
    f->before = f->now;
    f->now = swap;
}

/* ---- Looking ------------------------------------------------------------------------- */

/* Searching costs as much however old the run is, and most of its processes are there in its
 * first seconds: afterwards it is done four times less often. */
static uint64_t how_seldom(const struct family *f, uint64_t now_ns)
{
    return now_ns - f->first_ns < 10000000000 ? 1 : 4;
}

/* A thousandth of the time, between a fifth of a second and what was asked for. */
static uint64_t pause_after_scan(const struct family *f, uint64_t cost_ns)
{
    const uint64_t least = f->scan_ns < 200000000 ? f->scan_ns : 200000000;
    const uint64_t pause = cost_ns * 1000;
    return pause < least ? least : pause > f->scan_ns ? f->scan_ns : pause;
}

static void search(struct family *f, uint64_t now_ns)
{
    const uint64_t began = moment_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool first = f->before.count == 0; /* everybody is new: dear, but once */
    const uint64_t seldom = how_seldom(f, now_ns);
    if (f->has_children)
        search_children(f, now_ns);
    search_files(f, now_ns);
    if (!f->has_children)
        search_all(f, now_ns);
    f->next_search_ns = first
                            ? now_ns
                            : now_ns + seldom * DEAR *
                                           (moment_ns(CLOCK_THREAD_CPUTIME_ID) - began);
    /* Dear and rare; it must not make the cheap search rare as well, least of all at
     * the start, when short programs have all their children. */
    if (f->has_children && now_ns >= f->next_scan_ns) {
        const uint64_t before = moment_ns(CLOCK_THREAD_CPUTIME_ID);
        search_all(f, now_ns);
        f->next_scan_ns =
            now_ns +
            pause_after_scan(
                f, first ? 0 : seldom * (moment_ns(CLOCK_THREAD_CPUTIME_ID) - before));
    }
}

size_t family_look(struct family *f, uint64_t now_ns)
{
    f->looked_ns = now_ns;
    if (!f->first_ns)
        f->first_ns = now_ns;
    check_living(f, now_ns);
    if (now_ns >= f->next_search_ns)
        search(f, now_ns);
    return f->living;
}

void family_fresh(struct family *f, uint64_t now_ns, uint64_t max_age_ns)
{
    if (f->looked_ns == 0 || now_ns > f->looked_ns + max_age_ns)
        (void)family_look(f, now_ns);
}

int family_new(const struct family_options *o, struct family **ret_family)
{
    struct family *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->text = malloc(ENVIRON_MOST);
    (void)snprintf(f->proc, sizeof f->proc, "%s",
                   o->proc && o->proc[0] ? o->proc : "/proc");
    if (o->run_dir && strlen(o->run_dir) < sizeof f->run - 16)
        (void)snprintf(f->run, sizeof f->run, "SONDE_RUN=%s", o->run_dir);
    f->scan_ns = o->scan_ns ? o->scan_ns : DEFAULT_SCAN_NS;
    int probe = kept_open(f->proc, "%u/task/%u/children", o->pid, o->pid);
    f->has_children = probe >= 0;
    kept_close(&probe);
    if (!f->text || !admit(f, o->pid, 0, FAMILY_PROGRAM, moment_ns(CLOCK_MONOTONIC))) {
        const int rc = f->text ? -ESRCH : -ENOMEM;
        family_free(f);
        return rc;
    }
    *ret_family = f;
    return 0;
}

void family_free(struct family *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (f->member[i].pub.alive)
            member_close(&f->member[i]);
    free(f->before.pid);
    free(f->now.pid);
    free(f->files.hash);
    free(f->text);
    free(f);
}

size_t family_count(const struct family *f)
{
    return f->count;
}

const struct family_member *family_at(const struct family *f, size_t index)
{
    return index < f->count ? &f->member[index].pub : NULL;
}

const struct family_member *family_find(const struct family *f, uint32_t pid,
                                        uint64_t start_ticks)
{
    for (size_t i = f->count; i-- > 0;)
        if (f->member[i].pub.pid == pid &&
            (!start_ticks || f->member[i].pub.start_ticks == start_ticks))
            return &f->member[i].pub;
    return NULL;
}

uint64_t family_total(const struct family *f)
{
    return f->total;
}

uint64_t family_missed(const struct family *f)
{
    return f->missed;
}
