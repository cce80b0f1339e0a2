/* filter.h: which operations a report lists. Private to present/report. */
#ifndef SONDE_PRESENT_REPORT_FILTER_H
#define SONDE_PRESENT_REPORT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/operations.h"
#include "present/report/report.h"

struct op_filter {
    bool *shown; /* by index of the operation */
    size_t shown_count;
    size_t left_out;    /* operations not shown … */
    double left_out_ns; /* … and their self time */
};

/* Keeps what the style's thresholds let through and, of that, the `limit` with the
 * longest totals (0: no limit). With an operation all around it are kept. */
int op_filter_init(struct op_filter *ret_filter, const struct op_table *table,
                   const struct report_style *style, size_t limit);
void op_filter_release(struct op_filter *filter);

#endif
