/* switches.c: context switches of the run's processes: voluntary ones, where a thread
 * waited for something, and involuntary ones, where it was taken off its core; and how
 * long threads that could have run waited for a core (run_delay: 100 percent are one
 * thread that waits all the time).
 *
 * The kernel tells them by thread (/proc/PID/task/TID/status; /proc/PID/status is the
 * main thread alone, and nothing in /proc has the process's sum), so all threads are
 * read and added up. A thread that has ended leaves what it had when it was last looked
 * at: what it did after that is not known, and totals are that much too low.
 *
 * A status costs some 10 µs and processes have any number of threads, so the rounds are
 * as far apart as it takes to stay below a thousandth of a core.
 */
#include "capture/monitor/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/proctab.h"

enum { THREADS_MOST = 4096, SHARE = 1000 };

struct counts {
    uint64_t voluntary, involuntary;
    uint64_t delay_ns; /* runnable, without a core */
};

struct thread {
    uint32_t tid, round; /* round: when it was last there */
    struct counts now;
};

struct switch_slot {
    struct proc_slot base;
    int dir; /* /proc/PID/task */
    struct thread *threads;
    size_t count, cap;
    struct counts ended; /* of threads that are gone */
    struct counts told;
    bool known;
};

struct switches {
    const char *proc;
    struct proctab tab;
    uint32_t round;
    uint64_t last_ns, due_ns;
    struct counts gone, told; /* of processes that are gone; what was said of all */
    bool any;
    bool has_delay; /* the kernel tells it */
};

static void add(struct counts *to, const struct counts *more)
{
    to->voluntary += more->voluntary;
    to->involuntary += more->involuntary;
    to->delay_ns += more->delay_ns;
}

static void sum_of(const struct switch_slot *slot, struct counts *ret_sum)
{
    *ret_sum = slot->ended;
    for (size_t i = 0; i < slot->count; i++)
        add(ret_sum, &slot->threads[i].now);
}

/* ---- Threads ------------------------------------------------------------------------ */

/* schedstat: time on a core, time waiting for one, times on one. */
static bool read_delay(int dir, const char *tid, uint64_t *ret_ns)
{
    char path[32], buffer[96];
    struct scan s;
    uint64_t ran;
    (void)snprintf(path, sizeof path, "%.20s/schedstat", tid);
    int fd = kept_own(openat(dir, path, O_RDONLY | O_CLOEXEC));
    const bool good = kept_read(fd, buffer, sizeof buffer, &s) && scan_u64(&s, &ran) &&
                      scan_u64(&s, ret_ns);
    kept_close(&fd);
    return good;
}

static bool read_status(int dir, const char *tid, struct counts *ret_counts)
{
    char path[32], buffer[4096];
    struct scan s, t;
    (void)snprintf(path, sizeof path, "%.20s/status", tid);
    int fd = kept_own(openat(dir, path, O_RDONLY | O_CLOEXEC));
    const bool any = kept_read(fd, buffer, sizeof buffer, &s);
    kept_close(&fd);
    /* The last two lines. The second name holds the first. */
    static const char one[] = "\nvoluntary_ctxt_switches:";
    static const char two[] = "\nnonvoluntary_ctxt_switches:";
    const char *a = any ? strstr(buffer, one) : NULL;
    const char *b = any ? strstr(buffer, two) : NULL;
    if (!a || !b)
        return false;
    s.at = a + sizeof one - 1;
    t = (struct scan){ b + sizeof two - 1, s.end };
    return scan_u64(&s, &ret_counts->voluntary) &&
           scan_u64(&t, &ret_counts->involuntary);
}

/* Lists keep their order, so the thread is mostly where the last one was found. */
static struct thread *find_thread(struct switch_slot *slot, uint32_t tid, size_t guess)
{
    for (size_t i = 0; i < slot->count; i++) {
        struct thread *t = &slot->threads[(guess + i) % slot->count];
        if (t->tid == tid)
            return t;
    }
    if (slot->count == THREADS_MOST)
        return NULL;
    if (slot->count == slot->cap) {
        const size_t cap = slot->cap ? slot->cap * 2 : 8;
        struct thread *more = realloc(slot->threads, cap * sizeof *more);
        if (!more)
            return NULL;
        slot->threads = more;
        slot->cap = cap;
    }
    slot->threads[slot->count] = (struct thread){ .tid = tid };
    return &slot->threads[slot->count++];
}

static void look_at(struct switches *s, struct switch_slot *slot, const char *name,
                    size_t guess)
{
    struct counts now = { 0 };
    const uint32_t tid = (uint32_t)strtoul(name, NULL, 10);
    s->has_delay |= read_delay(slot->dir, name, &now.delay_ns);
    struct thread *t = tid && read_status(slot->dir, name, &now)
                           ? find_thread(slot, tid, guess)
                           : NULL;
    if (!t)
        return;
    /* A number used again: what the thread before it had is over. */
    if (now.voluntary < t->now.voluntary || now.involuntary < t->now.involuntary)
        add(&slot->ended, &t->now);
    t->now = now;
    t->round = s->round;
}

static void bury_threads(const struct switches *s, struct switch_slot *slot)
{
    size_t kept = 0;
    for (size_t i = 0; i < slot->count; i++) {
        if (slot->threads[i].round == s->round)
            slot->threads[kept++] = slot->threads[i];
        else
            add(&slot->ended, &slot->threads[i].now);
    }
    slot->count = kept;
}

