/* input_words.c: see input_words.h. */
#include "analyse/input_words.h"

/* Share of step time that goes into input; when nobody recorded steps, all of it. */
double input_share(const struct rule_case *c)
{
    const double share = FACT_OF(c, INPUT_SHARE);
    return isnan(share) ? 1 : share;
}

/* Making batches costs next to nothing: a busy machine stretches the wall time of work
 * that is mostly computing, so there its CPU time counts. */
static bool is_trifle(const struct rule_case *c)
{
    const double cpu = FACT_OF(c, SAMPLE_CPU_SHARE) >= 0.5 ? FACT_OF(c, BATCH_CPU_MS)
                                                           : NAN;
    return fmin(FACT_OF(c, BATCH_MS), cpu) < c->t->batch_least_ms;
}

/* Batches are there when they are asked for, or cost nothing: whatever making them takes
 * is hidden. A few asks that wait long are few, and cost as much as many short ones. */
bool input_keeps_up(const struct rule_case *c)
{
    const bool there = FACT_OF(c, QUEUE_EMPTY_SHARE) < c->t->queue_empty &&
                       !(FACT_OF(c, QUEUE_WAIT_SHARE) >= c->t->data_wait);
    return there || is_trifle(c);
}

/* Does the step wait for its batch at all? Unknown counts as yes: then the cost itself
 * was measured against the whole run. */
bool input_waits(const struct rule_case *c)
{
    const double share = FACT_OF(c, INPUT_SHARE);
    return (isnan(share) || share >= c->t->data_wait) && !input_keeps_up(c);
}

/* Batches come in time, but the cores that make them are those the step wants. */
static bool crowds(const struct rule_case *c)
{
    return FACT_OF(c, CROWDED_SHARE) >= c->t->crowded;
}

/* Share of a step that its batch costs: by waiting, or by taking the cores. */
double input_burden(const struct rule_case *c)
{
    const double wait = FACT_OF(c, INPUT_SHARE);
    return crowds(c) ? fmax(wait, FACT_OF(c, CROWDED_SHARE)) : wait;
}

/* Nothing is to be had from cheaper batches. */
bool input_is_hidden(const struct rule_case *c)
{
    return input_keeps_up(c) && !crowds(c);
}

/* The what-if's answer where the loader was recorded: three facts from `mid` on. */
void draft_gain_of_model(const struct rule_case *c, struct draft *d, enum fact mid)
{
    const double *v = &c->f->v[mid];
    if (!isnan(v[0]))
        d->gain = (struct gain){ fmin(v[1], v[0]), v[0], fmax(v[2], v[0]) };
}

void put_without_workers(const struct rule_case *c, struct draft *d)
{
    if (FACT_OF(c, WORKERS_BEST) == 0 && FACT_OF(c, WORKERS) > 0)
        buf_puts(&d->advice, FACT_OF(c, PERSISTENT) == 1
                                 ? ", without persistent_workers and prefetch_factor"
                                 : ", without prefetch_factor");
}
