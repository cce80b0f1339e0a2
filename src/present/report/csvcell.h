/* csvcell.h: one cell of a CSV file (RFC 4180). Private to present/report. */
#ifndef SONDE_PRESENT_REPORT_CSVCELL_H
#define SONDE_PRESENT_REPORT_CSVCELL_H

#include "base/buf.h"

/* Quoted; what a spreadsheet would take for a formula gets an apostrophe in front. */
void csv_put_text(struct buf *out, const char *text);
/* With the comma before it; empty when not finite. */
void csv_put_number(struct buf *out, double value, double scale);

#endif
