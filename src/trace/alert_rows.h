/* alert_rows.h: rows of a file of tables of the kind "alerts".
 *
 *     rules    one per expression, in the order given
 *     alerts   one per time a rule fired, in that order
 *
 * Moments are CLOCK_MONOTONIC, as `mono_ns` in the head's clock reading, whose `real_ns`
 * is the same moment since the epoch.
 */
#ifndef SONDE_TRACE_ALERT_ROWS_H
#define SONDE_TRACE_ALERT_ROWS_H

#include <stdint.h>

#define ALERT_KIND "alerts"

enum { ALERT_RULE_ROWS = 256, ALERT_ROWS = 4096 };

enum alert_op { ALERT_ABOVE, ALERT_AT_LEAST, ALERT_BELOW, ALERT_AT_MOST };

enum alert_end {
    ALERT_OPEN = 0, /* still so when the run ended, or when it was killed */
    ALERT_CLEARED,  /* it was well again */
    ALERT_VANISHED, /* nobody measured it any more: a process that ended, a lost card */
};

enum { ALERT_FROM_TRACE = 1 }; /* flags of a rule */

struct alert_rule_row {
    uint64_t key;                         /* number of the rule, from 1 */
    uint32_t text, metric, subject, unit; /* texts */
    uint32_t op;                          /* enum alert_op */
    uint32_t flags;
    double threshold; /* in `unit` */
    uint64_t duration_ns;
    uint64_t compared;   /* values it was held against; 0: it says nothing */
    uint64_t fired;      /* also those there was no room for below */
    uint32_t other_unit; /* text: the metric is in this unit, which does not fit */
    uint32_t pad;
};

struct alert_row {
    uint64_t key;
    uint32_t rule, subject; /* number of the rule, from 0; text */
    uint64_t since_ns;      /* the condition began to hold */
    uint64_t fired_ns;
    uint64_t cleared_ns; /* 0: open. Stored after `end` */
    double value, peak;  /* when it fired; the worst since it began */
    uint32_t end, pad;   /* enum alert_end */
};

_Static_assert(sizeof(struct alert_rule_row) == 72, "on-disk layout");
_Static_assert(sizeof(struct alert_row) == 64, "on-disk layout");

#endif
