/* jsonmonitors.c: the JSON report's series over time and the processes they tell of. */
#include "present/report/jsonparts.h"

#include <math.h>
#include <sys/wait.h>

static void put_points(struct json_writer *w, const struct report_series *s)
{
    bool peaks = false;
    json_key(w, "points");
    json_array_begin(w);
    for (size_t i = 0; i < s->point_count; i++) {
        json_array_begin(w);
        json_put_fixed(w, s->points[i].t_s, 3);
        json_put_fixed(w, s->points[i].mean, 4);
        json_array_end(w);
        peaks |= s->points[i].max > s->points[i].mean * (1 + 1e-6) + 1e-9;
    }
    json_array_end(w);
    if (!peaks)
        return;
    json_key(w, "points_max"); /* what a point that stands for several hides */
    json_array_begin(w);
    for (size_t i = 0; i < s->point_count; i++)
        json_put_fixed(w, s->points[i].max, 4);
    json_array_end(w);
}

static void put_series(struct json_writer *w, const struct report_series *s)
{
    json_key(w, s->name);
    json_object_begin(w);
    field_text(w, "unit", s->unit);
    field_number(w, "avg", s->avg, 6);
    field_number(w, "max", s->max, 6);
    field_number(w, "min", s->min, 6);
    field_number(w, "last", s->last, 6);
    field_uint(w, "samples", s->count);
    put_points(w, s);
    json_object_end(w);
}

void fields_of_monitors(struct json_writer *w, const struct report *r)
{
    const struct report_monitors *m = &r->monitors;
    json_key(w, "monitors");
    json_object_begin(w);
    for (size_t i = 0; i < m->series_count; i++)
        put_series(w, &m->series[i]);
    json_object_end(w);
    json_key(w, "monitoring");
    json_object_begin(w);
    field_number(w, "interval_s", m->present ? m->interval_s : NAN, 6);
    field_number(w, "cost_s", m->present ? m->cost_s : NAN, 6);
    field_uint(w, "rounds", m->rounds);
    field_uint(w, "series_lost", m->series_lost);
    field_uint(w, "processes_lost", m->processes_lost);
    json_object_end(w);
}

/* ---- Processes -------------------------------------------------------------------------- */

/* A process that became other programs (exec) has a trace of each; its totals belong to
 * the last, or they would be counted twice. */
const struct watched_process *watched_of(const struct report *r,
                                         const struct report_process *p)
{
    for (const struct report_process *later = p + 1;
         later < r->processes + r->process_count; later++)
        if (later->pid == p->pid)
            return NULL;
    return monitors_process(&r->monitors, p->pid);
}

void fields_of_watched(struct json_writer *w, const struct watched_process *p)
{
    static const struct watched_process unknown = {
        .exe = "",
        .command = "",
        .first_s = NAN,
        .last_s = NAN,
        .cpu_s = NAN,
        .peak_rss_mb = NAN,
        .peak_private_mb = NAN,
        .read_mb = NAN,
        .written_mb = NAN,
        .disk_read_mb = NAN,
        .disk_written_mb = NAN,
        .voluntary_switches = NAN,
        .involuntary_switches = NAN,
    };
    if (!p)
        p = &unknown;
    const bool signalled = p->end_known && WIFSIGNALED(p->end_status);
    field_number(w, "cpu_s", p->cpu_s, 6);
    field_number(w, "peak_rss_mb", p->peak_rss_mb, 3);
    field_number(w, "peak_private_mb", p->peak_private_mb, 3);
    /* To the byte: 2⁻²⁰ has more than six decimals. */
    field_number(w, "read_mb", p->read_mb, 9);
    field_number(w, "written_mb", p->written_mb, 9);
    field_number(w, "disk_read_mb", p->disk_read_mb, 9);
    field_number(w, "disk_written_mb", p->disk_written_mb, 9);
    field_number(w, "voluntary_switches", p->voluntary_switches, 0);
    field_number(w, "involuntary_switches", p->involuntary_switches, 0);
    field_number(w, "first_seen_s", p->first_s, 3);
    field_number(w, "last_seen_s", p->last_s, 3);
    field_text(w, "command", p->command);
    field_int(w, "exit_code",
              p->end_known && !signalled ? WEXITSTATUS(p->end_status) : -1);
    field_int(w, "exit_signal", signalled ? WTERMSIG(p->end_status) : -1);
}

void fields_of_untraced(struct json_writer *w, const struct report *r)
{
    static const char *const nulls[] = {
        "rank",      "phases",  "alive",  "exited", "file", "last_event",
        "zones_s",   "threads", "steps",  "events", "lost", "lost_reason",
        "truncated", "waits",   "wait_s", "damage", NULL
    };
    for (size_t i = 0; i < r->monitors.process_count; i++) {
        const struct watched_process *p = &r->monitors.processes[i];
        if (p->traced)
            continue;
        json_object_begin(w);
        field_uint(w, "pid", p->pid);
        field_uint(w, "ppid", p->ppid);
        field_text(w, "role", p->pid == r->run->meta.pid ? "main" : "child");
        fields_of_watched(w, p);
        json_key(w, "main");
        json_put_bool(w, p->pid == r->run->meta.pid && r->main_process == SIZE_MAX);
        field_text(w, "exe", p->exe);
        field_time(w, "started",
                   r->start_ns && p->first_s < 1e9
                       ? r->start_ns + (int64_t)(p->first_s * 1e9)
                       : 0);
        field_nulls(w, nulls);
        json_object_end(w);
    }
}
