/* hangpython.c: the Python stacks of a process that hangs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
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

/* ---- Who waits for the interpreter lock ---------------------------------------------- */

/* One who waits for it wakes every 5 ms to ask, and needs a processor for that: a single
 * look may find him awake. So those who are get some more. */
enum { LOOKS = 20, PAUSE_NS = 1000000 };

static bool is_awake(const struct hang_thread *t)
{
    return strcmp(t->call, "running") == 0;
}

static bool sleeps_for_lock(const struct hang_thread *t, const struct python *py)
{
    struct sleeper_place place;
    return sleeper_where(t->call, &place) && place.call == SYS_futex &&
           python_is_lock(py, place.arg);
}

static void look_again(struct hang_picture *p, const struct hang_process *process,
                       struct hang_thread *t)
{
    struct buf text = BUF_INIT;
    char path[96];
    (void)snprintf(path, sizeof path, "/proc/%u/task/%d/syscall", process->kin.pid,
                   (int)t->tid);
    if (file_read_all(path, 4096, &text) == 0 && text.data) {
        text.data[strcspn(text.data, "\n")] = '\0';
        t->call = keep(p, text.data);
    }
    buf_release(&text);
}

/* Settles the threads it can; whether any was awake, so that another look may tell. */
static bool find_waiters(struct hang_process *process, const struct python *py)
{
    bool again = false;
    for (struct hang_thread *t = process->threads; t; t = t->next) {
        if (!t->is_python || t->has_gil || t->waits_gil)
            continue;
        t->waits_gil = sleeps_for_lock(t, py);
        if (t->waits_gil)
            t->state = 'S'; /* as its call says: the state was read a moment apart */
        again = again || is_awake(t);
    }
    return again;
}

static void settle_waiters(struct hang_picture *p, struct hang_process *process,
                           const struct python *py, bool held)
{
    const struct timespec pause = { 0, PAUSE_NS };
    for (int look = 1; find_waiters(process, py) && held && look < LOOKS; look++) {
        (void)nanosleep(&pause, NULL);
        for (struct hang_thread *t = process->threads; t; t = t->next)
            if (t->is_python && !t->has_gil && is_awake(t))
                look_again(p, process, t);
    }
    for (struct hang_thread *t = process->threads; t; t = t->next)
        if (t->is_python && !t->has_gil && is_awake(t))
            t->state = 'R'; /* it was, at every look */
}

/* ---- One process --------------------------------------------------------------------- */

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
    settle_waiters(p, process, py, rc == 0 && s->gil_held);
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
