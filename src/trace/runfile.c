/* runfile.c: run.json as the launcher writes it. */
#include "trace/runfile.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sonde/sonde.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/json.h"
#include "base/redact.h"
#include "base/signame.h"

void runfile_release(struct runfile *file)
{
    for (size_t i = 0; i < file->note_count; i++)
        free(file->notes[i]);
    file->note_count = 0;
}

void runfile_note(struct runfile *file, const char *fmt, ...)
{
    if (file->note_count == RUNFILE_NOTES)
        return;
    struct buf b = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&b, fmt, args);
    va_end(args);
    char *text = buf_steal(&b);
    if (text)
        file->notes[file->note_count++] = text;
    buf_release(&b);
}

const char *iso_time(int64_t ns, char ret_text[ISO_TIME_LEN])
{
    const time_t seconds = (time_t)(ns / 1000000000);
    char whole[24];
    struct tm tm;
    ret_text[0] = '\0';
    if (gmtime_r(&seconds, &tm) &&
        strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &tm))
        (void)snprintf(ret_text, ISO_TIME_LEN, "%s.%03uZ", whole,
                       (unsigned)(ns / 1000000 % 1000) % 1000);
    return ret_text;
}

/* ---- Pieces of the document ------------------------------------------------- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text && *text ? text : NULL);
}

static void put_uint(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_put_uint(w, value);
}

/* Zero stands for "not known" in the fields written with this one. */
static void put_known(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    if (value)
        json_put_uint(w, value);
    else
        json_put_null(w);
}

static void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_put_fixed(w, value, 6);
}

static void put_seconds(struct json_writer *w, const char *key, uint64_t ns)
{
    put_number(w, key, ns ? (double)ns / 1e9 : NAN);
}

static void put_redacted(struct json_writer *w, const char *key, const char *text,
                         bool redact)
{
    struct buf clean = BUF_INIT;
    if (text && redact)
        redact_text(&clean, text);
    put_text(w, key, text && redact ? clean.data : text);
    buf_release(&clean);
}

/* An argument list that cannot be cleaned for want of memory is not written. */
static void put_command(struct json_writer *w, const struct runfile *f)
{
    struct arena arena = ARENA_INIT;
    char **clean = NULL;
    char *const *words = f->command;
    if (f->redact) {
        if (redact_args(f->command_len, f->command, &arena, &clean) < 0)
            clean = NULL;
        words = clean;
    }
    json_key(w, "command");
    json_array_begin(w);
    for (int i = 0; words && i < f->command_len; i++)
        json_put_string(w, words[i]);
    json_array_end(w);
    arena_release(&arena);
}

static void put_pairs(struct json_writer *w, const char *key, const char *const *pairs,
                      size_t count, bool redact)
{
    json_key(w, key);
    json_object_begin(w);
    for (size_t i = 0; i < count; i++) {
        const size_t len = strcspn(pairs[i], "=");
        bool again = false; /* the last value of a key holds */
        for (size_t j = i + 1; j < count && !again; j++)
            again = strncmp(pairs[j], pairs[i], len + 1) == 0;
        if (again)
            continue;
        struct buf name = BUF_INIT, value = BUF_INIT;
        buf_append(&name, pairs[i], len);
        if (redact)
            redact_env(&value, name.data, pairs[i] + len + 1);
        else
            buf_puts(&value, pairs[i] + len + 1);
        json_key(w, name.data);
        json_put_string(w, value.data);
        buf_release(&name);
        buf_release(&value);
    }
    json_object_end(w);
}

static void put_exit(struct json_writer *w, const struct runfile_exit *e)
{
    char name[SIGNAL_NAME_LEN];
    json_key(w, "exit");
    if (!e->cause) {
        json_put_null(w);
        return;
    }
    json_object_begin(w);
    json_key(w, "code");
    if (e->code >= 0)
        json_put_int(w, e->code);
    else
        json_put_null(w);
    put_text(w, "signal", e->signal ? signal_name(e->signal, name) : NULL);
    put_text(w, "cause", e->cause);
    json_object_end(w);
}

static void put_death(struct json_writer *w, const struct runfile_death *d, bool redact)
{
    json_key(w, "death");
    if (!d->text[0]) {
        json_put_null(w);
        return;
    }
    json_object_begin(w);
    put_redacted(w, "text", d->text, redact);
    put_known(w, "pid", d->pid);
    put_text(w, "process", d->process);
    put_text(w, "cgroup", d->group);
    put_number(w, "limit_mb", d->limit_mb);
    put_number(w, "size_mb", d->size_mb);
    put_number(w, "growth_mb_per_s", d->growth_mb_per_s);
    put_text(w, "method", d->method);
    json_key(w, "stack");
    json_array_begin(w);
    for (unsigned i = 0; i < d->frame_count; i++)
        json_put_string(w, d->frame[i]);
    json_array_end(w);
    json_object_end(w);
}

static void put_processes(struct json_writer *w, const struct runfile *f)
{
    put_known(w, "pid", (uint64_t)f->pid);
    put_known(w, "proc_start", f->pid_start);
    json_key(w, "supervisor");
    json_object_begin(w);
    put_uint(w, "pid", (uint64_t)f->supervisor);
    put_uint(w, "proc_start", f->supervisor_start);
    json_object_end(w);
    put_text(w, "host", f->machine.host);
    put_text(w, "boot_id", f->boot_id);
    put_known(w, "pid_namespace", f->pid_namespace);
}

