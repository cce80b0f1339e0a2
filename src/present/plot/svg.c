/* svg.c: a picture under construction. */
#include "present/plot/svg.h"

#include <math.h>
#include <string.h>

#include <sonde/sonde.h>

static double sane(double x)
{
    return isfinite(x) ? fmin(fmax(x, -1e6), 1e6) : 0;
}

/* The locale of the command is "C": the decimal point is a point. */
void svg_rect(struct svg *svg, double x, double y, double width, double height,
              const char *color)
{
    buf_printf(&svg->body,
               "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
               "fill=\"%s\"/>\n",
               sane(x), sane(y), fmax(sane(width), 0), fmax(sane(height), 0), color);
}

void svg_line(struct svg *svg, double x1, double y1, double x2, double y2,
              const char *color, double width)
{
    buf_printf(&svg->body,
               "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
               "stroke=\"%s\" stroke-width=\"%.2f\"/>\n",
               sane(x1), sane(y1), sane(x2), sane(y2), color, width);
}

void svg_dashed(struct svg *svg, double x1, double y1, double x2, double y2,
                const char *color)
{
    buf_printf(&svg->body,
               "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
               "stroke=\"%s\" stroke-dasharray=\"3 3\"/>\n",
               sane(x1), sane(y1), sane(x2), sane(y2), color);
}

/* ---- Text ------------------------------------------------------------------------------ */

/* The length of the valid UTF-8 sequence at p, 0 for none; longer ones are not cut. */
static size_t sequence(const unsigned char *p)
{
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xc2 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf5 ? 4
                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)))
        return 0;
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)))
        return 0;
    return n;
}

/* Controls, C1 and what steers the direction of text: U+200E … U+202E, U+2066 … */
static bool steers(const unsigned char *p, size_t n)
{
    if (n == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    if (n == 2)
        return p[0] == 0xc2 && p[1] < 0xa0;
    if (n == 3 && p[0] == 0xe2 && p[1] == 0x80)
        return (p[2] >= 0x8e && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae);
    if (n == 3 && p[0] == 0xe2 && p[1] == 0x81)
        return p[2] >= 0xa6 && p[2] <= 0xa9;
    return n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe; /* no XML char */
}

static void put_character(struct buf *out, const unsigned char *p, size_t n)
{
    static const char *const escapes[][2] = {
        { "<", "&lt;" }, { ">", "&gt;" }, { "&", "&amp;" }, { "\"", "&quot;" }
    };
    for (size_t i = 0; n == 1 && i < sizeof(escapes) / sizeof(escapes[0]); i++)
        if (p[0] == (unsigned char)escapes[i][0][0]) {
            buf_puts(out, escapes[i][1]);
            return;
        }
    buf_append(out, p, n);
}

static void put_text(struct buf *out, const char *text, size_t most)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t shown = 0; *p; shown++) {
        if (shown == most) {
            buf_puts(out, "\xe2\x80\xa6");
            return;
        }
        const size_t n = sequence(p);
        if (n == 0 || steers(p, n))
            buf_puts(out, "\xef\xbf\xbd");
        else
            put_character(out, p, n);
        p += n ? n : 1;
    }
}

void svg_text(struct svg *svg, double x, double y, const struct svg_face *face,
              const char *text)
{
    static const char *const anchors[] = { "start", "middle", "end" };
    buf_printf(&svg->body,
               "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" fill=\"%s\" "
               "text-anchor=\"%s\"%s%s>",
               sane(x), sane(y), face->size, face->color ? face->color : SVG_INK,
               anchors[face->anchor], face->bold ? " font-weight=\"600\"" : "",
               face->mono ? " font-family=\"ui-monospace, DejaVu Sans Mono, "
                            "Menlo, monospace\""
                          : "");
    put_text(&svg->body, text, face->most ? face->most : 120);
    buf_puts(&svg->body, "</text>\n");
}

