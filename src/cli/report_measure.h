/* report_measure.h: `sonde report --measure`: cures are tried, and the report tells. */
#ifndef SONDE_CLI_REPORT_MEASURE_H
#define SONDE_CLI_REPORT_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyse/report.h"
#include "analyse/thresholds.h"

struct measure_options {
    bool wanted; /* false: only whether it could be done is found out */
    uint64_t steps;
    double seconds;
};

/* Finds out whether the first finding's cure could be measured, for the report to say. */
void report_offer_trial(struct report *report);

/* Tries each forecast of the report, or else the first finding's own cure, and keeps what
 * came of it with the run. What cannot be tried is said on stderr, and the model's answer
 * stands. Ends the process by the signal that interrupted a trial. */
void report_measure(struct report *report, const struct measure_options *options,
                    const struct thresholds *thresholds);

#endif
