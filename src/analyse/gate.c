/* gate.c: did a change make it slower? */
#include "analyse/gate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "num/ranksum.h"

const size_t gate_looks[GATE_LOOKS] = { 8, 12, 20 };
const char *const gate_words[] = { "pass", "fail", "inconclusive" };

static const double alphas[GATE_LOOKS] = { 0.010, 0.014, 0.026 };
static const double all_alpha = 0.05;

double gate_alpha(int look)
{
    return look < 0 || look >= GATE_LOOKS ? all_alpha : alphas[look];
}

/* ---- One metric --------------------------------------------------------------------- */

static bool all_equal(const double *values, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (values[i] != values[0])
            return false;
    return n > 1;
}

static void start(struct gate_result *r)
{
    *r = (struct gate_result){ .verdict = GATE_INCONCLUSIVE,
                               .ratio = NAN,
                               .low = NAN,
                               .high = NAN,
                               .confidence = NAN,
                               .p = NAN,
                               .smallest = NAN };
}

/* How much worse; unknown where there is no ratio (something below zero got better). */
static double exact_ratio(double before, double after, bool more_is_better)
{
    const double bad = more_is_better ? before : after;
    const double good = more_is_better ? after : before;
    if (before == after)
        return 1;
    if (good > 0 && bad >= 0)
        return bad / good;
    return bad > good ? INFINITY : NAN;
}

/* Counts: the same program gives the same number, and one more is one more. */
static void judge_exact(const struct gate_metric *m, struct gate_result *r)
{
    const double before = m->baseline[0], after = m->now[0];
    r->exact = true;
    r->smallest = 0;
    r->p = NAN;
    r->ratio = exact_ratio(before, after, m->more_is_better);
    r->low = r->high = r->ratio;
    const bool worse = m->more_is_better ? after < before : after > before;
    r->verdict = worse && !(r->ratio <= 1 + m->threshold) ? GATE_FAIL : GATE_PASS;
    if (r->verdict == GATE_FAIL && m->paired && m->now_count < GATE_LEAST) {
        /* A count that varies may be alike within each side of a few pairs. */
        r->verdict = GATE_INCONCLUSIVE;
        (void)snprintf(r->why, sizeof r->why,
                       "counts differ in %zu pairs: %d make sure", m->now_count,
                       GATE_LEAST);
    }
}

/* Logarithms of how bad: larger is worse. False when a value has none. */
static bool badness(const double *values, size_t n, bool more_is_better, double *out)
{
    for (size_t i = 0; i < n; i++) {
        if (!(values[i] > 0) || !isfinite(values[i]))
            return false;
        out[i] = more_is_better ? -log(values[i]) : log(values[i]);
    }
    return true;
}

struct sides {
    double *before, *after;
};

/* The interval of the verdict, and the wider one that Holm's hardest step asks for when
 * there are several tests: what could not have failed at that step was not seen. */
struct measured {
    struct ranktest interval, strict;
    double p;
};

static int measure(const struct gate_metric *m, const struct sides *s, double alpha,
                   size_t tests, struct measured *ret)
{
    const size_t nb = m->baseline_count, na = m->now_count;
    const double levels[2] = { 1 - alpha, 1 - alpha / (double)tests };
    struct ranktest *const into[2] = { &ret->interval, &ret->strict };
    int rc = 0;
    if (!m->paired) {
        ret->p = ranksum_p(s->before, nb, s->after, na);
        for (int i = 0; rc == 0 && i < 2; i++)
            rc = ranksum_shift(s->before, nb, s->after, na, levels[i], into[i]);
        return rc;
    }
    double *d = calloc(nb ? nb : 1, sizeof *d);
    if (!d)
        return -ENOMEM;
    for (size_t i = 0; i < nb; i++)
        d[i] = s->after[i] - s->before[i];
    ret->p = ranktest_p(d, nb);
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = ranktest_paired(d, nb, levels[i], into[i]);
    free(d);
    return rc;
}

static void set_result(const struct measured *t, struct gate_result *r)
{
    r->ratio = exp(t->interval.estimate);
    r->low = exp(t->interval.low);
    r->high = exp(t->interval.high);
    r->confidence = t->interval.confidence;
    r->p = t->p;
    r->smallest = exp(t->strict.estimate - t->strict.low) - 1;
}

static void judge_noisy(const struct gate_metric *m, double alpha, size_t tests,
                        struct gate_result *r)
{
    const size_t nb = m->baseline_count, na = m->now_count;
    struct measured found;
    struct sides s = { .before = calloc(nb + na + 1, sizeof(double)) };
    if (!s.before) {
        (void)snprintf(r->why, sizeof r->why, "out of memory");
        return;
    }
    s.after = s.before + nb;
    if (!badness(m->baseline, nb, m->more_is_better, s.before) ||
        !badness(m->now, na, m->more_is_better, s.after))
        r->hopeless = snprintf(r->why, sizeof r->why,
                               "a measurement that is not positive") > 0;
    else if (measure(m, &s, alpha, tests, &found) < 0)
        (void)snprintf(r->why, sizeof r->why, "too many measurements");
    else
        set_result(&found, r);
    free(s.before);
}

