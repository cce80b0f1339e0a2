/* jsonparts.h: small words of the JSON report. Private to present/report. */
#ifndef SONDE_PRESENT_REPORT_JSONPARTS_H
#define SONDE_PRESENT_REPORT_JSONPARTS_H

#include <stdint.h>

#include "analyse/report.h"
#include "base/json.h"
#include "present/report/filter.h"

/* A key and its value; what is unknown becomes null: "", NaN, negative. */
void field_text(struct json_writer *w, const char *key, const char *text);
void field_uint(struct json_writer *w, const char *key, uint64_t value);
void field_int(struct json_writer *w, const char *key, int value);
void field_number(struct json_writer *w, const char *key, double value, int decimals);
void field_seconds(struct json_writer *w, const char *key, double ns);
void field_ms(struct json_writer *w, const char *key, double ns);
void field_time(struct json_writer *w, const char *key, int64_t ns);
void field_null(struct json_writer *w, const char *key);
void field_nulls(struct json_writer *w, const char *const *keys);
void field_empty_array(struct json_writer *w, const char *key);

/* Key and value as run.json has them, at the top or in a group; null without. */
void field_from_run(struct json_writer *w, const struct json_t *root, const char *group,
                    const char *key);

/* energy.c: energy; alerts that fired and the rules behind them. */
void fields_of_energy(struct json_writer *w, const struct report *r);
void fields_of_alerts(struct json_writer *w, const struct report *r);
/* hangs.c: hangs and where the threads waited. */
void fields_of_hangs(struct json_writer *w, const struct report *r);

/* jsontraining.c: epochs and models; elements of `environment`. */
void fields_of_training(struct json_writer *w, const struct report *r);
void fields_of_software(struct json_writer *w, const struct report *r);

/* jsonranks.c: the processes that are ranks of one job, and how many it has. */
void fields_of_ranks(struct json_writer *w, const struct report *r);
int world_size_of(const struct report *r);

/* jsonops.c: operations, components, steps over time, counters. */
void fields_of_operations(struct json_writer *w, const struct report *r,
                          const struct op_filter *filter);
/* jsonalloc.c */
void fields_of_allocations(struct json_writer *w, const struct report *r);

/* pysection.c: elements of `functions` and `lines`, and the key `python`. */
/* Of so many rows of Python's, the number that is written. */
size_t py_rows_written(const struct json_writer *w, size_t count);
void write_py_function(struct json_writer *w, const struct py_profile *p,
                       const struct py_function *function);
void write_py_line(struct json_writer *w, const struct py_profile *p,
                   const struct py_line *line);
void fields_of_python(struct json_writer *w, const struct report *r);

/* jsonmonitors.c: series over time; what monitors know of processes. */
void fields_of_monitors(struct json_writer *w, const struct report *r);
/* NULL: not watched. */
void fields_of_watched(struct json_writer *w, const struct watched_process *p);
const struct watched_process *watched_of(const struct report *r,
                                         const struct report_process *p);
/* Elements of `processes` for those that left no trace. */
void fields_of_untraced(struct json_writer *w, const struct report *r);

/* jsonio.c: files and sockets. */
void fields_of_io(struct json_writer *w, const struct report *r);

/* findings.c: bottlenecks, recommendations, rules; account. */
void fields_of_findings(struct json_writer *w, const struct report *r);
void fields_of_forecasts(struct json_writer *w, const struct report *r);
void fields_of_trials(struct json_writer *w, const struct report *r);
/* NULL key: an element of a list, with what was tried. NULL trial: null. */
void field_trial(struct json_writer *w, const char *key, const struct trial_entry *t);
void fields_of_account(struct json_writer *w, const struct report *r);
/* jsonloaders.c */
void fields_of_loaders(struct json_writer *w, const struct report *r);

/* functions.c: functions and lines, with the totals of sampling. */
void fields_of_functions(struct json_writer *w, const struct report *r);

#endif
