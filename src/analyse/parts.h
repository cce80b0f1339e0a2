/* parts.h: steps of report_build() that have a file of their own. Private to
 * analyse/. */
#ifndef SONDE_ANALYSE_PARTS_H
#define SONDE_ANALYSE_PARTS_H

#include "analyse/report.h"

/* open.c: the zones open in each thread of one trace. */
int open_threads_read(struct report *report, size_t process, const struct trace *trace);

/* labels.c: tags and parameters of the run, those set by the program winning. */
int labels_start(struct report *report);
int labels_add(struct report *report, const struct trace *trace);

/* components.c: operations summed up by component; after op_table_finish(). */
int components_sum(struct report *report);

/* verdict.c: one sentence about where the time went or how it ended, and why. */
int verdict_write(struct report *report);

/* diagnosis.c: facts, findings, and the verdict over all. */
int diagnosis_write(struct report *report);

/* provenance.c: how each group of numbers came about. */
int provenance_write(struct report *report);
/* pyrows.c: … of what the Python layer saw; how many rows were filled. */
size_t python_provenance(struct report *report, struct provenance *ret_rows,
                         size_t room);

#endif