/* False: it could not be read, and nothing has changed. */
static bool read_threads(struct switches *s, struct switch_slot *slot)
{
    char entries[4096] __attribute__((aligned(8)));
    size_t threads = 0;
    if (slot->dir < 0 || lseek(slot->dir, 0, SEEK_SET) < 0)
        return false;
    for (;;) {
        const long n = syscall(SYS_getdents64, slot->dir, entries, sizeof entries);
        if (n <= 0)
            break;
        for (long at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(entries + at);
            if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
                look_at(s, slot, e->d_name, threads++);
            at += e->d_reclen;
        }
    }
    if (threads)
        bury_threads(s, slot);
    return threads > 0;
}

/* ---- Processes ------------------------------------------------------------------------ */

static void slot_open(void *owner, void *at)
{
    const struct switches *s = owner;
    struct switch_slot *slot = at;
    slot->dir = kept_open(s->proc, "%u/task", slot->base.process.pid);
}

static void slot_close(void *owner, void *at)
{
    struct switches *s = owner;
    struct switch_slot *slot = at;
    struct counts sum;
    sum_of(slot, &sum);
    add(&s->gone, &sum);
    kept_close(&slot->dir);
    free(slot->threads);
}

/* In percent of a thread. */
static double delay_percent(uint64_t now, uint64_t before, uint64_t elapsed_ns)
{
    return now >= before ? (double)(now - before) * 100 / (double)elapsed_ns : 0;
}

static double rate(uint64_t now, uint64_t before, uint64_t elapsed_ns)
{
    return (double)(now - before) * 1e9 / (double)elapsed_ns;
}

static void sample_process(struct switches *s, size_t i, uint64_t elapsed_ns,
                           struct monitor_sink *sink)
{
    struct switch_slot *slot = proctab_at(&s->tab, i);
    struct counts sum;
    if (!read_threads(s, slot))
        return;
    sum_of(slot, &sum);
    if (slot->known && elapsed_ns) {
        sink->set_process(sink, i, "context_switches_voluntary", "1/s",
                          rate(sum.voluntary, slot->told.voluntary, elapsed_ns));
        sink->set_process(sink, i, "context_switches_involuntary", "1/s",
                          rate(sum.involuntary, slot->told.involuntary, elapsed_ns));
    }
    if (slot->known && elapsed_ns && s->has_delay)
        sink->set_process(sink, i, "run_delay", "percent",
                          delay_percent(sum.delay_ns, slot->told.delay_ns, elapsed_ns));
    sink->total(sink, i, TOTAL_VOLUNTARY_SWITCHES, (double)sum.voluntary);
    sink->total(sink, i, TOTAL_INVOLUNTARY_SWITCHES, (double)sum.involuntary);
    slot->told = sum;
    slot->known = true;
}

static void sample_run(struct switches *s, uint64_t elapsed_ns,
                       struct monitor_sink *sink)
{
    struct counts all = s->gone, one;
    for (size_t i = 0; i < s->tab.count; i++) {
        sum_of(proctab_at(&s->tab, i), &one);
        add(&all, &one);
    }
    if (s->any && elapsed_ns) {
        sink->set(sink, "context_switches_voluntary", "", "1/s",
                  rate(all.voluntary, s->told.voluntary, elapsed_ns));
        sink->set(sink, "context_switches_involuntary", "", "1/s",
                  rate(all.involuntary, s->told.involuntary, elapsed_ns));
    }
    if (s->any && elapsed_ns && s->has_delay)
        sink->set(sink, "run_delay", "", "percent",
                  delay_percent(all.delay_ns, s->told.delay_ns, elapsed_ns));
    s->told = all;
    s->any = s->tab.count > 0;
}

/* ---- The monitor ------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void switches_sample(void *state, const struct monitor_round *round,
                            struct monitor_sink *sink)
{
    struct switches *s = state;
    const uint64_t begin = now_ns();
    if (round->now_ns < s->due_ns)
        return;
    const uint64_t elapsed = s->last_ns ? round->now_ns - s->last_ns : 0;
    s->last_ns = round->now_ns;
    s->round++;
    proctab_follow(&s->tab, round);
    for (size_t i = 0; i < s->tab.count; i++)
        sample_process(s, i, elapsed, sink);
    sample_run(s, elapsed, sink);
    s->due_ns = round->now_ns + (now_ns() - begin) * SHARE;
}

static void switches_close(void *state)
{
    struct switches *s = state;
    if (!s)
        return;
    proctab_release(&s->tab);
    free(s);
}

static int switches_open(const struct monitor_roots *roots, void **ret_state,
                         const char **ret_why)
{
    struct switches *s = calloc(1, sizeof *s);
    (void)ret_why;
    if (!s)
        return -ENOMEM;
    s->proc = proc_root(roots);
    s->tab = (struct proctab){ .slot_size = sizeof(struct switch_slot),
                               .owner = s,
                               .open = slot_open,
                               .close = slot_close };
    *ret_state = s;
    return 0;
}

const struct monitor_ops monitor_switches = {
    .name = "switches",
    .what = "context switches of the run's processes, and their waits for a core",
    .open = switches_open,
    .sample = switches_sample,
    .close = switches_close,
};
