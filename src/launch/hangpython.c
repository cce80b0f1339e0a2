/* hangpython.c: the Python stacks of a process that hangs. */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/error.h"
#include "base/moment.h"
#include "capture/python/python.h"
#include "launch/hangpicture.h"

static const char *keep(struct hang_picture *p, const char *text)
{
    const char *kept = text && *text ? arena_strdup(&p->arena, text) : "";
    return kept ? kept : "";
}

static struct hang_thread *find_thread(struct hang_process *process, uint32_t tid)
{
    for (struct hang_thread *t = process->threads; t; t = t->next)
        if ((uint32_t)t->tid == tid)
            return t;
    return NULL;
}

static void take_frames(struct hang_picture *p, const struct python *py,
                        const struct python_thread *from, struct hang_thread *to)
{
    to->is_python = true;
    to->has_gil = from->has_gil;
    to->python_cut = from->cut;
    to->python_torn = !from->valid;
    to->python = arena_alloc_array(&p->arena, from->count, sizeof *to->python);
    for (unsigned i = 0; to->python && from->valid && i < from->count; i++) {
        const struct python_code code = python_code(py, from->frames[i].code);
        to->python[to->python_count++] = (struct hang_python_frame){
            .function = keep(p, code.name),
            .file = keep(p, code.file),
            .line = from->frames[i].line ? from->frames[i].line : code.first_line,
        };
    }
}

static void find_waiters(struct hang_process *process, const struct python *py)
{
    struct sleeper_place place;
    for (struct hang_thread *t = process->threads; t; t = t->next)
        t->waits_gil = t->is_python && !t->has_gil && sleeper_where(t->call, &place) &&
                       place.call == SYS_futex && python_is_lock(py, place.arg);
}

static void sample(struct hang_picture *p, struct hang_process *process,
                   struct python *py)
{
    struct python_sample *s = calloc(1, sizeof *s);
    if (!s)
        return;
    int rc = python_sample(py, moment_ns(CLOCK_MONOTONIC), NULL, NULL, s);
    for (int tries = 0; rc == -EAGAIN && tries < 5; tries++)
        rc = python_sample(py, moment_ns(CLOCK_MONOTONIC), NULL, NULL, s);
    if (rc < 0)
        process->no_python = "its threads could not be listed";
    for (size_t i = 0; rc == 0 && i < s->count; i++) {
        struct hang_thread *t = find_thread(process, s->threads[i].tid);
        if (t)
            take_frames(p, py, &s->threads[i], t);
    }
    find_waiters(process, py);
    free(s);
}

void hang_python_read(struct hang_picture *p, struct hang_process *process)
{
    struct python *py = NULL;
    const char *why = NULL;
    const int rc = python_open((pid_t)process->kin.pid, &py, &why);
    if (rc == 0) {
        process->python_minor = python_minor(py);
        sample(p, process, py);
        python_free(py);
    } else if (rc != SONDE_E_NOTFOUND) {
        process->no_python = keep(p, why ? why : error_text(rc));
    }
}
