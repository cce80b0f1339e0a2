/* scaling.c: see scaling.h. The fits are in growth.c. */
#include "model/run/scaling.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/human.h"
#include "base/moment.h"
#include "base/parse.h"
#include "model/run/growth.h"

static const struct {
    const char *name, *unit;
    size_t offset; /* of the size in the config; 0: none */
    uint64_t sizes[8];
} axes[AXIS_COUNT] = {
#define SIZE(field) offsetof(struct model_config, field)
    [AXIS_NODES] = { "nodes", "nodes", SIZE(nodes), { 100, 500, 1000, 2000, 5000 } },
    [AXIS_EDGES] = { "edges",
                     "edges",
                     SIZE(edges),
                     { 1000, 2000, 5000, 10000, 50000, 100000, 200000 } },
    [AXIS_LAYERS] = { "layers", "layers", SIZE(layers), { 2, 4, 6, 8, 12, 16 } },
    [AXIS_HIDDEN] = { "hidden", "wide", SIZE(hidden), { 64, 128, 256, 512 } },
    [AXIS_HEADS] = { "heads", "heads", SIZE(heads), { 1, 2, 4, 8, 16 } },
    [AXIS_BATCH] = { "batch", "in a batch", SIZE(batch), { 1, 2, 4, 8 } },
    [AXIS_TOKENS] = { "tokens", "tokens", SIZE(tokens), { 64, 128, 256, 512 } },
    [AXIS_PE] = { "pe", "", 0, { 0 } },
    [AXIS_MATMUL] = { "matmul", "square", 0, { 128, 256, 512, 1024 } },
#undef SIZE
};

const char *axis_name(enum axis axis)
{
    return axes[axis].name;
}

const char *axis_unit(enum axis axis)
{
    return axes[axis].unit;
}

int axis_of(const char *name)
{
    for (int i = 0; i < AXIS_COUNT; i++)
        if (strcmp(axes[i].name, name) == 0)
            return i;
    return -EINVAL;
}

/* ---- Sizes ------------------------------------------------------------------------------- */

enum { ENCODING_DIM = 16 };

int scale_size_parse(enum axis axis, const char *text, struct scale_size *ret_size)
{
    struct scale_size s = { .size = ENCODING_DIM };
    if (axis != AXIS_PE) {
        const int rc = parse_uint(text, &s.size);
        *ret_size = rc == 0 ? s : *ret_size;
        return rc;
    }
    char kind[32];
    const size_t len = strcspn(text, ":");
    if (len >= sizeof kind)
        return -EINVAL;
    memcpy(kind, text, len);
    kind[len] = '\0';
    s.encoding = sonde_encoding_of(kind);
    if (s.encoding < 0 || (text[len] && parse_uint(text + len + 1, &s.size) < 0) ||
        s.size == 0)
        return -EINVAL;
    *ret_size = s;
    return 0;
}

size_t scale_default_sizes(enum axis axis, struct scale_size ret_sizes[SCALE_POINTS])
{
    static const int encodings[] = { SONDE_NO_ENCODING, SONDE_LAPLACIAN,
                                     SONDE_RANDOM_WALK };
    size_t count = 0;
    if (axis == AXIS_PE)
        for (; count < 3; count++)
            ret_sizes[count] = (struct scale_size){ .size = ENCODING_DIM,
                                                    .encoding = encodings[count] };
    else
        for (; count < 8 && axes[axis].sizes[count]; count++)
            ret_sizes[count] = (struct scale_size){ .size = axes[axis].sizes[count] };
    return count;
}

/* The base with the axis moved to `at`. */
static struct model_config moved(const struct scale_options *o, struct scale_size at)
{
    struct model_config c = o->base;
    if (o->axis == AXIS_PE) {
        c.encoding = at.encoding;
        c.encoding_dim = at.encoding == SONDE_NO_ENCODING ? 0 : at.size;
    } else if (axes[o->axis].offset) {
        memcpy((char *)&c + axes[o->axis].offset, &at.size, sizeof at.size);
    }
    return c;
}

