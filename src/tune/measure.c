/* measure.c: from the recording of a trial to the time after the cure.
 *
 * A step is the mean steady one. The loop, where the cure is about what lies between
 * steps, is the trial's own from its first step to its last, if it ran all of them, less
 * what was still done while the layer learned what to leave out; else it is put together:
 * the sick run's steps at the trial's pace, and what is rarer by so much.
 */
#include <math.h>

#include "tune/trial.h"

/* The same program takes some percent more or less from one run to the next, and a cure
 * leaves work behind that no trial knows of: of 83 trials 72 were within a fifth of what the
 * cured program took, 75 within a quarter (docs/guide-diagnosis.md). */
static const double NOT_KNOWN = 0.25;

static double mean_of(const struct step_class *c)
{
    return c->count ? c->wall_ns / (double)c->count : NAN;
}

static double positive(double x)
{
    return x > 0 ? x : 0;
}

static double extra_ns(const struct step_account *a, enum account_extra extra)
{
    const double zones = extra == EXTRA_CHECKPOINT ? a->checkpoint_ns
                                                   : a->evaluation_ns;
    return positive(zones) + positive(account_beside_ns(a, extra));
}

static double times_of(const struct plan *p, enum account_extra extra)
{
    const char *const names[EXTRAS] = {
        [EXTRA_CHECKPOINT] = "checkpoint", [EXTRA_EVALUATION] = "evaluation"
    };
    for (size_t i = 0; i < p->rare_count; i++)
        if (p->rare[i].what[0] == names[extra][0])
            return fmax(p->rare[i].times, 1);
    return 1;
}

static double all_extras_ns(const struct step_account *a)
{
    return extra_ns(a, EXTRA_CHECKPOINT) + extra_ns(a, EXTRA_EVALUATION);
}

/* Steps with none of what became rarer, and of those with it as many as there will be. */
static double rare_step(const struct step_account *t, const struct trial_counts *c)
{
    double step = mean_of(&t->plain);
    if (!(step > 0) || t->plain.count < 8)
        return t->mean_ns;
    const double rarer = c->kept > 0 ? c->seen / c->times / c->kept : 1;
    for (int i = 0; i < EXTRAS; i++)
        step += positive(account_beside_ns(t, (enum account_extra)i)) * rarer /
                (double)t->steps;
    return step;
}

static double whole_loop(const struct step_account *sick, const struct step_account *t,
                         const struct trial_counts *c)
{
    const double each = c->kept > 0 ? all_extras_ns(t) / c->kept : 0;
    const double due = c->times >= 1 ? c->seen / c->times : c->kept;
    const double loop = account_loop_ns(t) - each * (c->kept - due);
    const double part = t->steps > 0 ? (double)sick->steps / (double)t->steps : 1;
    return loop * (part > 1 ? part : 1);
}

/* Of changes of epochs what goes when workers are kept: the trial's own are what stays. NaN
 * where it had none. */
static double gone_with_epochs(const struct step_account *sick,
                               const struct step_account *t, const struct plan *p)
{
    if (!p->persistent)
        return 0;
    return t->epochs
               ? sick->epoch_ns - (double)sick->epochs * t->epoch_ns / (double)t->epochs
               : NAN;
}

/* What was no steady step stays as it was, but for what is rarer. */
static double made_loop(const struct step_account *sick, const struct step_account *t,
                        double step_ns, const struct plan *p)
{
    const double steps = (double)sick->steps / (p->batch > 1 ? p->batch : 1);
    double beside = 0, gone = gone_with_epochs(sick, t, p);
    for (int i = 0; i < EXTRAS; i++) {
        const enum account_extra extra = (enum account_extra)i;
        beside += positive(account_beside_ns(sick, extra));
        gone += extra_ns(sick, extra) * (1 - 1 / times_of(p, extra));
    }
    const double rest = account_loop_ns(sick) - (double)sick->steps * sick->mean_ns +
                        beside;
    return isnan(gone) ? NAN : steps * step_ns + positive(rest - gone);
}

void trial_judge(const struct step_account *sick, const struct step_account *trial,
                 const struct plan *plan, const struct trial_counts *counts,
                 struct trial_entry *e)
{
    const double step = counts->whole ? rare_step(trial, counts) : trial->mean_ns;
    const double n = fmax((double)trial->steady, 1);
    const double noise = 2 * 1.4826 * positive(trial->mad_ns) / sqrt(n);
    const double half = fmin(fmax(noise / step, NOT_KNOWN), 0.5);
    const double loop = counts->whole ? whole_loop(sick, trial, counts)
                                      : made_loop(sick, trial, step, plan);
    e->steps = trial->steady;
    e->median_of = 1;
    e->step_ns = step;
    e->low_ns = step * (1 - half);
    e->high_ns = step * (1 + half);
    e->loop_ns = loop > 0 ? loop : NAN;
    e->loop_low_ns = e->loop_ns * (1 - half);
    e->loop_high_ns = e->loop_ns * (1 + half);
}
