/* sample.c: see sample.h. */
#include "capture/sample/sample.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "capture/sample/perf.h"
#include "capture/sample/procs.h"
#include "capture/sample/spells.h"
#include "capture/sample/stacktab.h"
#include "capture/sample/unwind.h"

enum {
    STACK_DEEP = 16384, /* bytes of stack in a sample; deep ones of interpreters … */
    STACK_SHALLOW = 8192, /* … at rates that let the rings last */
    /* When each is read at once. Kernels of BLAS keep buffers on the stack; with the rest
     * of a sample it must be less than 64 KiB. */
    STACK_MERGING = 61440,
    STACK_MERGING_FAST = 32768,
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
    bool unbounded;        /* the last time: take everything */
    struct merger *merger; /* NULL: stacks are not merged */
};

/* Merging wants each sample while the program is still where it was: a thread waits for
 * them. `lock` is held by whoever is at work on the sampler, that thread or the caller's. */
struct merger {
    int (*python)(void *, const struct sampler_moment *, struct merge_answer *);
    void *python_arg;
    pthread_t thread;
    bool started;
    atomic_bool ending;
    pthread_mutex_t lock;
    struct unwound_frame frames[STACK_DEPTH];
    struct merge_answer answer;
    struct merge_place places[STACK_MERGED_DEPTH];
    struct stack_place stack[STACK_MERGED_DEPTH];
};

static void lock(struct sampler *m)
{
    if (m->merger)
        (void)pthread_mutex_lock(&m->merger->lock);
}

static void unlock(struct sampler *m)
{
    if (m->merger)
        (void)pthread_mutex_unlock(&m->merger->lock);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- Merged stacks ------------------------------------------------------------------------ */

/* Asks for the Python in a stack; what is not known counts as such. */
static enum merge_kind ask_python(struct sampler *m, struct proc *proc,
                                  const struct perf_sample *s, struct unwound *u)
{
    struct stack_merge_row *row = m->tab.merge;
    struct merger *g = m->merger;
    const struct sampler_moment moment = { s->pid, s->tid,    s->time,
                                           u,      g->frames, s->stack };
    const uint64_t before = now_ns(CLOCK_THREAD_CPUTIME_ID),
                   now = now_ns(CLOCK_MONOTONIC),
                   delay = now > s->time ? now - s->time : 0;
    g->answer = (struct merge_answer){ .loop_count = 0 };
    int rc = g->python(g->python_arg, &moment, &g->answer);
    if (rc == 0 && g->answer.resume_sp) {
        unwind_resume(m->cache, &m->procs, proc, s, g->answer.resume_pc,
                      g->answer.resume_sp, u, g->frames);
        g->answer = (struct merge_answer){ .loop_count = 0 };
        rc = g->python(g->python_arg, &moment, &g->answer);
        row->resumed += m->spells.weight;
    }
    row->look_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    if (rc == SONDE_E_UNSUPPORTED) {
        row->unknown += m->spells.weight;
        return MERGE_UNMERGED;
    }
    if (rc == 0 && g->answer.loop_count > 0) {
        row->looks++;
        row->delay_ns += delay;
        if (delay > row->delay_max_ns)
            row->delay_max_ns = delay;
    }
    return merge_kind(&g->answer);
}

static bool merged_place(struct sampler *m, const struct unwound *u,
                         const struct merge_place *from, struct stack_place *ret_place)
{
    const struct merge_answer *a = &m->merger->answer;
    const struct merge_frame *f = &a->frames[from->at];
    if (from->from == MERGE_FROM_UNKNOWN ||
        (from->from == MERGE_FROM_PYTHON && !f->name[0]))
        return stacktab_python(&m->tab, "(unknown Python)", "", 0, 0, ret_place);
    if (from->from == MERGE_FROM_PYTHON) {
        return stacktab_python(&m->tab, f->name, f->file, f->first_line, f->line,
                               ret_place);
    }
    *ret_place = u->stack[from->at];
    if (a->loop_count > 0 && ret_place->module == u->stack[a->loops[0]].module)
        ret_place->flags |= STACK_FRAME_INTERPRETER;
    return true;
}

static void count_merged(struct sampler *m, uint32_t task, const struct unwound *u,
                         enum merge_kind kind)
{
    struct merger *g = m->merger;
    struct stack_merge_row *row = m->tab.merge;
    unsigned depth = merge_stacks(u->depth, &g->answer, g->places, STACK_MERGED_DEPTH);
    for (unsigned i = 0; i < depth; i++)
        if (!merged_place(m, u, &g->places[i], &g->stack[i]))
            depth = 0; /* no room: one of the others */
    uint64_t *const sums[] = { [MERGE_NATIVE] = &row->native,
                               [MERGE_UNMERGED] = &row->unmerged,
                               [MERGE_PARTLY] = &row->partly,
                               [MERGE_WHOLE] = &row->whole };
    *sums[kind] += m->spells.weight;
    if (kind == MERGE_WHOLE && g->answer.moved)
        row->moved += m->spells.weight;
    if (kind == MERGE_WHOLE && g->answer.exact)
        row->exact += m->spells.weight;
    stacktab_count_merged(&m->tab, task, g->stack, depth, m->spells.weight);
}

/* After the native stack has been counted: it may get longer here. */
static void merge_sample(struct sampler *m, struct proc *proc,
                         const struct perf_sample *s, uint32_t task, struct unwound *u,
                         bool unwound)
{
    enum merge_kind kind = MERGE_UNMERGED; /* what was not unwound may have Python */
    m->merger->answer = (struct merge_answer){ .loop_count = 0 };
    if (unwound)
        kind = ask_python(m, proc, s, u);
    count_merged(m, task, u, kind);
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
        if (m->merger)
            m->tab.merge->native += m->spells.weight;
        return;
    }
    const bool unwound = s->has_regs && s->stack.len && is_turn(m);
    if (unwound) {
        unwind_frames(m->cache, &m->procs, proc, s, &u,
                      m->merger ? m->merger->frames : NULL);
        m->tab.info->cut += !u.whole;
    } else {
        unwind_callchain(&m->procs, proc, s, &u);
        m->tab.info->shallow += m->every > 1;
    }
    const uint32_t task = procs_task(&m->procs, proc, s->tid);
    stacktab_count(&m->tab, task, u.stack, u.depth, m->spells.weight);
    if (m->merger)
        merge_sample(m, proc, s, task, &u, unwound);
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

/* ---- Reading ------------------------------------------------------------------------------------ */

static bool read_once(struct sampler *m)
{
    const struct perf_visitor visitor = { on_sample, on_other, on_enough, m };
    return perf_read(&m->perf, &visitor);
}

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

/* Takes over what there is; false: some is left. */
static bool work(struct sampler *m, uint64_t now)
{
    m->tick_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool all = read_once(m);
    watch_share(m, now, now_ns(CLOCK_THREAD_CPUTIME_ID) - m->tick_cpu_ns);
    return all;
}

static void *merge_samples(void *arg)
{
    enum { WAIT_MS = 100 };
    struct sampler *m = arg;
    while (!atomic_load(&m->merger->ending)) {
        perf_wait(&m->perf, WAIT_MS);
        lock(m);
        while (m->spells.on && !work(m, now_ns(CLOCK_MONOTONIC)) &&
               !atomic_load(&m->merger->ending)) {}
        unlock(m);
    }
    return NULL;
}

static int start_merger(struct sampler *m)
{
    const int rc = pthread_create(&m->merger->thread, NULL, merge_samples, m);
    m->merger->started = rc == 0;
    return -rc;
}

static void free_merger(struct sampler *m)
{
    if (!m->merger)
        return;
    (void)pthread_mutex_destroy(&m->merger->lock);
    free(m->merger);
    m->merger = NULL;
}

static void end_merger(struct sampler *m)
{
    if (m->merger && m->merger->started) {
        atomic_store(&m->merger->ending, true);
        (void)pthread_join(m->merger->thread, NULL);
        m->merger->started = false;
    }
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
                                          .stack_size = m->stack_bytes,
                                          .at_once = m->merger };
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
    return m->merger ? start_merger(m) : 0;
}

