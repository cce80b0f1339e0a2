/* hangzones.c: which zones the threads of a run are in. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"
#include "launch/hangfile.h"
#include "launch/hangpicture.h"
#include "trace/reader.h"

typedef void lane_fn(void *arg, const struct trace *trace,
                     const struct trace_lane *lane);

static void visit_trace(const char *path, lane_fn *fn, void *arg)
{
    struct trace *trace;
    if (trace_open(path, NULL, &trace) < 0)
        return;
    if (trace_info(trace)->alive)
        for (unsigned i = 0; i < trace_lane_count(trace); i++) {
            const struct trace_lane *lane = trace_lane(trace, i);
            if (lane && lane->open_count)
                fn(arg, trace, lane);
        }
    trace_free(trace);
}

/* Calls fn for every thread of a living process that has a zone open. */
static void visit_run(const char *dir, lane_fn *fn, void *arg)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".sonde") != 0 ||
            strcmp(e->d_name, "control.sonde") == 0)
            continue;
        struct buf path = BUF_INIT;
        path_join(&path, dir, e->d_name);
        if (path.error == 0)
            visit_trace(path.data, fn, arg);
        buf_release(&path);
    }
    if (d)
        (void)closedir(d);
}

static const char *innermost(const struct trace *trace, const struct trace_lane *lane)
{
    return trace_site(trace, lane->open[lane->open_count - 1].site)->name;
}

/* ---- Is any open? ---------------------------------------------------------------------- */

struct any {
    char *zone;
    size_t len;
    bool found;
};

static void note_zone(void *arg, const struct trace *trace,
                      const struct trace_lane *lane)
{
    struct any *any = arg;
    if (!any->found || lane->is_main)
        (void)snprintf(any->zone, any->len, "%s", innermost(trace, lane));
    any->found = true;
}

bool hangfile_zones_open(const char *dir, char *ret_zone, size_t len)
{
    struct any any = { ret_zone, len, false };
    ret_zone[0] = '\0';
    visit_run(dir, note_zone, &any);
    return any.found;
}

/* ---- Of every thread ----------------------------------------------------------------------- */

static struct hang_thread *find_thread(struct hang_picture *p, uint32_t pid,
                                       uint32_t tid)
{
    for (struct hang_process *process = p->processes; process; process = process->next)
        for (struct hang_thread *t = process->threads; t; t = t->next)
            if (process->kin.pid == pid && (uint32_t)t->tid == tid)
                return t;
    return NULL;
}

static void set_zones(void *arg, const struct trace *trace,
                      const struct trace_lane *lane)
{
    struct hang_picture *p = arg;
    struct hang_thread *t = find_thread(p, trace_info(trace)->pid, lane->tid);
    struct buf text = BUF_INIT;
    if (!t)
        return;
    for (unsigned i = 0; i < lane->open_count; i++)
        buf_printf(&text, "%s%s", i ? " > " : "",
                   trace_site(trace, lane->open[i].site)->name);
    const char *zones = text.error ? NULL : arena_strdup(&p->arena, text.data);
    const char *zone = arena_strdup(&p->arena, innermost(trace, lane));
    if (zones && zone) {
        t->zones = zones;
        t->zone = zone;
    }
    buf_release(&text);
}

void hang_zones_read(struct hang_picture *p, const char *dir)
{
    visit_run(dir, set_zones, p);
}
