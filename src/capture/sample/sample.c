/* sample.c: see sample.h. */
#include "capture/sample/sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/sample/perf.h"
#include "capture/sample/procs.h"
#include "capture/sample/spells.h"
#include "capture/sample/stacktab.h"
#include "capture/sample/unwind.h"

enum {
    STACK_DEEP = 16384, /* bytes of stack in a sample; deep ones of interpreters … */
    STACK_SHALLOW = 8192, /* … at rates that let the rings last */
    RATE_DEEP = 250,
    EVERY_MOST = 1024,
    SHARE_PERCENT = 3,    /* of one CPU, for all we do */
    TICK_NS = 1000000,    /* longest work at a time */
    RECORDS_PER_LOOK = 8, /* records between looks at the clock */
    AFTER_MOST_NS = 200000000,
    AFTER_LEAST_NS = 5000000,
    EVENTS_MOST = 448, /* opened for a spell: each takes some microseconds and a
                        * descriptor */
};
static const uint64_t SECOND_NS = 1000000000;

struct sampler {
    struct stacktab tab;
    struct procs procs;
    struct perf perf;
    struct unwind_cache *cache;
    uint64_t period_ns;
    uint32_t stack_bytes;
    uint64_t after_ns; /* from tick to tick */
    bool running;      /* events are open */
    bool paused;
    struct spells spells;
    size_t (*threads)(void *, pid_t *, size_t); /* of sampler_options */
    void *threads_arg;
    bool left;      /* between two spells the program has no events at all */
    uint32_t every; /* of so many samples one is unwound; 1 while there is time */
    uint32_t until; /* samples before the next that is */
    uint64_t window_ns, window_cpu_ns;
    bool was_over; /* once may be chance: the machine had a hiccup */
    uint64_t tick_cpu_ns;
    unsigned records;
    bool unbounded; /* the last time: take everything */
};

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- Records of the kernel ---------------------------------------------------------------- */

static bool is_turn(struct sampler *m)
{
    if (m->until > 0) {
        m->until--;
        return false;
    }
    m->until = m->every - 1;
    return true;
}

static void on_sample(void *arg, const struct perf_sample *s)
{
    struct sampler *m = arg;
    struct unwound u;
    if (m->paused)
        return;
    struct proc *proc = procs_sampled(&m->procs, s->pid, s->in_kernel ? 0 : s->ip);
    if (!proc) {
        m->tab.info->other += m->spells.weight;
        m->tab.info->samples += m->spells.weight;
        return;
    }
    if (s->has_regs && s->stack.len && is_turn(m)) {
        unwind_stack(m->cache, &m->procs, proc, s, &u);
        m->tab.info->cut += !u.whole;
    } else {
        unwind_callchain(&m->procs, proc, s, &u);
        m->tab.info->shallow += m->every > 1;
    }
    stacktab_count(&m->tab, procs_task(&m->procs, proc, s->tid), u.stack, u.depth,
                   m->spells.weight);
}

/* Layouts as in linux/perf_event.h. */
struct map_record {
    struct perf_event_header h;
    uint32_t pid, tid;
    uint64_t start, len, offset;
    union {
        struct {
            uint32_t major, minor;
            uint64_t inode, generation;
        };
        struct {
            uint8_t build_id_len, pad[3];
            uint8_t build_id[20];
        };
    };
    uint32_t prot, flags;
    char path[];
};
struct task_record {
    struct perf_event_header h;
    uint32_t pid, parent, tid, parent_tid;
    uint64_t time;
};
struct name_record {
    struct perf_event_header h;
    uint32_t pid, tid;
    char name[];
};
struct lost_record {
    struct perf_event_header h;
    uint64_t id, lost;
};

static bool ends(const char *text, const void *record, size_t len)
{
    const size_t at = (size_t)(text - (const char *)record);
    return at < len && memchr(text, '\0', len - at);
}

static void on_map(struct sampler *m, const struct map_record *r, size_t len)
{
    if (len <= sizeof *r || !ends(r->path, r, len))
        return;
    struct mapped_file f = {
        .start = r->start, .len = r->len, .file_offset = r->offset, .path = r->path
    };
    if (r->h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        f.build_id = r->build_id;
        f.build_id_len = r->build_id_len <= sizeof r->build_id ? r->build_id_len : 0;
    } else {
        f.inode = r->inode;
    }
    procs_on_map(&m->procs, r->pid, &f);
}

