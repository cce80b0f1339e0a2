/* hangrows.c: a hang in short, for reports. */
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "launch/hangfile.h"

enum { LINE = 512 };

static bool open_tables(struct hangfile *f)
{
    static const struct tables_spec specs[] = {
        { HANG_HANGS, sizeof(struct hang_row), HANG_ROWS },
        { HANG_THREADS, sizeof(struct hang_thread_row), HANG_THREAD_ROWS },
    };
    return f->tables.base ||
           tables_create(f->dir, HANG_KIND, f->control, specs, 2, &f->tables) == 0;
}

static uint32_t put_text(struct hangfile *f, const char *text)
{
    return tables_text(&f->tables, text, strlen(text));
}

static uint32_t put_python(struct hangfile *f, const struct hang_thread *t)
{
    char line[LINE];
    if (!t->python_count)
        return 0;
    const struct hang_python_frame *inner = &t->python[0];
    (void)snprintf(line, sizeof line, "%.200s (%.200s:%d)", inner->function,
                   path_base(inner->file), inner->line);
    return put_text(f, line);
}

static uint32_t put_native(struct hangfile *f, const struct hang_picture *p,
                           const struct hang_thread *t)
{
    char line[LINE];
    const struct symbolise_frame *place = hang_picture_place(p, t);
    if (!place)
        return 0;
    if (place->file[0] && place->line)
        (void)snprintf(line, sizeof line, "%s (%s:%u)", place->function,
                       path_base(place->file), place->line);
    else
        (void)snprintf(line, sizeof line, "%s", place->function);
    return put_text(f, line);
}

static uint32_t flags_of(const struct hang_process *p, const struct hang_thread *t)
{
    return ((uint32_t)t->tid == p->kin.pid ? HANG_MAIN : 0U) |
           (t->is_python ? HANG_PYTHON : 0U) | (t->has_gil ? HANG_HAS_GIL : 0U) |
           (t->waits_gil ? HANG_WAITS_GIL : 0U) | (t->state == 'R' ? HANG_RUNNING : 0U);
}

static void put_thread(struct hangfile *f, unsigned number,
                       const struct hang_picture *picture, const struct hang_process *p,
                       const struct hang_thread *t)
{
    uint32_t index;
    struct hang_thread_row *row = tables_append(&f->tables, 2, &index);
    if (!row)
        return;
    const size_t len = strlen(t->comm); /* in parentheses */
    row->pid = p->kin.pid;
    row->tid = (uint32_t)t->tid;
    row->flags = flags_of(p, t);
    row->process = put_text(f, p->kin.comm);
    row->thread = len > 2 ? tables_text(&f->tables, t->comm + 1, len - 2) : 0;
    row->zone = put_text(f, t->zone);
    row->python = put_python(f, t);
    row->native = put_native(f, picture, t);
    row->kernel = strcmp(t->wchan, "0") == 0 ? 0 : put_text(f, t->wchan);
    __atomic_store_n(&row->key, number, __ATOMIC_RELEASE);
}

void hangrows_write(struct hangfile *f, unsigned number, const char *why,
                    uint64_t waited_ns, const struct hang_picture *picture)
{
    uint32_t index;
    f->row = open_tables(f) ? tables_append(&f->tables, 1, &index) : NULL;
    if (!f->row)
        return;
    for (const struct hang_process *p = picture->processes; p; p = p->next)
        for (const struct hang_thread *t = p->threads; t; t = t->next)
            put_thread(f, number, picture, p, t);
    f->row->waited_ns = waited_ns;
    f->row->why = put_text(f, why);
    __atomic_store_n(&f->row->key, number, __ATOMIC_RELEASE);
}

void hangfile_ended(struct hangfile *f, uint64_t lasted_ns)
{
    if (f->row)
        __atomic_store_n(&f->row->lasted_ns, lasted_ns, __ATOMIC_RELEASE);
    f->row = NULL;
}

void hangfile_close(struct hangfile *f)
{
    if (f->tables.base) /* a zeroed struct holds no descriptor, not number 0 */
        tables_close(&f->tables);
    f->row = NULL;
}
