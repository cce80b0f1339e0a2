/* capture_monitors.c: the supervisor watches the run and the machine from outside.
 *
 * A round at once, denser ones while the run is young, then one per interval, and a last
 * one when the program is a zombie: its CPU time and its I/O can still be read then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "capture/monitor/list.h"
#include "capture/monitor/sampler.h"
#include "base/moment.h"
#include "launch/capture_alerts.h"
#include "launch/capture_list.h"
#include "launch/family.h"

enum { MONITORS_MOST = 32 };

struct monitors {
    struct sampler *sampler;
    struct family *family; /* borrowed */
    struct runfile *file;
    bool sampling;                                       /* in the middle of a round */
    const struct monitor_ops *wanted[MONITORS_MOST + 1]; /* ends with NULL */
    struct monitor_process living[FAMILY_LIVING_MAX];
};

static bool is_in(const char *list, const char *name)
{
    for (size_t len; *list; list += len + (list[len] == ',')) {
        len = strcspn(list, ",");
        if (strlen(name) == len && strncmp(list, name, len) == 0)
            return true;
    }
    return false;
}

bool capture_monitors_exist(const char *names)
{
    size_t wanted = 1, found = 0;
    for (const char *p = names; *p; p++)
        wanted += *p == ',';
    for (size_t i = 0; monitor_list[i]; i++)
        found += is_in(names, monitor_list[i]->name);
    return found == wanted;
}

static void choose(struct monitors *m, const char *names)
{
    size_t count = 0;
    for (size_t i = 0; monitor_list[i] && count < MONITORS_MOST; i++)
        if (!names || is_in(names, monitor_list[i]->name))
            m->wanted[count++] = monitor_list[i];
}

static int prepare(const struct capture_context *context, void **ret_state)
{
    *ret_state = NULL;
    if (context->options->no_monitors)
        return 0;
    struct monitors *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->file = context->file;
    choose(m, context->options->monitors);
    *ret_state = m;
    return 0;
}

/* Some descriptors per process; the program has its own limit already. */
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    const rlim_t wanted = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    if (limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static struct monitor_sink *attach_alerts(void *arg, struct monitor_sink *next)
{
    (void)arg;
    return alerts_attach(next);
}

static void tell_alerts(void *arg, const struct monitor_round *round)
{
    (void)arg;
    alerts_round_begins(round);
}

static const struct sampler_hooks alert_hooks = { .attach = attach_alerts,
                                                  .round_begins = tell_alerts };

static int start(void *state, const struct capture_context *context)
{
    struct monitors *m = state;
    if (!m)
        return 0;
    allow_descriptors();
    m->family = context->family;
    if (!m->family)
        return -ESRCH;
    const struct sampler_options sampler = {
        .dir = context->dir,
        .control = context->control,
        .interval_ns = context->options->interval_ns,
        .pid = (uint32_t)context->pid,
        .joined = context->attached,
        .keep_secrets = !context->redact,
        .list = m->wanted,
        .hooks = &alert_hooks,
    };
    return sampler_new(&sampler, &m->sampler);
}

static void begin_round(struct monitors *m, uint64_t now)
{
    size_t count = 0;
    family_fresh(m->family, now, 0);
    for (size_t i = 0; i < family_count(m->family); i++) {
        const struct family_member *p = family_at(m->family, i);
        const struct monitor_process id = { p->pid, p->start_ticks };
        if (p->alive && count < FAMILY_LIVING_MAX)
            m->living[count++] = id;
        if (p->exit_known && p->last_ns == now)
            sampler_ended(m->sampler, &id, p->exit_status);
    }
    sampler_begin(m->sampler, now, m->living, count);
}

static uint64_t tick(void *state, uint64_t now)
{
    struct monitors *m = state;
    if (!m || !m->sampler)
        return 0;
    if (!m->sampling)
        begin_round(m, now);
    /* One monitor at a time: with many processes a round takes milliseconds, and events
     * must be drained meanwhile. */
    m->sampling = sampler_step(m->sampler, now);
    return m->sampling ? now : sampler_next_ns(m->sampler);
}

static void ending(void *state)
{
    struct monitors *m = state;
    if (!m || !m->sampler)
        return;
    sampler_last_round(m->sampler);
    begin_round(m, moment_ns(CLOCK_MONOTONIC));
    while (sampler_step(m->sampler, moment_ns(CLOCK_MONOTONIC)))
        ;
}

static void finish(void *state, int status)
{
    struct monitors *m = state;
    if (!m || !m->sampler)
        return;
    const struct family_member *program = family_at(m->family, 0);
    const struct monitor_process id = { program->pid, program->start_ticks };
    sampler_ended(m->sampler, &id, status);
    if (family_missed(m->family))
        runfile_note(m->file, "%llu processes were not watched: more than %d at a time",
                     (unsigned long long)family_missed(m->family), FAMILY_LIVING_MAX);
}

static void release(void *state)
{
    struct monitors *m = state;
    if (!m)
        return;
    sampler_free(m->sampler);
    free(m);
}

const struct capture_ops capture_monitors = {
    .name = "monitors",
    .prepare = prepare,
    .start = start,
    .tick = tick,
    .ending = ending,
    .finish = finish,
    .release = release,
};