static void on_name(struct sampler *m, const struct name_record *r, size_t len)
{
    if (len > sizeof *r && ends(r->name, r, len))
        procs_on_name(&m->procs, r->pid, r->tid, r->name,
                      r->h.misc & PERF_RECORD_MISC_COMM_EXEC);
}

static void on_other(void *arg, const struct perf_event_header *h, size_t len)
{
    struct sampler *m = arg;
    const struct task_record *task = (const void *)h;
    const struct lost_record *lost = (const void *)h;
    if (h->type == PERF_RECORD_MMAP2)
        on_map(m, (const void *)h, len);
    else if (h->type == PERF_RECORD_COMM)
        on_name(m, (const void *)h, len);
    else if (h->type == PERF_RECORD_FORK && len >= sizeof *task)
        procs_on_fork(&m->procs, task->pid, task->parent, task->tid, task->parent_tid);
    else if (h->type == PERF_RECORD_EXIT && len >= sizeof *task)
        procs_on_exit(&m->procs, task->pid, task->tid);
    else if (h->type == PERF_RECORD_LOST && len >= sizeof *lost)
        m->tab.info->lost += lost->lost * m->spells.weight;
}

static bool on_enough(void *arg)
{
    struct sampler *m = arg;
    return !m->unbounded && ++m->records % RECORDS_PER_LOOK == 0 &&
           now_ns(CLOCK_THREAD_CPUTIME_ID) - m->tick_cpu_ns > TICK_NS;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static const char *why_not(int rc)
{
    static char text[256];
    if (rc == -EACCES || rc == -EPERM)
        (void)snprintf(text, sizeof text,
                       "the kernel does not allow perf_event_open (kernel."
                       "perf_event_paranoid is %d; as root: sysctl "
                       "kernel.perf_event_paranoid=2; in a container: "
                       "--security-opt seccomp=unconfined or --cap-add PERFMON)",
                       perf_paranoid_level());
    else if (rc == -ENOSYS)
        (void)snprintf(text, sizeof text, "this kernel has no perf_event_open");
    else
        (void)snprintf(text, sizeof text, "perf_event_open failed: %s", strerror(-rc));
    return text;
}

static void set_info(struct sampler *m)
{
    struct stack_info_row *i = m->tab.info;
    i->period_ns = m->period_ns;
    i->method = m->perf.kernel_seen ? STACKS_BY_PERF_KERNEL : STACKS_BY_PERF_USER;
}

/* Three ticks for the time a ring takes to fill. */
static uint64_t tick_distance(const struct sampler *m)
{
    const uint64_t record = (m->perf.has_stack ? m->stack_bytes : 0) + 512;
    const uint64_t after = m->perf.ring_bytes / record * m->period_ns / 3;
    return after < AFTER_LEAST_NS  ? AFTER_LEAST_NS
           : after > AFTER_MOST_NS ? AFTER_MOST_NS
                                   : after;
}

static int start(struct sampler *m, const struct sampler_options *o)
{
    const struct perf_options options = { .pid = o->pid,
                                          .period_ns = m->period_ns,
                                          .on_exec = o->on_exec,
                                          .stack_size = m->stack_bytes };
    int rc = perf_open(&m->perf, &options);
    if (rc < 0)
        return rc;
    m->running = true;
    m->after_ns = tick_distance(m);
    set_info(m);
    if (!o->on_exec)
        procs_read_maps(&m->procs, (uint32_t)o->pid);
    m->paused = o->paused;
    m->threads = o->threads;
    m->threads_arg = o->threads_arg;
    spells_init(&m->spells, o->in_spells, now_ns(CLOCK_MONOTONIC),
                now_ns(CLOCK_MONOTONIC));
    return 0;
}

int sampler_open(const struct sampler_options *o, struct sampler **ret_sampler,
                 const char **ret_why)
{
    struct sampler *m = calloc(1, sizeof *m);
    *ret_why = "";
    if (!m)
        return -ENOMEM;
    m->every = 1;
    m->period_ns = SECOND_NS / (o->rate_hz ? o->rate_hz : 1);
    m->stack_bytes = o->rate_hz <= RATE_DEEP ? STACK_DEEP : STACK_SHALLOW;
    m->cache = unwind_cache_new();
    int rc = m->cache ? stacktab_open(&m->tab, o->dir, o->control) : -ENOMEM;
    if (rc < 0) {
        unwind_cache_free(m->cache);
        free(m);
        return rc;
    }
    rc = procs_init(&m->procs, &m->tab);
    if (rc == 0)
        rc = start(m, o);
    if (rc < 0) {
        *ret_why = why_not(rc);
        m->tab.info->why = stacktab_text(&m->tab, *ret_why);
        sampler_close(m);
        return rc;
    }
    *ret_sampler = m;
    return 0;
}

int sampler_probe(const char **ret_why)
{
    struct perf perf;
    const struct perf_options options = { .pid = 0, .period_ns = SECOND_NS };
    const int rc = perf_open(&perf, &options);
    *ret_why = rc < 0 ? why_not(rc) : "";
    if (rc < 0)
        return rc;
    const bool kernel = perf.kernel_seen;
    perf_close(&perf);
    return kernel;
}

static bool read_once(struct sampler *m)
{
    const struct perf_visitor visitor = { on_sample, on_other, on_enough, m };
    return perf_read(&m->perf, &visitor);
}

void sampler_pause(struct sampler *m, bool paused)
{
    m->unbounded = true; /* what is in the rings belongs to the time before */
    (void)read_once(m);
    m->unbounded = false;
    m->paused = paused;
}

/* ---- Ticks --------------------------------------------------------------------------------------- */

static void watch_share(struct sampler *m, uint64_t now, uint64_t cpu_ns)
{
    m->window_cpu_ns += cpu_ns;
    m->tab.info->unwind_ns += cpu_ns;
    if (m->window_ns == 0)
        m->window_ns = now;
    if (now - m->window_ns < SECOND_NS)
        return;
    const uint64_t allowed = (now - m->window_ns) * SHARE_PERCENT / 100;
    const bool over = m->window_cpu_ns > allowed;
    if (over && m->was_over && m->every < EVERY_MOST)
        m->every *= 2;
    else if (m->window_cpu_ns * 3 < allowed && m->every > 1)
        m->every /= 2;
    m->was_over = over;
    m->window_ns = now;
    m->window_cpu_ns = 0;
}

/* To open events for very many threads would cost more than to have them. */
static bool has_few_threads(const struct sampler *m)
{
    const size_t count = m->threads ? m->threads(m->threads_arg, NULL, 0) : 0;
    return count > 0 && count * m->perf.ring_count <= EVENTS_MOST;
}

static void end_spell(struct sampler *m)
{
    m->left = has_few_threads(m);
    if (m->left)
        perf_leave(&m->perf);
    else
        perf_switch(&m->perf, false);
}

/* However many threads there are by now: they are sampled, and if they are too many to
 * leave, they are not left again. */
static void watch_anew(struct sampler *m)
{
    enum { NEWCOMERS = 64 }; /* while we count */
    const size_t room = m->threads(m->threads_arg, NULL, 0) + NEWCOMERS;
    pid_t *tids = calloc(room, sizeof *tids);
    if (!tids)
        return; /* the next spell may be luckier */
    const size_t count = m->threads(m->threads_arg, tids, room);
    perf_watch_all(&m->perf, tids, count < room ? count : room);
    free(tids);
}

static void begin_spell(struct sampler *m)
{
    procs_ask_anew(&m->procs);
    if (m->left)
        watch_anew(m);
    else
        perf_switch(&m->perf, true);
}

/* What came before a change is counted as what it was. */
static void follow_spells(struct sampler *m, uint64_t now)
{
    struct spells next = m->spells;
    if (!spells_follow(&next, now)) {
        m->spells = next; /* the plan may have changed */
        return;
    }
    if (!next.on)
        end_spell(m);
    m->unbounded = true;
    (void)read_once(m);
    m->unbounded = false;
    m->spells = next;
    if (next.on)
        begin_spell(m);
}

uint64_t sampler_tick(struct sampler *m, uint64_t now)
{
    follow_spells(m, now);
    const uint64_t change = m->spells.next_ns > now ? m->spells.next_ns - now : 0;
    if (!m->spells.on)
        return change;
    m->tick_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool all = read_once(m);
    watch_share(m, now, now_ns(CLOCK_THREAD_CPUTIME_ID) - m->tick_cpu_ns);
    const uint64_t after = all ? m->after_ns : TICK_NS;
    return after < change ? after : change;
}

void sampler_close(struct sampler *m)
{
    if (!m)
        return;
    if (m->running) {
        m->unbounded = true;
        (void)read_once(m);
        perf_close(&m->perf);
    }
    procs_release(&m->procs);
    stacktab_close(&m->tab);
    unwind_cache_free(m->cache);
    free(m);
}