static void make_label(enum axis axis, struct scale_size at, char label[32])
{
    if (axis != AXIS_PE)
        (void)human_count(label, at.size);
    else if (at.encoding == SONDE_NO_ENCODING)
        (void)snprintf(label, 32, "none");
    else
        (void)snprintf(label, 32, "%s:%" PRIu64, sonde_encoding_name(at.encoding),
                       at.size);
}

/* ---- One point ----------------------------------------------------------------------------- */

static int estimate(enum axis axis, struct scale_point *p)
{
    const double n = (double)p->at.size;
    if (axis == AXIS_MATMUL) {
        p->forward_flops = p->step_flops = 2 * n * n * n;
        p->plan = (struct plan){ .data = 12 * n * n, .total = 12 * n * n };
        return 0;
    }
    struct layer_list list = LAYER_LIST_INIT;
    struct sonde_estimate e = { .size = sizeof e };
    config_layers(&p->config, &list);
    int rc = list_estimate(&list, NULL, &e);
    list_release(&list);
    rc = rc < 0 ? rc : plan_training(&p->config, &p->plan);
    p->forward_flops = sonde_ops_total(&e.total.forward);
    for (size_t i = 0; i < e.component_count; i++) /* done once, not in every step */
        if (strcmp(e.components[i].name, "pe") == 0)
            p->forward_flops -= sonde_ops_total(&e.components[i].cost.forward);
    p->step_flops = p->forward_flops + sonde_ops_total(&e.total.backward) +
                    sonde_optimizer_ops(SONDE_ADAMW, e.total.parameters);
    return rc;
}

/* Room for the loader's tables, the library's buffers and everybody else. */
static const double MEMORY_SHARE = 0.8;

static bool fits_memory(struct scale_point *p, double available)
{
    char needed[HUMAN_LEN], there[HUMAN_LEN];
    if (!(p->plan.total > MEMORY_SHARE * available)) /* NaN: nothing known, try */
        return true;
    (void)snprintf(p->note, sizeof p->note,
                   "skipped: would take %s, more than 80 %% of the %s that are free",
                   human_bytes(needed, p->plan.total), human_bytes(there, available));
    return false;
}

/* By the FLOPs of the last point that ran: three runs and one to get warm, or where those
 * would take too long a single one. */
static bool fits_time(struct scale_point *p, const struct scale_point *last,
                      double left_s, struct measure_options *m)
{
    if (!last || !(left_s > 0))
        return true;
    const double each = last->m.passes[PASS_STEP].mean +
                        last->m.passes[PASS_INFERENCE].mean;
    const double ms = each * p->step_flops / last->step_flops;
    char needed[HUMAN_LEN];
    if (4 * ms < left_s * 1e3)
        return true;
    if (ms < left_s * 1e3) {
        m->runs = 1;
        m->warmup = 0;
        return true;
    }
    (void)snprintf(p->note, sizeof p->note,
                   "skipped: would take about %s, more than the budget has left",
                   human_duration(needed, ms * 1e6));
    return false;
}

static int measure(enum axis axis, struct scale_point *p,
                   const struct measure_options *options, char error[MEASURE_ERROR_LEN])
{
    const int rc = axis == AXIS_MATMUL
                       ? measure_product(p->at.size, options, &p->m)
                       : measure_in_child(&p->config, options, &p->m, error);
    p->measured = rc == 0;
    if (rc == -ENOMEM) {
        (void)snprintf(p->note, sizeof p->note, "memory ran out");
        return 0;
    }
    return rc;
}

/* ---- All points ----------------------------------------------------------------------------- */

static double now_s(void)
{
    return (double)moment_ns(CLOCK_MONOTONIC) / 1e9;
}

