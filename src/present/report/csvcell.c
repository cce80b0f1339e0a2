/* csvcell.c: one cell of a CSV file. */
#include "present/report/csvcell.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "present/report/page.h"

static bool is_formula(const char *text)
{
    return text[0] && strchr("=+-@\t\r\n", text[0]);
}

void csv_put_text(struct buf *out, const char *text)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, 0);
    buf_putc(out, '"');
    if (is_formula(text) || is_formula(clean.data))
        buf_putc(out, '\'');
    for (const char *p = clean.data; *p; p++) {
        if (*p == '"')
            buf_putc(out, '"');
        buf_putc(out, *p);
    }
    buf_putc(out, '"');
    out->error = out->error ? out->error : clean.error;
    buf_release(&clean);
}

void csv_put_number(struct buf *out, double value, double scale)
{
    buf_putc(out, ',');
    if (isfinite(value))
        buf_printf(out, "%.9g", value * scale);
}
