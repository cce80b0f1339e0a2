/* live.h: a run that goes on, as one screen for `sonde top`.
 *
 * Made of two reports, a moment apart: rates and phases are those of the time between.
 * The text is the same whether a terminal or a pipe shows it. */
#ifndef SONDE_PRESENT_REPORT_LIVE_H
#define SONDE_PRESENT_REPORT_LIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "analyse/report.h"
#include "base/buf.h"

enum live_list { LIVE_OPERATIONS, LIVE_LINES, LIVE_FUNCTIONS, LIVE_LIST_COUNT };
enum live_sort { LIVE_BY_CPU, LIVE_BY_MEMORY, LIVE_BY_PID, LIVE_SORT_COUNT };

struct live_style {
    int width, height; /* 0: 100 columns, as many lines as it takes */
    bool color, unicode;
    enum live_list list; /* falls back to what there is */
    enum live_sort sort;
    size_t scroll;    /* rows of the list to leave out */
    double elapsed_s; /* between the two reports */
};

/* `before` may be NULL: then there are no rates yet. Lines end with a newline; colours
 * are SGR sequences. */
int report_live(const struct report *now, const struct report *before,
                const struct live_style *style, struct buf *out);

#endif
