/* functions.c: the functions and lines that took the CPU time, as text and as JSON. */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/human.h"
#include "present/report/jsonparts.h"
#include "present/report/sections.h"

/* Below this a function is not worth a line of the short report. */
static const double SHORT_LIST_SHARE = 0.005;
/* Below this the list is told to be a part. */
static const double LITTLE_COVERED = 0.9;
enum {
    FEW_SAMPLES = 10,
    LINES_SHOWN = 8,
    FUNCTIONS_WRITTEN = 2000,
    FUNCTIONS_BRIEF = 200,
    LINES_WRITTEN = 500
};

/* ---- Text --------------------------------------------------------------------------------- */

/* "file.c:12" of a path; "" unknown. */
static void put_place(struct buf *out, const char *file, uint32_t line)
{
    if (!file[0])
        return;
    clean_text(out, path_base(file), 40);
    if (line)
        buf_printf(out, ":%u", line);
}

static void put_function(struct page *page, const struct hot_function *f)
{
    char self[HUMAN_LEN];
    struct buf name = BUF_INIT, place = BUF_INIT;
    const size_t columns = page->width > 72 ? (size_t)page->width - 52 : 20;
    clean_text(&name, f->name, columns);
    put_place(&place, f->file, f->line);
    if (!place.len && f->module[0] == '/')
        clean_text(&place, path_base(f->module), 24);
    page_fill(page, 3);
    page_left(page, name.data, columns);
    page_printf(page, " %9s %5.1f %% %5.1f %%  ", human_duration(self, f->self_ns),
                100 * f->share, 100 * f->total_share);
    page_left(page, place.data, 22);
    page_puts(page, PLAIN, "\n");
    buf_release(&name);
    buf_release(&place);
}

static size_t worth_showing(const struct hot_functions *h, size_t limit)
{
    size_t n = 0;
    while (n < h->function_count && n < limit &&
           (n == 0 || h->functions[n].share >= SHORT_LIST_SHARE))
        n++;
    return n;
}

static void put_hot_lines(struct page *page, const struct hot_functions *h)
{
    struct flow flow;
    if (h->line_count == 0 || h->lines[0].share < HOT_LINE_SHARE)
        return;
    flow_begin(&flow, page, "HOT LINES");
    for (size_t i = 0; i < h->line_count && i < LINES_SHOWN; i++) {
        const struct hot_line *l = &h->lines[i];
        struct buf place = BUF_INIT, name = BUF_INIT;
        if (l->share < HOT_LINE_SHARE)
            break;
        put_place(&place, l->file, l->line);
        clean_text(&name, l->function, 40);
        flow_put(&flow, "%s %.0f %% (%s)", place.data, 100 * l->share, name.data);
        buf_release(&place);
        buf_release(&name);
    }
    flow_end(&flow);
}