static void put_surroundings(struct json_writer *w, const struct runfile *f)
{
    json_key(w, "hardware");
    json_object_begin(w);
    put_text(w, "cpu", f->machine.cpu);
    put_known(w, "cores", (uint64_t)f->machine.cores);
    json_key(w, "memory_mb");
    json_put_fixed(w, f->machine.memory_mb, 1);
    json_key(w, "gpus");
    json_array_begin(w);
    for (int i = 0; f->gpu && i < f->gpus; i++)
        json_put_string(w, f->gpu);
    json_array_end(w);
    json_object_end(w);

    json_key(w, "environment");
    json_object_begin(w);
    json_key(w, "git");
    if (f->has_git) {
        json_object_begin(w);
        put_text(w, "commit", f->git.commit);
        put_redacted(w, "branch", f->git.branch, f->redact);
        json_key(w, "dirty");
        json_put_null(w);
        json_object_end(w);
    } else {
        json_put_null(w);
    }
    put_text(w, "python", NULL);
    put_text(w, "torch", NULL);
    put_text(w, "cuda", NULL);
    put_text(w, "driver", NULL);
    json_object_end(w);
}

static void put_usage(struct json_writer *w, const struct runfile *f)
{
    json_key(w, "rusage");
    if (f->has_usage) {
        json_object_begin(w);
        put_number(w, "cpu_user_s", f->cpu_user_s);
        put_number(w, "cpu_system_s", f->cpu_system_s);
        put_number(w, "max_rss_mb", f->max_rss_mb);
        put_uint(w, "minor_faults", (uint64_t)f->minor_faults);
        put_uint(w, "major_faults", (uint64_t)f->major_faults);
        json_object_end(w);
    } else {
        json_put_null(w);
    }
    json_key(w, "overhead");
    if (f->has_usage) {
        json_object_begin(w);
        put_number(w, "supervisor_cpu_s", f->supervisor_cpu_s);
        put_number(w, "supervisor_rss_mb", f->supervisor_rss_mb);
        json_object_end(w);
    } else {
        json_put_null(w);
    }
}

static void put_options(struct json_writer *w, const struct runfile *f)
{
    json_key(w, "options");
    json_object_begin(w);
    put_uint(w, "max_trace", f->max_trace);
    json_key(w, "lossy");
    json_put_bool(w, f->lossy);
    json_key(w, "redact");
    json_put_bool(w, f->redact);
    put_uint(w, "min_zone_ns", f->min_zone_ns);
    put_seconds(w, "after_s", f->after_ns);
    put_seconds(w, "duration_s", f->duration_ns);
    put_seconds(w, "timeout_s", f->timeout_ns);
    put_text(w, "steps", f->steps);
    json_key(w, "energy");
    json_put_bool(w, !f->no_energy);
    put_number(w, "grid_g_per_kwh", f->grid_given ? f->grid_g_per_kwh : NAN);
    json_object_end(w);
}

static void put_notes(struct json_writer *w, const struct runfile *f)
{
    json_key(w, "notes");
    json_array_begin(w);
    for (size_t i = 0; i < f->note_count; i++)
        json_put_string(w, f->notes[i]);
    json_array_end(w);
}

static void put_document(struct json_writer *w, const struct runfile *f)
{
    char time[ISO_TIME_LEN];
    json_object_begin(w);
    put_text(w, "schema", RUNFILE_SCHEMA);
    put_text(w, "id", f->id);
    put_redacted(w, "name", f->name, f->redact);
    put_command(w, f);
    put_redacted(w, "cwd", f->cwd, f->redact);
    put_text(w, "live", f->live);
    put_uint(w, "started_ns", (uint64_t)f->started_ns);
    put_text(w, "started", iso_time(f->started_ns, time));
    put_known(w, "ended_ns", (uint64_t)f->ended_ns);
    put_exit(w, &f->exit);
    put_death(w, &f->death, f->redact);
    put_processes(w, f);
    put_surroundings(w, f);
    put_pairs(w, "tags", f->tags, f->tag_count, f->redact);
    put_pairs(w, "params", f->params, f->param_count, f->redact);
    json_key(w, "attached");
    json_put_bool(w, f->attached);
    if (f->session) {
        json_key(w, "session");
        json_put_bool(w, true);
    }
    if (f->imported) {
        json_key(w, "imported");
        json_put_bool(w, true);
    }
    put_text(w, "level", f->level);
    put_uint(w, "rank", 0);
    put_uint(w, "world_size", 1);
    put_text(w, "parent_run", NULL);
    put_usage(w, f);
    put_options(w, f);
    put_notes(w, f);
    put_text(w, "sonde", SONDE_VERSION);
    json_object_end(w);
    json_newline(w);
}

int runfile_write(const struct runfile *file, const char *dir)
{
    struct buf text = BUF_INIT, path = BUF_INIT;
    struct json_writer w;
    json_init_buf(&w, &text, JSON_STYLE_PRETTY);
    put_document(&w, file);
    int rc = json_finish(&w);
    path_join(&path, dir, RUNFILE_NAME);
    if (rc == 0)
        rc = path.error;
    if (rc == 0)
        rc = file_replace(path.data, text.data, text.len, 0600);
    buf_release(&text);
    buf_release(&path);
    return rc;
}
