/* rows.c: see rows.h. */
#include "present/export/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "present/export/export.h"

static bool is_formula(const char *text)
{
    return text[0] && strchr("=+-@\t\r\n", text[0]);
}

/* Control characters would end rows for careless readers. */
static void put_quoted(struct buf *out, const char *text)
{
    buf_putc(out, '"');
    if (is_formula(text))
        buf_putc(out, '\'');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"')
            buf_putc(out, '"');
        buf_putc(out, (char)(*p < ' ' || *p == 0x7f ? ' ' : *p));
    }
    buf_putc(out, '"');
}

/* Tables have millions of numbers: printf is most of the time they take. */
static void put_digits(struct buf *out, uint64_t value, int decimals)
{
    char text[24];
    size_t at = sizeof text;
    int digits = 0;
    do {
        if (decimals && digits == decimals)
            text[--at] = '.';
        text[--at] = (char)('0' + value % 10);
        value /= 10;
        digits++;
    } while (value || (decimals && digits <= decimals));
    buf_append(out, text + at, sizeof text - at);
}

static void put_fixed(struct buf *out, double value, int decimals)
{
    static const double scale[] = { 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9 };
    const double scaled = fabs(value) * scale[decimals];
    if (scaled >= 0x1p53) {
        buf_printf(out, "%.*f", decimals, value);
        return;
    }
    if (signbit(value) && scaled >= 0.5)
        buf_putc(out, '-');
    put_digits(out, (uint64_t)llround(scaled), decimals);
}

static void start_line(struct rows *r)
{
    buf_clear(&r->line);
    r->at = 0;
    if (r->format == ROWS_JSONL) {
        json_init_buf(&r->w, &r->line, JSON_STYLE_COMPACT);
        json_object_begin(&r->w);
    }
}

int rows_begin(struct rows *r, FILE *out, enum rows_format format,
               const char *const *columns, unsigned count)
{
    *r = (struct rows){ .out = out,
                        .format = format,
                        .columns = columns,
                        .column_count = count,
                        .line = BUF_INIT };
    for (unsigned i = 0; format == ROWS_CSV && i < count; i++)
        buf_printf(&r->line, "%s%s", i ? "," : "", columns[i]);
    if (format == ROWS_CSV)
        buf_puts(&r->line, "\r\n");
    const int rc = r->line.error ? r->line.error
                                 : export_put(out, r->line.data, r->line.len);
    start_line(r);
    return rc;
}

/* Before each cell. */
static void next(struct rows *r)
{
    assert(r->at < r->column_count);
    if (r->format == ROWS_JSONL)
        json_key(&r->w, r->columns[r->at]);
    else if (r->at)
        buf_putc(&r->line, ',');
    r->at++;
}

void rows_null(struct rows *r)
{
    next(r);
    if (r->format == ROWS_JSONL)
        json_put_null(&r->w);
}

void rows_text(struct rows *r, const char *text)
{
    if (!text || !text[0]) {
        rows_null(r);
        return;
    }
    next(r);
    if (r->format == ROWS_JSONL)
        json_put_string(&r->w, text);
    else
        put_quoted(&r->line, text);
}

void rows_uint(struct rows *r, uint64_t value)
{
    next(r);
    if (r->format == ROWS_JSONL)
        json_put_uint(&r->w, value);
    else
        put_digits(&r->line, value, 0);
}

void rows_int(struct rows *r, int64_t value)
{
    next(r);
    if (r->format == ROWS_JSONL)
        json_put_int(&r->w, value);
    else
        buf_printf(&r->line, "%" PRId64, value);
}

void rows_real(struct rows *r, double value, int decimals)
{
    if (!isfinite(value)) {
        rows_null(r);
        return;
    }
    next(r);
    if (r->format == ROWS_JSONL)
        json_put_fixed(&r->w, value, decimals);
    else
        put_fixed(&r->line, value, decimals);
}

void rows_bool(struct rows *r, bool value)
{
    next(r);
    if (r->format == ROWS_JSONL)
        json_put_bool(&r->w, value);
    else
        buf_puts(&r->line, value ? "true" : "false");
}

static int end_line(struct rows *r)
{
    if (r->format == ROWS_CSV) {
        buf_puts(&r->line, "\r\n");
        return r->line.error;
    }
    json_object_end(&r->w);
    json_newline(&r->w);
    return json_finish(&r->w);
}

int rows_end(struct rows *r)
{
    assert(r->at == r->column_count);
    int rc = end_line(r);
    if (rc == 0)
        rc = export_put(r->out, r->line.data, r->line.len);
    r->count += rc == 0;
    start_line(r);
    return rc;
}

void rows_release(struct rows *r)
{
    buf_release(&r->line);
}
