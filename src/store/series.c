/* series.c: see series.h. */
#include "store/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "store/jread.h"

struct columns {
    double *steps, *values;
    size_t count, cap, left_out;
};

static int add(struct columns *c, double step, double value)
{
    if (c->count == c->cap) {
        const size_t cap = c->cap ? 2 * c->cap : 256;
        double *steps = realloc(c->steps, cap * sizeof *steps);
        if (!steps)
            return -ENOMEM;
        c->steps = steps;
        double *values = realloc(c->values, cap * sizeof *values);
        if (!values)
            return -ENOMEM;
        c->values = values;
        c->cap = cap;
    }
    c->steps[c->count] = step;
    c->values[c->count++] = value;
    return 0;
}

/* A number, or null for one that is none. */
static bool take_value(const struct jread *r, double *ret_value)
{
    const bool number = r->token == JREAD_INT || r->token == JREAD_FLOAT;
    *ret_value = number ? r->number : NAN;
    return number || r->token == JREAD_NULL;
}

/* Behind the bracket of [step, value, …]; goes on behind its end. */
static int take_point(struct jread *r, struct columns *c)
{
    double step = NAN, value = NAN;
    size_t place = 0;
    bool good = true;
    while (jread_next(r) != JREAD_ARRAY_END) {
        if (r->token == JREAD_ERROR || r->token == JREAD_END)
            return SONDE_E_FORMAT;
        double *into = place == 0 ? &step : &value;
        if (place < 2)
            good = good && take_value(r, into);
        if ((r->token == JREAD_ARRAY_BEGIN || r->token == JREAD_OBJECT_BEGIN) &&
            !jread_skip(r))
            return SONDE_E_FORMAT;
        place++;
    }
    if (good && place >= 2 && isfinite(step))
        return add(c, step, value);
    c->left_out++;
    return 0;
}

static int take_list(struct jread *r, struct columns *c)
{
    int rc = 0;
    size_t place = 0;
    c->count = c->left_out = 0;
    if (jread_next(r) != JREAD_ARRAY_BEGIN)
        return SONDE_E_FORMAT;
    while (rc == 0 && jread_next(r) != JREAD_ARRAY_END) {
        double value;
        if (r->token == JREAD_ARRAY_BEGIN)
            rc = take_point(r, c);
        else if (take_value(r, &value))
            rc = add(c, (double)place, value);
        else if (r->token == JREAD_ERROR || r->token == JREAD_END || !jread_skip(r))
            rc = SONDE_E_FORMAT;
        else
            c->left_out++;
        place++;
    }
    return rc;
}

int series_each(const char *json, size_t len,
                int (*visit)(void *arg, const struct series_view *series), void *arg)
{
    struct jread r;
    struct arena arena = ARENA_INIT;
    struct columns c = { 0 };
    jread_init(&r, json, len);
    int rc = jread_next(&r) == JREAD_OBJECT_BEGIN ? 0 : SONDE_E_FORMAT;
    while (rc == 0 && jread_next(&r) == JREAD_KEY) {
        size_t name_len;
        const char *name = jread_text(&r, &arena, &name_len);
        rc = name ? take_list(&r, &c) : -ENOMEM;
        const struct series_view view = { name, c.steps, c.values, c.count,
                                          c.left_out };
        if (rc == 0)
            rc = visit(arg, &view);
    }
    if (rc == 0 && r.token != JREAD_OBJECT_END)
        rc = SONDE_E_FORMAT;
    free(c.steps);
    free(c.values);
    arena_release(&arena);
    return rc;
}
