/* device.c: kernels find their phase. See device.h.
 *
 * A card knows no phases. Kineto gives each kernel the number of the call that launched
 * it; that call stands on a thread of the host, inside zones that have a phase. So the
 * host's threads are walked once, with the phase of the zones that are open; each launch
 * is noted, and each kernel looks its launch up.
 */
#include "import/device.h"

#include <errno.h>
#include <stdlib.h>

#include "import/torch.h"

enum { DEPTH = 1000 };

struct launch {
    uint32_t correlation;
    int phase;
};

struct launches {
    struct launch *list;
    size_t count;
};

struct busy {
    int64_t from, to;
    uint16_t process;
};

/* ---- Who launched what -------------------------------------------------------------- */

struct open_phase {
    int64_t end_ns;
    int phase;
};

struct host_walk {
    struct open_phase open[DEPTH];
    size_t depth;
    uint16_t lane;
};

/* The phase inside zone x, which begins now. */
static int enter(struct host_walk *w, const struct events *e, const struct event *x)
{
    if (x->lane != w->lane)
        w->depth = 0;
    w->lane = x->lane;
    while (w->depth && w->open[w->depth - 1].end_ns <= x->ts_ns)
        w->depth--;
    const int around = w->depth ? w->open[w->depth - 1].phase : SONDE_NO_PHASE;
    const struct event_name *n = &e->names[x->name];
    const int phase = torch_phase_counts(n, around) ? n->phase : around;
    if (w->depth < DEPTH)
        w->open[w->depth++] = (struct open_phase){ x->ts_ns + x->dur_ns, phase };
    return phase;
}

static bool is_zone(const struct event *x)
{
    return x->kind == EVENT_ZONE || x->kind == EVENT_STEP;
}

static bool is_device(const struct events *e, const struct event *x)
{
    return x->kind == EVENT_ZONE && e->names[x->name].is_device;
}

static int by_correlation(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int launches_read(const struct events *e, size_t most, struct launches *ret)
{
    struct host_walk *w = calloc(1, sizeof *w);
    ret->list = malloc((most ? most : 1) * sizeof *ret->list);
    if (!w || !ret->list) {
        free(w);
        return -ENOMEM;
    }
    for (size_t i = 0; i < e->count; i++) {
        const struct event *x = &e->list[i];
        if (!is_zone(x) || e->names[x->name].is_device)
            continue;
        const int phase = enter(w, e, x);
        if (x->correlation)
            ret->list[ret->count++] = (struct launch){ x->correlation, phase };
    }
    free(w);
    qsort(ret->list, ret->count, sizeof *ret->list, by_correlation);
    return 0;
}

static int phase_of_kernel(const struct events *e, const struct launches *l,
                           const struct event *x)
{
    const struct launch key = { x->correlation, 0 };
    const struct launch *from = x->correlation
                                    ? bsearch(&key, l->list, l->count, sizeof *l->list,
                                              by_correlation)
                                    : NULL;
    if (from && from->phase)
        return from->phase;
    const int own = e->names[x->name].phase; /* copies say what they are */
    return own ? own : SONDE_OTHER;
}

/* ---- How long there was work -------------------------------------------------------- */

static int by_card_and_time(const void *a, const void *b)
{
    const struct busy *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static double busy_seconds(struct busy *list, size_t count)
{
    double sum_ns = 0;
    size_t cards = 0;
    int64_t until = 0;
    qsort(list, count, sizeof *list, by_card_and_time);
    for (size_t i = 0; i < count; i++) {
        const struct busy *b = &list[i];
        if (i == 0 || b->process != list[i - 1].process) {
            cards++;
            until = b->from;
        }
        const int64_t from = b->from > until ? b->from : until;
        if (b->to > from)
            sum_ns += (double)(b->to - from);
        if (b->to > until)
            until = b->to;
    }
    return cards ? sum_ns / 1e9 / (double)cards : 0;
}

int device_time_read(const struct events *e, struct device_time *ret_time)
{
    struct device_time t = { 0 };
    struct launches launches = { 0 };
    size_t kernels = 0, numbered = 0, count = 0;
    for (size_t i = 0; i < e->count; i++) {
        kernels += is_device(e, &e->list[i]);
        numbered += e->list[i].correlation != 0;
    }
    if (kernels == 0) {
        *ret_time = t;
        return 0;
    }
    struct busy *busy = malloc(kernels * sizeof *busy);
    const int rc = busy ? launches_read(e, numbered, &launches) : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < e->count; i++) {
        const struct event *x = &e->list[i];
        if (!is_device(e, x))
            continue;
        t.phase_s[phase_of_kernel(e, &launches, x)] += (double)x->dur_ns / 1e9;
        busy[count++] = (struct busy){ x->ts_ns, x->ts_ns + x->dur_ns,
                                       e->lanes[x->lane].process };
    }
    if (rc == 0) {
        t.known = true;
        t.busy_s = busy_seconds(busy, count);
        *ret_time = t;
    }
    free(busy);
    free(launches.list);
    return rc;
}
