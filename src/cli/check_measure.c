/* check_measure.c: the runs of `sonde check`, and what they say so far.
 *
 * Pairs of both sides in turn, looked at after so many (gatepairs.h); or runs of the
 * change alone, beside stored samples. Half a pair, and a run that the budget cut off, do
 * not count.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/human.h"
#include "base/moment.h"
#include "cli/check.h"
#include "cli/cli.h"
#include "cli/measures.h"

enum { STORED_RUNS = 20 };

static void show_progress(const struct check *c, size_t done, size_t of)
{
    char took[HUMAN_LEN];
    if (c->options->quiet || c->options->show_output || !isatty(STDERR_FILENO))
        return;
    (void)fprintf(
        stderr, "\r\033[K%s %zu of %zu · %s", c->way == CHECK_STORED ? "run" : "pair",
        done + 1, of,
        human_duration(took, (double)(moment_ns(CLOCK_MONOTONIC) - c->started_ns)));
}

void check_clear_progress(const struct check *c)
{
    if (!c->options->quiet && !c->options->show_output && isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}

/* side 0 is the baseline. */
static enum measured_end run_side(struct check *c, int side, double *values)
{
    struct buf message = BUF_INIT;
    const enum measured_end ended = side ? measure_once(&c->measuring, c->argv, NULL,
                                                        values, &message)
                                         : measure_once(&c->measuring, c->base_argv,
                                                        c->base_dir, values, &message);
    if (ended == MEASURED_FAILED) {
        check_clear_progress(c);
        cli_error("%s: %s", side ? "the change" : "the baseline", message.data);
    }
    buf_release(&message);
    return ended;
}

enum measured_end check_warm_up(struct check *c)
{
    double values[GATE_METRICS];
    enum measured_end ended = MEASURED_GOOD;
    for (uint64_t i = 0; ended == MEASURED_GOOD && i < c->options->warmup; i++) {
        if (c->way != CHECK_STORED)
            ended = run_side(c, 0, values);
        if (ended == MEASURED_GOOD)
            ended = run_side(c, 1, values);
    }
    return ended;
}

static enum measured_end run_pair(struct check *c, size_t pair, int first)
{
    double values[2][GATE_METRICS];
    for (int k = 0; k < 2; k++) {
        const int side = k ? !first : first;
        const enum measured_end ended = run_side(c, side, values[side]);
        if (ended != MEASURED_GOOD)
            return ended; /* half a pair does not count */
    }
    gate_pairs_add(&c->runs, pair, c->measuring.count, values);
    c->pairs = gate_pairs_count(&c->runs);
    return MEASURED_GOOD;
}

static bool out_of_time(const struct check *c)
{
    return c->late || moment_ns(CLOCK_MONOTONIC) >= c->deadline_ns;
}

static bool is_missing(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            return false;
    return true;
}

int check_never_told(const struct check *c)
{
    for (size_t i = 0; i < c->measuring.count; i++) {
        const struct gate_metric *m = &c->metrics[i];
        if (m->now_count > 1 && is_missing(m->now, m->now_count) &&
            is_missing(m->baseline, m->baseline_count))
            return (int)i;
    }
    return -1;
}

/* What to do about a number that one side lacks. */
static void add_hint(const struct gate_metric *m, struct gate_result *r)
{
    const size_t len = strlen(r->why);
    const char *hint = m->baseline_count ? measure_hint(m->name)
                                         : "sonde baseline set … -m measures it";
    if (strncmp(r->why, "not measured", 12) == 0 && hint[0])
        (void)snprintf(r->why + len, sizeof r->why - len, ": %s", hint);
}

