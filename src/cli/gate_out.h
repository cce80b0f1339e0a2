/* gate_out.h: what a gate found, for people and for CI systems. */
#ifndef SONDE_CLI_GATE_OUT_H
#define SONDE_CLI_GATE_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyse/gate.h"

enum gate_format { GATE_TEXT, GATE_JSON, GATE_JUNIT, GATE_MARKDOWN };

struct gate_report {
    const char *command;  /* as one line */
    const char *baseline; /* "main (git 1a2b3c4, rerun in turn)" */
    const char *weaker;   /* why the comparison is weaker than it could be; NULL */
    bool paired;
    size_t count; /* pairs, or runs */
    size_t runs;  /* of each side */
    double elapsed_s;
    enum gate_verdict verdict;
    const struct gate_metric *metrics;
    const struct gate_result *results;
    size_t metric_count;
};

int gate_print(const struct gate_report *report, enum gate_format format, FILE *out);

#endif
