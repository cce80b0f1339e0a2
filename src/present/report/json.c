/* json.c: the report as JSON, schema sonde.report/1.
 *
 * Keys, units and meaning are the contract of DESIGN §8; keys are stable, additions
 * only. Every key is always there; what nobody measured is null. Seconds have twelve
 * decimals so that self and children still add up.
 */
#include "present/report/report.h"

#include <math.h>
#include <string.h>

#include "analyse/flops.h"
#include "base/json.h"
#include "base/signame.h"
#include "present/report/filter.h"
#include "present/report/jsonparts.h"
#include "trace/runfile.h"

/* ---- The run ---------------------------------------------------------------------- */

static void put_exit(struct json_writer *w, const struct run_exit *e)
{
    char name[SIGNAL_NAME_LEN];
    json_key(w, "exit");
    json_object_begin(w);
    field_int(w, "code", e->code);
    field_text(w, "signal", e->signal ? signal_name(e->signal, name) : NULL);
    field_text(w, "cause", e->cause);
    json_object_end(w);
}

static void put_death(struct json_writer *w, const struct run_death *d)
{
    json_key(w, "death");
    if (!d->text[0]) {
        json_put_null(w);
        return;
    }
    json_object_begin(w);
    field_text(w, "text", d->text);
    if (d->pid)
        field_uint(w, "pid", d->pid);
    else
        field_null(w, "pid");
    field_text(w, "process", d->process);
    field_text(w, "cgroup", d->group);
    field_number(w, "limit_mb", d->limit_mb, 3);
    field_number(w, "size_mb", d->size_mb, 3);
    field_number(w, "growth_mb_per_s", d->growth_mb_per_s, 3);
    field_text(w, "method", d->method);
    json_key(w, "stack");
    json_array_begin(w);
    for (size_t i = 0; i < d->stack_count; i++)
        json_put_string(w, d->stack[i]);
    json_array_end(w);
    json_object_end(w);
}

static void put_pairs(struct json_writer *w, const char *key,
                      const struct run_pair *pairs, size_t count)
{
    json_key(w, key);
    json_object_begin(w);
    for (size_t i = 0; i < count; i++) {
        json_key(w, pairs[i].key);
        json_put_string(w, pairs[i].value);
    }
    json_object_end(w);
}

static void put_metrics(struct json_writer *w, const struct op_value *list)
{
    json_key(w, "metrics");
    json_object_begin(w);
    for (const struct op_value *v = list; v; v = v->next) {
        json_key(w, v->name);
        json_put_double(w, v->last);
    }
    json_object_end(w);
}

static void put_command(struct json_writer *w, const char *key,
                        const struct run_meta *m)
{
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < m->command_count; i++)
        json_put_string(w, m->command[i]);
    json_array_end(w);
}

static const char *const state_names[] = {
    [RUN_GOOD] = "good",    [RUN_FAILED] = "failed",   [RUN_KILLED] = "killed",
    [RUN_LIVE] = "running", [RUN_UNKNOWN] = "unknown", [RUN_LEFT] = "attached",
};

static void put_run(struct json_writer *w, const struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    json_key(w, "run");
    json_object_begin(w);
    field_text(w, "id", r->run->id);
    field_text(w, "name", m->name);
    put_command(w, "command", m);
    field_time(w, "started", r->start_ns);
    field_number(w, "duration_s", report_duration_s(r), 9);
    put_exit(w, &m->exit);
    put_death(w, &m->death);
    put_pairs(w, "tags", r->tags, r->tag_count);
    put_pairs(w, "params", r->params, r->param_count);
    put_metrics(w, r->metrics);
    field_int(w, "rank", m->rank);
    field_int(w, "world_size", world_size_of(r));
    field_text(w, "state",
               r->state == RUN_LEFT && m->session ? "session" : state_names[r->state]);
    field_text(w, "host", m->host);
    field_text(w, "cwd", m->cwd);
    field_text(w, "level", m->level);
    json_object_end(w);
}

static void put_surroundings(struct json_writer *w, const struct report *r)
{
    static const char *const keys[] = { "git", "driver" };
    const struct run_meta *m = &r->run->meta;
    field_from_run(w, m->root, NULL, "hardware");
    json_key(w, "environment");
    json_object_begin(w);
    put_command(w, "argv", m);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        field_from_run(w, m->root, "environment", keys[i]);
    fields_of_software(w, r);
    json_object_end(w);
}

/* ---- Summary ------------------------------------------------------------------------ */

static void put_step_ms(struct json_writer *w, const struct step_stats *s)
{
    const struct distribution *d = &s->durations;
    const bool any = d->count > 0;
    json_key(w, "step_ms");
    json_object_begin(w);
    field_uint(w, "count", d->count);
    field_ms(w, "mean", any ? d->mean : NAN);
    field_ms(w, "std", distribution_std(d));
    field_ms(w, "min", any ? d->min : NAN);
    field_ms(w, "max", any ? d->max : NAN);
    field_ms(w, "p50", distribution_quantile(d, 0.50));
    field_ms(w, "p95", distribution_quantile(d, 0.95));
    field_ms(w, "p99", distribution_quantile(d, 0.99));
    json_object_end(w);
}

