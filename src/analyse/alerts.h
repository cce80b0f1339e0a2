/* alerts.h: which alerts of a run fired, and which could not have.
 *
 * Those on monitors were watched while the run went on and stand in its directory
 * (trace/alert_rows.h). Those on the trace (batch, step, sample, operation) are judged
 * here: of steps and operations the distributions are exact.
 */
#ifndef SONDE_ANALYSE_ALERTS_H
#define SONDE_ANALYSE_ALERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

/* One time that a rule fired. */
struct alert_event {
    size_t rule;         /* index */
    const char *subject; /* "": the run or the machine; a name of an operation */
    int64_t since_ns;    /* moments since the epoch; 0: not one moment (trace) */
    int64_t fired_ns;
    int64_t cleared_ns; /* 0: open at the end */
    const char *state;  /* "open", "cleared", "vanished" (not measured any more) */
    double value, peak; /* in the rule's unit */
    uint64_t count;     /* times above, where that is known (trace); 0: not */
};

struct alert_rule_state {
    const char *expression, *metric, *subject;
    const char *unit; /* "" when it was not given */
    const char *op;   /* ">" … */
    double threshold, duration_s;
    uint64_t compared, fired;
    double fired_s; /* time with an alert of any subject; NaN: none, or the trace's */
    int64_t fired_till; /* where that time ends */
    double peak;        /* the worst of them; NaN */
    bool from_trace;
    const char *unheard; /* why it could not fire; "" when it could */
};

struct alert_summary {
    struct alert_rule_state *rules;
    size_t rule_count;
    struct alert_event *events; /* in the order they fired */
    size_t event_count;
    uint64_t events_lost; /* that there was no room for */
};

/* Fills in report->alerts; after steps and operations. */
int alerts_read(struct report *report);

#endif
