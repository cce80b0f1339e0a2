/* pysection.c: Python functions and lines, as text and JSON. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/human.h"
#include "present/report/jsonparts.h"
#include "present/report/sections.h"

enum {
    LINES_SHOWN = 5,
    LINES_FULL = 40,
    FUNCTIONS_FULL = 30,
    JSON_MOST = 500,
    JSON_BRIEF = 200
};
static const double SMALLEST_SHARE = 0.01;

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* ---- Text --------------------------------------------------------------------------- */

static void put_place(struct buf *out, const char *file, uint32_t line)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s:%u", path_base(file), line);
    if (!text.error)
        clean_text(out, text.data, 40);
    buf_release(&text);
}

static void put_row(struct page *page, const char *place, const char *name,
                    double first, double second)
{
    struct buf clean = BUF_INIT;
    const size_t room = (size_t)page->width > 60 ? (size_t)page->width - 56 : 20;
    char number[32];
    page_fill(page, 10);
    page_left(page, place, 26);
    page_puts(page, PLAIN, " ");
    clean_text(&clean, name, room);
    page_left(page, clean.error ? "" : clean.data, room);
    (void)snprintf(number, sizeof number, "%5.1f %%", first * 100);
    page_right(page, number, 9);
    (void)snprintf(number, sizeof number, "%5.1f %%", second * 100);
    page_right(page, number, 9);
    page_puts(page, PLAIN, "\n");
    buf_release(&clean);
}

static void put_heading(struct page *page, const char *label, const char *what,
                        const char *first, const char *second)
{
    const size_t room = (size_t)page->width > 60 ? (size_t)page->width - 56 : 20;
    page_label(page, label);
    page_left(page, what, 26 + 1 + room);
    page_right(page, first, 9);
    page_right(page, second, 9);
    page_puts(page, PLAIN, "\n");
}

static void put_lines(struct page *page, const struct py_profile *p, size_t most)
{
    put_heading(page, "PYTHON", "lines of the main thread", "wall", "CPU");
    for (size_t i = 0; i < p->line_count && i < most; i++) {
        const struct py_line *l = &p->lines[i];
        struct buf place = BUF_INIT;
        const double wall = share(l->self.wall_ns, p->wall_ns);
        if (i > 0 && wall < SMALLEST_SHARE)
            break;
        put_place(&place, l->file, l->line);
        put_row(page, place.error ? "" : place.data, l->function, wall,
                share(l->self.cpu_ns, p->cpu_ns));
        buf_release(&place);
    }
}

/* The interpreter lock and the collector, when they matter. */
static void put_lock(struct page *page, const struct py_profile *p)
{
    double wait = 0, wall = 0, gc = 0;
    for (size_t i = 0; i < p->thread_count; i++) {
        wait += p->threads[i].gil_wait_ns;
        gc += p->threads[i].gc_ns;
        wall += p->threads[i].wall_ns;
    }
    if (share(wait, wall) < SMALLEST_SHARE && share(gc, p->wall_ns) < SMALLEST_SHARE)
        return;
    struct flow flow;
    flow_begin(&flow, page, "");
    if (share(wait, wall) >= SMALLEST_SHARE)
        flow_put(&flow, "waiting for the GIL %.0f %% of thread time",
                 share(wait, wall) * 100);
    if (share(gc, p->wall_ns) >= SMALLEST_SHARE)
        flow_put(&flow, "garbage collection %.0f %%", share(gc, p->wall_ns) * 100);
    flow_end(&flow);
}

static void put_functions(struct page *page, const struct py_profile *p)
{
    put_heading(page, "", "functions, all threads", "self CPU", "total CPU");
    for (size_t i = 0; i < p->function_count && i < FUNCTIONS_FULL; i++) {
        const struct py_function *f = &p->functions[i];
        struct buf place = BUF_INIT;
        put_place(&place, f->file, f->line);
        put_row(page, place.error ? "" : place.data, f->name,
                share(f->self.cpu_ns, p->cpu_ns), share(f->total.cpu_ns, p->cpu_ns));
        buf_release(&place);
    }
}