void section_functions(struct page *page, const struct report *r,
                       const struct limits *limits)
{
    const struct hot_functions *h = &r->hot;
    const size_t shown = worth_showing(h, limits->functions);
    const size_t columns = page->width > 72 ? (size_t)page->width - 52 : 20;
    char cpu[HUMAN_LEN];
    struct buf head = BUF_INIT;
    if (h->samples < FEW_SAMPLES && limits->notes < SIZE_MAX)
        return; /* chance; the full report has them */
    if (h->samples == 0)
        return;
    buf_printf(&head, "%llu sample%s of CPU time, %s", (unsigned long long)h->taken,
               h->taken == 1 ? "" : "s", human_duration(cpu, h->cpu_ns));
    if (h->coverage < LITTLE_COVERED) /* not when it is unknown */
        buf_printf(&head, " (%.0f %% of all)", 100 * h->coverage);
    page_puts(page, PLAIN, " ");
    page_puts(page, BOLD, "FUNCTIONS");
    page_fill(page, 2);
    page_left(page, head.data, columns > 8 ? columns - 8 : 1);
    page_puts(page, DIM, "      self    self   total\n");
    for (size_t i = 0; i < shown; i++)
        put_function(page, &h->functions[i]);
    put_hot_lines(page, h);
    page_puts(page, PLAIN, "\n");
    buf_release(&head);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_share(struct json_writer *w, const char *key, double share)
{
    json_key(w, key);
    json_put_double(w, share);
}

static void write_function(struct json_writer *w, const struct hot_function *f)
{
    json_object_begin(w);
    field_text(w, "name", f->name);
    field_text(w, "file", f->file);
    field_int(w, "line", f->line ? (int)f->line : -1);
    field_seconds(w, "self_s", f->self_ns);
    field_seconds(w, "total_s", f->total_ns);
    put_share(w, "share", f->share);
    put_share(w, "total_share", f->total_share);
    field_uint(w, "samples", f->self);
    field_text(w, "module", f->module);
    field_text(w, "language", "native");
    json_object_end(w);
}

static void write_line(struct json_writer *w, const struct hot_line *l)
{
    json_object_begin(w);
    field_text(w, "file", l->file);
    field_int(w, "line", (int)l->line);
    field_text(w, "function", l->function);
    field_seconds(w, "self_s", l->self_ns);
    put_share(w, "share", l->share);
    field_uint(w, "samples", l->self);
    json_object_end(w);
}

/* Of the samples of threads in Python: how many have all of it. */
static void write_merged(struct json_writer *w, const struct hot_functions *h)
{
    const struct stack_merge_row *m = &h->merge;
    const double python = (double)m->whole + (double)m->partly + (double)m->unmerged;
    json_key(w, "merged");
    if (!h->has_merged) {
        json_put_null(w);
        return;
    }
    json_object_begin(w);
    field_uint(w, "whole", m->whole);
    field_uint(w, "partly", m->partly);
    field_uint(w, "unmerged", m->unmerged);
    field_uint(w, "native", m->native);
    field_number(w, "whole_share", python > 0 ? (double)m->whole / python : NAN, 4);
    field_uint(w, "exact", m->exact);
    field_uint(w, "line_moved", m->moved);
    field_uint(w, "resumed", m->resumed);
    field_uint(w, "unknown_python", m->unknown);
    field_number(w, "delay_ms_mean",
                 m->looks ? (double)m->delay_ns / (double)m->looks / 1e6 : NAN, 4);
    field_number(w, "delay_ms_max", m->looks ? (double)m->delay_max_ns / 1e6 : NAN, 4);
    field_seconds(w, "cost_s", (double)m->look_ns);
    json_object_end(w);
}

static void write_totals(struct json_writer *w, const struct hot_functions *h)
{
    json_key(w, "sampling");
    json_object_begin(w);
    field_uint(w, "samples", h->samples);
    field_uint(w, "taken", h->taken);
    field_uint(w, "lost", h->lost);
    field_uint(w, "other_stacks", h->other);
    field_uint(w, "cut_stacks", h->cut);
    field_uint(w, "shallow_stacks", h->shallow);
    field_seconds(w, "period_s", h->samples ? h->period_ns : NAN);
    field_seconds(w, "cpu_s", h->samples ? h->cpu_ns : NAN);
    field_number(w, "own_share", h->samples ? h->own_share : NAN, 6);
    field_number(w, "coverage", h->coverage, 4);
    field_text(w, "unavailable", h->why);
    write_merged(w, h);
    json_object_end(w);
}

/* Native ones and Python's are sorted each for itself; together they are hottest first. */
static void write_functions(struct json_writer *w, const struct hot_functions *h,
                            const struct py_profile *p)
{
    const size_t most = w->brief ? FUNCTIONS_BRIEF : FUNCTIONS_WRITTEN;
    const size_t native = h->function_count < most ? h->function_count : most;
    const size_t python = py_rows_written(w, p->function_count);
    for (size_t n = 0, k = 0; n < native || k < python;)
        if (k == python ||
            (n < native && h->functions[n].self_ns >= p->functions[k].self.cpu_ns))
            write_function(w, &h->functions[n++]);
        else
            write_py_function(w, p, &p->functions[k++]);
}

/* One that is far back by its CPU time may be where the main thread waits. */
static bool is_written(const struct py_profile *p, size_t rank, size_t most)
{
    return rank < most || (size_t)(p->lines_by_cpu[rank] - p->lines) < most;
}

static void write_lines(struct json_writer *w, const struct hot_functions *h,
                        const struct py_profile *p)
{
    const size_t native = h->line_count < LINES_WRITTEN ? h->line_count : LINES_WRITTEN;
    const size_t python = p->line_count, most = py_rows_written(w, python);
    for (size_t n = 0, k = 0; n < native || k < python;)
        if (k == python ||
            (n < native && h->lines[n].self_ns >= p->lines_by_cpu[k]->self.cpu_ns))
            write_line(w, &h->lines[n++]);
        else if (is_written(p, k, most))
            write_py_line(w, p, p->lines_by_cpu[k++]);
        else
            k++;
}

void fields_of_functions(struct json_writer *w, const struct report *r)
{
    json_key(w, "functions");
    json_array_begin(w);
    write_functions(w, &r->hot, &r->python);
    json_array_end(w);
    json_key(w, "lines");
    json_array_begin(w);
    write_lines(w, &r->hot, &r->python);
    json_array_end(w);
    write_totals(w, &r->hot);
}
