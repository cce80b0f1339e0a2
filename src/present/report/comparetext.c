/* comparetext.c: runs side by side on a terminal.
 *
 * What differs in the set-up stands above all numbers. A change in colour is one its
 * interval leaves no doubt about; "~" marks one that may be nothing.
 */
#include "present/report/compare.h"

#include <math.h>
#include <string.h>

#include "base/human.h"
#include "present/report/page.h"

enum { NAME_LEAST = 18, VALUE_COLUMNS = 11, CHANGE_COLUMNS = 11, NOISE_PERCENT = 1 };

static const struct {
    const char *title;
    size_t brief; /* rows without --full */
} sections[COMPARE_SECTIONS] = {
    [COMPARE_SUMMARY] = { "RUN", 17 },
    [COMPARE_PHASES] = { "PHASE", 10 },
    [COMPARE_OPERATIONS] = { "OPERATION", 8 },
    [COMPARE_METRICS] = { "METRIC", 10 },
};

static void put_rate(char *text, size_t len, double value)
{
    if (value >= 1000 && value < 1e15)
        (void)human_count(text, (uint64_t)llround(value));
    else
        (void)snprintf(text, len, "%.4g", value);
}

/* "12.3 G": powers of a thousand, as these are counted. */
static const char *flops_words(char *text, double value)
{
    static const char prefixes[] = " kMGTPE";
    size_t i = 0;
    while (value >= 1000 && prefixes[i + 1]) {
        value /= 1000;
        i++;
    }
    (void)snprintf(text, HUMAN_LEN, i ? "%.3g %c" : "%.3g", value, prefixes[i]);
    return text;
}

static const char *value_words(const struct compare_row *row, double value, char *text)
{
    if (isnan(value)) {
        (void)snprintf(text, HUMAN_LEN, "–");
        return text;
    }
    switch (row->unit) {
    case UNIT_NS:
        return human_duration(text, value);
    case UNIT_BYTES:
        return human_bytes(text, value);
    case UNIT_SHARE:
        return human_percent(text, value);
    case UNIT_PERCENT:
        (void)snprintf(text, HUMAN_LEN, "%.0f %%", value);
        return text;
    case UNIT_JOULES:
        (void)snprintf(text, HUMAN_LEN, "%.3g J", value);
        return text;
    case UNIT_FLOPS:
        return flops_words(text, value);
    case UNIT_COUNT:
    case UNIT_RATE:
        put_rate(text, HUMAN_LEN, value);
        return text;
    case UNIT_PLAIN:
        break;
    }
    (void)snprintf(text, HUMAN_LEN, "%.5g", value);
    return text;
}

/* "+12.3 %", "2.1×", "~" when the interval holds "no difference". */
static void change_words(const struct compare_cell *cell, char *text)
{
    const double percent = (cell->ratio - 1) * 100;
    if (isnan(cell->ratio))
        text[0] = '\0';
    else if (!isnan(cell->low) && !compare_cell_differs(cell))
        (void)snprintf(text, HUMAN_LEN, "~");
    else if (fabs(percent) < 0.05)
        (void)snprintf(text, HUMAN_LEN, "=");
    else if (cell->ratio >= 2)
        (void)snprintf(text, HUMAN_LEN, "%.3g×", cell->ratio);
    else
        (void)snprintf(text, HUMAN_LEN, "%+.1f %%", percent);
}

static enum page_color change_color(const struct compare_row *row,
                                    const struct compare_cell *cell)
{
    if (row->better == BETTER_NEITHER || !compare_cell_differs(cell) ||
        fabs(cell->ratio - 1) * 100 < NOISE_PERCENT)
        return PLAIN;
    return (cell->ratio < 1) == (row->better == BETTER_LOWER) ? GREEN : RED;
}

/* ---- Layout ------------------------------------------------------------------------- */

struct columns {
    size_t name, shown; /* runs that fit */
};

static struct columns lay_out(const struct comparison *c, const struct page *page)
{
    const size_t width = (size_t)page->width, step = VALUE_COLUMNS + CHANGE_COLUMNS;
    struct columns l = { .shown = 1 };
    while (l.shown < c->run_count &&
           3 + NAME_LEAST + VALUE_COLUMNS + l.shown * step <= width)
        l.shown++;
    if (l.shown < 2)
        l.shown = 2;
    l.name = width - 3 - VALUE_COLUMNS - (l.shown - 1) * step;
    if (l.name > 60)
        l.name = 60;
    return l;
}

static void put_clean(struct page *page, const char *text, size_t columns, bool right)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, columns > 1 ? columns - 1 : 1);
    if (right)
        page_right(page, clean.data, columns);
    else
        page_left(page, clean.data, columns);
    buf_release(&clean);
}

static void put_heading(struct page *page, const struct comparison *c,
                        const struct columns *l, const char *title)
{
    page_puts(page, PLAIN, " ");
    struct buf padded = BUF_INIT;
    buf_puts(&padded, title);
    page_puts(page, BOLD, padded.data);
    page_fill(page, l->name + 2 - text_columns(padded.data));
    buf_release(&padded);
    for (size_t i = 0; i < l->shown; i++) {
        put_clean(page, c->labels[i], VALUE_COLUMNS, true);
        if (i)
            page_fill(page, CHANGE_COLUMNS);
    }
    page_puts(page, PLAIN, "\n");
}

