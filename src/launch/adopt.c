/* adopt.c: finish runs whose supervisor has died.
 *
 * Two commands may adopt the same run at once: recovery may run beside itself, and
 * both write the same end into run.json, each atomically.
 */
#include "launch/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "base/signame.h"
#include "launch/adoptcrash.h"
#include "capture/sample/timers.h"
#include "launch/symbolise.h"
#include "launch/place.h"
#include "launch/watchfile.h"
#include "trace/process.h"
#include "trace/runfile.h"
#include "trace/control.h"
#include "trace/file.h"
#include "trace/guard.h"
#include "trace/reader.h"
#include "trace/recover.h"

enum { RUN_JSON_MAX = 4 << 20 };

#define ADOPTED_NOTE "finished by a later sonde command; its supervisor had died"

static int load(const char *path, json_t **ret_root)
{
    struct buf text = BUF_INIT;
    int rc = file_read_all(path, RUN_JSON_MAX, &text);
    if (rc == 0) {
        json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(root)) {
            *ret_root = root;
        } else {
            json_decref(root);
            rc = SONDE_E_FORMAT;
        }
    }
    buf_release(&text);
    return rc;
}

/* ---- Is it an orphan? ------------------------------------------------------- */

/* A process without a start time (none was written) is judged by its number alone. */
static bool names_living_process(const json_t *object)
{
    const json_int_t pid = json_integer_value(json_object_get(object, "pid"));
    const json_int_t start = json_integer_value(json_object_get(object, "proc_start"));
    if (pid <= 0 || pid > INT32_MAX)
        return false;
    return start > 0 ? process_alive((pid_t)pid, (uint64_t)start)
                     : process_start_ticks((uint32_t)pid) != 0;
}

static bool same_text(const json_t *root, const char *key, const char *ours)
{
    const char *theirs = json_string_value(json_object_get(root, key));
    return theirs && strcmp(theirs, ours) == 0;
}

static bool is_orphan(const json_t *root)
{
    char host[256] = "", boot_id[BOOT_ID_LEN];
    if (!same_text(root, "schema", RUNFILE_SCHEMA) ||
        json_is_integer(json_object_get(root, "ended_ns")))
        return false;
    if (gethostname(host, sizeof host - 1) != 0 || !same_text(root, "host", host))
        return false; /* another machine's run on a shared disk */
    if (!same_text(root, "boot_id", process_boot_id(boot_id)))
        return true; /* this machine before its last boot */
    const json_int_t name_space = json_integer_value(
        json_object_get(root, "pid_namespace"));
    if ((uint64_t)name_space != process_pid_namespace())
        return false; /* a container whose processes have other numbers */
    return !names_living_process(json_object_get(root, "supervisor")) &&
           (json_is_true(json_object_get(root, "attached")) ||
            !names_living_process(root));
}

/* ---- Its end ---------------------------------------------------------------- */

static bool is_trace_name(const char *name)
{
    const size_t len = strlen(name);
    return len > 6 && strcmp(name + len - 6, ".sonde") == 0 &&
           strcmp(name, "control.sonde") != 0;
}

static int64_t last_event_of(const char *path, const struct clock_table *clock)
{
    struct trace *trace;
    if (trace_open(path, clock, &trace) < 0)
        return 0;
    const int64_t last = trace_info(trace)->last_ns;
    trace_free(trace);
    return last;
}

/* When the supervisor last folded: a program without zones lived at least so long. */
static int64_t last_beat(const char *dir, const struct clock_table *clock)
{
    struct buf path = BUF_INIT;
    struct control head = { 0 };
    path_join(&path, dir, "control.sonde");
    const int fd = path.error ? -1 : open(path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        if (fd_pread_full(fd, &head, sizeof head, 0) != sizeof head)
            head.drainer_beat = 0;
        (void)close(fd);
    }
    buf_release(&path);
    return head.drainer_beat && clock ? clock_real_ns(clock, head.drainer_beat) : 0;
}

/* The last moment at which the run is known to have lived; 0 unknown. */
static int64_t last_sign_of_life(const char *dir)
{
    struct clock_table table;
    const bool has_clock = control_read_clock(dir, &table) == 0;
    const struct clock_table *clock = has_clock ? &table : NULL;
    int64_t last = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!is_trace_name(e->d_name))
            continue;
        struct buf path = BUF_INIT;
        path_join(&path, dir, e->d_name);
        const int64_t t = path.error ? 0 : last_event_of(path.data, clock);
        last = t > last ? t : last;
        buf_release(&path);
    }
    if (d)
        (void)closedir(d);
    if (last == 0)
        last = last_beat(dir, clock);
    if (has_clock)
        clock_table_release(&table);
    return last;
}

static void add_note(json_t *root, const char *text)
{
    json_t *notes = json_object_get(root, "notes");
    if (!json_is_array(notes)) {
        notes = json_array();
        (void)json_object_set_new(root, "notes", notes);
        notes = json_object_get(root, "notes");
    }
    (void)json_array_append_new(notes, json_string(text));
}

/* What can still be found out about it. */
struct adopted_end {
    int64_t ended_ns;
    struct runfile_exit exit;
    struct runfile_death death;
};

