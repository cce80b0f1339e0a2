/* alerts.c: reads what fired, judges what only the trace knows. */
#include "analyse/alerts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyse/report.h"
#include "base/buf.h"
#include "trace/alert_rows.h"
#include "trace/tablefiles.h"

enum { EVENTS_MAX = 4096, RULES_MAX = ALERT_RULE_ROWS };

static const char *const op_texts[] = {
    [ALERT_ABOVE] = ">",
    [ALERT_AT_LEAST] = ">=",
    [ALERT_BELOW] = "<",
    [ALERT_AT_MOST] = "<=",
};

static const char *copy(struct report *r, const char *text)
{
    const char *kept = *text ? arena_strdup(&r->arena, text) : "";
    return kept ? kept : "";
}

static bool is_upper(const struct alert_rule_state *rule)
{
    return rule->op[0] == '>';
}

static bool holds(const struct alert_rule_state *rule, double value)
{
    const bool equal_counts = rule->op[1] == '=';
    if (value == rule->threshold)
        return equal_counts;
    return is_upper(rule) ? value > rule->threshold : value < rule->threshold;
}

static struct alert_event *add_event(struct report *r, size_t rule)
{
    struct alert_summary *a = &r->alerts;
    if (a->event_count == EVENTS_MAX) {
        a->events_lost++;
        return NULL;
    }
    struct alert_event *e = &a->events[a->event_count++];
    *e = (struct alert_event){ .rule = rule, .subject = "", .state = "open" };
    return e;
}

static void note_peak(struct alert_rule_state *rule, double peak)
{
    if (isnan(rule->peak))
        rule->peak = peak;
    else
        rule->peak = is_upper(rule) ? fmax(rule->peak, peak) : fmin(rule->peak, peak);
}

/* ---- From the file ------------------------------------------------------------------ */

static const char *why_unheard(struct report *r, const struct tablefile *file,
                               const struct alert_rule_row *row)
{
    struct buf b = BUF_INIT;
    const char *text = "";
    if (row->compared || row->flags & ALERT_FROM_TRACE)
        return "";
    if (row->other_unit)
        buf_printf(&b, "%s is measured in %s", tablefile_text(file, row->metric),
                   tablefile_text(file, row->other_unit));
    else
        buf_printf(&b, "%s was not measured", tablefile_text(file, row->metric));
    if (!b.error)
        text = copy(r, b.data);
    buf_release(&b);
    return text;
}

/* No honest count is beyond what JSON readers take. */
static uint64_t believable(uint64_t count)
{
    return count <= INT64_MAX ? count : 0;
}

static void read_rules(struct report *r, const struct tablefile *file)
{
    struct alert_rule_row row;
    const int table = tablefile_find(file, "rules");
    struct alert_summary *a = &r->alerts;
    const uint32_t count = table < 0 ? 0 : tablefile_count(file, table);
    for (uint32_t i = 0; i < count && a->rule_count < RULES_MAX; i++) {
        /* One that cannot be read keeps its place: alerts know rules by number. */
        if (!tablefile_get(file, table, i, &row, sizeof row) ||
            row.op >= sizeof op_texts / sizeof *op_texts)
            row = (struct alert_rule_row){ 0 };
        a->rules[a->rule_count++] = (struct alert_rule_state){
            .expression = copy(r, tablefile_text(file, row.text)),
            .metric = copy(r, tablefile_text(file, row.metric)),
            .subject = copy(r, tablefile_text(file, row.subject)),
            .unit = copy(r, tablefile_text(file, row.unit)),
            .op = op_texts[row.op],
            .threshold = row.threshold,
            .duration_s = (double)row.duration_ns / 1e9,
            .compared = believable(row.compared),
            .fired = believable(row.fired),
            .fired_s = NAN,
            .peak = NAN,
            .from_trace = row.flags & ALERT_FROM_TRACE,
            .unheard = why_unheard(r, file, &row),
        };
    }
}

/* 0 stays 0: never. So does what can be no moment of ours: the file may say anything. */
static int64_t moment(const struct tablefile *file, uint64_t mono_ns)
{
    const struct clock_reading *start = &tablefile_head(file)->start;
    const uint64_t real_ns = start->real_ns + (mono_ns - start->mono_ns);
    return mono_ns && real_ns < INT64_MAX / 2 ? (int64_t)real_ns : 0;
}

static const char *state_text(const struct alert_row *row)
{
    if (!row->cleared_ns)
        return "open";
    return row->end == ALERT_VANISHED ? "vanished" : "cleared";
}

/* Two cards that are hot at once are hot once. Alerts come in the order they fired, so
 * that only their ends can overlap. */
