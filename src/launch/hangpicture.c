/* hangpicture.c: see hangpicture.h. */
#include "launch/hangpicture.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/redact.h"

enum { THREADS_MAX = 256, PART_MAX = 1 << 16, MAPS_MAX = 16 << 20 };
/* The supervisor has other things to do: processes beyond this have no user stacks. */
enum { PATIENCE_S = 5 };

struct camera {
    struct hang_picture *picture;
    struct sleeper *sleeper; /* NULL: no stacks */
    struct sleeper_stack stack;
};

static const char *keep(struct hang_picture *p, const char *text)
{
    const char *kept = text && *text ? arena_strdup(&p->arena, text) : "";
    return kept ? kept : "";
}

/* The text of a file of /proc without its last newline; "" when it is closed to us. */
static const char *read_part(struct hang_picture *p, const char *folder,
                             const char *name)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    const char *kept = "";
    path_join(&path, folder, name);
    if (path.error == 0 && file_read_all(path.data, PART_MAX, &text) == 0) {
        while (text.len && text.data[text.len - 1] == '\n')
            buf_truncate(&text, text.len - 1);
        kept = keep(p, text.data);
    }
    buf_release(&path);
    buf_release(&text);
    return kept;
}

/* ---- Threads ------------------------------------------------------------------------------ */

static void read_state(struct hang_picture *p, const char *task, struct hang_thread *t)
{
    const char *stat = read_part(p, task, "stat");
    const char *open = strchr(stat, '('), *shut = strrchr(stat, ')');
    if (!open || !shut || shut < open)
        return;
    const char *comm = arena_strndup(&p->arena, open, (size_t)(shut - open) + 1);
    t->comm = comm ? comm : "";
    if (shut[1] == ' ')
        t->state = shut[2];
}

static void keep_stack(struct camera *c, struct hang_thread *t)
{
    const struct sleeper_stack *s = &c->stack;
    t->frames = arena_alloc_array(&c->picture->arena, s->count, sizeof *t->frames);
    t->whole = s->whole;
    for (unsigned i = 0; t->frames && i < s->count; i++)
        t->frames[t->frame_count++] = (struct hang_frame){
            .address = s->frame[i].address,
            .offset = s->frame[i].offset,
            .path = keep(c->picture, s->frame[i].path),
            .name = hangnames_add(c->picture->names, &s->frame[i]),
        };
}

static void read_stack(struct camera *c, const char *task, struct hang_thread *t)
{
    struct sleeper_place place;
    if (!c->sleeper || !sleeper_where(t->call, &place))
        return;
    sleeper_walk(c->sleeper, &place, &c->stack);
    t->woke = strcmp(read_part(c->picture, task, "syscall"), t->call) != 0;
    keep_stack(c, t);
}

static struct hang_thread *read_thread(struct camera *c, const char *task, pid_t tid)
{
    struct hang_thread *t = arena_alloc(&c->picture->arena, sizeof *t);
    if (!t)
        return NULL;
    *t = (struct hang_thread){ .tid = tid,
                               .state = '?',
                               .comm = "",
                               .wchan = read_part(c->picture, task, "wchan"),
                               .call = read_part(c->picture, task, "syscall"),
                               .kernel = read_part(c->picture, task, "stack"),
                               .zones = "",
                               .zone = "" };
    read_state(c->picture, task, t);
    read_stack(c, task, t);
    return t;
}

static void read_threads(struct camera *c, const char *proc,
                         struct hang_process *process)
{
    struct buf tasks = BUF_INIT, path = BUF_INIT;
    struct hang_thread **last = &process->threads;
    path_join(&tasks, proc, "task");
    DIR *d = tasks.error ? NULL : opendir(tasks.data);
    unsigned count = 0;
    for (const struct dirent *e; d && count < THREADS_MAX && (e = readdir(d));) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        buf_clear(&path);
        path_join(&path, tasks.data, e->d_name);
        *last = path.error
                    ? NULL
                    : read_thread(c, path.data, (pid_t)strtol(e->d_name, NULL, 10));
        if (!*last)
            break;
        last = &(*last)->next;
        count++;
    }
    if (d)
        (void)closedir(d);
    buf_release(&tasks);
    buf_release(&path);
}

