/* alerts.c: the state of every rule and subject, and what becomes of it. */
#include "capture/monitor/alerts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/tables.h"

enum {
    RULES_MAX = 64,
    STATES_MAX = 1024,
    CALLS_MAX = 256,
    TABLE_RULES = 1,
    TABLE_ALERTS = 2
};

static const double MARGIN = 0.05;           /* of the threshold, to be well again */
static const uint64_t PAUSE_NS = 2000000000; /* at least this is a pause */
static const uint64_t UNKNOWN_NS = 30000000000;

struct rule {
    struct alert_rule is;
    alert_fn *fn;
    void *arg;
    double whole; /* last value of share_of; NaN: not seen yet */
    struct alert_rule_row *row;
    struct alert_rule_row own; /* where `row` points without a file */
};

/* One rule and one subject. */
struct state {
    uint32_t rule;
    char subject[ALERT_NAME_LEN];
    char unit[12];
    uint64_t last_ns, usual_ns; /* last value; time between the last two */
    uint64_t since_ns;          /* bad since; 0: it is not */
    uint64_t good_ns;           /* well by the margin since; 0: it is not */
    unsigned good_count;
    double value, peak;
    uint64_t fired_ns; /* 0: no alert */
    struct alert_row *row;
    struct alert_row own;
};

/* Somebody is to be called. Texts are the rule's and the state's, which stay. */
struct pending {
    const struct rule *rule;
    struct sonde_alert alert;
};

struct alerts {
    struct monitor_sink sink;
    struct monitor_sink *next;
    struct tables tables;
    unsigned cores;
    uint64_t interval_ns, now_ns;
    const struct monitor_round *round; /* that goes on; borrowed */
    uint64_t resumed_ns;               /* end of the last pause; 0: none */
    size_t rule_count, state_count, call_count;
    struct rule rules[RULES_MAX];
    struct state states[STATES_MAX];
    struct pending calls[CALLS_MAX];
};

/* ---- Comparing --------------------------------------------------------------------- */

static bool holds(const struct alert_rule *r, double value)
{
    switch (r->op) {
    case ALERT_ABOVE:
        return value > r->threshold;
    case ALERT_AT_LEAST:
        return value >= r->threshold;
    case ALERT_BELOW:
        return value < r->threshold;
    case ALERT_AT_MOST:
        return value <= r->threshold;
    }
    return false;
}

static bool is_upper(const struct alert_rule *r)
{
    return r->op == ALERT_ABOVE || r->op == ALERT_AT_LEAST;
}

/* On the good side, and not just so. */
static bool is_well(const struct alert_rule *r, double value)
{
    const double margin = MARGIN * fabs(r->threshold);
    if (holds(r, value))
        return false;
    return is_upper(r) ? value <= r->threshold - margin
                       : value >= r->threshold + margin;
}

static double worse(const struct alert_rule *r, double a, double b)
{
    return is_upper(r) ? fmax(a, b) : fmin(a, b);
}

/* ---- Telling ------------------------------------------------------------------------- */

/* Not at once: whoever samples may hold a lock that the function needs as well. */
static void call_later(struct alerts *a, const struct rule *r, const struct state *s,
                       bool active)
{
    if (!r->fn || a->call_count == CALLS_MAX)
        return;
    struct pending *call = &a->calls[a->call_count++];
    call->rule = r;
    call->alert = (struct sonde_alert){
        .expression = r->is.text,
        .metric = r->is.metric,
        .subject = s->subject,
        .unit = s->unit,
        .value = s->value,
        .threshold = r->is.threshold,
        .peak = s->peak,
        .seconds = (double)(s->last_ns - s->since_ns) / 1e9,
        .active = active,
    };
}

void alerts_deliver(struct alerts *a)
{
    for (size_t i = 0; i < a->call_count; i++)
        a->calls[i].rule->fn(&a->calls[i].alert, a->calls[i].rule->arg);
    a->call_count = 0;
}

static uint32_t keep_text(struct alerts *a, const char *text)
{
    return a->tables.base ? tables_text(&a->tables, text, strlen(text)) : 0;
}

static void fire(struct alerts *a, struct rule *r, struct state *s)
{
    uint32_t index;
    struct alert_row *row = tables_append(&a->tables, TABLE_ALERTS, &index);
    s->fired_ns = a->now_ns;
    s->row = row ? row : &s->own;
    *s->row = (struct alert_row){
        .rule = s->rule,
        .subject = keep_text(a, s->subject),
        .since_ns = s->since_ns,
        .fired_ns = a->now_ns,
        .value = s->value,
        .peak = s->peak,
    };
    __atomic_store_n(&s->row->key, 1, __ATOMIC_RELEASE);
    r->row->fired++;
    call_later(a, r, s, true);
}

static void end(struct alerts *a, const struct rule *r, struct state *s,
                uint64_t when_ns, enum alert_end how)
{
    if (s->fired_ns) {
        s->row->end = how;
        __atomic_store_n(&s->row->cleared_ns, when_ns, __ATOMIC_RELEASE);
        call_later(a, r, s, false);
    }
    s->fired_ns = s->since_ns = s->good_ns = 0;
    s->good_count = 0;
}