/* The end of a path says more than its beginning. */
static void put_name(struct page *page, const struct compare_row *row, size_t columns)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, row->name, 0);
    const size_t all = text_columns(clean.data);
    const char *text = clean.data;
    if (all > columns - 1) {
        for (size_t skip = all - (columns - 2); skip; text++)
            skip -= (text[1] & 0xc0) != 0x80;
        page_puts(page, PLAIN, "…");
        page_left(page, text, columns - 1);
    } else {
        page_left(page, text, columns);
    }
    buf_release(&clean);
}

static void put_row(struct page *page, const struct compare_row *row,
                    const struct columns *l)
{
    char text[HUMAN_LEN];
    page_puts(page, PLAIN, "   ");
    put_name(page, row, l->name);
    for (size_t i = 0; i < l->shown; i++) {
        page_right(page, value_words(row, row->cells[i].value, text), VALUE_COLUMNS);
        if (i == 0)
            continue;
        change_words(&row->cells[i], text);
        page_fill(page, CHANGE_COLUMNS - text_columns(text));
        page_puts(page, change_color(row, &row->cells[i]), text);
    }
    page_puts(page, PLAIN, "\n");
}

static void put_section(struct page *page, const struct comparison *c,
                        const struct columns *l, enum compare_section section,
                        bool full)
{
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < c->row_count; i++) {
        if (c->rows[i].section != section)
            continue;
        if (!full && shown == sections[section].brief) {
            left++;
            continue;
        }
        if (shown++ == 0) {
            struct buf title = BUF_INIT;
            buf_puts(&title, sections[section].title);
            if (c->rows[i].per[0])
                buf_printf(&title, ", per %s", c->rows[i].per);
            put_heading(page, c, l, title.data);
            buf_release(&title);
        }
        put_row(page, &c->rows[i], l);
    }
    if (left)
        page_printf(page, "   … %zu more (--full)\n", left);
    if (shown)
        page_puts(page, PLAIN, "\n");
}

/* ---- Set-up ------------------------------------------------------------------------- */

static void put_differences(struct page *page, const struct comparison *c, bool full)
{
    enum { BRIEF = 12 };
    const size_t count = full || c->difference_count <= BRIEF ? c->difference_count
                                                              : BRIEF;
    if (c->difference_count == 0) {
        page_paragraph(page, "DIFFERS", PLAIN,
                       "nothing known: same command, commit, packages and hardware");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct compare_difference *d = &c->differences[i];
        struct buf text = BUF_INIT, clean = BUF_INIT;
        buf_printf(&text, "%s %s: ", d->group, d->name);
        for (size_t run = 0; run < c->run_count; run++)
            buf_printf(&text, "%s%s", run ? "  →  " : "",
                       d->values[run][0] ? d->values[run] : "–");
        clean_text(&clean, text.data, 300);
        page_paragraph(page, i ? "" : "DIFFERS", PLAIN, clean.data);
        buf_release(&text);
        buf_release(&clean);
    }
    if (count < c->difference_count)
        page_printf(page, "          … %zu more (--full)\n",
                    c->difference_count - count);
}

static void put_words(struct page *page, const char *label, enum page_color color,
                      const char *text)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, 0);
    page_paragraph(page, label, color, clean.data);
    buf_release(&clean);
}

int compare_text(const struct comparison *c, const struct report_style *style,
                 FILE *out)
{
    const int width = style->width == 0    ? 100
                      : style->width < 60  ? 60
                      : style->width > 200 ? 200
                                           : style->width;
    struct page page;
    page_init(&page, width, style->color, style->unicode);
    const struct columns l = lay_out(c, &page);
    page_printf(&page, "sonde · %zu runs side by side\n\n", c->run_count);
    put_differences(&page, c, style->full);
    put_words(&page, "VERDICT", BOLD, c->verdict);
    if (c->since[0])
        put_words(&page, "SINCE", BOLD, c->since);
    if (c->batch[0])
        put_words(&page, "BATCH", PLAIN, c->batch);
    page_puts(&page, PLAIN, "\n");
    for (int section = 0; section < COMPARE_SECTIONS; section++)
        put_section(&page, c, &l, (enum compare_section)section, style->full);
    if (l.shown < c->run_count) {
        char text[128];
        (void)snprintf(
            text, sizeof text,
            "%zu more runs do not fit here: a wider terminal, or --format csv",
            c->run_count - l.shown);
        page_paragraph(&page, "", PLAIN, text);
    }
    page_paragraph(&page, "TRUST", PLAIN,
                   "95 % intervals from the spread inside each run; ~ holds \"no "
                   "difference\". What changes from run to run is not in them: sonde "
                   "check repeats both, interleaved.");
    const int rc = page_flush(&page, out);
    page_release(&page);
    return rc;
}
