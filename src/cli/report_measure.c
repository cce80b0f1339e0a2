/* report_measure.c: see report_measure.h. */
#include "cli/report_measure.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyse/trial_model.h"
#include "analyse/trials.h"
#include "base/error.h"
#include "base/human.h"
#include "base/moment.h"
#include "cli/cli.h"
#include "launch/signals.h"
#include "present/report/page.h"
#include "store/list.h"
#include "tune/repeat.h"
#include "tune/trial.h"

static void clear_line(void)
{
    if (isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}

/* The trials of one question. */
struct series {
    struct report *r;
    const struct plan *plan;
    struct trial_options options;
    struct repeat repeat;
    struct buf wrote; /* by the first that wrote */
    int signal;       /* that ended it */
    int told;         /* seconds */
};

static void put_number(const struct series *s, struct buf *out)
{
    buf_puts(out, "trial");
    if (s->repeat.count)
        buf_printf(out, " %zu of %d", s->repeat.count + 1, REPEAT_MOST);
}

static void tick(void *arg, double seconds)
{
    struct series *s = arg;
    struct buf line = BUF_INIT;
    if (!isatty(STDERR_FILENO) || (int)seconds == s->told)
        return;
    s->told = (int)seconds;
    put_number(s, &line);
    (void)fprintf(stderr, "\r\033[K%s of %s · %d s of at most %.0f s", line.data,
                  s->plan->asked, s->told, s->options.seconds - s->options.spent_s);
    (void)fflush(stderr);
    buf_release(&line);
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

static void keep(const struct series *s)
{
    struct trial_entry e;
    char left[HUMAN_LEN];
    repeat_median(&s->repeat, &e);
    if (repeat_says_less(&s->repeat)) {
        (void)fprintf(stderr,
                      "sonde: the trial of %s says little: %s without the calls alone, "
                      "and what is computed for them goes too; the prediction stands\n",
                      s->plan->asked,
                      human_duration(left, s->repeat.loop ? e.loop_ns : e.step_ns));
        return;
    }
    const int rc = triallog_append(s->r->run->dir, &e);
    if (rc < 0)
        cli_error("cannot keep the trial in '%s': %s", s->r->run->dir, error_text(rc));
}

static void say_failed(const struct series *s, const char *why)
{
    struct buf before = BUF_INIT;
    buf_puts(&before, s->repeat.count ? "" : "the ");
    put_number(s, &before);
    buf_printf(&before, " of %s gave no answer: ", s->plan->asked);
    say(before.data, why,
        s->repeat.count ? "; what was measured before stands"
                        : "; the prediction stands");
    buf_release(&before);
}

/* What it measured goes into the series; why it measured nothing is told. */
static enum trial_end try_once(struct series *s)
{
    struct trial_result result;
    s->told = -1;
    const enum trial_end end = trial_run(s->r, s->plan, &s->options, &result);
    clear_line();
    s->signal = result.signal;
    if (end == TRIAL_GOOD) {
        const struct trial_entry *e = &result.entry;
        if (s->repeat.count == 0) {
            s->repeat.loop = trial_is_of_loop(s->r, e);
            s->repeat.calls_alone = plan_leaves_out_calls(s->plan);
            s->repeat.model_ns = trial_modelled_ns(s->r, e, s->repeat.loop);
        }
        s->repeat.done[s->repeat.count++] = *e;
    } else if (end == TRIAL_FAILED) {
        say_failed(s, result.why.data);
    }
    if (!s->wrote.len)
        buf_puts(&s->wrote, result.wrote.data);
    trial_result_release(&result);
    return end;
}

static void announce_more(const struct series *s)
{
    char said[HUMAN_LEN], model[HUMAN_LEN];
    const struct trial_entry *e = &s->repeat.done[0];
    (void)human_duration(said, s->repeat.loop ? e->loop_ns : e->step_ns);
    if (s->repeat.model_ns > 0)
        (void)fprintf(stderr,
                      "sonde: the trial of %s says %s, the model %s: it runs again, up "
                      "to two times, and the median counts\n",
                      s->plan->asked, said, human_duration(model, s->repeat.model_ns));
    else
        (void)fprintf(stderr,
                      "sonde: the trial of %s says %s, and no model says anything: it "
                      "runs again, up to two times, and the median counts\n",
                      s->plan->asked, said);
}

/* Whether somebody wants an end: nothing is kept then. */
static bool try_series(struct series *s)
{
    const uint64_t began = moment_ns(CLOCK_MONOTONIC);
    enum trial_end end;
    do {
        end = try_once(s);
        s->options.spent_s = (double)(moment_ns(CLOCK_MONOTONIC) - began) / 1e9;
        const bool more = end == TRIAL_GOOD &&
                          repeat_wants_more(&s->repeat, s->options.spent_s,
                                            s->options.seconds);
        if (!more)
            break;
        if (s->repeat.count == 1)
            announce_more(s);
    } while (true);
    return end == TRIAL_INTERRUPTED;
}

/* Whether somebody wants an end. */
static bool try_plan(struct report *r, const struct plan *plan,
                     const struct measure_options *o)
{
    struct series s = { .r = r, .plan = plan, .wrote = BUF_INIT };
    s.options = (struct trial_options){
        .steps = o->steps,
        .seconds = o->seconds > 0 ? o->seconds : TRIAL_SECONDS,
        .tick = tick,
        .arg = &s,
    };
    announce(r, plan, trial_guess_s(r, plan, &s.options));
    const bool interrupted = try_series(&s);
    if (interrupted)
        signal_die_by(s.signal);
    if (s.repeat.count && !interrupted)
        keep(&s);
    if (s.wrote.len)
        say("the trial also wrote: ", s.wrote.data, "");
    buf_release(&s.wrote);
    return interrupted;
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
