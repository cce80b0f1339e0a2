/* gatesamples.c: see gatesamples.h. */
#include "cli/gatesamples.h"

#include "store/jread.h"

static bool take_numbers(struct jread *r, double *values, size_t *ret_count)
{
    size_t n = 0;
    if (jread_next(r) != JREAD_ARRAY_BEGIN)
        return false;
    while (jread_next(r) == JREAD_INT || r->token == JREAD_FLOAT) {
        if (n == GATE_SAMPLES_MOST)
            return false;
        values[n++] = r->number;
    }
    *ret_count = n;
    return r->token == JREAD_ARRAY_END;
}

static bool take_threshold(struct jread *r, double *ret_threshold)
{
    const bool number = jread_next(r) == JREAD_INT || r->token == JREAD_FLOAT;
    *ret_threshold = number ? r->number : -1;
    return *ret_threshold >= 0;
}

static bool take_field(struct jread *r, struct gate_samples *s, struct gate_metric *m)
{
    if (jread_is(r, "baseline"))
        return take_numbers(r, s->base[s->count], &m->baseline_count);
    if (jread_is(r, "now"))
        return take_numbers(r, s->now[s->count], &m->now_count);
    if (jread_is(r, "threshold"))
        return take_threshold(r, &m->threshold);
    bool *flag = jread_is(r, "paired")           ? &m->paired
                 : jread_is(r, "more_is_better") ? &m->more_is_better
                                                 : NULL;
    if (flag)
        *flag = jread_next(r) == JREAD_TRUE;
    return flag != NULL;
}

static bool take_metric(struct jread *r, struct arena *arena, struct gate_samples *s)
{
    size_t len;
    if (s->count == GATE_METRICS)
        return false;
    struct gate_metric m = { .name = jread_text(r, arena, &len),
                             .baseline = s->base[s->count],
                             .now = s->now[s->count],
                             .threshold = 0.2 };
    if (!m.name || jread_next(r) != JREAD_OBJECT_BEGIN)
        return false;
    while (jread_next(r) == JREAD_KEY)
        if (!take_field(r, s, &m))
            return false;
    s->metrics[s->count++] = m;
    return r->token == JREAD_OBJECT_END &&
           (!m.paired || m.baseline_count == m.now_count);
}

bool gate_samples_parse(const char *json, size_t len, struct arena *arena,
                        struct gate_samples *ret_samples)
{
    struct jread r;
    ret_samples->count = 0;
    jread_init(&r, json, len);
    if (jread_next(&r) != JREAD_OBJECT_BEGIN)
        return false;
    while (jread_next(&r) == JREAD_KEY)
        if (!take_metric(&r, arena, ret_samples))
            return false;
    return r.token == JREAD_OBJECT_END && ret_samples->count > 0;
}