static void put_losses(struct json_writer *w, const struct report *r)
{
    char words[160];
    field_uint(w, "events", r->events);
    field_uint(w, "lost", r->lost);
    field_text(w, "lost_reason",
               r->lost ? report_lost_words(r->lost_reason, words, sizeof(words))
                       : NULL);
    field_uint(w, "filtered", r->filtered);
    field_uint(w, "truncated", r->truncated);
    field_uint(w, "unbalanced", r->unbalanced);
    field_uint(w, "orphan_ends", r->orphan_ends);
    field_uint(w, "too_deep", r->deep_zones);
    field_uint(w, "holes", r->holes);
    field_uint(w, "names_lost", r->names_lost);
    field_uint(w, "texts_cut", r->texts_cut);
    field_uint(w, "paths_lost", r->paths_lost + r->ops.over_limit);
    field_uint(w, "unreadable_traces", r->files_left_out);
}

/* What limits the run: the family of the first finding that is worth a word; "compute"
 * when nothing else does, NULL when nobody can tell. */
static const char *bound_by(const struct report *r)
{
    const struct diagnosis *d = &r->diagnosis;
    if (d->finding_count && d->findings[0].severity > SEVERITY_LOW)
        return d->findings[0].bound_by;
    return r->account.known ? "compute" : NULL;
}

static void put_summary(struct json_writer *w, const struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    json_key(w, "summary");
    json_object_begin(w);
    field_text(w, "verdict", r->verdict);
    field_text(w, "why", r->why);
    field_text(w, "next", r->next);
    field_text(w, "since", r->since);
    field_text(w, "bound_by", bound_by(r));
    put_step_ms(w, &r->steps);
    if (r->optimizer_steps)
        field_uint(w, "optimizer_steps", r->optimizer_steps);
    else
        field_null(w, "optimizer_steps");
    field_number(w, "steps_per_s", step_rate_per_s(&r->steps), 6);
    field_number(w, "samples_per_s", step_samples_per_s(&r->steps), 6);
    field_number(w, "flops", report_flops(r), 0);
    field_number(w, "flops_per_step", report_flops_per_step(r), 0);
    field_number(w, "flops_per_s", report_flops_per_s(r), 0);
    if (r->syscalls.known)
        field_uint(w, "syscalls", r->syscalls.count);
    else
        field_null(w, "syscalls");
    field_uint(w, "last_step", r->last_step);
    field_seconds(w, "unrecorded_s", r->phases.unrecorded_ns);
    json_key(w, "data_wait_share");
    json_put_double(w,
                    r->phases.wall_ns > 0 ? r->phases.share[SONDE_DATA_LOADING] : NAN);
    field_number(w, "gpu_busy_share", report_gpu_busy_share(r), 6);
    field_number(w, "cpu_percent_avg", report_cpu_percent(r), 3);
    field_number(w, "peak_rss_mb", report_peak_rss_mb(r), 3);
    field_number(w, "overhead_percent", report_overhead_percent(r), 4);
    field_number(w, "overhead_mb", m->supervisor_rss_mb, 3);
    field_number(w, "supervisor_cpu_s", m->supervisor_cpu_s, 6);
    field_number(w, "clock_error_ns", r->clock_error_ns, 3);
    put_losses(w, r);
    json_object_end(w);
}

/* ---- Phases and processes -------------------------------------------------------------- */

