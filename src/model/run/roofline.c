/* roofline.c: see roofline.h. */
#include "model/run/roofline.h"

#include <math.h>
#include <string.h>

/* Components of the formulas, and the part of a net that does their work. */
static const struct {
    const char *component;
    enum part part;
} work[] = {
    { "encoder", PART_ENCODER }, { "embedding", PART_ENCODER },
    { "mpnn", PART_MESSAGE },    { "attention", PART_ATTENTION },
    { "ffn", PART_FFN },         { "linear", PART_FFN },
    { "activation", PART_FFN },  { "norm", PART_NORM },
    { "residual", PART_NORM },   { "head", PART_HEAD },
    { "loss", PART_HEAD },
};

static void add(struct roof_part *p, const struct sonde_cost *c)
{
    p->flops += sonde_ops_total(&c->forward) + sonde_ops_total(&c->backward);
    p->bytes += c->forward.bytes + c->backward.bytes;
}

static void collect(const struct sonde_estimate *e, int optimizer,
                    struct roof_part parts[PART_COUNT])
{
    enum { TOUCHED = 7 }; /* AdamW reads four arrays and writes three */
    for (size_t i = 0; i < e->component_count; i++)
        for (size_t w = 0; w < sizeof work / sizeof *work; w++)
            if (strcmp(work[w].component, e->components[i].name) == 0)
                add(&parts[work[w].part], &e->components[i].cost);
    parts[PART_OPTIMIZER].flops = sonde_optimizer_ops(optimizer, e->total.parameters);
    parts[PART_OPTIMIZER].bytes = TOUCHED * 4 * e->total.parameters;
}

static void judge(struct roof_part *p, const struct roofline *r, double step_ms)
{
    p->share = p->ms / step_ms;
    p->flops_per_s = p->flops / p->ms * 1e3;
    p->bytes_per_s = p->bytes / p->ms * 1e3;
    p->intensity = p->flops / p->bytes;
    p->memory_bound = p->intensity < r->ridge;
    p->of_roof = p->flops_per_s /
                 fmin(r->peaks.flops_per_s, p->intensity * r->peaks.bytes_per_s);
}

bool roofline_compute(const struct sonde_estimate *estimate, int optimizer,
                      const struct measurement *m, struct roofline *ret_roofline)
{
    const double step_ms = m->passes[PASS_STEP].mean;
    struct roof_part parts[PART_COUNT] = { { 0 } };
    struct roofline r = { .peaks = m->peaks };
    if (!(m->peaks.flops_per_s > 0 && m->peaks.bytes_per_s > 0 && step_ms > 0))
        return false;
    r.ridge = r.peaks.flops_per_s / r.peaks.bytes_per_s;
    collect(estimate, optimizer, parts);
    for (int i = 0; i < PART_COUNT; i++) {
        parts[i].part = (enum part)i;
        parts[i].ms = m->parts[i][0] + m->parts[i][1];
        if (!(parts[i].ms > 0 && parts[i].bytes > 0))
            continue;
        judge(&parts[i], &r, step_ms);
        r.parts[r.count++] = parts[i];
    }
    const struct sonde_cost *t = &estimate->total;
    r.mfu = 2 * (t->forward.macs + t->backward.macs) / (step_ms / 1e3) /
            r.peaks.flops_per_s;
    r.flops_per_s = (sonde_ops_total(&t->forward) + sonde_ops_total(&t->backward)) /
                    (step_ms / 1e3);
    *ret_roofline = r;
    return true;
}
