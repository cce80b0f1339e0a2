/* memory.c: memory over the run: all of it, and of the largest processes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/human.h"
#include "present/plot/plot.h"
#include "present/plot/svg.h"

enum { LINES = 6, LEFT = 96, TALL = 330, TICKS = 64 };

/* "rss" of the run, "rss/PID", and cards. */
static bool belongs(const struct report_series *s)
{
    return s->point_count >= 2 &&
           (strcmp(s->metric, "rss") == 0 || strncmp(s->metric, "gpu_memory", 10) == 0);
}

static size_t choose(const struct report *r, const struct report_series *lines[LINES])
{
    size_t count = 0;
    for (size_t i = 0; i < r->monitors.series_count; i++) {
        const struct report_series *s = &r->monitors.series[i];
        if (!belongs(s))
            continue;
        size_t at = count;
        while (at > 0 && (lines[at - 1]->max < s->max || !s->subject[0]))
            at--;
        if (at == LINES)
            continue;
        if (count < LINES)
            count++;
        memmove(&lines[at + 1], &lines[at], (count - 1 - at) * sizeof *lines);
        lines[at] = s;
    }
    return count;
}

/* Bytes of a sample: series are in MiB or in bytes. */
static double scale(const struct report_series *s)
{
    return strcmp(s->unit, "mb") == 0 || strcmp(s->unit, "MiB") == 0 ? 1048576 : 1;
}

struct frame {
    double top, bottom, left, right;
    double end_s, most; /* of the axes */
};

static double x_of(const struct frame *f, double t_s)
{
    return f->left + fmin(fmax(t_s, 0), f->end_s) / f->end_s * (f->right - f->left);
}

static double y_of(const struct frame *f, double bytes)
{
    return f->bottom - bytes / f->most * (f->bottom - f->top);
}

/* A power of two of bytes reads better than one of ten. */
static double memory_step(double most)
{
    double step = 1;
    while (most / step > 7)
        step *= 2;
    return step;
}

static void draw_axes(struct svg *svg, const struct frame *f)
{
    static const struct svg_face left = { .size = 11.5,
                                          .color = SVG_SOFT,
                                          .anchor = SVG_RIGHT };
    static const struct svg_face below = { .size = 11.5,
                                           .color = SVG_SOFT,
                                           .anchor = SVG_MIDDLE };
    char text[HUMAN_LEN];
    const double bytes = memory_step(f->most), step = svg_tick_step(f->end_s, 9);
    for (int i = 0; i < TICKS && i * bytes <= f->most; i++) {
        const double b = i * bytes;
        svg_line(svg, f->left, y_of(f, b), f->right, y_of(f, b), SVG_LINE, 1);
        svg_text(svg, f->left - 8, y_of(f, b) + 4, &left, human_bytes(text, b));
    }
    for (int i = 0; i < TICKS && i * step <= f->end_s * 1.0001; i++)
        svg_textf(svg, x_of(f, i * step), f->bottom + 18, &below, "%.4g s", i * step);
}

static void draw_series(struct svg *svg, const struct frame *f,
                        const struct report_series *s, const char *color, double width)
{
    svg_path_begin(svg);
    for (size_t i = 0; i < s->point_count; i++)
        svg_path_point(svg, x_of(f, s->points[i].t_s),
                       y_of(f, s->points[i].mean * scale(s)), i == 0);
    svg_path_end(svg, color, width);
}

static void draw_legend(struct svg *svg, double y, const struct report_series **lines,
                        size_t count)
{
    static const struct svg_face face = { .size = 12, .most = 38 };
    char most[HUMAN_LEN];
    for (size_t i = 0; i < count; i++) {
        const size_t row = i / 3, column = i % 3;
        const double x = LEFT + (double)column * 280;
        const double at = y + (double)row * 20;
        svg_rect(svg, x, at - 9, 14, 4, svg_series_color(i));
        svg_textf(svg, x + 20, at, &face, "%s%s, most %s",
                  lines[i]->subject[0] ? "process " : "all of the run",
                  lines[i]->subject,
                  human_bytes(most, lines[i]->max * scale(lines[i])));
    }
}

int plot_memory(struct svg *svg, const struct report *const *reports, size_t count)
{
    const struct report *r = reports[0];
    const struct report_series *lines[LINES + 1];
    (void)count;
    const size_t n = choose(r, lines);
    if (n == 0)
        return SONDE_E_NOTFOUND;
    struct frame f = { .left = LEFT, .right = SVG_WIDTH - SVG_MARGIN };
    f.top = svg_title(svg, "Memory over the run", r);
    f.bottom = f.top + TALL;
    f.end_s = report_duration_s(r);
    for (size_t i = 0; i < n; i++) {
        f.most = fmax(f.most, lines[i]->max * scale(lines[i]) * 1.08);
        const double last = lines[i]->points[lines[i]->point_count - 1].t_s;
        if (!(f.end_s >= last))
            f.end_s = last;
    }
    if (!(f.end_s > 0) || !(f.most > 0))
        return SONDE_E_NOTFOUND;
    draw_axes(svg, &f);
    for (size_t i = n; i-- > 0;)
        draw_series(svg, &f, lines[i], svg_series_color(i), i == 0 ? 2.2 : 1.4);
    draw_legend(svg, f.bottom + 48, lines, n);
    const size_t last_row = (n - 1) / 3;
    svg->height = f.bottom + 52 + (double)last_row * 20;
    return 0;
}