static int new_merger(struct sampler *m, const struct sampler_options *o)
{
    struct merger *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->python = o->python;
    g->python_arg = o->python_arg;
    (void)pthread_mutex_init(&g->lock, NULL);
    m->merger = g;
    return 0;
}

static int open_tab(struct sampler *m, const struct sampler_options *o)
{
    if (!m->cache)
        return -ENOMEM;
    if (!o->python)
        return stacktab_open(&m->tab, o->dir, o->control);
    const int rc = new_merger(m, o);
    return rc < 0 ? rc : stacktab_open_merging(&m->tab, o->dir, o->control);
}

static uint32_t stack_size(const struct sampler_options *o)
{
    const bool often = o->rate_hz > RATE_DEEP;
    if (o->python)
        return often ? STACK_MERGING_FAST : STACK_MERGING;
    return often ? STACK_SHALLOW : STACK_DEEP;
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
    m->stack_bytes = stack_size(o);
    m->cache = unwind_cache_new();
    int rc = open_tab(m, o);
    if (rc < 0) {
        unwind_cache_free(m->cache);
        free(m->merger);
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

void sampler_pause(struct sampler *m, bool paused)
{
    lock(m);
    m->unbounded = true; /* what is in the rings belongs to the time before */
    (void)read_once(m);
    m->unbounded = false;
    m->paused = paused;
    unlock(m);
}

/* ---- Ticks --------------------------------------------------------------------------------------- */

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
    const bool begins = next.on && !m->spells.on; /* else it only weighs otherwise */
    m->spells = next;
    if (begins)
        begin_spell(m);
}

static uint64_t tick(struct sampler *m, uint64_t now)
{
    follow_spells(m, now);
    const uint64_t change = m->spells.next_ns > now ? m->spells.next_ns - now : 0;
    if (!m->spells.on)
        return change;
    const uint64_t after = work(m, now) ? m->after_ns : TICK_NS;
    return after < change ? after : change;
}

void sampler_begin_anew(struct sampler *m)
{
    if (!m)
        return;
    lock(m);
    spells_begin_anew(&m->spells);
    unlock(m);
}

uint64_t sampler_tick(struct sampler *m, uint64_t now)
{
    lock(m);
    const uint64_t after = tick(m, now);
    unlock(m);
    return after;
}

void sampler_close(struct sampler *m)
{
    if (!m)
        return;
    end_merger(m);
    if (m->running) {
        m->unbounded = true;
        (void)read_once(m);
        perf_close(&m->perf);
    }
    procs_release(&m->procs);
    stacktab_close(&m->tab);
    unwind_cache_free(m->cache);
    free_merger(m);
    free(m);
}
