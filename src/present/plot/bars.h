/* bars.h: a list of horizontal bars: name, bar, number. Private to present/plot. */
#ifndef SONDE_PRESENT_PLOT_BARS_H
#define SONDE_PRESENT_PLOT_BARS_H

#include "present/plot/svg.h"

enum { BAR_TEXT = 96 };

struct bar {
    const char *name; /* borrowed */
    const char *more; /* smaller, below the name; "" none */
    double value;
    const char *color;
    char number[BAR_TEXT]; /* beside the bar */
};

/* From y down; the y below the last. */
double bars_draw(struct svg *svg, double y, const struct bar *bars, size_t count);

#endif
