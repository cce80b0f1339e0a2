/* bottlenecks.c: what is wrong with a run: the findings, how bad, and how much of the run's
 * time is at stake in each. What the time went to in general is told by `times`. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/human.h"
#include "present/plot/plot.h"
#include "present/plot/svg.h"

enum { SHOWN = 10, LEFT = 236, NUMBERS = 150, ROW = 74, LINE = 104 };

static const char *severity_color(enum severity severity)
{
    static const char *const colors[] = { [SEVERITY_LOW] = "#8a93a0",
                                          [SEVERITY_MEDIUM] = "#b98a00",
                                          [SEVERITY_HIGH] = "#d1631a",
                                          [SEVERITY_CRITICAL] = "#b3261e" };
    return colors[severity];
}

/* "41 % of the run · 12.3 s", or how near to a limit where time is not what is lost. */
static void put_stake(struct svg *svg, double x, double y, const struct finding *f,
                      double run_s)
{
    static const struct svg_face face = { .size = 12.5, .color = SVG_SOFT };
    char percent[HUMAN_LEN], time[HUMAN_LEN];
    (void)human_percent(percent, f->stake);
    if (isnan(f->gain.mid) || !(run_s > 0))
        svg_textf(svg, x, y, &face, "score %.2f", f->score);
    else
        svg_textf(svg, x, y, &face, "%s \xc2\xb7 %s", percent,
                  human_duration(time, f->stake * run_s * 1e9));
}

/* Up to `most` lines of words; the y below. */
static double put_words(struct svg *svg, double x, double y, const char *text, int most)
{
    static const struct svg_face face = { .size = 11.5,
                                          .color = SVG_SOFT,
                                          .most = LINE };
    while (*text && most-- > 0) {
        size_t len = strlen(text);
        if (len > LINE && most > 0) {
            len = LINE;
            while (len > LINE / 2 && text[len] != ' ')
                len--;
            while (len > 1 && (text[len] & 0xc0) == 0x80) /* inside a character */
                len--;
        }
        svg_textf(svg, x, y, &face, "%.*s", (int)len, text);
        text += len + strspn(text + len, " ");
        y += 15;
    }
    return y;
}

static double put_finding(struct svg *svg, double y, const struct finding *f,
                          double run_s)
{
    static const struct svg_face name = { .size = 13, .anchor = SVG_RIGHT, .most = 32 };
    const struct svg_face severity = { .size = 11,
                                       .anchor = SVG_RIGHT,
                                       .bold = true,
                                       .color = severity_color(f->severity) };
    const double room = SVG_WIDTH - SVG_MARGIN - NUMBERS - LEFT;
    /* A limit that is near is no time lost: its weight is what the rules gave it. */
    const double part = isnan(f->gain.mid) ? f->score : f->stake;
    const double wide = fmax(fmin(part, 1) * room, 2);
    svg_text(svg, LEFT - 12, y + 14, &name, f->id);
    svg_text(svg, LEFT - 12, y + 30, &severity, severity_name(f->severity));
    svg_rect(svg, LEFT, y + 2, room, 16, "#f1f2f0");
    svg_rect(svg, LEFT, y + 2, wide, 16, severity_color(f->severity));
    put_stake(svg, LEFT + room + 8, y + 15, f, run_s);
    const double below = put_words(svg, LEFT, y + 33, f->description, 2);
    return fmax(put_words(svg, LEFT, below, f->recommendation, 2) + 10, y + ROW);
}

int plot_bottlenecks(struct svg *svg, const struct report *const *reports, size_t count)
{
    static const struct svg_face verdict = { .size = 14, .most = 110 };
    const struct report *r = reports[0];
    const struct diagnosis *d = &r->diagnosis;
    (void)count;
    if (!d->made)
        return SONDE_E_NOTFOUND;
    double y = svg_title(svg, "Bottlenecks: the share of the run at stake", r);
    svg_text(svg, SVG_MARGIN, y + 8, &verdict, r->verdict);
    y += 32;
    for (size_t i = 0; i < d->finding_count && i < SHOWN; i++)
        y = put_finding(svg, y, &d->findings[i], report_duration_s(r));
    if (d->finding_count == 0)
        svg_text(svg, SVG_MARGIN, y, &verdict,
                 "No finding: no rule had anything to say.");
    static const struct svg_face soft = { .size = 12, .color = SVG_SOFT };
    svg_textf(svg, SVG_MARGIN, y + 10, &soft,
              "%zu finding%s%s \xc2\xb7 %zu rules quiet \xc2\xb7 %zu not checkable in "
              "this run",
              d->finding_count, d->finding_count == 1 ? "" : "s",
              d->finding_count > SHOWN ? ", the worst shown" : "", d->quiet,
              d->unchecked_count);
    svg->height = y + 24;
    return 0;
}
