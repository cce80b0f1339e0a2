/* cmd_show.c: `sonde show`: what a run consists of: its metadata, processes, files,
 * clock, and what was lost. Where the time went is `sonde report`. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyse/report.h"
#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/runs.h"
#include "cli/trends_run.h"
#include "store/list.h"
#include "store/store.h"
#include "trace/runfile.h"
#include "base/signame.h"
#include "present/report/page.h"
#include "present/report/report.h"

struct show_options {
    bool json;
};

static const struct option options[] = {
    { "json", 0, OPTION_FLAG, offsetof(struct show_options, json),
      .help = "print JSON" },
};

static const struct command command = {
    .verb = "show",
    .usage = "[options] [RUN]",
    .summary = "what is known about one run",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "RUN defaults to @last.\n",
};

/* ---- Text --------------------------------------------------------------------- */

enum { LABEL = 12 };

static void put_line(struct page *page, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Long values are cut only where they would make no sense on any terminal. */
static void put_line(struct page *page, const char *label, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    struct buf clean = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    clean_text(&clean, text.data, 2000);
    page_left(page, label, LABEL);
    page_puts(page, PLAIN, clean.data);
    page_puts(page, PLAIN, "\n");
    buf_release(&text);
    buf_release(&clean);
}

static void put_command(struct page *page, const struct run_meta *m)
{
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < m->command_count; i++)
        buf_printf(&line, "%s%s", i ? " " : "", m->command[i]);
    if (line.len)
        put_line(page, "command", "%s", line.data);
    if (m->cwd[0])
        put_line(page, "in", "%s", m->cwd);
    buf_release(&line);
}

static void put_identity(struct page *page, const struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    char words[96];
    char time[ISO_TIME_LEN];
    char took[HUMAN_LEN];
    put_line(page, "run", "%s%s%s", r->run->id, m->name[0] ? "  " : "", m->name);
    put_line(page, "directory", "%s", r->run->dir);
    put_command(page, m);
    if (r->start_ns)
        put_line(page, "started", "%s", iso_time(r->start_ns, time));
    put_line(page, "took", "%s", human_duration(took, report_duration_s(r) * 1e9));
    put_line(page, "ended", "%s", report_state_words(r, words, sizeof words));
    if (m->host[0])
        put_line(page, "host", "%s", m->host);
    if (m->cpu[0] || m->cores > 0)
        put_line(page, "machine", "%s, %d cores, %s", m->cpu, m->cores,
                 human_bytes(took, m->memory_mb * 1048576));
    if (m->level[0])
        put_line(page, "level", "%s", m->level);
}

static void put_pairs(struct page *page, const char *label,
                      const struct run_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_line(page, i ? "" : label, "%s = %s", pairs[i].key, pairs[i].value);
}

static void put_clock(struct page *page, const struct report *r)
{
    const struct clock_table *c = &r->run->clock;
    char error[HUMAN_LEN];
    char used[HUMAN_LEN];
    char most[HUMAN_LEN];
    if (c->count)
        put_line(page, "clock", "%zu readings, %.6g ns per tick, error at most %s",
                 c->count, c->ns_per_tick, human_duration(error, c->error_ns));
    else
        put_line(page, "clock", "no table: each trace uses its own readings");
    const struct run_budget *b = &r->run->budget;
    if (b->known)
        put_line(page, "space",
                 "%s of %s, %" PRIu64 " process%s recorded, %" PRIu64 " refused",
                 human_bytes(used, (double)b->used_bytes),
                 human_bytes(most, (double)b->max_bytes), b->processes,
                 b->processes == 1 ? "" : "es", b->refused);
}

static void put_losses(struct page *page, const struct report *r)
{
    char events[HUMAN_LEN];
    char lost[HUMAN_LEN];
    char words[160];
    put_line(page, "events", "%s recorded, %s lost%s%s%s",
             human_count(events, r->events), human_count(lost, r->lost),
             r->lost ? " (" : "",
             r->lost ? report_lost_words(r->lost_reason, words, sizeof words) : "",
             r->lost ? ")" : "");
    if (r->filtered)
        put_line(page, "", "%s zones below --min-zone only counted",
                 human_count(events, r->filtered));
}

static void put_process(struct page *page, const struct report_process *p)
{
    char events[HUMAN_LEN];
    char size[HUMAN_LEN];
    put_line(page, "", "%-8u %-8s %-12s %12s events %9s  %s%s%s", p->pid, p->role,
             p->exe, human_count(events, p->events),
             human_bytes(size, (double)p->disk_bytes), p->file,
             p->alive ? "  running" : "", p->damage[0] ? "  damaged" : "");
}

