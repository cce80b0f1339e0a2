/* html.h: a run, or several, as one HTML file that needs nothing else.
 *
 * The page is the app of web/ (web/dist/report.html, embedded) with one JSON document
 * in the middle, schema sonde.app/1: for each run its report (sonde.report/1), and
 * what only pictures need, read from the traces here:
 *
 *     sites           [[name, phase, file, line] …]: others refer to them by number
 *     timeline        lanes with the phases they were in by bucket of time, steps, and
 *                     zones in full around the slowest and some typical steps
 *     flame           call trees: zones, Python, native code, allocations
 *     distributions   histograms of steps and of the longest operations
 *     courses         the program's own metrics, step by step
 *
 * Everything is bounded, however long the run was; what was left out is counted.
 * docs/guide-html.md describes the document.
 */
#ifndef SONDE_PRESENT_HTML_HTML_H
#define SONDE_PRESENT_HTML_HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "analyse/report.h"

struct json_writer; /* base/json.h */

struct html_options {
    /* Writes sonde.report/1 as one value: present/report's, whom we must not know. */
    int (*put_report)(const struct report *report, struct json_writer *w);
    bool hide; /* secrets, homes, names of people and machines */
};

/* Writes the page. 0 or the first error. */
int html_write(const struct report *const *reports, size_t count,
               const struct html_options *options, FILE *out);

/* The document alone, as a server would send it. */
int html_document(const struct report *const *reports, size_t count,
                  const struct html_options *options, struct json_writer *w);

#endif
