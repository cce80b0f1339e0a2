/* flops.h: the floating-point operations a program told of. */
#ifndef SONDE_ANALYSE_FLOPS_H
#define SONDE_ANALYSE_FLOPS_H

#include "analyse/report.h"

/* Of the whole run: the last value of a metric or counter `flops`, which is the program's
 * own total; else those of one step × the steps of the process that makes them. NaN when
 * the program told neither. */
double report_flops(const struct report *report);
/* Of one step: the last value of a metric `flops_per_step`, else of a counter, else the
 * parameter of that name. NaN when the program did not tell: nothing here is guessed. */
double report_flops_per_step(const struct report *report);
/* At the rate of the run's steps. */
double report_flops_per_s(const struct report *report);

#endif
