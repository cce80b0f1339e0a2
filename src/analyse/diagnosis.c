/* diagnosis.c: from a run to what is wrong with it.
 *
 * Facts, rules, then the verdict: how the run ended when it ended badly, else the first
 * finding, else where the time went.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/facts.h"
#include "analyse/habits.h"
#include "analyse/parts.h"
#include "analyse/thresholds.h"
#include "analyse/whatif.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/human.h"

/* Runs that died have another story to tell first. */
static bool ended_badly(const struct report *r)
{
    return r->state == RUN_KILLED || r->state == RUN_FAILED || r->state == RUN_UNKNOWN;
}

static int set_text(struct report *r, const char **text, const struct buf *b)
{
    const char *copy = b->error ? NULL : arena_strdup(&r->arena, b->data);
    if (!copy)
        return -ENOMEM;
    *text = copy;
    return 0;
}

static int put_verdict(struct report *r, const struct finding *f)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s. %s", f->title, f->description);
    const int rc = set_text(r, &r->verdict, &b);
    buf_release(&b);
    return rc;
}

static void put_value(struct buf *b, const struct finding_evidence *e)
{
    char name[64], value[HUMAN_LEN];
    size_t i = 0;
    for (; e->metric[i] && i + 1 < sizeof name; i++)
        name[i] = e->metric[i] == '_' ? ' ' : e->metric[i];
    name[i] = '\0';
    if (strcmp(e->unit, "share") == 0)
        buf_printf(b, "%s %.0f %%", name, fabs(e->value) < 0.005 ? 0 : 100 * e->value);
    else if (strcmp(e->unit, "1") == 0)
        buf_printf(b, "%s %s", name, human_number(value, e->value, 4));
    else
        buf_printf(b, "%s %s %s", name, human_number(value, e->value, 3), e->unit);
}

/* What the first finding rests on: what it says lies behind it, and its numbers. */
static int put_why(struct report *r, const struct finding *f)
{
    enum { SHOWN = 5 };
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < f->because_count; i++)
        buf_printf(&b, "%s%s", i ? ", " : "Because of ", f->because[i]);
    if (f->because_count)
        buf_puts(&b, ". ");
    for (size_t i = 0; i < f->evidence_count && i < SHOWN; i++) {
        if (i)
            buf_puts(&b, " · ");
        put_value(&b, &f->evidence[i]);
    }
    const int rc = set_text(r, &r->why, &b);
    buf_release(&b);
    return rc;
}

/* The time that a gain is a part of, as it is now; what it is called; its unit. */
struct time_of_gain {
    const char *name, *unit;
    double now;
};

static struct time_of_gain time_of(const struct report *r, enum gain_of of)
{
    const double loop_s = account_loop_ns(&r->account) / 1e9;
    /* The mean: a few slow steps are what some cures are about. */
    if (of == GAIN_OF_STEP)
        return (struct time_of_gain){ " per step", "ms", r->account.mean_ns / 1e6 };
    if (of == GAIN_OF_LOOP && loop_s > 0)
        return (struct time_of_gain){ " from the first step to the last", "s", loop_s };
    return (struct time_of_gain){ " for the run", "s", report_duration_s(r) };
}

static void put_gain(struct buf *b, const struct report *r, const struct finding *f)
{
    const struct time_of_gain t = time_of(r, f->gain_of);
    buf_printf(b, ". Predicted: %.0f–%.0f %% less time", 100 * f->gain.low,
               100 * f->gain.high);
    if (t.now > 0)
        buf_printf(b, "%s (%.3g → %.3g %s; %.3g to %.3g)", t.name, t.now,
                   t.now * (1 - f->gain.mid), t.unit, t.now * (1 - f->gain.high),
                   t.now * (1 - f->gain.low));
}

/* By how much the time goes down; "more" where it goes up. */
static void put_percent(struct buf *b, double low, double high)
{
    if (low < 0)
        buf_printf(b, "%.0f %% more to %.0f %% less", -100 * low, 100 * high);
    else
        buf_printf(b, "%.0f–%.0f %% less", 100 * low, 100 * high);
}

/* What a trial measured stands where else a prediction would. */
static void put_measured(struct buf *b, const struct report *r, const struct finding *f,
                         const struct trial_entry *t)
{
    const bool loop = f->gain_of != GAIN_OF_STEP && !isnan(t->loop_ns);
    const double now = loop ? account_loop_ns(&r->account) : r->account.mean_ns;
    const double low = loop ? t->loop_low_ns : t->low_ns;
    const double high = loop ? t->loop_high_ns : t->high_ns;
    const double unit = loop ? 1e9 : 1e6;
    buf_puts(b, ". Measured by a trial: ");
    put_percent(b, 1 - high / now, 1 - low / now);
    buf_printf(b, " time%s (%.3g → %.3g–%.3g %s)",
               loop ? " from the first step to the last" : " per step", now / unit,
               low / unit, high / unit, loop ? "s" : "ms");
}

static int put_next(struct report *r, const struct finding *f)
{
    struct buf b = BUF_INIT;
    const struct trial_entry *trial = report_trial_of(r, f);
    buf_puts(&b, f->recommendation);
    if (trial)
        put_measured(&b, r, f, trial);
    else if (f->gain.mid >= 0.01)
        put_gain(&b, r, f);
    const int rc = set_text(r, &r->next, &b);
    buf_release(&b);
    return rc;
}

