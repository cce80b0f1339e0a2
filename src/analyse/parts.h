/* parts.h: steps of report_build() that have a file of their own. Private to
 * analyse/. */
#ifndef SONDE_ANALYSE_PARTS_H
#define SONDE_ANALYSE_PARTS_H

#include "analyse/report.h"

/* report.c: one more line of what could not be done, "SUBJECT: TEXT". */
void report_note(struct report *report, const char *subject, const char *text);

/* lifetime.c: when the run began and ended, and how; of processes that were added … */
void lifetime_find(struct report *report);
/* … from when to when the phases of each are, without what was not looked at; */
void lifetime_close_phases(struct report *report);
/* … and how much that was in the main process. */
void lifetime_note_unrecorded(struct report *report);

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
