/* report_measure.c: see report_measure.h. */
#include "cli/report_measure.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyse/trials.h"
#include "base/error.h"
#include "cli/cli.h"
#include "launch/signals.h"
#include "present/report/page.h"
#include "store/list.h"
#include "tune/trial.h"

static void clear_line(void)
{
    if (isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}

struct course {
    const char *asked;
    double most_s;
    int told; /* seconds */
};

static void tick(void *arg, double seconds)
{
    struct course *c = arg;
    if (!isatty(STDERR_FILENO) || (int)seconds == c->told)
        return;
    c->told = (int)seconds;
    (void)fprintf(stderr, "\r\033[Ktrial of %s · %d s of at most %.0f s", c->asked,
                  c->told, c->most_s);
    (void)fflush(stderr);
}

/* What the program wrote, and was called, must not steer the terminal. */
static void say(const char *before, const char *hostile, const char *after)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, hostile, 300);
    (void)fprintf(stderr, "sonde: %s%s%s\n", before, clean.data, after);
    buf_release(&clean);
}

static void announce(const struct report *r, const struct plan *plan, double guess_s)
{
    const struct run_meta *m = &r->run->meta;
    struct buf words = BUF_INIT, before = BUF_INIT;
    for (size_t i = 0; i < m->command_count; i++)
        buf_printf(&words, "%s%s", i ? " " : "", m->command[i]);
    buf_printf(&before, "trial of %s: running again, for about %.0f s: ", plan->asked,
               ceil(guess_s));
    say(before.data, words.data, " (what it does besides training happens again)");
    buf_release(&words);
    buf_release(&before);
}

static void keep(const struct report *r, const struct trial_result *result)
{
    const int rc = triallog_append(r->run->dir, &result->entry);
    if (rc < 0)
        cli_error("cannot keep the trial in '%s': %s", r->run->dir, error_text(rc));
}

/* Whether somebody wants an end. */
static bool try_plan(struct report *r, const struct plan *plan,
                     const struct measure_options *o)
{
    struct trial_options options = { .steps = o->steps, .seconds = o->seconds };
    struct course course = { plan->asked, o->seconds > 0 ? o->seconds : TRIAL_SECONDS,
                             -1 };
    struct trial_result result;
    options.tick = tick;
    options.arg = &course;
    announce(r, plan, trial_guess_s(r, plan, &options));
    const enum trial_end end = trial_run(r, plan, &options, &result);
    clear_line();
    if (end == TRIAL_INTERRUPTED)
        signal_die_by(result.signal);
    if (end == TRIAL_GOOD)
        keep(r, &result);
    else if (end == TRIAL_FAILED) {
        struct buf before = BUF_INIT;
        buf_printf(&before, "the trial of %s gave no answer: ", plan->asked);
        say(before.data, result.why.data, "; the prediction stands");
        buf_release(&before);
    }
    if (result.wrote.len)
        say("the trial also wrote: ", result.wrote.data, "");
    trial_result_release(&result);
    return end == TRIAL_INTERRUPTED;
}

static void say_not(const char *asked, const char *why)
{
    cli_error("%s cannot be measured: %s; the prediction stands", asked, why);
}

static bool try_forecasts(struct report *r, const struct measure_options *o)
{
    char why[PLAN_WHY] = "";
    for (const struct report_forecast *f = r->forecasts; f; f = f->next) {
        struct plan plan;
        const int rc = plan_of_settings(r, f, &plan, why);
        if (rc < 0)
            say_not(f->text, why[0] ? why : error_text(rc));
        else if (try_plan(r, &plan, o))
            return true;
    }
    return false;
}

/* The first that is a cause: busy cores have no cure of their own. */
static const struct finding *first_cause(const struct report *r)
{
    const struct diagnosis *d = &r->diagnosis;
    for (size_t i = 0; i < d->finding_count; i++)
        if (!d->findings[i].symptom)
            return &d->findings[i];
    return &d->findings[0];
}

static void try_first(struct report *r, const struct measure_options *o)
{
    char why[PLAN_WHY] = "";
    struct plan plan;
    if (r->diagnosis.finding_count == 0) {
        cli_error("nothing to measure: the run has no finding (--what-if names a "
                  "setting to try)");
        return;
    }
    const struct finding *first = first_cause(r);
    const int rc = plan_of_finding(r, first, &plan, why);
    if (rc < 0)
        say_not(first->id, why[0] ? why : error_text(rc));
    else
        (void)try_plan(r, &plan, o);
}

void report_offer_trial(struct report *r)
{
    char why[PLAN_WHY];
    struct plan plan;
    struct buf text = BUF_INIT;
    const struct trial_options usual = { 0 };
    r->trial_offered_s = 0;
    if (r->diagnosis.finding_count > 0 &&
        r->diagnosis.findings[0].severity > SEVERITY_LOW &&
        trial_is_possible(r, &text) &&
        plan_of_finding(r, &r->diagnosis.findings[0], &plan, why) == 0)
        r->trial_offered_s = trial_guess_s(r, &plan, &usual);
    buf_release(&text);
}

void report_measure(struct report *r, const struct measure_options *o,
                    const struct thresholds *thresholds)
{
    struct buf why = BUF_INIT;
    if (!o->wanted) {
        report_offer_trial(r);
    } else if (getenv("SONDE_RUN")) {
        say_not("this run", "this is inside of a run");
    } else if (!trial_is_possible(r, &why)) {
        say_not("this run", why.data);
    } else {
        if (r->forecasts)
            (void)try_forecasts(r, o);
        else
            try_first(r, o);
        if (report_diagnose(r, thresholds) < 0)
            cli_error("cannot judge the run again");
        trials_recall(r, store_directory());
    }
    buf_release(&why);
}