static int speak(struct report *r)
{
    const struct diagnosis *d = &r->diagnosis;
    r->next = "";
    int rc = verdict_write(r);
    if (rc < 0 || d->finding_count == 0)
        return rc;
    const struct finding *first = &d->findings[0];
    if (!ended_badly(r) && first->severity > SEVERITY_LOW) {
        rc = put_verdict(r, first);
        if (rc == 0)
            rc = put_why(r, first);
    }
    const bool worth = first->severity > SEVERITY_LOW || !first->symptom;
    return rc < 0 || !worth ? rc : put_next(r, first);
}

/* ---- Trials ------------------------------------------------------------------------- */

const struct trial_entry *report_trial_of(const struct report *r,
                                          const struct finding *finding)
{
    for (size_t i = 0; i < r->trial_count; i++)
        if (strcmp(r->trials[i].finding, finding->id) == 0)
            return &r->trials[i];
    return NULL;
}

const struct trial_entry *report_trial_asked(const struct report *r, const char *text)
{
    for (size_t i = 0; i < r->trial_count; i++)
        if (!r->trials[i].finding[0] && strcmp(r->trials[i].asked, text) == 0)
            return &r->trials[i];
    return NULL;
}

/* A file that cannot be read is no reason to have no report. */
static int read_trials(struct report *r)
{
    struct trial_entry *all = arena_alloc(&r->arena, TRIALS_MAX * sizeof *all);
    if (!all)
        return -ENOMEM;
    r->trials = all;
    r->trial_count = 0;
    (void)triallog_read(r->run->dir, all, &r->trial_count);
    return 0;
}

int report_diagnose(struct report *r, const struct thresholds *thresholds)
{
    struct facts *facts = arena_alloc(&r->arena, sizeof *facts);
    if (!facts)
        return -ENOMEM;
    int rc = read_trials(r);
    if (rc == 0)
        rc = facts_read(r, facts);
    if (rc == 0)
        rc = findings_make(facts, thresholds, &r->arena, &r->diagnosis);
    return rc < 0 ? rc : speak(r);
}

int diagnosis_write(struct report *r)
{
    struct thresholds t;
    thresholds_init(&t);
    return report_diagnose(r, &t);
}

/* ---- What if ---------------------------------------------------------------------------- */

/* Of the loop around the loader, and with it. */
static int forecast_loop(struct report *r, const struct pipeline *p,
                         struct report_forecast *one, char error[WHATIF_ERROR_LEN])
{
    struct facts *facts = arena_alloc(&r->arena, sizeof *facts);
    struct habits habits;
    int rc = facts ? facts_read(r, facts) : -ENOMEM;
    if (rc < 0)
        return rc;
    habits_of(r, facts, &habits);
    const struct settings *s = &one->settings;
    /* Beside workers a step is no shorter than it takes to make its batch. */
    const bool beside = s->optimizer > 0 && p->known && p->workers > 0;
    const bool loader = s->loader || beside || !habits_asked(s);
    if (loader) {
        struct settings with = *s;
        with.compute_less_ns = habits_less_ns(&habits, s);
        one->forecast = whatif_predict(p, &with);
    }
    rc = habits_predict(&habits, s, loader ? &one->forecast : NULL, p->step_ns,
                        &one->loop, error);
    if (rc < 0)
        return rc;
    one->loop_now_ns = habits.loop_ns;
    one->step_mean_ns = habits.step_ns;
    return 0;
}

static int forecast(struct report *r, const struct pipeline *p,
                    struct report_forecast *one, char error[WHATIF_ERROR_LEN])
{
    static const struct habits_forecast unknown = { NAN, NAN, NAN, NAN, NAN, NAN };
    const bool loop = habits_asked(&one->settings);
    one->loader_known = p->known;
    one->loop = unknown;
    one->loop_now_ns = one->step_mean_ns = NAN;
    if (one->settings.loader && !p->known)
        return SONDE_E_NOTFOUND;
    if (one->settings.collate_speed > 0 && !(p->collate_share > 0)) {
        (void)snprintf(error, WHATIF_ERROR_LEN, "no collate function was recorded");
        return -EINVAL;
    }
    const int rc = forecast_loop(r, p, one, error);
    if (rc < 0 && (loop || rc != -EINVAL))
        return rc;
    if (one->settings.loader || !loop) {
        if (rc < 0) /* a loader without steps: its batches are all there is */
            one->forecast = whatif_predict(p, &one->settings);
        one->now_ns = p->step_ns;
        return 0;
    }
    one->now_ns = one->step_mean_ns;
    one->forecast = (struct forecast){ one->loop.step_ns, one->loop.step_low_ns,
                                       one->loop.step_high_ns, NAN, LIMIT_COMPUTE };
    return 0;
}

int report_what_if(struct report *r, const char *text, char ret_error[WHATIF_ERROR_LEN])
{
    struct pipeline p;
    pipeline_of(r, &p);
    struct settings settings = whatif_now(&p);
    int rc = whatif_parse(text, &settings, ret_error);
    if (rc < 0)
        return rc;
    if (!p.known && !habits_asked(&settings))
        return SONDE_E_NOTFOUND;
    struct report_forecast *one = arena_alloc(&r->arena, sizeof *one);
    const char *copy = arena_strdup(&r->arena, text);
    if (!one || !copy)
        return -ENOMEM;
    *one = (struct report_forecast){ .text = copy, .settings = settings };
    rc = forecast(r, &p, one, ret_error);
    if (rc < 0)
        return rc;
    struct report_forecast **end = &r->forecasts;
    while (*end)
        end = &(*end)->next;
    *end = one;
    return 0;
}
