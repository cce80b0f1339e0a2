/* report.h: a run as a report: text for the terminal, JSON, CSV, Markdown.
 *
 *     struct report_style style = { 0 };
 *     report_style_detect(&style, STDOUT_FILENO);
 *     rc = report_run_to_stream(dir, &style, stdout);
 *
 * Everything that comes from the traced program (names, paths, command lines) is
 * hostile: control characters and escape sequences never reach the terminal.
 */
#ifndef SONDE_PRESENT_REPORT_REPORT_H
#define SONDE_PRESENT_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "analyse/report.h"

enum report_format {
    REPORT_TEXT,
    REPORT_JSON,
    REPORT_CSV,
    REPORT_HTML,
    REPORT_MARKDOWN
};

/* All zero: plain ASCII text of 100 columns, one screen. */
struct report_style {
    enum report_format format;
    int width; /* columns; 0 = 100; kept within 60 … 200 */
    bool color;
    bool unicode;
    bool full;            /* everything, however long */
    uint64_t min_time_ns; /* operations below are summed up, not listed */
    unsigned depth;       /* operations deeper than this likewise; 0 = no limit */
    const char *ref;      /* what to call the run in commands; NULL: its id */
    size_t limit;         /* JSON: at most so many operations; 0 = no limit */
    const struct thresholds *thresholds; /* of the rules; NULL: the defaults */
    const char *store; /* whose ledger is asked, and told of this run; NULL: none */
};

/* Fills in width (COLUMNS, else the terminal behind fd), color (a terminal, and not
 * NO_COLOR) and unicode (LC_ALL, LC_CTYPE, LANG); leaves the rest alone. */
void report_style_detect(struct report_style *style, int fd);

/* Judges by the style's thresholds, and enters in the store's ledger whether earlier
 * advice was followed. Before report_print(). */
int report_judge(struct report *report, const struct report_style *style);
/* Opens, analyses and prints a run. 0 or the error of whatever failed. */
int report_run_to_stream(const char *run_dir, const struct report_style *style,
                         FILE *out);
/* Prints a report that is there already, in the style's format. */
int report_print(const struct report *report, const struct report_style *style,
                 FILE *out);

int report_text(const struct report *report, const struct report_style *style,
                FILE *out);
int report_json(const struct report *report, const struct report_style *style,
                FILE *out);
/* The same document as one value of another. */
struct json_writer;
int report_json_value(const struct report *report, const struct report_style *style,
                      struct json_writer *w);
int report_csv(const struct report *report, const struct report_style *style,
               FILE *out);
int report_markdown(const struct report *report, const struct report_style *style,
                    FILE *out);

#endif
