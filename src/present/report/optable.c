/* optable.c: the table of operations in the text report.
 *
 * Columns are a table: a title, a width, the terminal width from which there is room
 * for it, and how to print an operation in it.
 */
#include "present/report/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/human.h"
#include "present/report/filter.h"

enum { INDENT = 3, STEP_IN = 2, NAME_MIN = 18, NAME_MAX = 64, WHERE = 20 };

typedef const char *cell_fn(const struct report *r, const struct op *op,
                            char text[HUMAN_LEN]);

/* Beyond ten million the digits no longer fit, nor matter. */
static const char *cell_calls(const struct report *r, const struct op *op, char *text)
{
    const uint64_t calls = op->durations.count + op->open;
    (void)r;
    if (calls < 10000000)
        return human_count(text, calls);
    if (calls < 999500000)
        (void)snprintf(text, HUMAN_LEN, "%.3g M", (double)calls / 1e6);
    else
        (void)snprintf(text, HUMAN_LEN, "%.3g G", (double)calls / 1e9);
    return text;
}

static const char *cell_total(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return human_duration(text, op->total_ns);
}

/* Of the main thread's wall time; a dash for what runs elsewhere. */
static const char *cell_share(const struct report *r, const struct op *op, char *text)
{
    const double wall = r->phases.wall_ns;
    const bool there = op->main_ns > 0 && wall > 0;
    return human_percent(text, there ? op->main_ns / wall : NAN);
}

static const char *cell_self(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return human_duration(text, fmax(op->self_ns, 0));
}

static const char *cell_mean(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return human_duration(text, op->durations.count ? op->durations.mean : NAN);
}

static const char *cell_std(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return human_duration(text, distribution_std(&op->durations));
}

static const char *cell_min(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return human_duration(text, op->durations.count ? op->durations.min : NAN);
}

static const char *cell_max(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return human_duration(text, op->durations.count ? op->durations.max : NAN);
}

static const char *quantile(const struct op *op, double q, char *text)
{
    return human_duration(text, distribution_quantile(&op->durations, q));
}

static const char *cell_p50(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return quantile(op, 0.50, text);
}

static const char *cell_p95(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return quantile(op, 0.95, text);
}

static const char *cell_p99(const struct report *r, const struct op *op, char *text)
{
    (void)r;
    return quantile(op, 0.99, text);
}

static const struct column {
    const char *title;
    size_t width;
    int from; /* terminal width */
    cell_fn *print;
} columns[] = {
    { "calls", 10, 0, cell_calls }, { "total", 9, 0, cell_total },
    { "main", 8, 80, cell_share },  { "self", 9, 0, cell_self },
    { "mean", 9, 90, cell_mean },   { "std", 9, 180, cell_std },
    { "min", 9, 160, cell_min },    { "p50", 9, 140, cell_p50 },
    { "p95", 9, 120, cell_p95 },    { "p99", 9, 140, cell_p99 },
    { "max", 9, 160, cell_max },
};
enum { COLUMN_COUNT = sizeof(columns) / sizeof(columns[0]), WHERE_FROM = 100 };

static bool has_column(const struct page *page, const struct column *c)
{
    return page->width >= c->from;
}

static size_t name_width(const struct page *page)
{
    size_t used = INDENT;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        used += has_column(page, &columns[i]) ? columns[i].width : 0;
    if (page->width >= WHERE_FROM)
        used += WHERE;
    const size_t left = (size_t)page->width > used ? (size_t)page->width - used : 0;
    return left < NAME_MIN ? NAME_MIN : left > NAME_MAX ? NAME_MAX : left;
}

static void put_titles(struct page *page, size_t names)
{
    page_puts(page, PLAIN, " ");
    page_puts(page, BOLD, "OPERATIONS");
    page_fill(page, INDENT + names - 11);
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (has_column(page, &columns[i]))
            page_right(page, columns[i].title, columns[i].width);
    page_puts(page, PLAIN, "\n");
}

/* Deep paths indent no further than half the column, or nothing is left of them. */
static void put_name(struct page *page, const struct op *op, size_t names)
{
    struct buf name = BUF_INIT;
    size_t inside = (op->depth - 1) * STEP_IN;
    if (inside > names / 2)
        inside = names / 2;
    const char *mark = op->open ? " (open)" : op->truncated ? " (cut)" : "";
    if (op->kind == OP_SPAN)
        mark = " (span)";
    const size_t room = names - inside - strlen(mark);
    clean_text(&name, op->name[0] ? op->name : "(no name)", room);
    buf_puts(&name, mark);
    page_fill(page, INDENT + inside);
    page_left(page, name.data, names - inside);
    buf_release(&name);
}

static void put_where(struct page *page, const struct op *op)
{
    struct buf where = BUF_INIT;
    struct buf file = BUF_INIT;
    if (page->width < WHERE_FROM || !op->file[0])
        return;
    clean_text(&file, path_base(op->file), 0);
    buf_printf(&where, "%s:%d", file.data, op->line);
    const size_t wide = text_columns(where.data);
    page_fill(page, 2);
    if (wide > WHERE - 2) { /* the line number must stay */
        buf_clear(&where);
        buf_printf(&where, ":%d", op->line);
        page_left(page, file.data, WHERE - 2 - text_columns(where.data));
    }
    page_puts(page, DIM, where.data);
    buf_release(&where);
    buf_release(&file);
}

static void put_row(struct page *page, const struct report *r, const struct op *op,
                    size_t names)
{
    char text[HUMAN_LEN];
    put_name(page, op, names);
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (has_column(page, &columns[i])) {
            const char *cell = columns[i].print(r, op, text);
            page_puts(page, PLAIN, " ");
            page_right(page, cell, columns[i].width - 1);
        }
    put_where(page, op);
    page_puts(page, PLAIN, "\n");
}

static void put_rest(struct page *page, const struct op_filter *f, size_t names)
{
    char text[HUMAN_LEN];
    struct buf name = BUF_INIT;
    if (f->left_out == 0)
        return;
    buf_printf(&name, "(%s smaller path%s)", human_count(text, f->left_out),
               f->left_out == 1 ? "" : "s");
    page_fill(page, INDENT);
    page_left(page, name.data, names);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (!has_column(page, &columns[i]))
            continue;
        const bool self = columns[i].print == cell_self;
        page_right(page, self ? human_duration(text, f->left_out_ns) : "",
                   columns[i].width);
    }
    page_puts(page, PLAIN, "\n");
    buf_release(&name);
}

int section_operations(struct page *page, const struct report *r,
                       const struct report_style *style, size_t max_rows)
{
    struct op_filter filter;
    const struct op_table *t = &r->ops;
    if (t->order_count == 0)
        return 0;
    const int rc = op_filter_init(&filter, t, style, max_rows);
    if (rc < 0)
        return rc;
    const size_t names = name_width(page);
    put_titles(page, names);
    for (size_t i = 0; i < t->order_count; i++)
        if (filter.shown[t->order[i]])
            put_row(page, r, &t->ops[t->order[i]], names);
    put_rest(page, &filter, names);
    page_puts(page, PLAIN, "\n");
    op_filter_release(&filter);
    return 0;
}
