/* alert.h: alert expressions: METRIC[ SUBJECT] OP VALUE[UNIT][:DURATION].
 *
 *     cpu>80%:10s          the machine's processors, all together, for 10 s
 *     memory>16GiB         resident memory of the run;  memory>85%: of the machine
 *     gpu_memory gpu1>90%  one card; without a subject, each card by itself
 *     gpu_temp>=85C:30s    batch>100ms    power package-0>200W    load>32
 *
 * OP is > >= < <=. Sizes are powers of 1024 whatever they are called. A metric is one of
 * the names in alert.c or any metric of any monitor. `batch`, `step`, `sample` and
 * `operation` come from the trace: they are judged when the run is reported, not while
 * it goes on.
 */
#ifndef SONDE_CAPTURE_MONITOR_ALERT_H
#define SONDE_CAPTURE_MONITOR_ALERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/alert_rows.h"

enum { ALERT_TEXT_LEN = 96, ALERT_NAME_LEN = 40 };

struct alert_rule {
    char text[ALERT_TEXT_LEN];   /* as written */
    char metric[ALERT_NAME_LEN]; /* as written */
    char subject[ALERT_NAME_LEN];
    enum alert_op op;
    double threshold; /* in `unit` */
    const char *unit; /* a monitor's: "percent", "MiB" …; "" whatever it has */
    uint64_t duration_ns;
    bool from_trace;
    /* What monitors call it. */
    const char *source;   /* == metric where it is no word of ours */
    const char *share_of; /* percent of this metric; NULL: as it is */
    bool of_all_cores;    /* 100 = one core becomes 100 = all of them */
    bool whole_only;      /* subject "" only: the run or the machine */
};

struct alert_error {
    size_t position; /* of the first character that does not fit, from 1 */
    char message[160];
};

/* 0, or −EINVAL with the error set and the rule untouched. Pointers in the rule are to
 * static text, or into the rule itself: copy it with alert_rule_copy(). */
int alert_parse(const char *text, struct alert_rule *ret_rule,
                struct alert_error *ret_error);
void alert_rule_copy(struct alert_rule *to, const struct alert_rule *from);

/* The documents' absolute thresholds (C5, C10, D8); ends with NULL. */
extern const char *const alert_reference[];

#endif
