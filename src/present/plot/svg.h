/* svg.h: a picture under construction. Private to present/plot.
 *
 * Everything a program named (zones, files, runs) is text that may want to be markup:
 * svg_text() escapes, cuts, and drops what turns text round. */
#ifndef SONDE_PRESENT_PLOT_SVG_H
#define SONDE_PRESENT_PLOT_SVG_H

#include <stddef.h>

#include "analyse/report.h"
#include "base/buf.h"

enum { SVG_WIDTH = 960, SVG_MARGIN = 24 };

struct svg {
    struct buf body;
    double height; /* so far */
};

enum svg_anchor { SVG_LEFT, SVG_MIDDLE, SVG_RIGHT };

struct svg_face {
    double size;
    const char *color;
    enum svg_anchor anchor;
    bool bold;
    bool mono;
    size_t most; /* characters; 0: 120 */
};

void svg_rect(struct svg *svg, double x, double y, double width, double height,
              const char *color);
void svg_line(struct svg *svg, double x1, double y1, double x2, double y2,
              const char *color, double width);
void svg_dashed(struct svg *svg, double x1, double y1, double x2, double y2,
                const char *color);
void svg_text(struct svg *svg, double x, double y, const struct svg_face *face,
              const char *text);
void svg_textf(struct svg *svg, double x, double y, const struct svg_face *face,
               const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* A line through points; begin, points, end. */
void svg_path_begin(struct svg *svg);
void svg_path_point(struct svg *svg, double x, double y, bool first);
void svg_path_end(struct svg *svg, const char *color, double width);

/* The title and, below it, whose run it is; the next free y. */
double svg_title(struct svg *svg, const char *title, const struct report *report);

const char *svg_phase_color(int phase);
/* Of its own phase or that of the operation around it. */
const char *svg_op_color(const struct op_table *table, const struct op *op);
const char *svg_series_color(size_t index);

/* Round numbers for an axis: the step between ticks, about `most` of them. */
double svg_tick_step(double range, int most);

#define SVG_INK    "#1b1e24"
#define SVG_SOFT   "#5c6370"
#define SVG_LINE   "#e4e5e3"
#define SVG_ACCENT "#0a6ebd"

#endif
