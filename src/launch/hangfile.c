/* hangfile.c: what every process of a run is doing, written down. */
#include "launch/hangfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"

/* ---- Stacks ------------------------------------------------------------------------------- */

static void put_python(struct buf *out, const struct hang_thread *t)
{
    for (unsigned i = 0; i < t->python_count; i++)
        buf_printf(out, "    python  %s (%s:%d)\n", t->python[i].function,
                   t->python[i].file, t->python[i].line);
    if (t->python_torn)
        buf_puts(out, "    python  (it ran while we looked)\n");
    else if (t->python_cut)
        buf_puts(out, "    python  …\n");
}

static void put_named(struct buf *out, const struct symbolise_frame *frame)
{
    buf_printf(out, "    native  %s", frame->function);
    if (frame->file[0] && frame->line)
        buf_printf(out, " (%s:%u)%s\n", frame->file, frame->line,
                   frame->inlined ? " inlined" : "");
    else
        buf_printf(out, " in %s\n", path_base(frame->module));
}

static void put_frame(struct buf *out, const struct hang_picture *picture,
                      const struct hang_frame *f)
{
    const struct symbolise_frame *named;
    const unsigned count = hangnames_get(picture->names, f->name, &named);
    if (count && named[0].function[0])
        for (unsigned i = 0; i < count; i++)
            put_named(out, &named[i]);
    else if (f->path[0])
        buf_printf(out, "    native  %s+%#" PRIx64 "\n", f->path, f->offset);
    else
        buf_printf(out, "    native  %#" PRIx64 "\n", f->address);
}

static void put_native(struct buf *out, const struct hang_picture *picture,
                       const struct hang_thread *t)
{
    for (unsigned i = 0; i < t->frame_count; i++)
        put_frame(out, picture, &t->frames[i]);
    if (t->frame_count && !t->whole)
        buf_puts(out, "    native  …\n");
    if (t->woke)
        buf_puts(out, "    native  (it woke up while we looked)\n");
}

static void put_kernel(struct buf *out, const char *text)
{
    while (*text) {
        const size_t len = strcspn(text, "\n");
        buf_printf(out, "    kernel  %.*s\n", (int)len, text);
        text += len + (text[len] == '\n');
    }
}

/* ---- Threads and processes ------------------------------------------------------------------- */

static const char *state_words(char state)
{
    switch (state) {
    case 'R':
        return "runs";
    case 'S':
        return "sleeps";
    case 'D':
        return "sleeps, cannot be interrupted";
    case 'T':
    case 't':
        return "is stopped";
    case 'Z':
    case 'X':
        return "is dead";
    default:
        return "in a state of its own";
    }
}

static void put_thread(struct buf *out, const struct hang_picture *picture,
                       const struct hang_thread *t)
{
    buf_printf(out, "  thread %d %s state %c: %s", (int)t->tid, t->comm, t->state,
               state_words(t->state));
    if (t->wchan[0] && strcmp(t->wchan, "0") != 0)
        buf_printf(out, ", waits in %s", t->wchan);
    if (t->has_gil || t->waits_gil)
        buf_puts(out, t->has_gil ? ", holds the GIL" : ", waits for the GIL");
    buf_putc(out, '\n');
    if (t->zones[0])
        buf_printf(out, "    zones   %s\n", t->zones);
    put_python(out, t);
    put_native(out, picture, t);
    if (t->call[0])
        buf_printf(out, "    system call %s\n", t->call);
    put_kernel(out, t->kernel);
}

static void put_process(struct buf *out, const struct hang_picture *picture,
                        const struct hang_process *p)
{
    buf_printf(out, "process %u (%s), child of %u, %.1f MiB\n", p->kin.pid, p->kin.comm,
               p->kin.parent, (double)p->kin.rss / 1048576);
    if (p->command[0])
        buf_printf(out, "  command %s\n", p->command);
    if (p->python_minor)
        buf_printf(out, "  Python 3.%u\n", p->python_minor);
    if (p->no_python[0])
        buf_printf(out, "  Python stacks cannot be read: %s\n", p->no_python);
    for (const struct hang_thread *t = p->threads; t; t = t->next)
        put_thread(out, picture, t);
    buf_putc(out, '\n');
}

int hangfile_write(struct hangfile *file, unsigned number, const char *why,
                   uint64_t waited_ns, const struct kin *kin)
{
    struct hang_picture picture;
    struct buf path = BUF_INIT, text = BUF_INIT;
    char name[32];
    (void)snprintf(name, sizeof name, "hang-%u.txt", number);
    path_join(&path, file->dir, name);
    int rc = hang_picture_take(file->dir, kin, &picture);
    if (rc == 0) {
        buf_printf(&text, "%s\n\n", why);
        for (const struct hang_process *p = picture.processes; p; p = p->next)
            put_process(&text, &picture, p);
        rc = path.error ? path.error : text.error;
    }
    if (rc == 0)
        rc = file_write_atomic(path.data, text.data, text.len, 0600);
    if (rc == 0)
        hangrows_write(file, number, why, waited_ns, &picture);
    hang_picture_release(&picture);
    buf_release(&path);
    buf_release(&text);
    return rc;
}
