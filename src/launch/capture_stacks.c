/* capture_stacks.c: native stacks as one of the captures of a run.
 *
 * The kernel samples (perf_event) where it may; else the program does it itself with
 * timers, when libsonde-preload.so is in it. SONDE_STACKS=timer asks for that, for
 * tests and for comparing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sonde/sonde.h>

#include "capture/sample/sample.h"
#include "capture/sample/timers.h"
#include "launch/captures.h"
#include "launch/family.h"
#include "launch/merge_python.h"
#include "trace/process.h"

extern const struct capture_ops capture_stacks;

enum { RATE_DETAILED = 99, RATE_COMPREHENSIVE = 199 }; /* no multiples of what beats */
enum { FAMILY_AGE_NS = 100000000 };

struct stacks {
    struct sampler *sampler;      /* NULL: the kernel does not let us */
    struct timers_reader *timers; /* instead */
    bool by_timer;
    struct runfile *file;
    unsigned rate_hz;
    uint64_t open_ns, shut_ns;  /* edges of the window that are to come; 0: none */
    struct family *family;      /* borrowed; NULL before the program has started */
    struct merge_python *merge; /* NULL: not asked for */
};

static unsigned rate_of(const struct capture_context *c)
{
    if (c->options->no_stacks || c->options->no_native)
        return 0;
    if (c->options->rate_hz)
        return c->options->rate_hz;
    return c->level == SONDE_BASIC           ? 0
           : c->level == SONDE_COMPREHENSIVE ? RATE_COMPREHENSIVE
                                             : RATE_DETAILED;
}

static bool is_preloaded(void)
{
    const char *list = getenv("LD_PRELOAD");
    return list && strstr(list, "libsonde-preload.so");
}

static bool wants_timers(void)
{
    const char *how = getenv("SONDE_STACKS"), *why;
    if (!is_preloaded())
        return false;
    if (how && strcmp(how, "timer") == 0)
        return true;
    const int rc = sampler_probe(&why);
    return rc == -EACCES || rc == -EPERM || rc == -ENOSYS;
}

/* The library of whoever samples reads it when the program starts. */
static int tell_program(const struct stacks *s)
{
    char hz[16];
    if (!s->by_timer)
        return unsetenv("SONDE_TIMER_HZ") < 0 ? -errno : 0;
    (void)snprintf(hz, sizeof hz, "%u", s->rate_hz);
    return setenv("SONDE_TIMER_HZ", hz, 1) < 0 ? -errno : 0;
}

static int stacks_prepare(const struct capture_context *c, void **ret_state)
{
    struct stacks *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->rate_hz = rate_of(c);
    s->file = c->file;
    s->by_timer = s->rate_hz > 0 && wants_timers();
    *ret_state = s;
    if (c->options->merge_stacks && s->rate_hz > 0 && !s->by_timer) {
        s->merge = merge_python_new();
        if (!s->merge)
            return -ENOMEM;
    }
    return tell_program(s);
}

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct tids {
    pid_t *list;
    size_t count, max;
};

static void add_tid(void *arg, pid_t tid)
{
    struct tids *t = arg;
    if (t->count < t->max)
        t->list[t->count] = tid;
    t->count++;
}

static size_t threads_now(void *arg, pid_t *ret_tids, size_t max)
{
    const struct stacks *s = arg;
    struct tids tids = { .list = ret_tids, .max = max };
    if (!s->family)
        return 0;
    family_fresh(s->family, monotonic_ns(), FAMILY_AGE_NS);
    for (size_t i = 0; i < family_count(s->family); i++) {
        const struct family_member *m = family_at(s->family, i);
        if (m->alive && m->state != 'Z')
            process_each_thread((pid_t)m->pid, add_tid, &tids);
    }
    return tids.count;
}

static int stacks_start(void *state, const struct capture_context *c)
{
    struct stacks *s = state;
    s->family = c->family;
    return 0;
}

static int stacks_attach(void *state, const struct capture_context *c)
{
    struct stacks *s = state;
    const char *why;
    if (s->rate_hz == 0)
        return 0;
    const struct sampler_options options = {
        .pid = c->pid,
        .rate_hz = s->rate_hz,
        .on_exec = !c->attached,
        .paused = c->after_ns > 0,
        .in_spells = !c->options->rate_hz && c->level == SONDE_DETAILED,
        .threads = threads_now,
        .threads_arg = s,
        .python = s->merge ? merge_python_ask : NULL,
        .python_arg = s->merge,
        .dir = c->dir,
        .control = c->control
    };
    const uint64_t now = monotonic_ns();
    s->open_ns = c->after_ns ? now + c->after_ns : 0;
    s->shut_ns = c->duration_ns ? now + c->after_ns + c->duration_ns : 0;
    if (c->options->merge_stacks && !s->merge)
        runfile_note(s->file, "stacks of Python and native ones were not merged: the "
                              "kernel does not sample here (sonde doctor tells why)");
    if (s->by_timer) {
        const int rc = timers_open(c->dir, c->control, s->rate_hz, &s->timers);
        if (rc == 0 && s->open_ns)
            timers_pause(s->timers, true);
        return rc;
    }
    if (sampler_open(&options, &s->sampler, &why) < 0)
        s->sampler = NULL; /* the file of tables says why; the report shows it */
    return 0;
}

static void pause_sampling(struct stacks *s, bool paused)
{
    if (s->timers)
        timers_pause(s->timers, paused);
    else
        sampler_pause(s->sampler, paused);
}

static void stacks_work_begins(void *state, uint64_t now_ns)
{
    struct stacks *s = state;
    (void)now_ns;
    sampler_begin_anew(s->sampler);
}

static uint64_t stacks_tick(void *state, uint64_t now_ns)
{
    struct stacks *s = state;
    if (!s->sampler && !s->timers)
        return 0;
    if (s->open_ns && now_ns >= s->open_ns) {
        pause_sampling(s, false);
        s->open_ns = 0;
    }
    if (s->shut_ns && now_ns >= s->shut_ns) {
        pause_sampling(s, true);
        s->shut_ns = 0;
    }
    uint64_t next = now_ns + (s->timers ? timers_tick(s->timers)
                                        : sampler_tick(s->sampler, now_ns));
    if (s->open_ns && s->open_ns < next)
        next = s->open_ns;
    if (s->shut_ns && s->shut_ns < next)
        next = s->shut_ns;
    return next;
}

static void note_given_up(const struct stacks *s)
{
    (void)timers_tick(s->timers);
    const unsigned n = timers_given_up(s->timers);
    if (n > 0)
        runfile_note(s->file,
                     "stacks of %u process%s were sampled for a part of the time: the "
                     "program wanted the signal of the timers for itself, or gave up "
                     "system calls",
                     n, n == 1 ? "" : "es");
}

static void stacks_finish(void *state, int status)
{
    struct stacks *s = state;
    (void)status;
    if (s->timers)
        note_given_up(s);
    sampler_close(s->sampler);
    timers_close(s->timers);
    s->sampler = NULL;
    s->timers = NULL;
}

static void stacks_release(void *state)
{
    struct stacks *s = state;
    if (!s)
        return;
    stacks_finish(s, 0);
    merge_python_free(s->merge);
    free(s);
}

const struct capture_ops capture_stacks = {
    .name = "stacks",
    .prepare = stacks_prepare,
    .start = stacks_start,
    .attach = stacks_attach,
    .work_begins = stacks_work_begins,
    .tick = stacks_tick,
    .finish = stacks_finish,
    .at_any_time = true,
    .release = stacks_release,
};
