/* page.c: a page of text for the terminal. */
#include "present/report/page.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_COLUMNS = 10 };

/* ---- Characters -------------------------------------------------------------------- */

/* The code point at p and its length in bytes; −1 and 1 when it is no UTF-8. */
static int32_t decode(const unsigned char *p, size_t *ret_len)
{
    static const int32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    int32_t code = p[0];
    *ret_len = 1;
    if (n == 1)
        return code;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return -1;
    code = p[0] & (0xff >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) /* also stops at the final NUL */
            return -1;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return -1;
    *ret_len = n;
    return code;
}

static bool is_control(int32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* Invisible or reordering: they make a name look like another one. */
static bool is_deceptive(int32_t code)
{
    return (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || code == 0x061c ||
           code == 0xad || (code >= 0xfff9 && code <= 0xfffb) || code >= 0xe0000;
}

/* One code point as it may be shown; returns its columns. */
static size_t put_clean(struct buf *out, const unsigned char *p, size_t *ret_len)
{
    const int32_t code = decode(p, ret_len);
    if (code < 0 || is_deceptive(code)) {
        buf_puts(out, "\xef\xbf\xbd");
        return 1;
    }
    if (is_control(code)) {
        buf_printf(out, "\\x%02x", (unsigned)code);
        return 4;
    }
    buf_append(out, p, *ret_len);
    return 1;
}

void clean_text(struct buf *out, const char *text, size_t max_columns)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t columns = 0;
    size_t last_fit = out->len; /* end of what fits beside an ellipsis */
    size_t len;
    while (*p) {
        columns += put_clean(out, p, &len);
        p += len;
        if (max_columns && columns > max_columns) {
            buf_truncate(out, last_fit);
            buf_puts(out, "…");
            return;
        }
        if (columns < max_columns)
            last_fit = out->len;
    }
}

size_t text_columns(const char *text)
{
    size_t columns = 0;
    for (const char *p = text; *p; p++)
        columns += ((unsigned char)*p & 0xc0) != 0x80;
    return columns;
}

/* ---- ASCII --------------------------------------------------------------------------- */

static const struct {
    const char *text;
    char ascii;
} ascii_table[] = {
    { "·", '-' }, { "›", '>' }, { "–", '-' }, { "…", '~' }, { "×", 'x' },
    { "±", '~' }, { "→", '>' }, { "←", '<' }, { "µ", 'u' }, { "█", '#' },
    { "▉", '#' }, { "▊", '#' }, { "▋", '#' }, { "▌", '=' }, { "▍", '=' },
    { "▎", '-' }, { "▏", '-' }, { "▁", '_' }, { "▂", '.' }, { "▃", ':' },
    { "▄", '-' }, { "▅", '=' }, { "▆", '+' }, { "▇", '*' }, { "≤", '<' },
};

static char to_ascii(const char *p, size_t len)
{
    for (size_t i = 0; i < sizeof(ascii_table) / sizeof(ascii_table[0]); i++)
        if (strlen(ascii_table[i].text) == len &&
            memcmp(ascii_table[i].text, p, len) == 0)
            return ascii_table[i].ascii;
    return '?';
}

static void make_ascii(struct buf *text)
{
    size_t kept = 0;
    for (size_t i = 0; i < text->len;) {
        size_t len;
        (void)decode((const unsigned char *)text->data + i, &len);
        text->data[kept++] = len == 1 ? text->data[i] : to_ascii(text->data + i, len);
        i += len;
    }
    buf_truncate(text, kept);
}

/* ---- The page --------------------------------------------------------------------------- */

void page_init(struct page *page, int width, bool color, bool unicode)
{
    *page = (struct page){
        .out = BUF_INIT, .width = width, .color = color, .unicode = unicode
    };
}

void page_release(struct page *page)
{
    buf_release(&page->out);
}

/* Blanks at the ends of lines are ours, from padding; nobody wants them. */
static void trim_lines(struct buf *text)
{
    size_t kept = 0;
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] == '\n')
            while (kept > 0 && text->data[kept - 1] == ' ')
                kept--;
        text->data[kept++] = text->data[i];
    }
    buf_truncate(text, kept);
}