/* ---- One value ----------------------------------------------------------------------- */

static void while_quiet(struct alerts *a, struct rule *r, struct state *s)
{
    if (!holds(&r->is, s->value)) {
        s->since_ns = 0;
        return;
    }
    s->peak = s->since_ns ? worse(&r->is, s->peak, s->value) : s->value;
    if (!s->since_ns)
        s->since_ns = a->now_ns;
    if (a->now_ns - s->since_ns >= r->is.duration_ns)
        fire(a, r, s);
}

static void while_fired(struct alerts *a, struct rule *r, struct state *s)
{
    s->peak = worse(&r->is, s->peak, s->value);
    if (s->row->peak != s->peak)
        __atomic_store(&s->row->peak, &s->peak, __ATOMIC_RELAXED);
    if (!is_well(&r->is, s->value)) {
        s->good_ns = 0;
        s->good_count = 0;
        return;
    }
    if (!s->good_ns)
        s->good_ns = a->now_ns;
    if (++s->good_count >= 2 && a->now_ns - s->good_ns >= r->is.duration_ns / 2)
        end(a, r, s, s->good_ns, ALERT_CLEARED);
}

static void take(struct alerts *a, struct rule *r, struct state *s, double value)
{
    const uint64_t passed = s->last_ns ? a->now_ns - s->last_ns : 0;
    if (a->resumed_ns > s->last_ns) { /* nobody knows what was meanwhile */
        s->since_ns = s->fired_ns ? s->since_ns : 0;
        s->good_ns = 0;
        s->good_count = 0;
    } else if (passed) {
        s->usual_ns = passed > s->usual_ns ? passed : (3 * s->usual_ns + passed) / 4;
    }
    s->last_ns = a->now_ns;
    s->value = value;
    r->row->compared++;
    if (s->fired_ns)
        while_fired(a, r, s);
    else
        while_quiet(a, r, s);
}

/* NULL when there is no room for another. */
static struct state *state_of(struct alerts *a, uint32_t rule, const char *subject)
{
    for (size_t i = 0; i < a->state_count; i++)
        if (a->states[i].rule == rule && strcmp(a->states[i].subject, subject) == 0)
            return &a->states[i];
    if (a->state_count == STATES_MAX || strlen(subject) >= ALERT_NAME_LEN)
        return NULL;
    struct state *s = &a->states[a->state_count++];
    *s = (struct state){ .rule = rule };
    (void)snprintf(s->subject, sizeof s->subject, "%s", subject);
    return s;
}

/* ---- All values ------------------------------------------------------------------------ */

static bool subject_fits(const struct alert_rule *r, const char *subject)
{
    if (r->subject[0])
        return strcmp(r->subject, subject) == 0;
    return !r->whole_only || subject[0] == '\0';
}

/* The value in the rule's unit; NaN when it cannot be had. */
static double convert(const struct alerts *a, const struct rule *r, double value)
{
    if (r->is.share_of)
        return r->whole > 0 ? 100 * value / r->whole : NAN;
    return r->is.of_all_cores ? value / a->cores : value;
}

static void look(struct alerts *a, uint32_t index, const char *metric,
                 const char *subject, const char *unit, double value)
{
    struct rule *r = &a->rules[index];
    if (r->is.share_of && strcmp(metric, r->is.share_of) == 0)
        r->whole = value;
    if (r->is.from_trace || strcmp(metric, r->is.source) != 0 ||
        !subject_fits(&r->is, subject))
        return;
    const char *expected = r->is.share_of ? unit : r->is.unit;
    if (*expected && strcmp(unit, expected) != 0) {
        if (!r->row->other_unit)
            r->row->other_unit = keep_text(a, unit);
        return;
    }
    const double converted = convert(a, r, value);
    struct state *s = isnan(converted) ? NULL : state_of(a, index, subject);
    if (!s)
        return;
    if (!s->unit[0])
        (void)snprintf(s->unit, sizeof s->unit, "%s", *r->is.unit ? r->is.unit : unit);
    take(a, r, s, converted);
}

static void alerts_set(struct monitor_sink *sink, const char *metric,
                       const char *subject, const char *unit, double value)
{
    struct alerts *a = (struct alerts *)sink;
    if (!isnan(value))
        for (uint32_t i = 0; i < a->rule_count; i++)
            look(a, i, metric, subject, unit, value);
    if (a->next)
        a->next->set(a->next, metric, subject, unit, value);
}

static void alerts_unavailable(struct monitor_sink *sink, const char *metric,
                               const char *why)
{
    struct alerts *a = (struct alerts *)sink;
    if (a->next)
        a->next->unavailable(a->next, metric, why);
}

/* Of single processes nobody is alerted; their totals and series pass through. */
static void alerts_set_process(struct monitor_sink *sink, size_t process,
                               const char *metric, const char *unit, double value)
{
    struct alerts *a = (struct alerts *)sink;
    if (a->next && a->next->set_process)
        a->next->set_process(a->next, process, metric, unit, value);
}

