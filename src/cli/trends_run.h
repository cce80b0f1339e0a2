/* trends_run.h: the course of one run's metrics: `sonde trends --run RUN`. */
#ifndef SONDE_CLI_TRENDS_RUN_H
#define SONDE_CLI_TRENDS_RUN_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "store/experiment.h"

/* `metric` NULL: all. Prints a table or JSON; CLI_NO, and said, when there is none. */
int trends_of_run(const struct experiment *e, const char *metric, bool json, FILE *out);

/* "loss: 120 points, step 1 to 120: 0.9 → 0.2, least 0.1, most 1.4\n" for each. */
void series_summary(struct buf *out, const char *json, size_t len);

#endif
