/* bars.c: a list of horizontal bars: name, bar, number. */
#include "present/plot/bars.h"

#include <math.h>

enum { NAMES = 250, NUMBERS = 190, ROW = 32 };

double bars_draw(struct svg *svg, double y, const struct bar *bars, size_t count)
{
    static const struct svg_face name = { .size = 13, .anchor = SVG_RIGHT, .most = 32 };
    static const struct svg_face more = {
        .size = 10.5, .color = SVG_SOFT, .anchor = SVG_RIGHT, .most = 40
    };
    static const struct svg_face number = { .size = 12.5, .color = SVG_SOFT };
    const double left = SVG_MARGIN + NAMES;
    const double room = SVG_WIDTH - SVG_MARGIN - NUMBERS - left;
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, bars[i].value);
    for (size_t i = 0; i < count; i++) {
        const struct bar *b = &bars[i];
        const double wide = most > 0 ? b->value / most * room : 0;
        svg_text(svg, left - 12, y + (b->more[0] ? 13 : 18), &name, b->name);
        if (b->more[0])
            svg_text(svg, left - 12, y + 26, &more, b->more);
        svg_rect(svg, left, y + 5, fmax(wide, 1), ROW - 13, b->color);
        svg_text(svg, left + fmax(wide, 1) + 8, y + 19, &number, b->number);
        y += ROW;
    }
    return y;
}