static int print_text(const struct report *r)
{
    struct report_style style = { 0 };
    struct page page;
    report_style_detect(&style, STDOUT_FILENO);
    page_init(&page, 200, false, style.unicode);
    put_identity(&page, r);
    put_pairs(&page, "tags", r->tags, r->tag_count);
    put_pairs(&page, "params", r->params, r->param_count);
    for (const struct op_value *v = r->metrics; v; v = v->next)
        put_line(&page, v == r->metrics ? "metrics" : "", "%s = %.9g", v->name,
                 v->last);
    put_clock(&page, r);
    put_losses(&page, r);
    put_line(&page, "processes", "%zu", r->process_count);
    for (size_t i = 0; i < r->process_count; i++)
        put_process(&page, &r->processes[i]);
    for (size_t i = 0; i < r->note_count; i++)
        put_line(&page, i ? "" : "notes", "%s", r->notes[i]);
    const int rc = page_flush(&page, stdout);
    page_release(&page);
    return rc;
}

/* ---- JSON --------------------------------------------------------------------- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text && text[0] ? text : NULL);
}

static void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_put_double(w, value);
}

static void put_count(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_put_uint(w, value);
}

static void put_objects(struct json_writer *w, const char *key,
                        const struct run_pair *pairs, size_t count)
{
    json_key(w, key);
    json_object_begin(w);
    for (size_t i = 0; i < count; i++)
        put_text(w, pairs[i].key, pairs[i].value);
    json_object_end(w);
}

static void put_run(struct json_writer *w, const struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    char words[96];
    char time[ISO_TIME_LEN];
    put_text(w, "id", r->run->id);
    put_text(w, "name", m->name);
    put_text(w, "directory", r->run->dir);
    json_key(w, "command");
    json_array_begin(w);
    for (size_t i = 0; i < m->command_count; i++)
        json_put_string(w, m->command[i]);
    json_array_end(w);
    put_text(w, "cwd", m->cwd);
    put_text(w, "started", r->start_ns ? iso_time(r->start_ns, time) : NULL);
    put_number(w, "duration_s", report_duration_s(r));
    put_text(w, "ended", report_state_words(r, words, sizeof words));
    put_text(w, "host", m->host);
    put_text(w, "level", m->level);
    put_objects(w, "tags", r->tags, r->tag_count);
    put_objects(w, "params", r->params, r->param_count);
    json_key(w, "metrics");
    json_object_begin(w);
    for (const struct op_value *v = r->metrics; v; v = v->next)
        put_number(w, v->name, v->last);
    json_object_end(w);
}

static void put_trace(struct json_writer *w, const struct report_process *p)
{
    json_object_begin(w);
    put_text(w, "file", p->file);
    put_count(w, "pid", p->pid);
    put_text(w, "role", p->role);
    put_text(w, "exe", p->exe);
    put_count(w, "file_bytes", p->file_bytes);
    put_count(w, "disk_bytes", p->disk_bytes);
    put_count(w, "events", p->events);
    put_count(w, "lost", p->lost);
    put_count(w, "threads", p->threads);
    json_key(w, "alive");
    json_put_bool(w, p->alive);
    json_key(w, "timeline_complete");
    json_put_bool(w, p->timeline_complete);
    put_text(w, "damage", p->damage);
    json_object_end(w);
}

static void put_rest(struct json_writer *w, const struct report *r)
{
    const struct run_budget *b = &r->run->budget;
    json_key(w, "clock");
    json_object_begin(w);
    put_count(w, "readings", r->run->clock.count);
    put_number(w, "ns_per_tick", r->run->clock.count ? r->run->clock.ns_per_tick : NAN);
    put_number(w, "error_ns", r->run->clock.count ? r->run->clock.error_ns : NAN);
    json_object_end(w);
    json_key(w, "space");
    json_object_begin(w);
    put_number(w, "max_bytes", b->known ? (double)b->max_bytes : NAN);
    put_number(w, "used_bytes", b->known ? (double)b->used_bytes : NAN);
    put_number(w, "refused", b->known ? (double)b->refused : NAN);
    json_object_end(w);
    put_count(w, "events", r->events);
    put_count(w, "lost", r->lost);
    json_key(w, "traces");
    json_array_begin(w);
    for (size_t i = 0; i < r->process_count; i++)
        put_trace(w, &r->processes[i]);
    json_array_end(w);
    json_key(w, "notes");
    json_array_begin(w);
    for (size_t i = 0; i < r->note_count; i++)
        json_put_string(w, r->notes[i]);
    json_array_end(w);
}

static int print_json(const struct report *r)
{
    struct json_writer w;
    json_init_file(&w, stdout, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    put_run(&w, r);
    put_rest(&w, r);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}

/* ---- What only the store remembers ------------------------------------------------ */