static int finish(struct page *page)
{
    if (page->out.error)
        return page->out.error;
    trim_lines(&page->out);
    if (!page->unicode)
        make_ascii(&page->out);
    return 0;
}

int page_encode(struct page *page, struct buf *out)
{
    const int rc = finish(page);
    if (rc == 0 && page->out.len)
        buf_append(out, page->out.data, page->out.len);
    buf_clear(&page->out);
    return rc ? rc : out->error;
}

int page_flush(struct page *page, FILE *out)
{
    const int rc = finish(page);
    if (rc < 0)
        return rc;
    errno = 0;
    if (fwrite(page->out.data, 1, page->out.len, out) != page->out.len)
        return errno > 0 ? -errno : -EIO;
    buf_clear(&page->out);
    return 0;
}

size_t page_lines(const struct page *page)
{
    size_t lines = 0;
    for (size_t i = 0; i < page->out.len; i++)
        lines += page->out.data[i] == '\n';
    return lines;
}

static const char *const color_codes[] = {
    [PLAIN] = "",         [BOLD] = "\033[1m",   [DIM] = "\033[2m",
    [RED] = "\033[1;31m", [GREEN] = "\033[32m", [CYAN] = "\033[36m",
};

void page_puts(struct page *page, enum page_color color, const char *text)
{
    const bool paint = page->color && color != PLAIN && text[0];
    if (paint)
        buf_puts(&page->out, color_codes[color]);
    buf_puts(&page->out, text);
    if (paint)
        buf_puts(&page->out, "\033[0m");
}

void page_printf(struct page *page, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&page->out, fmt, args);
    va_end(args);
}

void page_fill(struct page *page, size_t blanks)
{
    for (size_t i = 0; i < blanks; i++)
        buf_putc(&page->out, ' ');
}

void page_left(struct page *page, const char *text, size_t columns)
{
    const size_t wide = text_columns(text);
    if (wide > columns) {
        clean_text(&page->out, text, columns);
        return;
    }
    buf_puts(&page->out, text);
    page_fill(page, columns - wide);
}

void page_right(struct page *page, const char *text, size_t columns)
{
    const size_t wide = text_columns(text);
    if (wide < columns)
        page_fill(page, columns - wide);
    page_left(page, text, wide < columns ? wide : columns);
}

/* ---- Blocks --------------------------------------------------------------------------------- */

static void put_label(struct page *page, const char *label, enum page_color color)
{
    const size_t wide = text_columns(label) + 1;
    page_puts(page, PLAIN, " ");
    page_puts(page, color, label);
    page_fill(page, wide < LABEL_COLUMNS ? LABEL_COLUMNS - wide : 1);
}

void page_label(struct page *page, const char *label)
{
    put_label(page, label, BOLD);
}

/* The length of the next piece that is not broken: a word, or a number and its unit. */
static size_t piece_length(const char *text)
{
    static const char *const units[] = { "s", "ms", "µs", "ns", "%", "MiB", "GiB" };
    const size_t len = strcspn(text, " ");
    if (text[len] != ' ' || text[0] < '0' || text[0] > '9')
        return len;
    const char *next = text + len + 1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        const size_t unit = strlen(units[i]);
        if (strncmp(next, units[i], unit) == 0 && strcspn(next, " ,.;)") == unit)
            return len + 1 + strcspn(next, " ");
    }
    return len;
}

void page_paragraph(struct page *page, const char *label, enum page_color color,
                    const char *text)
{
    put_label(page, label, color);
    page_wrapped(page, LABEL_COLUMNS, text);
}

void page_wrapped(struct page *page, size_t indent, const char *text)
{
    const size_t width = (size_t)page->width;
    size_t at = indent;
    for (const char *p = text; *p;) {
        const size_t len = piece_length(p);
        char *word = strndup(p, len);
        const size_t wide = word ? text_columns(word) : 0;
        if (at > indent && at + 1 + wide > width) {
            page_puts(page, PLAIN, "\n");
            page_fill(page, indent);
            at = indent;
        } else if (at > indent) {
            page_puts(page, PLAIN, " ");
            at++;
        }
        if (word)
            page_left(page, word, wide < width - at ? wide : width - at);
        at += wide;
        free(word);
        p += len + strspn(p + len, " ");
    }
    page_puts(page, PLAIN, "\n");
}

