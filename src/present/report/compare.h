/* compare.h: a comparison of runs as text, JSON, CSV. */
#ifndef SONDE_PRESENT_REPORT_COMPARE_H
#define SONDE_PRESENT_REPORT_COMPARE_H

#include <stdio.h>

#include "analyse/compare.h"
#include "present/report/report.h"

int compare_text(const struct comparison *c, const struct report_style *style,
                 FILE *out);
/* Schema sonde.comparison/1. */
int compare_json(const struct comparison *c, FILE *out);
/* One line per row of every section. */
int compare_csv(const struct comparison *c, FILE *out);

/* "summary", "phases" … */
const char *compare_section_name(enum compare_section section);

#endif
