/* page.h: a page of text for the terminal. Private to present/report.
 *
 * Lines are written as UTF-8 with the characters of the mock-ups; page_flush() turns
 * them into ASCII, one column for one column, where the terminal has no Unicode.
 */
#ifndef SONDE_PRESENT_REPORT_PAGE_H
#define SONDE_PRESENT_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

enum page_color { PLAIN, BOLD, DIM, RED, GREEN, CYAN };

struct page {
    struct buf out;
    int width;
    bool color, unicode;
    bool terse; /* set by the caller: no pictures, there is no room */
};

void page_init(struct page *page, int width, bool color, bool unicode);
void page_release(struct page *page);
/* Writes everything. */
int page_flush(struct page *page, FILE *out);
/* The same into memory. */
int page_encode(struct page *page, struct buf *out);

size_t page_lines(const struct page *page);

/* ---- Text ---- */

/* Appends text with everything a terminal might obey made visible: control
 * characters as \xNN, marks that reorder text and bytes that are no UTF-8 as U+FFFD.
 * At most max_columns (0: no limit), an ellipsis at the end telling the cut. */
void clean_text(struct buf *out, const char *text, size_t max_columns);
/* Columns of text that is clean: its code points. */
size_t text_columns(const char *text);

void page_puts(struct page *page, enum page_color color, const char *text);
void page_printf(struct page *page, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Exactly `columns` wide, cut or padded; clean text only. */
void page_left(struct page *page, const char *text, size_t columns);
void page_right(struct page *page, const char *text, size_t columns);
void page_fill(struct page *page, size_t blanks);

/* ---- Blocks ---- */

/* " LABEL    ", where a block begins. */
void page_label(struct page *page, const char *label);

/* " LABEL    words …", broken at blanks, further lines under the words. */
void page_paragraph(struct page *page, const char *label, enum page_color color,
                    const char *text);

/* Words from where the line stands, broken at blanks, further lines `indent` in. */
void page_wrapped(struct page *page, size_t indent, const char *text);

/* Pieces joined by " · ", broken between them. */
struct flow {
    struct page *page;
    size_t indent, at; /* columns */
    bool any;
};
void flow_begin(struct flow *flow, struct page *page, const char *label);
void flow_put(struct flow *flow, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void flow_end(struct flow *flow);

/* A bar of `columns`, `share` of it filled to an eighth of a column. */
void page_bar(struct page *page, double share, size_t columns);
/* Values as small columns from 0 to the largest; at most `columns` of them. */
/* Counts side by side. Heights go with the square root: among thousands a single one is
 * still seen, and nothing is a blank. */
void page_histogram(struct page *page, const double *counts, size_t columns);
void page_sparkline(struct page *page, const double *values, size_t count,
                    size_t columns);

#endif
