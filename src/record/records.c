/* records.c: begin and end when the hot path could not, and the longer records:
 * values, marks, steps, spans. */
#include "record/copies.h"

#include <string.h>

const volatile uint32_t *record_gate(void)
{
    sigset_t old;
    signals_block(&old);
    (void)recorder_ensure();
    signals_restore(&old);
    static const uint32_t off = SONDE_GATE_OFF;
    return recorder.gate ? recorder.gate : &off;
}

/* Signals are blocked around all that sets things up; what only records is safe in
 * itself. Returns whether there is a file to record into. */
static bool ensure(void)
{
    if (__atomic_load_n(&recorder.ready, __ATOMIC_ACQUIRE) &&
        __atomic_load_n(&recorder.wiped->alive, __ATOMIC_ACQUIRE))
        return recorder.on && !recorder.failed;
    sigset_t old;
    signals_block(&old);
    bool ok = recorder_ensure();
    signals_restore(&old);
    return ok;
}

static bool gate_open(void)
{
    return __atomic_load_n(recorder.gate, __ATOMIC_RELAXED) != SONDE_GATE_OFF;
}

/* The site's number, now that it is needed; 0 when there is no registry. */
static uint32_t site_id(struct sonde_site *site)
{
    uint32_t id = __atomic_load_n(&site->id, __ATOMIC_ACQUIRE);
    if (id)
        return id;
    sigset_t old;
    signals_block(&old);
    sites_register(site);
    signals_restore(&old);
    return __atomic_load_n(&site->id, __ATOMIC_ACQUIRE);
}

static void record_edge(struct sonde_site *site, struct sonde_lane **slot, uint32_t end)
{
    lane_rewind(*slot);
    if (!ensure() || (!end && !gate_open()))
        return;
    const uint32_t id = site_id(site);
    if (!__atomic_load_n(&site->word, __ATOMIC_RELAXED) &&
        !(end && lanes_is_open(site)))
        return; /* switched off; an end may belong to a begin before that */
    lanes_event(id << 1 | end);
    if (!*slot)
        lanes_share(slot);
}

void record_begin(struct sonde_site *site, struct sonde_lane **slot)
{
    record_edge(site, slot, 0);
}

void record_end(struct sonde_site *site, struct sonde_lane **slot)
{
    /* An end of a site that never recorded anything has no begin either. */
    if (__atomic_load_n(&site->id, __ATOMIC_RELAXED))
        record_edge(site, slot, 1);
    else
        lane_rewind(*slot);
}

struct sonde_site *record_site_named(const struct site_spec *spec)
{
    sigset_t old;
    signals_block(&old);
    (void)recorder_ensure();
    struct sonde_site *site = sites_named(spec);
    signals_restore(&old);
    return site;
}

void record_site_enable(struct sonde_site *site, int enabled)
{
    (void)ensure();
    const uint32_t id = site_id(site);
    __atomic_store_n(&site->word, enabled ? id << 1 : 0, __ATOMIC_RELAXED);
}

static uint32_t name_id(const char *name)
{
    struct site_spec spec = { .name = name ? name : "" };
    sigset_t old;
    signals_block(&old);
    uint32_t id = sites_intern(&spec);
    signals_restore(&old);
    return id;
}

void record_value(const char *name, int kind, double value)
{
    if (!ensure() || !gate_open())
        return;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t payload[2] = { (uint64_t)name_id(name) << 32 | bits >> 32,
                                  (uint64_t)kind << 32 | (bits & 0xffffffff) };
    lanes_record(TAG_VALUE, payload, 2);
}

void record_mark(const char *name)
{
    if (!ensure() || !gate_open())
        return;
    const uint64_t payload[1] = { name_id(name) };
    lanes_record(TAG_MARK, payload, 1);
}

void record_step(uint64_t samples)
{
    if (!ensure())
        return;
    const unsigned kind = (unsigned)(samples >> STEP_KIND_SHIFT) & 0xff;
    if (kind == STEP_NEXT || kind == STEP_CANCEL)
        (void)__atomic_add_fetch(&recorder_live()->steps, kind == STEP_NEXT ? 1 : -1,
                                 __ATOMIC_RELAXED);
    if (recorder.control->first_step || recorder.control->last_step)
        recorder_update_gate();
    if (!gate_open())
        return;
    const uint64_t payload[1] = { samples & 0xffffffffffffULL };
    lanes_record(TAG_STEP, payload, 1);
}

void record_note(const char *key, const char *value, unsigned flags)
{
    if (!ensure() || !key)
        return;
    struct site_spec spec = { .name = key, .tags = value, .flags = flags };
    sigset_t old;
    signals_block(&old);
    (void)sites_intern(&spec);
    signals_restore(&old);
}

void record_thread_name(const char *name)
{
    if (ensure() && name)
        lanes_name_thread(name);
}

void record_pause(int paused)
{
    if (!ensure())
        return;
    __atomic_store_n(&recorder_live()->paused, paused != 0, __ATOMIC_SEQ_CST);
    recorder_update_gate();
}

int record_recording(void)
{
    return ensure() && gate_open();
}

uint64_t record_lost(void)
{
    return ensure() ? __atomic_load_n(&recorder_live()->lost, __ATOMIC_RELAXED) : 0;
}

/* Asked on behalf of others (allocations): makes no file. */
uint64_t record_steps(void)
{
    return recorder.ready && recorder_has_file() &&
                   __atomic_load_n(&recorder.wiped->alive, __ATOMIC_ACQUIRE)
               ? __atomic_load_n(&recorder_live()->steps, __ATOMIC_RELAXED)
               : 0;
}

/* ---- Spans ----------------------------------------------------------------------- */

enum { SPAN_OFF = 0, SPAN_ACTIVE = 1, SPAN_WAITING = 2 };

static void write_span(const struct sonde_span *s, int kind, uint64_t now)
{
    const uint64_t mask = 0xffffffffffffULL;
    const uint64_t payload[3] = { (uint64_t)site_id(s->site) << 32 |
                                      (uint64_t)kind << 24 | (s->id & 0xffffff),
                                  s->active_ticks & mask,
                                  (now - s->start_ticks) & mask };
    lanes_record(TAG_SPAN, payload, 3);
}

void span_begin(struct sonde_span *s, struct sonde_site *site)
{
    static uint64_t next_id;
    *s = (struct sonde_span){ .site = site, .state = SPAN_OFF };
    if (!ensure() || !gate_open())
        return;
    (void)site_id(site);
    if (!__atomic_load_n(&site->word, __ATOMIC_RELAXED))
        return;
    s->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
    s->start_ticks = s->resumed_ticks = ticks_now();
    s->state = SPAN_ACTIVE;
    write_span(s, SPAN_BEGIN, s->start_ticks);
}

void span_change(struct sonde_span *s, int kind)
{
    bool active = s->state == SPAN_ACTIVE;
    if (s->state == SPAN_OFF || (kind == SPAN_SUSPEND && !active) ||
        (kind == SPAN_RESUME && active))
        return;
    uint64_t now = ticks_now();
    if (active)
        s->active_ticks += now - s->resumed_ticks;
    s->resumed_ticks = now;
    s->state = kind == SPAN_SUSPEND  ? SPAN_WAITING
               : kind == SPAN_RESUME ? SPAN_ACTIVE
                                     : SPAN_OFF;
    if (ensure())
        write_span(s, kind, now);
}
