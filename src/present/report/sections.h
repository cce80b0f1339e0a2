/* sections.h: the parts of the text report. Private to present/report.
 *
 * Each prints itself with a blank line behind, or nothing when it has nothing to
 * say. Limits keep the report to one screen.
 */
#ifndef SONDE_PRESENT_REPORT_SECTIONS_H
#define SONDE_PRESENT_REPORT_SECTIONS_H

#include "analyse/report.h"
#include "present/report/page.h"
#include "present/report/report.h"

/* How many lines of a kind are shown before the rest is summed up. */
struct limits {
    size_t phases, threads, notes, metrics, files, functions, findings;
};

void section_head(struct page *page, const struct report *r);
void section_verdict(struct page *page, const struct report *r,
                     const struct report_style *style);
void section_steps(struct page *page, const struct report *r);
/* training.c */
void section_training(struct page *page, const struct report *r);
/* phasetable.c */
void section_phases(struct page *page, const struct report *r,
                    const struct limits *limits);
/* loadersection.c: the first few data loaders; all in the full report. */
void section_loaders(struct page *page, const struct report *r, bool full);
/* iotable.c */
void section_io(struct page *page, const struct report *r, const struct limits *limits);
void section_end(struct page *page, const struct report *r,
                 const struct limits *limits);
void section_metrics(struct page *page, const struct report *r,
                     const struct limits *limits);
void section_memory(struct page *page, const struct report *r,
                    const struct report_style *style);
/* functions.c */
void section_functions(struct page *page, const struct report *r,
                       const struct limits *limits);
void section_notes(struct page *page, const struct report *r,
                   const struct limits *limits);
void section_trust(struct page *page, const struct report *r,
                   const struct report_style *style);

/* findings.c: what to do first; what is wrong; the parts of the run. */
void section_next(struct page *page, const struct report *r);
void section_findings(struct page *page, const struct report *r,
                      const struct limits *limits, bool full);
void section_forecasts(struct page *page, const struct report *r);
void section_trials(struct page *page, const struct report *r, bool full);
void section_offer(struct page *page, const struct report *r,
                   const struct report_style *style);
/* A word as a shell takes it. */
void quote_word(struct buf *out, const char *text);
void section_account(struct page *page, const struct report *r);
/* How step time moved over the run, where it certainly did. */
void section_trend(struct page *page, const struct report *r);

/* hangs.c: one line per process, per thread in the full report. */
void section_hangs(struct page *page, const struct report *r, bool full);
/* pysection.c: Python lines, and functions in the full report. */
void section_python(struct page *page, const struct report *r, bool full);

/* machine.c: what the run did to the machine. */
void section_machine(struct page *page, const struct report *r);
/* energy.c */
void section_energy(struct page *page, const struct report *r,
                    const struct limits *limits);
void section_alerts(struct page *page, const struct report *r);

/* At most max_rows operations; 0: all the style lets through. */
int section_operations(struct page *page, const struct report *r,
                       const struct report_style *style, size_t max_rows);

/* Only in the full report. */
void section_processes(struct page *page, const struct report *r);
void section_watched(struct page *page, const struct report *r);
void section_monitors(struct page *page, const struct report *r);
void section_details(struct page *page, const struct report *r);
void section_provenance(struct page *page, const struct report *r);

#endif