static json_t *number_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static void set_death(json_t *root, const struct runfile_death *d)
{
    if (!d->text[0])
        return;
    json_t *death = json_pack("{s:s,s:n,s:n,s:s,s:s}", "text", d->text, "pid",
                              "process", "cgroup", d->group, "method", d->method);
    if (d->pid)
        (void)json_object_set_new(death, "pid", json_integer(d->pid));
    (void)json_object_set_new(death, "limit_mb", number_or_null(d->limit_mb));
    (void)json_object_set_new(death, "size_mb", number_or_null(d->size_mb));
    (void)json_object_set_new(death, "growth_mb_per_s",
                              number_or_null(d->growth_mb_per_s));
    json_t *stack = json_array();
    for (unsigned i = 0; i < d->frame_count; i++)
        (void)json_array_append_new(stack, json_string(d->frame[i]));
    (void)json_object_set_new(death, "stack", stack);
    (void)json_object_set_new(root, "death", death);
}

/* Nobody saw the exit code; a signal only the program itself may have told of. */
static json_t *exit_json(const struct runfile_exit *x)
{
    char name[SIGNAL_NAME_LEN];
    json_t *exit = json_pack("{s:n,s:n,s:s}", "code", "signal", "cause", x->cause);
    if (x->signal)
        (void)json_object_set_new(exit, "signal",
                                  json_string(signal_name(x->signal, name)));
    return exit;
}

static int write_end(const char *path, json_t *root, const struct adopted_end *end,
                     const struct recover_result *recovered)
{
    int64_t ended_ns = end->ended_ns;
    const json_int_t started = json_integer_value(json_object_get(root, "started_ns"));
    if (ended_ns < started)
        ended_ns = started; /* no event at all, or a clock that was set back */
    (void)json_object_set_new(root, "ended_ns", json_integer(ended_ns));
    (void)json_object_set_new(root, "exit", exit_json(&end->exit));
    set_death(root, &end->death);
    add_note(root, ADOPTED_NOTE);
    if (recovered->first_problem[0])
        add_note(root, recovered->first_problem);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (!text)
        return -ENOMEM;
    const int rc = file_write_atomic(path, text, strlen(text), 0600);
    free(text);
    return rc;
}

/* The scratch in which the files still lie; NULL: they are here. Also forgets it. */
static char *scratch_of(json_t *root)
{
    const char *live = json_string_value(json_object_get(root, "live"));
    const char *id = json_string_value(json_object_get(root, "id"));
    char *path = live && id && place_is_scratch(live, id) ? strdup(live) : NULL;
    (void)json_object_set_new(root, "live", json_null());
    return path;
}

int adopt_run(const char *dir)
{
    struct buf path = BUF_INIT;
    json_t *root = NULL;
    path_join(&path, dir, RUNFILE_NAME);
    int rc = path.error ? path.error : load(path.data, &root);
    if (rc < 0 || !is_orphan(root))
        goto done;

    guard_install();
    struct recover_result recovered = { 0 };
    char *scratch = scratch_of(root);
    const char *live = scratch ? scratch : dir;
    rc = recover_run(live, false, &recovered);
    if (rc < 0 && !recovered.first_problem[0])
        (void)snprintf(recovered.first_problem, sizeof recovered.first_problem,
                       "recovery failed: %s", error_text(rc));
    if (recovered.alive > 0 && !json_is_integer(json_object_get(root, "pid"))) {
        rc = 0; /* killed before it could write the program's number: still running */
        free(scratch);
        goto done;
    }
    timers_sweep(live);
    (void)symbolise_run(live, NULL); /* without names the report still has offsets */
    char boot_id[BOOT_ID_LEN];
    struct adopted_end end = { .ended_ns = last_sign_of_life(live) };
    watchfile_judge(live, same_text(root, "boot_id", process_boot_id(boot_id)),
                    &end.exit, &end.death);
    adopt_crash(live, json_integer_value(json_object_get(root, "pid")), &end.exit,
                &end.death);
    rc = scratch ? place_bring_home(scratch, dir) : 0;
    if (rc == 0)
        rc = write_end(path.data, root, &end, &recovered);
    if (rc == 0)
        rc = 1;
    free(scratch);
done:
    json_decref(root);
    buf_release(&path);
    return rc;
}

static void adopt_entry(const char *runs, const char *name, struct adopt_result *result)
{
    struct buf dir = BUF_INIT;
    path_join(&dir, runs, name);
    const int rc = dir.error ? dir.error : adopt_run(dir.data);
    if (rc > 0) {
        result->adopted++;
    } else if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR && rc != SONDE_E_FORMAT) {
        result->failed++;
        if (!result->first_problem[0])
            (void)snprintf(result->first_problem, sizeof result->first_problem,
                           "%.150s: %s", dir.data, error_text(rc));
    }
    buf_release(&dir);
}

int adopt_orphans(const char *sonde_dir, struct adopt_result *ret_result)
{
    struct adopt_result result = { 0 };
    struct buf runs = BUF_INIT;
    path_join(&runs, sonde_dir, "runs");
    DIR *d = runs.error ? NULL : opendir(runs.data);
    int rc = d || runs.error == 0 ? 0 : runs.error;
    for (const struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            adopt_entry(runs.data, e->d_name, &result);
    if (d)
        (void)closedir(d);
    if (rc == 0)
        *ret_result = result;
    buf_release(&runs);
    return rc;
}