/* ---- Processes ----------------------------------------------------------------------------- */

static const char *read_command(struct hang_picture *p, const char *proc)
{
    struct buf path = BUF_INIT, text = BUF_INIT, clean = BUF_INIT;
    const char *kept = "";
    path_join(&path, proc, "cmdline");
    if (path.error == 0 && file_read_all(path.data, PART_MAX, &text) == 0) {
        for (size_t i = 0; i + 1 < text.len; i++)
            if (text.data[i] == '\0')
                text.data[i] = ' ';
        redact_text(&clean, text.data ? text.data : "");
        kept = clean.error ? "" : keep(p, clean.data);
    }
    buf_release(&path);
    buf_release(&text);
    buf_release(&clean);
    return kept;
}

static void read_maps(struct camera *c, const char *proc, pid_t pid)
{
    struct buf path = BUF_INIT, maps = BUF_INIT;
    path_join(&path, proc, "maps");
    const bool there = path.error == 0 &&
                       file_read_all(path.data, MAPS_MAX, &maps) == 0 && maps.data;
    (void)sleeper_process(c->sleeper, pid, there ? maps.data : "");
    buf_release(&path);
    buf_release(&maps);
}

static struct hang_process *read_process(struct camera *c, const struct kin *kin,
                                         const struct kin_process *k, bool stacks)
{
    char proc[128];
    struct hang_process *process = arena_alloc(&c->picture->arena, sizeof *process);
    if (!process)
        return NULL;
    (void)snprintf(proc, sizeof proc, "%s/%u", kin->proc, k->pid);
    *process = (struct hang_process){ .kin = *k,
                                      .command = read_command(c->picture, proc),
                                      .no_python = "" };
    struct camera here = *c;
    if (!stacks)
        here.sleeper = NULL;
    if (here.sleeper)
        read_maps(&here, proc, (pid_t)k->pid);
    read_threads(&here, proc, process);
    if (stacks)
        hang_python_read(c->picture, process);
    return process;
}

int hang_picture_take(const char *dir, const struct kin *kin,
                      struct hang_picture *ret_picture)
{
    struct hang_picture *p = ret_picture;
    const time_t enough = time(NULL) + PATIENCE_S;
    *p = (struct hang_picture){ .names = hangnames_new() };
    arena_init(&p->arena);
    if (!p->names)
        return -ENOMEM;
    struct camera camera = { .picture = p, .sleeper = sleeper_new() };
    struct hang_process **last = &p->processes;
    for (size_t i = 0; i < kin->count; i++) {
        if (!kin->process[i].alive)
            continue;
        *last = read_process(&camera, kin, &kin->process[i], time(NULL) <= enough);
        if (!*last)
            break;
        last = &(*last)->next;
    }
    sleeper_free(camera.sleeper);
    hang_zones_read(p, dir);
    hangnames_find(p->names);
    return 0;
}

void hang_picture_release(struct hang_picture *p)
{
    hangnames_free(p->names);
    arena_release(&p->arena);
}

/* ---- The place that matters ------------------------------------------------------------------ */

/* Where one waits is in there; why one waits is outside. */
static bool is_machinery(const char *path)
{
    static const char *const names[] = { "libc.so", "libc-", "libpthread", "ld-linux",
                                         "libsonde" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(path_base(path), names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

const struct symbolise_frame *hang_picture_place(const struct hang_picture *p,
                                                 const struct hang_thread *t)
{
    const struct symbolise_frame *first = NULL, *found;
    for (unsigned i = 0; i < t->frame_count; i++) {
        if (!hangnames_get(p->names, t->frames[i].name, &found) || !found->function[0])
            continue;
        if (!is_machinery(t->frames[i].path))
            return found;
        if (!first)
            first = found;
    }
    return first;
}