static size_t missing(const double *values, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += isnan(values[i]) != 0;
    return count;
}

/* Which runs lack a number is no accident: the rest would speak for themselves only. */
static bool is_complete(const struct gate_metric *m, struct gate_result *r)
{
    const size_t nb = m->baseline_count, na = m->now_count;
    const size_t lost[2] = { missing(m->baseline, nb), missing(m->now, na) };
    if (nb == 0 && na == 0)
        (void)snprintf(r->why, sizeof r->why, "nothing was measured");
    else if (lost[0] == nb || lost[1] == na)
        (void)snprintf(r->why, sizeof r->why, "not measured %s",
                       lost[0] != nb   ? "after the change"
                       : lost[1] != na ? "before the change"
                                       : "on both sides");
    else if (lost[0] || lost[1])
        (void)snprintf(r->why, sizeof r->why,
                       "missing in %zu of %zu measurements before, %zu of %zu after",
                       lost[0], nb, lost[1], na);
    r->hopeless = r->why[0] && nb && na;
    return !r->why[0];
}

static bool is_exact(const struct gate_metric *m)
{
    const size_t nb = m->baseline_count, na = m->now_count;
    return !m->varies && (all_equal(m->baseline, nb) || nb == 1) &&
           all_equal(m->now, na) && nb + na > 2 && floor(m->now[0]) == m->now[0] &&
           floor(m->baseline[0]) == m->baseline[0];
}

static bool is_test(const struct gate_metric *m)
{
    struct gate_result ignored;
    start(&ignored);
    return is_complete(m, &ignored) && !is_exact(m);
}

static void measure_one(const struct gate_metric *m, double alpha, size_t tests,
                        struct gate_result *r)
{
    const size_t nb = m->baseline_count, na = m->now_count;
    start(r);
    if (!is_complete(m, r))
        return;
    if (is_exact(m)) {
        judge_exact(m, r);
        return;
    }
    judge_noisy(m, alpha, tests, r);
    const size_t fewest = nb < na ? nb : na;
    if (!r->why[0] && fewest < GATE_LEAST)
        (void)snprintf(r->why, sizeof r->why, "%zu %s: at least %d are needed", fewest,
                       m->paired ? "pairs" : "samples on one side", GATE_LEAST);
}

/* ---- Together ----------------------------------------------------------------------- */

/* Holm: the smallest p is multiplied by the number of metrics, the next by one less …,
 * and none becomes smaller than the one before. */
static void correct(struct gate_result *results, size_t count)
{
    bool done[GATE_METRICS] = { false };
    size_t tests = 0;
    double before = 0;
    for (size_t i = 0; i < count; i++)
        tests += !isnan(results[i].p);
    for (size_t left = tests; left > 0; left--) {
        size_t next = count;
        for (size_t i = 0; i < count; i++)
            if (!done[i] && !isnan(results[i].p) &&
                (next == count || results[i].p < results[next].p))
                next = i;
        const double p = results[next].p * (double)left;
        before = p > before ? p : before;
        results[next].p = before > 1 ? 1 : before;
        done[next] = true;
    }
}

static void decide(const struct gate_metric *m, double alpha, struct gate_result *r)
{
    if (r->exact || r->why[0])
        return;
    const double limit = 1 + m->threshold;
    const bool slower = r->low > 1 && r->p <= alpha / 2;
    if (slower && r->ratio > limit)
        r->verdict = GATE_FAIL;
    else if (r->high < limit)
        r->verdict = GATE_PASS;
    else
        (void)snprintf(r->why, sizeof r->why,
                       slower ? "slower, but whether by more than %.0f %% is not sure"
                              : "too noisy to exclude a slowdown of %.0f %%",
                       100 * m->threshold);
}

void gate_judge(const struct gate_metric *metrics, size_t count, int look,
                struct gate_result *ret_results)
{
    const double alpha = gate_alpha(look);
    count = count < GATE_METRICS ? count : GATE_METRICS;
    size_t tests = 0;
    for (size_t i = 0; i < count; i++)
        tests += is_test(&metrics[i]);
    for (size_t i = 0; i < count; i++)
        measure_one(&metrics[i], alpha, tests ? tests : 1, &ret_results[i]);
    correct(ret_results, count);
    for (size_t i = 0; i < count; i++)
        decide(&metrics[i], alpha, &ret_results[i]);
}

enum gate_verdict gate_together(const struct gate_result *results, size_t count)
{
    enum gate_verdict all = GATE_PASS;
    for (size_t i = 0; i < count; i++) {
        if (results[i].verdict == GATE_FAIL)
            return GATE_FAIL;
        if (results[i].verdict == GATE_INCONCLUSIVE)
            all = GATE_INCONCLUSIVE;
    }
    return all;
}
