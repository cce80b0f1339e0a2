/* hangs.c: where the threads waited when the program hung. */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/human.h"
#include "base/json.h"
#include "present/report/jsonparts.h"
#include "present/report/sections.h"

enum { INDENT = 10, PROCESSES_SHOWN = 6, PROCESSES_FULL = 64, HANGS_SHOWN = 2 };

/* ---- Text -------------------------------------------------------------------------------- */

static void put_head(struct page *page, const struct hang_event *e)
{
    struct buf text = BUF_INIT, clean = BUF_INIT;
    char time[HUMAN_LEN];
    buf_puts(&text, e->why);
    if (!isnan(e->lasted_s))
        buf_printf(&text, "; ended by itself after %s",
                   human_duration(time, e->lasted_s * 1e9));
    clean_text(&clean, text.data, 0);
    page_paragraph(page, "HANG", BOLD, clean.data);
    buf_release(&text);
    buf_release(&clean);
}

/* "1234 python3.11  want_b (train.py:12), zone both" */
static void put_waiter(struct page *page, const struct hang_waiter *w, bool thread)
{
    struct buf text = BUF_INIT, clean = BUF_INIT;
    const char *place = hang_waiter_place(w);
    if (thread)
        buf_printf(&text, "thread %u %s  ", w->tid, w->thread);
    else
        buf_printf(&text, "%u %s  ", w->pid, w->process);
    buf_puts(&text, place[0] ? place : "?");
    if (w->zone[0])
        buf_printf(&text, ", zone %s", w->zone);
    if (w->has_gil || w->waits_gil)
        buf_puts(&text, w->has_gil ? ", holds the GIL" : ", waits for the GIL");
    const size_t indent = INDENT + (thread ? 2 : 0);
    clean_text(&clean, text.data, (size_t)page->width - indent);
    page_fill(page, indent);
    page_printf(page, "%s\n", clean.data);
    buf_release(&text);
    buf_release(&clean);
}

/* One line per process, in the full report one per thread. */
static void put_waiters(struct page *page, const struct hang_event *e, bool full)
{
    const size_t limit = full ? PROCESSES_FULL : PROCESSES_SHOWN;
    size_t processes = 0;
    for (size_t i = 0; i < e->waiter_count; i++) {
        const bool first = i == 0 || e->waiters[i].pid != e->waiters[i - 1].pid;
        processes += first;
        if (processes <= limit && first)
            put_waiter(page, &e->waiters[i], false);
        else if (processes <= limit && full)
            put_waiter(page, &e->waiters[i], true);
    }
    if (processes > limit)
        page_printf(page, "%*sand %zu more processes\n", INDENT, "", processes - limit);
}

/* A path is for pasting: whole on a line of its own, or only its name. */
static void put_file(struct page *page, const struct hang_event *e)
{
    struct buf clean = BUF_INIT;
    if (!e->file[0])
        return;
    clean_text(&clean, e->file, 0);
    const bool fits = text_columns(clean.data) + INDENT + 8 <= (size_t)page->width;
    page_printf(page, "%*sstacks: %s%s\n", INDENT, "",
                fits ? clean.data : path_base(clean.data),
                fits ? "" : " in the run's directory");
    buf_release(&clean);
}

void section_hangs(struct page *page, const struct report *r, bool full)
{
    const struct hang_report *h = &r->hangs;
    for (size_t i = 0; i < h->count && (full || i < HANGS_SHOWN); i++) {
        put_head(page, &h->hangs[i]);
        put_waiters(page, &h->hangs[i], full);
        put_file(page, &h->hangs[i]);
    }
    if (!full && h->count > HANGS_SHOWN)
        page_printf(page, "%*sand %zu more hangs (--full)\n", INDENT, "",
                    h->count - HANGS_SHOWN);
    if (h->count)
        page_puts(page, PLAIN, "\n");
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void field_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_put_bool(w, value);
}

static void put_json_waiter(struct json_writer *w, const struct hang_waiter *t)
{
    json_object_begin(w);
    field_uint(w, "pid", t->pid);
    field_uint(w, "tid", t->tid);
    field_text(w, "process", t->process);
    field_text(w, "thread", t->thread);
    field_bool(w, "main", t->is_main);
    field_bool(w, "running", t->running);
    field_text(w, "zone", t->zone);
    field_text(w, "python", t->python);
    field_text(w, "native", t->native);
    field_text(w, "kernel", t->kernel);
    field_text(w, "gil", t->has_gil ? "holds" : t->waits_gil ? "waits" : NULL);
    json_object_end(w);
}

void fields_of_hangs(struct json_writer *w, const struct report *r)
{
    json_key(w, "hangs");
    json_array_begin(w);
    for (size_t i = 0; i < r->hangs.count; i++) {
        const struct hang_event *e = &r->hangs.hangs[i];
        json_object_begin(w);
        field_uint(w, "number", e->number);
        field_text(w, "text", e->why);
        field_number(w, "waited_s", e->waited_s, 9);
        field_number(w, "lasted_s", e->lasted_s, 9);
        field_text(w, "file", e->file);
        json_key(w, "threads");
        json_array_begin(w);
        for (size_t k = 0; k < e->waiter_count; k++)
            put_json_waiter(w, &e->waiters[k]);
        json_array_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}