void flow_begin(struct flow *flow, struct page *page, const char *label)
{
    *flow = (struct flow){ .page = page };
    if (label) {
        const size_t taken = text_columns(label) + 2; /* with a blank on either side */
        put_label(page, label, BOLD);
        flow->indent = LABEL_COLUMNS;
        flow->at = taken > LABEL_COLUMNS ? taken : LABEL_COLUMNS;
    } else {
        flow->indent = 2;
    }
}

void flow_put(struct flow *flow, const char *fmt, ...)
{
    struct buf piece = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&piece, fmt, args);
    va_end(args);

    const size_t width = (size_t)flow->page->width;
    size_t wide = text_columns(piece.data);
    if (flow->any && flow->at + 3 + wide > width) {
        page_puts(flow->page, PLAIN, "\n");
        page_fill(flow->page, flow->indent);
        flow->at = flow->indent;
    } else if (flow->any) {
        page_puts(flow->page, DIM, " · ");
        flow->at += 3;
    }
    if (wide > width - flow->at)
        wide = width - flow->at;
    page_left(flow->page, piece.data, wide);
    flow->at += wide;
    flow->any = true;
    buf_release(&piece);
}

void flow_end(struct flow *flow)
{
    page_puts(flow->page, PLAIN, "\n");
}

/* ---- Pictures ------------------------------------------------------------------------------- */

void page_bar(struct page *page, double share, size_t columns)
{
    static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    if (!(share > 0))
        share = 0;
    if (share > 1)
        share = 1;
    size_t eighths = (size_t)lround(share * (double)columns * 8);
    if (eighths == 0 && share > 0)
        eighths = 1;
    struct buf bar = BUF_INIT;
    for (size_t i = 0; i < eighths / 8; i++)
        buf_puts(&bar, "█");
    buf_puts(&bar, parts[eighths % 8]);
    page_puts(page, CYAN, bar.data);
    page_fill(page, columns - text_columns(bar.data));
    buf_release(&bar);
}

/* The mean of the values that fall into one of `columns` equal parts. */
static double part_mean(const double *values, size_t count, size_t columns, size_t part)
{
    const size_t from = part * count / columns;
    const size_t to = (part + 1) * count / columns;
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += values[i];
    return to > from ? sum / (double)(to - from) : 0;
}

void page_sparkline(struct page *page, const double *values, size_t count,
                    size_t columns)
{
    static const char *const levels[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    double top = 0;
    if (columns > count)
        columns = count;
    for (size_t i = 0; i < columns; i++)
        top = fmax(top, part_mean(values, count, columns, i));
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < columns && top > 0; i++) {
        const double mean = part_mean(values, count, columns, i);
        /* Values may be hostile: far below zero, or no numbers at all. */
        const double height = fmin(fmax(mean / top * 8, 0), 8);
        const long level = isfinite(height) ? lround(height) - 1 : 0;
        buf_puts(&line, levels[level < 0 ? 0 : level]);
    }
    page_puts(page, CYAN, line.data);
    buf_release(&line);
}

void page_histogram(struct page *page, const double *counts, size_t columns)
{
    static const char *const levels[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    struct buf line = BUF_INIT;
    double top = 0;
    for (size_t i = 0; i < columns; i++)
        top = fmax(top, counts[i]);
    for (size_t i = 0; i < columns; i++) {
        const double height = counts[i] > 0 && top > 0 ? sqrt(counts[i] / top) * 8 : 0;
        const long level = isfinite(height) ? lround(height) : 0;
        buf_puts(&line, levels[counts[i] > 0 && level < 1 ? 1 : level > 8 ? 8 : level]);
    }
    page_puts(page, CYAN, line.data);
    buf_release(&line);
}