void svg_textf(struct svg *svg, double x, double y, const struct svg_face *face,
               const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    svg_text(svg, x, y, face, text.data);
    if (text.error < 0)
        svg->body.error = text.error;
    buf_release(&text);
}

/* ---- Lines, titles, colours ------------------------------------------------------------- */

void svg_path_begin(struct svg *svg)
{
    buf_puts(&svg->body, "<path d=\"");
}

void svg_path_point(struct svg *svg, double x, double y, bool first)
{
    buf_printf(&svg->body, "%c%.2f %.2f", first ? 'M' : 'L', sane(x), sane(y));
}

void svg_path_end(struct svg *svg, const char *color, double width)
{
    buf_printf(&svg->body,
               "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.2f\" "
               "stroke-linejoin=\"round\"/>\n",
               color, width);
}

double svg_title(struct svg *svg, const char *title, const struct report *report)
{
    static const struct svg_face big = { .size = 19, .bold = true };
    static const struct svg_face small = { .size = 12.5,
                                           .color = SVG_SOFT,
                                           .most = 130 };
    double y = SVG_MARGIN + 14;
    svg_text(svg, SVG_MARGIN, y, &big, title);
    if (!report)
        return y + 16;
    struct buf whose = BUF_INIT;
    const struct run_meta *m = &report->run->meta;
    for (size_t i = 0; i < m->command_count; i++)
        buf_printf(&whose, "%s%s", i ? " " : "", m->command[i]);
    buf_printf(&whose, "%s%s", whose.len ? " \xc2\xb7 run " : "run ", report->run->id);
    svg_text(svg, SVG_MARGIN, y + 20, &small, whose.data);
    if (whose.error < 0)
        svg->body.error = whose.error;
    buf_release(&whose);
    return y + 44;
}

/* The colours of web/src/palette.ts, on white. */
const char *svg_phase_color(int phase)
{
    static const char *const colors[SONDE_PHASE_COUNT] = {
        [SONDE_DATA_LOADING] = "#d97a00",  [SONDE_PREPROCESSING] = "#e8a33d",
        [SONDE_AUGMENTATION] = "#c9b000",  [SONDE_COLLATE] = "#a8702a",
        [SONDE_TRANSFER] = "#3aa6d9",      [SONDE_FORWARD] = "#0a6ebd",
        [SONDE_BACKWARD] = "#123f7a",      [SONDE_GRADIENT] = "#5b7fb8",
        [SONDE_OPTIMIZER] = "#0a8f6c",     [SONDE_SYNC] = "#b8568f",
        [SONDE_COMMUNICATION] = "#7d4fa8", [SONDE_EVALUATION] = "#6b8e23",
        [SONDE_CHECKPOINT] = "#8c2f4e",    [SONDE_MODEL_CREATION] = "#6d6a75",
        [SONDE_OTHER] = "#a7adb8",
    };
    const bool known = phase > 0 && phase < SONDE_PHASE_COUNT && colors[phase];
    return colors[known ? phase : SONDE_OTHER];
}

const char *svg_op_color(const struct op_table *table, const struct op *op)
{
    while (op->phase == SONDE_NO_PHASE && op->parent)
        op = &table->ops[op->parent];
    return svg_phase_color(op->phase);
}

const char *svg_series_color(size_t index)
{
    static const char *const colors[] = { "#0a6ebd", "#d97a00", "#0a8f6c", "#b8568f",
                                          "#7d4fa8", "#6b8e23", "#8c2f4e", "#6d6a75" };
    return colors[index % (sizeof(colors) / sizeof(colors[0]))];
}

double svg_tick_step(double range, int most)
{
    if (!(range > 0) || !isfinite(range))
        return 1;
    const double rough = range / most;
    const double power = pow(10, floor(log10(rough)));
    static const double factors[] = { 1, 2, 5, 10 };
    for (size_t i = 0; i < 4; i++)
        if (factors[i] * power >= rough)
            return factors[i] * power;
    return power * 10;
}
