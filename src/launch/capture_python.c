/* capture_python.c: the supervisor looks at Python stacks.
 *
 * At a rate that is steady on the whole, and late rather than never when the supervisor
 * is busy: time is attributed by how long it was since the last look, not by counting
 * looks. When looking costs more than its share of a core, it is done more seldom. That
 * share is smaller once the run is no longer young: by then hundreds of looks have been
 * made, and a run of hours needs no more of them a second to be known as well.
 *
 * Pauses are drawn at random between a half and three halves of what they should be: at a
 * steady pace a loop of the same length would be found at the same place again and again.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <sonde/sonde.h>

#include "capture/python/watch.h"
#include "base/moment.h"
#include "capture/sample/spells.h"
#include "launch/capture_list.h"
#include "launch/family.h"
#include "num/prng.h"

enum { DEFAULT_HZ = 100, MORE_HZ = 250, FAMILY_AGE_NS = 100000000 };
enum { WAIT_NS = 20000000, LONG_WAIT_NS = 250000000, IDLE_NS = 40000000 };
static const uint64_t SECOND_NS = 1000000000;
static const uint64_t YOUNG_NS = YOUNG_S * 1000000000ULL;
static const uint64_t SETTLED_NS = 100000000;   /* longest pause for being dear */
static const double MOST_OF_A_CORE = 0.03;      /* when somebody asked for a rate */
static const double MOST_BY_ITSELF = 0.01;      /* of a young run … */
static const double MOST_WHEN_SETTLED = 0.0025; /* … and later */

struct pythons {
    struct watch *watch;
    struct family *family; /* borrowed */
    uint64_t period_ns, started_ns;
    bool asked_for; /* the rate */
    struct prng random;
    struct watch_process living[FAMILY_LIVING_MAX];
};

static unsigned rate_of(const struct capture_context *context)
{
    if (context->options->no_stacks || context->level == SONDE_BASIC)
        return 0;
    if (context->options->rate_hz)
        return context->options->rate_hz;
    return context->level == SONDE_COMPREHENSIVE ? MORE_HZ : DEFAULT_HZ;
}

static int prepare(const struct capture_context *context, void **ret_state)
{
    const unsigned rate = rate_of(context);
    *ret_state = NULL;
    if (rate == 0)
        return 0;
    struct pythons *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->period_ns = SECOND_NS / rate;
    prng_init(&p->random, moment_ns(CLOCK_MONOTONIC));
    p->asked_for = context->options->rate_hz || context->level == SONDE_COMPREHENSIVE;
    *ret_state = p;
    return 0;
}

static int start(void *state, const struct capture_context *context)
{
    struct pythons *p = state;
    if (!p)
        return 0;
    p->family = context->family;
    if (!p->family)
        return -ESRCH;
    return watch_new(context->dir, context->control, p->period_ns, &p->watch);
}

static void look(struct pythons *p, uint64_t now)
{
    size_t count = 0;
    family_fresh(p->family, now, FAMILY_AGE_NS);
    for (size_t i = 0; i < family_count(p->family); i++) {
        const struct family_member *m = family_at(p->family, i);
        if (m->alive && m->state != 'Z' && count < FAMILY_LIVING_MAX)
            p->living[count++] = (struct watch_process){ m->pid, m->start_ticks };
    }
    watch_look(p->watch, p->living, count, now);
}

/* Without a Python process there is only to look whether one has come; while all threads
 * of all of them sleep, less often will do. */
static uint64_t pause_for(const struct pythons *p, uint64_t now)
{
    const uint64_t idle = watch_count(p->watch) == 0
                              ? now - p->started_ns < SECOND_NS ? WAIT_NS : LONG_WAIT_NS
                          : watch_is_idle(p->watch) ? IDLE_NS
                                                    : 0;
    return idle > p->period_ns ? idle : p->period_ns;
}

/* So long that looking takes no more than its share. */
static uint64_t pause_for_cost(const struct pythons *p, uint64_t now, uint64_t cost_ns)
{
    if (p->asked_for)
        return (uint64_t)((double)cost_ns / MOST_OF_A_CORE);
    const uint64_t young = (uint64_t)((double)cost_ns / MOST_BY_ITSELF);
    if (now - p->started_ns < YOUNG_NS || young > SETTLED_NS)
        return young;
    const uint64_t settled = (uint64_t)((double)cost_ns / MOST_WHEN_SETTLED);
    return settled < SETTLED_NS ? settled : SETTLED_NS;
}

static void work_begins(void *state, uint64_t now)
{
    struct pythons *p = state;
    if (p)
        p->started_ns = now; /* young again */
}

static uint64_t tick(void *state, uint64_t now)
{
    struct pythons *p = state;
    if (!p || !p->watch)
        return 0;
    const uint64_t before = moment_ns(CLOCK_THREAD_CPUTIME_ID);
    if (!p->started_ns)
        p->started_ns = now;
    look(p, now);
    const uint64_t dear = pause_for_cost(p, now,
                                         moment_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    const uint64_t least = pause_for(p, now), pause = dear > least ? dear : least;
    return now + pause / 2 + prng_below(&p->random, pause + 1);
}

static void release(void *state)
{
    struct pythons *p = state;
    if (!p)
        return;
    watch_free(p->watch);
    free(p);
}

const struct capture_ops capture_python = {
    .name = "Python stacks",
    .prepare = prepare,
    .work_begins = work_begins,
    .start = start,
    .tick = tick,
    .at_any_time = true,
    .release = release,
};