static void put_phases(struct json_writer *w, const struct phase_split *s)
{
    static const char *const unknown[] = { "mem_peak_mb", "gpu_mem_peak_mb", NULL };
    json_key(w, "phases");
    json_array_begin(w);
    for (int p = 1; p < SONDE_PHASE_COUNT && s->wall_ns > 0; p++) {
        if (s->total_ns[p] <= 0 && s->count[p] == 0 && p != SONDE_OTHER)
            continue;
        json_object_begin(w);
        field_text(w, "phase", sonde_phase_name(p));
        field_seconds(w, "total_s", s->total_ns[p]);
        json_key(w, "share");
        json_put_double(w, s->share[p]);
        field_uint(w, "count", s->count[p]);
        field_number(w, "device_s", s->has_device ? s->device_s[p] : NAN, 9);
        field_nulls(w, unknown);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_process(struct json_writer *w, const struct report *r,
                        const struct report_process *p)
{
    char words[160];
    json_object_begin(w);
    field_uint(w, "pid", p->pid);
    field_uint(w, "ppid", p->ppid);
    field_text(w, "role", p->role);
    field_int(w, "rank", p->rank);
    put_phases(w, &p->phases);
    fields_of_watched(w, watched_of(r, p));
    json_key(w, "main");
    json_put_bool(w, p->is_main);
    json_key(w, "alive");
    json_put_bool(w, p->alive);
    json_key(w, "exited");
    json_put_bool(w, p->exited);
    field_text(w, "exe", p->exe);
    field_text(w, "file", p->file);
    field_time(w, "started", p->start_ns);
    field_time(w, "last_event", p->last_ns);
    field_seconds(w, "zones_s", p->zone_ns);
    field_uint(w, "threads", p->threads);
    field_uint(w, "steps", p->steps);
    field_uint(w, "events", p->events);
    field_uint(w, "lost", p->lost);
    field_text(w, "lost_reason",
               p->lost ? report_lost_words(p->lost_reason, words, sizeof(words))
                       : NULL);
    field_uint(w, "truncated", p->truncated);
    field_uint(w, "waits", p->waits);
    field_seconds(w, "wait_s", p->wait_ns);
    field_text(w, "damage", p->damage);
    json_object_end(w);
}

static void put_processes(struct json_writer *w, const struct report *r)
{
    json_key(w, "processes");
    json_array_begin(w);
    for (size_t i = 0; i < r->process_count; i++)
        put_process(w, r, &r->processes[i]);
    fields_of_untraced(w, r);
    json_array_end(w);
}

/* ---- The end, the rest ------------------------------------------------------------------ */

static void put_open_thread(struct json_writer *w, const struct report *r,
                            const struct open_thread *t)
{
    const struct report_process *p = &r->processes[t->process];
    json_object_begin(w);
    field_uint(w, "pid", p->pid);
    field_text(w, "role", p->role);
    field_uint(w, "tid", t->tid);
    field_text(w, "thread", t->name);
    json_key(w, "main");
    json_put_bool(w, t->is_main);
    field_uint(w, "steps", t->steps);
    field_seconds(w, "silent_s", report_silent_ns(r, t));
    json_key(w, "zones");
    json_array_begin(w);
    for (unsigned i = 0; i < t->zone_count; i++) {
        const struct open_zone *z = &t->zones[i];
        json_object_begin(w);
        json_key(w, "name");
        json_put_string(w, z->name);
        field_text(w, "file", z->file);
        field_int(w, "line", z->file[0] ? z->line : -1);
        field_seconds(w, "open_s", (double)(p->end_ns - z->begin_ns));
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

static void put_open(struct json_writer *w, const struct report *r)
{
    json_key(w, "open_zones");
    json_array_begin(w);
    for (size_t i = 0; i < r->thread_count; i++)
        put_open_thread(w, r, &r->threads[i]);
    json_array_end(w);
}

static void put_provenance(struct json_writer *w, const struct report *r)
{
    static const char *const status[] = {
        [MEASURED] = "measured", [MODELLED] = "modelled", [UNAVAILABLE] = "unavailable"
    };
    json_key(w, "provenance");
    json_array_begin(w);
    for (size_t i = 0; i < r->provenance_count; i++) {
        const struct provenance *p = &r->provenance[i];
        json_object_begin(w);
        field_text(w, "metric", p->metric);
        field_text(w, "status", status[p->status]);
        field_text(w, "method", p->method);
        field_text(w, "resolution", p->resolution);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_notes(struct json_writer *w, const struct report *r)
{
    json_key(w, "notes");
    json_array_begin(w);
    for (size_t i = 0; i < r->note_count; i++)
        json_put_string(w, r->notes[i]);
    json_array_end(w);
}

/* What later issues fill in. */
static void put_not_captured(struct json_writer *w, const struct report *r)
{
    static const char *const groups[] = { "gpu", "cost", NULL };
    fields_of_python(w, r);
    fields_of_io(w, r);
    fields_of_loaders(w, r);
    field_nulls(w, groups);
    fields_of_findings(w, r);
    fields_of_account(w, r);
    fields_of_forecasts(w, r);
    fields_of_trials(w, r);
}

int report_json_value(const struct report *report, const struct report_style *style,
                      struct json_writer *w)
{
    struct op_filter filter;
    const int rc = op_filter_init(&filter, &report->ops, style, style->limit);
    if (rc < 0)
        return rc;
    json_object_begin(w);
    field_text(w, "schema", "sonde.report/1");
    put_run(w, report);
    put_surroundings(w, report);
    put_summary(w, report);
    put_phases(w, &report->phases);
    put_processes(w, report);
    fields_of_ranks(w, report);
    fields_of_training(w, report);
    fields_of_operations(w, report, &filter);
    fields_of_functions(w, report);
    fields_of_allocations(w, report);
    put_not_captured(w, report);
    fields_of_monitors(w, report);
    fields_of_energy(w, report);
    fields_of_alerts(w, report);
    fields_of_hangs(w, report);
    put_open(w, report);
    put_provenance(w, report);
    put_notes(w, report);
    json_object_end(w);
    op_filter_release(&filter);
    return 0;
}

int report_json(const struct report *report, const struct report_style *style,
                FILE *out)
{
    struct json_writer w;
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    const int rc = report_json_value(report, style, &w);
    if (rc == 0)
        json_newline(&w);
    const int finished = json_finish(&w);
    return rc < 0 ? rc : finished;
}