static void alerts_total(struct monitor_sink *sink, size_t process,
                         enum monitor_total what, double value)
{
    struct alerts *a = (struct alerts *)sink;
    if (a->next && a->next->total)
        a->next->total(a->next, process, what, value);
}

struct monitor_sink *alerts_sink(struct alerts *a, struct monitor_sink *next)
{
    a->next = next;
    return &a->sink;
}

/* How long without a value is long. A monitor that looks every 10 s is not gone in
 * between; one that has looked once may do so. */
static uint64_t patience(const struct alerts *a, const struct state *s)
{
    const uint64_t usual = s->usual_ns > a->interval_ns ? s->usual_ns : a->interval_ns;
    if (!s->usual_ns)
        return usual > UNKNOWN_NS / 4 ? 4 * usual : UNKNOWN_NS;
    return 4 * usual > PAUSE_NS ? 4 * usual : PAUSE_NS;
}

/* What is no longer measured does not stay alarming. */
static void end_vanished(struct alerts *a)
{
    for (size_t i = 0; i < a->state_count; i++) {
        struct state *s = &a->states[i];
        const uint64_t seen_ns = s->last_ns > a->resumed_ns ? s->last_ns
                                                            : a->resumed_ns;
        if ((s->fired_ns || s->since_ns) && a->now_ns - seen_ns > patience(a, s))
            end(a, &a->rules[s->rule], s, s->last_ns, ALERT_VANISHED);
    }
}

void alerts_round(struct alerts *a, const struct monitor_round *round)
{
    const uint64_t now_ns = round->now_ns;
    const uint64_t passed = a->now_ns ? now_ns - a->now_ns : 0;
    if (passed <= PAUSE_NS || passed <= 4 * a->interval_ns)
        end_vanished(a); /* of the rounds so far: this one's values are to come */
    else
        a->resumed_ns = now_ns;
    a->now_ns = now_ns;
    a->round = round;
}

/* ---- Rules ------------------------------------------------------------------------------ */

static void add_row(struct alerts *a, struct rule *r)
{
    uint32_t index;
    struct alert_rule_row *row = tables_append(&a->tables, TABLE_RULES, &index);
    r->row = row ? row : &r->own;
    *r->row = (struct alert_rule_row){
        .text = keep_text(a, r->is.text),
        .metric = keep_text(a, r->is.metric),
        .subject = keep_text(a, r->is.subject),
        .unit = keep_text(a, r->is.unit),
        .op = r->is.op,
        .flags = r->is.from_trace ? ALERT_FROM_TRACE : 0,
        .threshold = r->is.threshold,
        .duration_ns = r->is.duration_ns,
    };
    __atomic_store_n(&r->row->key, (uint64_t)(r - a->rules) + 1, __ATOMIC_RELEASE);
}

static int add_one(struct alerts *a, const char *expression, alert_fn *fn, void *arg,
                   struct alert_error *ret_error)
{
    if (a->rule_count == RULES_MAX) {
        *ret_error = (struct alert_error){ 1, "" };
        (void)snprintf(ret_error->message, sizeof ret_error->message,
                       "more than %d alerts", RULES_MAX);
        return SONDE_E_LIMIT;
    }
    struct rule *r = &a->rules[a->rule_count];
    const int rc = alert_parse(expression, &r->is, ret_error);
    if (rc < 0)
        return rc;
    r->fn = fn;
    r->arg = arg;
    r->whole = NAN;
    add_row(a, r);
    a->rule_count++;
    return 0;
}

int alerts_add(struct alerts *a, const char *expression, alert_fn *fn, void *arg,
               struct alert_error *ret_error)
{
    int rc = 0;
    if (strcmp(expression, "reference") != 0)
        return add_one(a, expression, fn, arg, ret_error);
    for (size_t i = 0; rc == 0 && alert_reference[i]; i++)
        rc = add_one(a, alert_reference[i], fn, arg, ret_error);
    return rc;
}

size_t alerts_count(const struct alerts *a)
{
    return a->rule_count;
}

int alerts_new(const struct alerts_options *options, struct alerts **ret_alerts)
{
    static const struct tables_spec specs[] = {
        { "rules", sizeof(struct alert_rule_row), ALERT_RULE_ROWS },
        { "alerts", sizeof(struct alert_row), ALERT_ROWS },
    };
    struct alerts *a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    a->sink = (struct monitor_sink){ .set_process = alerts_set_process,
                                     .total = alerts_total,
                                     .set = alerts_set,
                                     .unavailable = alerts_unavailable };
    a->interval_ns = options->interval_ns ? options->interval_ns : 1000000000;
    const long cores = options->cores ? (long)options->cores
                                      : sysconf(_SC_NPROCESSORS_ONLN);
    a->cores = cores > 0 ? (unsigned)cores : 1;
    const int rc = options->dir ? tables_create(options->dir, ALERT_KIND,
                                                options->control, specs, 2, &a->tables)
                                : 0;
    if (rc < 0) {
        free(a);
        return rc;
    }
    *ret_alerts = a;
    return 0;
}

void alerts_free(struct alerts *a)
{
    if (!a)
        return;
    end_vanished(a);
    if (a->tables.base)
        tables_close(&a->tables);
    free(a);
}