static void add_time(struct alert_rule_state *rule, int64_t since_ns, int64_t end_ns)
{
    const int64_t from = since_ns > rule->fired_till ? since_ns : rule->fired_till;
    if (isnan(rule->fired_s))
        rule->fired_s = 0;
    if (!since_ns || end_ns <= from)
        return;
    rule->fired_s += (double)(end_ns - from) / 1e9;
    rule->fired_till = end_ns;
}

static void read_events(struct report *r, const struct tablefile *file, size_t first)
{
    struct alert_row row;
    struct alert_summary *a = &r->alerts;
    const int table = tablefile_find(file, "alerts");
    const uint32_t count = table < 0 ? 0 : tablefile_count(file, table);
    for (uint32_t i = 0; i < count; i++) {
        if (!tablefile_get(file, table, i, &row, sizeof row) ||
            row.rule >= a->rule_count - first)
            continue;
        struct alert_rule_state *rule = &a->rules[first + row.rule];
        struct alert_event *e = add_event(r, first + row.rule);
        if (!e)
            continue;
        e->subject = copy(r, tablefile_text(file, row.subject));
        e->since_ns = moment(file, row.since_ns);
        e->fired_ns = moment(file, row.fired_ns);
        e->cleared_ns = moment(file, row.cleared_ns);
        e->state = state_text(&row);
        e->value = row.value;
        e->peak = row.peak;
        note_peak(rule, row.peak);
        add_time(rule, e->since_ns, e->cleared_ns ? e->cleared_ns : r->end_ns);
    }
    if (table >= 0)
        a->events_lost += tablefile_head(file)->table[table].refused;
}

static int read_file(void *arg, const char *name, struct tablefile *file, int rc)
{
    struct report *r = arg;
    struct alert_summary *a = &r->alerts;
    (void)name;
    if (rc < 0)
        return 0;
    if (!a->rules) {
        a->rules = arena_alloc_array(&r->arena, RULES_MAX, sizeof *a->rules);
        a->events = arena_alloc_array(&r->arena, EVENTS_MAX, sizeof *a->events);
    }
    if (!a->rules || !a->events)
        return -ENOMEM;
    const size_t first = a->rule_count;
    read_rules(r, file);
    read_events(r, file, first);
    return 0;
}

/* ---- From the trace ------------------------------------------------------------------ */

static void fire(struct report *r, size_t index, const char *subject, double value_s,
                 uint64_t count)
{
    struct alert_rule_state *rule = &r->alerts.rules[index];
    rule->fired++;
    note_peak(rule, value_s);
    struct alert_event *e = add_event(r, index);
    if (!e)
        return;
    e->subject = subject;
    e->state = "cleared";
    e->value = e->peak = value_s;
    e->count = count;
}

/* The worst decides; how often is known for all of them at once only if all are. */
static void judge(struct report *r, size_t index, const char *subject,
                  const struct distribution *d)
{
    struct alert_rule_state *rule = &r->alerts.rules[index];
    if (d->count == 0)
        return;
    rule->compared += d->count;
    const double best = (is_upper(rule) ? d->min : d->max) / 1e9;
    const double worst = (is_upper(rule) ? d->max : d->min) / 1e9;
    if (holds(rule, worst))
        fire(r, index, subject, worst, holds(rule, best) ? d->count : 0);
}

static void judge_operations(struct report *r, size_t index)
{
    const char *wanted = r->alerts.rules[index].subject;
    for (size_t i = 1; i < r->ops.count; i++) {
        const struct op *op = &r->ops.ops[i];
        if (op->kind != OP_OTHER && (!*wanted || strcmp(op->name, wanted) == 0))
            judge(r, index, op->name, &op->durations);
    }
}

static void judge_samples(struct report *r, size_t index)
{
    const double per_s = step_samples_per_s(&r->steps);
    struct alert_rule_state *rule = &r->alerts.rules[index];
    if (!(per_s > 0))
        return;
    rule->compared++;
    if (holds(rule, 1 / per_s))
        fire(r, index, "mean of all", 1 / per_s, 0);
}

static void judge_trace(struct report *r)
{
    for (size_t i = 0; i < r->alerts.rule_count; i++) {
        struct alert_rule_state *rule = &r->alerts.rules[i];
        if (!rule->from_trace)
            continue;
        if (strcmp(rule->metric, "operation") == 0)
            judge_operations(r, i);
        else if (strcmp(rule->metric, "sample") == 0)
            judge_samples(r, i);
        else
            judge(r, i, "", &r->steps.durations);
        if (!rule->compared)
            rule->unheard = strcmp(rule->metric, "operation") == 0
                                ? "no operation was recorded"
                            : strcmp(rule->metric, "sample") == 0
                                ? "the program told no samples (sonde_step_samples)"
                                : "the program told no steps (sonde_step)";
    }
}

int alerts_read(struct report *r)
{
    const int rc = tablefiles_each(r->run->dir, ALERT_KIND, read_file, r);
    if (rc == 0)
        judge_trace(r);
    return rc;
}
