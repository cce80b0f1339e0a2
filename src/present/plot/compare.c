/* compare.c: the phases of several runs side by side, per step where all have steps. */
#include <math.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/human.h"
#include "present/plot/plot.h"
#include "present/plot/svg.h"

enum { NAMES = 190, NUMBERS = 240, ROW = 58, TALL = 30 };

static bool have_steps(const struct report *const *reports, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (reports[i]->steps.durations.count == 0)
            return false;
    return true;
}

static double unit_ns(const struct report *r, bool per_step)
{
    return per_step ? (double)r->steps.durations.count : 1;
}

static void draw_run(struct svg *svg, double y, const struct report *r, bool per_step,
                     double ns_per_pixel)
{
    static const struct svg_face name = {
        .size = 13.5, .anchor = SVG_RIGHT, .bold = true, .most = 22
    };
    static const struct svg_face id = {
        .size = 11, .color = SVG_SOFT, .anchor = SVG_RIGHT, .most = 24
    };
    static const struct svg_face number = { .size = 13 };
    static const struct svg_face more = { .size = 11.5, .color = SVG_SOFT };
    char a[HUMAN_LEN], b[HUMAN_LEN];
    double x = SVG_MARGIN + NAMES;
    const char *called = r->run->meta.name[0] ? r->run->meta.name : r->run->id;
    svg_text(svg, x - 12, y + 15, &name, called);
    if (called != r->run->id)
        svg_text(svg, x - 12, y + 30, &id, r->run->id);
    for (int p = 1; p < SONDE_PHASE_COUNT; p++) {
        const double wide = r->phases.total_ns[p] / unit_ns(r, per_step) / ns_per_pixel;
        if (!(wide > 0.05))
            continue;
        svg_rect(svg, x, y, fmax(wide - 0.6, 0.4), TALL, svg_phase_color(p));
        x += wide;
    }
    svg_textf(svg, x + 10, y + 14, &number, "%s%s",
              human_duration(a, r->phases.wall_ns / unit_ns(r, per_step)),
              per_step ? " a step" : "");
    const double samples = step_samples_per_s(&r->steps);
    (void)human_bytes(b, report_peak_rss_mb(r) * 1048576);
    if (isfinite(samples))
        svg_textf(svg, x + 10, y + 29, &more, "%.0f samples/s, memory %s", samples, b);
    else
        svg_textf(svg, x + 10, y + 29, &more, "memory %s", b);
}

static double draw_legend(struct svg *svg, double y,
                          const struct report *const *reports, size_t count)
{
    static const struct svg_face face = { .size = 12 };
    double x = SVG_MARGIN;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++) {
        bool used = false;
        for (size_t i = 0; i < count; i++)
            used |= reports[i]->phases.share[p] > 0.0005;
        if (!used)
            continue;
        const double wide = 34 + 7.2 * (double)strlen(sonde_phase_name(p));
        if (x + wide > SVG_WIDTH - SVG_MARGIN) {
            x = SVG_MARGIN;
            y += 20;
        }
        svg_rect(svg, x, y - 10, 11, 11, svg_phase_color(p));
        svg_text(svg, x + 17, y, &face, sonde_phase_name(p));
        x += wide;
    }
    return y;
}

int plot_compare(struct svg *svg, const struct report *const *reports, size_t count)
{
    const bool per_step = have_steps(reports, count);
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, reports[i]->phases.wall_ns / unit_ns(reports[i], per_step));
    if (!(most > 0))
        return SONDE_E_NOTFOUND;
    double y = svg_title(svg,
                         per_step ? "Time of the main thread per step, by phase"
                                  : "Time of the main thread, by phase",
                         NULL) +
               14;
    const double room = SVG_WIDTH - 2 * SVG_MARGIN - NAMES - NUMBERS;
    for (size_t i = 0; i < count; i++, y += ROW)
        draw_run(svg, y, reports[i], per_step, most / room);
    svg->height = draw_legend(svg, y + 10, reports, count);
    return 0;
}