static int prepare(const struct scale_options *o, struct scaling *s, char *error)
{
    *s = (struct scaling){ .axis = o->axis, .count = o->count };
    for (size_t i = 0; i < o->count; i++) {
        struct scale_point *p = &s->points[i];
        char what[CONFIG_ERROR_LEN];
        p->at = o->sizes[i];
        p->config = moved(o, p->at);
        make_label(o->axis, p->at, p->label);
        if (o->axis == AXIS_MATMUL ? p->at.size == 0 || p->at.size > 1 << 15
                                   : config_check(&p->config, what) < 0) {
            (void)snprintf(
                error, MEASURE_ERROR_LEN, "%s %s: %.120s", axis_name(o->axis), p->label,
                o->axis == AXIS_MATMUL ? "between 1 and 32768 is possible" : what);
            return -EINVAL;
        }
        const int rc = estimate(o->axis, p);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool size_fits(const struct scale_options *o, uint64_t size, double available)
{
    char unused[CONFIG_ERROR_LEN];
    struct scale_point p = { .at.size = size };
    p.config = moved(o, p.at);
    return size > 0 && config_check(&p.config, unused) == 0 &&
           estimate(o->axis, &p) == 0 && p.plan.total <= MEMORY_SHARE * available;
}

/* The largest size along this axis whose plan fits: doubled until one does not, then
 * halved in between. Sizes of `hidden` are those the heads divide. */
static void find_largest(const struct scale_options *o, struct scaling *s)
{
    if (!axes[o->axis].offset || o->axis == AXIS_HEADS || !(s->available > 0))
        return;
    const uint64_t unit = o->axis == AXIS_HIDDEN ? o->base.heads : 1;
    uint64_t low = 0, high = 1;
    while (size_fits(o, high * unit, s->available)) {
        low = high;
        high *= 2;
    }
    while (high > low + 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (size_fits(o, middle * unit, s->available))
            low = middle;
        else
            high = middle;
    }
    struct scale_point next = { .at.size = high * unit };
    char unused[CONFIG_ERROR_LEN];
    next.config = moved(o, next.at);
    /* Where the next size is no size at all, memory is not what ends it. */
    s->has_largest = low > 0 && config_check(&next.config, unused) == 0;
    s->largest = low * unit;
}

/* Point i's of what time is left: half of it goes by number, half by work. */
static double share_of(const struct scaling *s, size_t i)
{
    double flops = 0;
    for (size_t k = i; k < s->count; k++)
        flops += s->points[k].step_flops;
    return 0.5 / (double)(s->count - i) + 0.5 * s->points[i].step_flops / flops;
}

static int run_points(const struct scale_options *o, struct scaling *s, char *error)
{
    const double start = now_s();
    const struct scale_point *last = NULL;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->count; i++) {
        struct scale_point *p = &s->points[i];
        const double left = o->budget_s > 0 ? o->budget_s - (now_s() - start) : 0;
        struct measure_options m = o->measure;
        if (o->progress)
            o->progress(o->arg, i, s->count, p->label);
        if (o->budget_s > 0)
            m.budget_s = left > 0 ? left * share_of(s, i) : 0.001;
        if (!fits_memory(p, s->available) ||
            (o->budget_s > 0 && !fits_time(p, last, left > 0 ? left : 1e-9, &m)))
            continue;
        rc = measure(o->axis, p, &m, error);
        last = p->measured ? p : last;
    }
    s->took_s = now_s() - start;
    return rc;
}

int scaling_run(const struct scale_options *options, struct scaling *ret_scaling,
                char ret_error[MEASURE_ERROR_LEN])
{
    struct scaling *s = ret_scaling;
    int rc = prepare(options, s, ret_error);
    if (rc < 0)
        return rc;
    s->available = isnan(options->memory_bytes) ? plan_available()
                                                : options->memory_bytes;
    rc = run_points(options, s, ret_error);
    if (rc < 0)
        return rc;
    growth_fit(s);
    find_largest(options, s);
    return 0;
}