static int put_fact(void *arg, const char *key, size_t len, const struct value *value)
{
    struct page *page = arg;
    struct buf text = BUF_INIT;
    if (value->type == VALUE_TEXT)
        buf_append(&text, value->text, value->len);
    else
        value_write(&text, value);
    put_line(page, "", "%.*s = %s", (int)len, key, text.data);
    buf_release(&text);
    return 0;
}

static void put_series(struct page *page, const struct experiment *e)
{
    struct buf lines = BUF_INIT;
    if (e->series)
        series_summary(&lines, e->series, e->series_len);
    for (const char *at = lines.len ? lines.data : ""; *at;) {
        const size_t len = strcspn(at, "\n");
        put_line(page, at == lines.data ? "series" : "", "%.*s", (int)len, at);
        at += len + (at[len] == '\n');
    }
    buf_release(&lines);
}

static void put_experiment(struct page *page, const struct experiment *e)
{
    char time[ISO_TIME_LEN];
    struct arena arena = ARENA_INIT;
    put_line(page, e->kind, "%s%s%s", e->id, e->name ? "  " : "",
             e->name ? e->name : "");
    if (e->command)
        put_line(page, "command", "%s", e->command);
    if (e->document)
        put_line(page, "document", "%s", e->document);
    if (e->started_ns)
        put_line(page, "started", "%s", iso_time(e->started_ns, time));
    if (e->exit_code >= 0)
        put_line(page, "ended", "exit %d", e->exit_code);
    for (int i = 0; i < CORE_FIELDS; i++)
        if (isfinite(e->core[i]))
            put_line(page, "", "%s = %.9g", core_names[i], e->core[i]);
    for (int kind = 0; kind < FACT_KINDS; kind++)
        if (e->facts[kind]) {
            put_line(page, fact_kind_names[kind], " ");
            (void)facts_each(e->facts[kind], e->facts_len[kind], &arena, put_fact,
                             page);
        }
    put_series(page, e);
    if (strcmp(e->kind, "log") != 0)
        put_line(page, "notes", "its directory is gone; the store keeps this%s",
                 e->profile ? " and its report (sonde show --json)" : "");
    arena_release(&arena);
}

static int print_experiment(const struct experiment *e, bool json)
{
    struct buf line = BUF_INIT;
    struct page page;
    int rc = 0;
    if (json) {
        experiment_write(&line, e);
        if (e->profile && line.len && line.error == 0) {
            buf_truncate(&line, line.len - 1);
            buf_printf(&line, ",\"report\":%s}", e->profile);
        }
        rc = line.error ? line.error : puts(line.data) < 0 ? -EIO : 0;
    } else {
        struct report_style style = { 0 };
        report_style_detect(&style, STDOUT_FILENO);
        page_init(&page, 200, false, style.unicode);
        put_experiment(&page, e);
        rc = page_flush(&page, stdout);
        page_release(&page);
    }
    buf_release(&line);
    return rc;
}

/* An experiment without a directory: logged, or its run made way. −ENOENT when it is
 * not one of those. */
static int show_remembered(const char *ref, bool json)
{
    struct arena arena = ARENA_INIT;
    struct buf id = BUF_INIT;
    struct store *store = NULL;
    struct experiment e;
    if (!ref || ref[0] == '@' || strchr(ref, '/') ||
        store_open(store_directory(), 0, &store, NULL) < 0)
        return -ENOENT;
    int rc = store_find(store, ref, &id);
    if (rc == 0)
        rc = store_get(store, id.data, &arena, &e);
    if (rc == 0)
        rc = e.directory && path_is_dir(e.directory) ? -ENOENT
                                                     : print_experiment(&e, json);
    else
        rc = -ENOENT; /* the directories may know more */
    store_close(store);
    buf_release(&id);
    arena_release(&arena);
    return rc;
}

int cmd_show(int argc, char **argv)
{
    struct show_options o = { 0 };
    struct run *run = NULL;
    struct report *report = NULL;
    const char *ref;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        !cli_run_argument(&command, argc, argv, &ref, &status))
        return status;
    int rc = show_remembered(ref, o.json);
    if (rc != -ENOENT)
        return rc < 0 ? CLI_FAILED : CLI_GOOD;
    if (!cli_run_open(ref, &run))
        return CLI_FAILED;
    rc = report_build(run, &report);
    if (rc < 0)
        cli_error("cannot read the run '%s': %s", run->dir, error_text(rc));
    else
        rc = o.json ? print_json(report) : print_text(report);
    report_free(report);
    run_free(run);
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}