void section_python(struct page *page, const struct report *r, bool full)
{
    const struct py_profile *p = &r->python;
    if (!p->present || p->line_count == 0)
        return;
    put_lines(page, p, full ? LINES_FULL : LINES_SHOWN);
    put_lock(page, p);
    if (full)
        put_functions(page, p);
    page_puts(page, PLAIN, "\n");
}

/* ---- JSON --------------------------------------------------------------------------- */

size_t py_rows_written(const struct json_writer *w, size_t count)
{
    const size_t most = w->brief ? JSON_BRIEF : JSON_MOST;
    return count < most ? count : most;
}

void write_py_function(struct json_writer *w, const struct py_profile *p,
                       const struct py_function *f)
{
    json_object_begin(w);
    field_text(w, "name", f->name);
    field_text(w, "file", f->file);
    field_uint(w, "line", f->line);
    field_seconds(w, "self_s", f->self.cpu_ns);
    field_seconds(w, "total_s", f->total.cpu_ns);
    field_number(w, "share", share(f->self.cpu_ns, p->cpu_ns), 6);
    field_text(w, "language", "python");
    field_seconds(w, "main_self_s", f->self.wall_ns);
    field_seconds(w, "main_total_s", f->total.wall_ns);
    json_object_end(w);
}

void write_py_line(struct json_writer *w, const struct py_profile *p,
                   const struct py_line *l)
{
    json_object_begin(w);
    field_text(w, "file", l->file);
    field_uint(w, "line", l->line);
    field_text(w, "function", l->function);
    field_seconds(w, "self_s", l->self.cpu_ns);
    field_number(w, "share", share(l->self.cpu_ns, p->cpu_ns), 6);
    field_text(w, "language", "python");
    field_seconds(w, "main_self_s", l->self.wall_ns);
    field_number(w, "main_share", share(l->self.wall_ns, p->wall_ns), 6);
    json_object_end(w);
}

static void put_threads(struct json_writer *w, const struct py_profile *p)
{
    json_key(w, "threads");
    json_array_begin(w);
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct py_thread *t = &p->threads[i];
        if (t->pid == 0)
            continue;
        json_object_begin(w);
        field_uint(w, "pid", t->pid);
        field_uint(w, "tid", t->tid);
        field_text(w, "name", t->name);
        field_seconds(w, "wall_s", t->wall_ns);
        field_seconds(w, "cpu_s", t->cpu_ns);
        field_seconds(w, "gil_s", t->gil_ns);
        field_seconds(w, "gil_wait_s", t->gil_wait_ns);
        field_seconds(w, "gc_s", t->gc_ns);
        field_seconds(w, "invalid_s", t->invalid_ns);
        json_object_end(w);
    }
    json_array_end(w);
}

void fields_of_python(struct json_writer *w, const struct report *r)
{
    const struct py_profile *p = &r->python;
    char version[16];
    if (!p->present) {
        field_null(w, "python");
        return;
    }
    (void)snprintf(version, sizeof version, "3.%u", p->minor);
    json_key(w, "python");
    json_object_begin(w);
    field_text(w, "version", version);
    field_uint(w, "processes", p->processes);
    field_uint(w, "processes_unknown", p->unknown);
    field_number(w, "rate_hz", p->period_ns > 0 ? 1e9 / p->period_ns : 0, 1);
    field_uint(w, "samples", p->samples);
    field_uint(w, "invalid", p->invalid);
    field_seconds(w, "cpu_s", p->cpu_ns);
    field_seconds(w, "main_wall_s", p->wall_ns);
    field_seconds(w, "cost_s", p->cost_ns);
    put_threads(w, p);
    json_object_end(w);
}