static void judge(struct check *c, int look)
{
    gate_judge(c->metrics, c->measuring.count, look, c->results);
    for (size_t i = 0; i < c->measuring.count; i++)
        add_hint(&c->metrics[i], &c->results[i]);
    for (size_t i = 0; i < c->measuring.count; i++)
        if (c->way == CHECK_STORED && (c->other_machine || c->other_settings) &&
            !c->results[i].exact) {
            c->results[i].hopeless = true;
            c->results[i].verdict = GATE_INCONCLUSIVE;
            (void)snprintf(c->results[i].why, sizeof c->results[i].why, "%s",
                           c->other_machine
                               ? "the baseline was measured on another machine"
                               : "the baseline was measured with other settings");
        }
}

static void judge_pairs(struct check *c, int look)
{
    for (size_t i = 0; i < c->measuring.count; i++)
        gate_pairs_fold(&c->runs, i, &c->metrics[i]);
    judge(c, look);
}

/* Counts that are the same everywhere need no more runs. When they differ it may be the
 * program that varies: two runs of each side would not show that. */
static bool all_the_same(const struct check *c)
{
    for (size_t i = 0; i < c->measuring.count; i++)
        if (!c->results[i].exact || c->results[i].ratio != 1)
            return false;
    return true;
}

/* Whether further runs could still decide something. */
static bool is_open(const struct check *c)
{
    bool open = false;
    for (size_t i = 0; i < c->measuring.count; i++)
        if (c->results[i].verdict == GATE_FAIL)
            return false;
        else
            open |= c->results[i].verdict == GATE_INCONCLUSIVE &&
                    !c->results[i].hopeless;
    return open;
}

static enum measured_end measure_pairs(struct check *c)
{
    for (int look = 0; look < GATE_LOOKS; look++) {
        size_t pair;
        int first;
        while (!out_of_time(c) && gate_pairs_next(&c->runs, look, &pair, &first)) {
            show_progress(c, gate_pairs_runs(&c->runs),
                          gate_looks[look] * (size_t)gate_rounds[look]);
            const enum measured_end ended = run_pair(c, pair, first);
            c->late = ended == MEASURED_LATE;
            if (c->late)
                break;
            if (ended != MEASURED_GOOD)
                return ended;
            if (gate_pairs_runs(&c->runs) != 2)
                continue;
            judge_pairs(c, 0);
            if (all_the_same(c) || check_never_told(c) >= 0)
                return ended;
        }
        judge_pairs(c, look);
        if (!is_open(c) || out_of_time(c))
            break;
    }
    return MEASURED_GOOD;
}

static enum measured_end measure_stored(struct check *c)
{
    enum measured_end ended = MEASURED_GOOD;
    const size_t most = c->options->runs ? c->options->runs : STORED_RUNS;
    while (ended == MEASURED_GOOD && c->pairs < most && c->pairs < GATE_SAMPLES_MOST &&
           !out_of_time(c)) {
        double values[GATE_METRICS];
        show_progress(c, c->pairs, most);
        ended = run_side(c, 1, values);
        for (size_t i = 0; i < c->measuring.count; i++)
            c->now[i][c->pairs] = values[i];
        c->pairs += ended == MEASURED_GOOD;
        for (size_t i = 0; i < c->measuring.count; i++)
            c->metrics[i].now_count = c->pairs;
        if (check_never_told(c) >= 0)
            break;
    }
    c->late = ended == MEASURED_LATE;
    judge(c, -1);
    return c->late ? MEASURED_GOOD : ended;
}

/* More runs might have told: it was the time that was short. */
static void name_budget(struct check *c)
{
    char budget[HUMAN_LEN];
    (void)human_duration(budget, (double)c->options->budget_ns);
    for (size_t i = 0; out_of_time(c) && i < c->measuring.count; i++) {
        struct gate_result *r = &c->results[i];
        const size_t len = strlen(r->why);
        if (r->verdict == GATE_INCONCLUSIVE && !r->hopeless)
            (void)snprintf(r->why + len, sizeof r->why - len,
                           "%sthe budget of %s is spent", len ? "; " : "", budget);
    }
}

enum measured_end check_measure(struct check *c)
{
    const enum measured_end ended = c->way == CHECK_STORED ? measure_stored(c)
                                                           : measure_pairs(c);
    name_budget(c);
    return ended;
}
