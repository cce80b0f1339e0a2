/* chart.c: a scaling experiment as an SVG: times over sizes, both axes logarithmic, so
 * that a power is a straight line and its slope the exponent. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/human.h"
#include "present/model/scaling.h"

enum { WIDTH = 760, HEIGHT = 440, LEFT = 80, RIGHT = 190, TOP = 46, BOTTOM = 52 };

static const char *const colors[] = { "#4269d0", "#efb118", "#ff725c", "#6cc5b0",
                                      "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5",
                                      "#9c6b4e", "#9498a0", "#1b1b1b", "#b5a300",
                                      "#00838f" };

struct frame {
    double x0, x1, y0, y1; /* decades: logarithms */
};

static double at_x(const struct frame *f, double value)
{
    return LEFT + (log10(value) - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct frame *f, double value)
{
    return HEIGHT - BOTTOM -
           (log10(value) - f->y0) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

/* On the pe axis the points have no size: they stand one after another. */
static double place(const struct scaling *s, size_t i)
{
    return s->axis == AXIS_PE ? pow(10, (double)i) : (double)s->points[i].at.size;
}

static bool frame_of(const struct scaling *s, struct frame *f)
{
    *f = (struct frame){ INFINITY, -INFINITY, INFINITY, -INFINITY };
    for (size_t c = 0; c < s->curve_count; c++)
        for (size_t i = 0; i < s->count; i++)
            if (s->curves[c].ms[i] > 0) {
                f->x0 = fmin(f->x0, log10(place(s, i)));
                f->x1 = fmax(f->x1, log10(place(s, i)));
                f->y0 = fmin(f->y0, floor(log10(s->curves[c].ms[i])));
                f->y1 = fmax(f->y1, ceil(log10(s->curves[c].ms[i])));
            }
    if (!(f->x1 > f->x0))
        f->x1 = f->x0 + 1;
    if (!(f->y1 > f->y0))
        f->y1 = f->y0 + 1;
    return isfinite(f->x0) && isfinite(f->y0);
}

static void put_grid(const struct scaling *s, const struct frame *f, FILE *out)
{
    for (int i = 0; f->y0 + i <= f->y1; i++) {
        char text[HUMAN_LEN];
        const double decade = f->y0 + i;
        const double y = at_y(f, pow(10, decade));
        (void)fprintf(out,
                      "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' class='grid'/>"
                      "<text x='%d' y='%.1f' class='end'>%s</text>\n",
                      LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4,
                      human_duration(text, pow(10, decade) * 1e6));
    }
    for (size_t i = 0; i < s->count; i++) {
        const double x = at_x(f, place(s, i));
        if (x >= LEFT - 1 && x <= WIDTH - RIGHT + 1)
            (void)fprintf(out,
                          "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' class='grid'/>"
                          "<text x='%.1f' y='%d' class='middle'>%s</text>\n",
                          x, x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18,
                          s->points[i].label);
    }
}

static void put_line(const struct scaling *s, const struct frame *f, size_t curve,
                     size_t row, FILE *out)
{
    const struct curve *c = &s->curves[curve];
    const char *color = colors[row % (sizeof colors / sizeof *colors)];
    (void)fprintf(out, "<polyline fill='none' stroke='%s' stroke-width='2' points='",
                  color);
    for (size_t i = 0; i < s->count; i++)
        if (c->ms[i] > 0)
            (void)fprintf(out, "%.1f,%.1f ", at_x(f, place(s, i)), at_y(f, c->ms[i]));
    (void)fputs("'/>\n", out);
    for (size_t i = 0; i < s->count; i++)
        if (c->ms[i] > 0)
            (void)fprintf(out, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>\n",
                          at_x(f, place(s, i)), at_y(f, c->ms[i]), color);
    (void)fprintf(out,
                  "<circle cx='%d' cy='%zu' r='4' fill='%s'/><text x='%d' y='%zu'>%s",
                  WIDTH - RIGHT + 20, TOP + 12 + 20 * row, color, WIDTH - RIGHT + 30,
                  TOP + 16 + 20 * row, c->name);
    if (c->has_exponent)
        (void)fprintf(out, " ~ N^%.2f", c->exponent.value);
    (void)fputs("</text>\n", out);
}

int scaling_svg(const struct scaling *s, FILE *out)
{
    struct frame f;
    if (!frame_of(s, &f))
        return -EINVAL;
    (void)fprintf(out,
                  "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' "
                  "font-family='system-ui, sans-serif' font-size='12'>\n"
                  "<style>.grid{stroke:#ddd}.end{text-anchor:end}"
                  ".middle{text-anchor:middle}</style>\n"
                  "<rect width='100%%' height='100%%' fill='white'/>\n"
                  "<text x='%d' y='26' font-size='15' font-weight='600'>"
                  "time by %s, both axes logarithmic</text>\n",
                  WIDTH, HEIGHT, LEFT,
                  s->axis == AXIS_PE ? "positional encoding" : axis_name(s->axis));
    put_grid(s, &f, out);
    for (size_t c = 0, row = 0; c < s->curve_count; c++)
        put_line(s, &f, c, row++, out);
    (void)fputs("</svg>\n", out);
    return ferror(out) ? -EIO : 0;
}
