/* measured.c: one run of a command, measured. */
#include "cli/measured.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyse/report.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/files.h"
#include "base/moment.h"
#include "cli/cli.h"
#include "cli/leftovers.h"
#include "launch/child.h"
#include "launch/spawn.h"
#include "trace/machine.h"

const char measuring_names[] =
    "wall, cpu, memory; with a profile: allocations, allocated_bytes, io_calls, "
    "io_bytes, steps, step_ms, samples_per_s, energy_j, calls.ZONE, time.ZONE, metrics.X";

/* What is asked to end gets so long. */
static const uint64_t GRACE_NS = UINT64_C(2) * 1000000000;

/* ---- Names -------------------------------------------------------------------------- */

enum source { PLAIN_RUN, PROFILED_RUN };

static const struct {
    const char *name;
    enum source source;
    bool more_is_better;
} known[] = {
    { "wall", PLAIN_RUN, false },
    { "cpu", PLAIN_RUN, false },
    { "memory", PLAIN_RUN, false },
    { "allocations", PROFILED_RUN, false },
    { "allocated_bytes", PROFILED_RUN, false },
    { "io_calls", PROFILED_RUN, false },
    { "io_bytes", PROFILED_RUN, false },
    { "steps", PROFILED_RUN, false },
    { "step_ms", PROFILED_RUN, false },
    { "samples_per_s", PROFILED_RUN, true },
    { "energy_j", PROFILED_RUN, false },
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0 && text[strlen(prefix)];
}

static bool set_source(struct measuring *m, struct measured_metric *one)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, one->name) == 0) {
            m->profile |= known[i].source == PROFILED_RUN;
            one->more_is_better |= known[i].more_is_better;
            return true;
        }
    if (!begins(one->name, "calls.") && !begins(one->name, "time.") &&
        !begins(one->name, "metrics."))
        return false;
    m->profile = true;
    return true;
}

static bool set_threshold(struct measured_metric *one, const char *text)
{
    char *end;
    const double percent = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "%") != 0) || !(percent >= 0) ||
        percent > 10000)
        return false;
    one->threshold = percent / 100;
    return true;
}

static struct arena names; /* of metrics: they live as long as the process */

bool measuring_add(struct measuring *m, const char *text)
{
    char *copy = arena_strdup(&names, text);
    struct measured_metric one = { .name = copy, .threshold = NAN };
    if (!copy || m->count == GATE_METRICS) {
        cli_error("--metric: at most %d metrics", GATE_METRICS);
        return false;
    }
    char *more = strstr(copy, ":more");
    if (more && more[5] == '\0') {
        one.more_is_better = true;
        *more = '\0';
    }
    char *equals = strchr(copy, '=');
    if (equals)
        *equals = '\0';
    if (equals && !set_threshold(&one, equals + 1)) {
        cli_error("--metric %s: '%s' is no percentage", text, equals + 1);
        return false;
    }
    if (!set_source(m, &one)) {
        cli_error("--metric: there is no '%s' (%s)", copy, measuring_names);
        return false;
    }
    m->metrics[m->count++] = one;
    return true;
}

void machine_words(struct buf *out)
{
    struct machine machine;
    machine_read(&machine);
    buf_printf(out, "%s, %d cores", machine.cpu, machine.cores);
}

/* ---- Running ------------------------------------------------------------------------ */

struct plain {
    double wall_s, cpu_s, memory_mb;
    int status;
};

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* spawn() starts in our directory: we go there and come back. */
static int spawn_in(const struct spawn_options *options, const char *dir,
                    pid_t *ret_pid)
{
    bool no_exec;
    if (!dir)
        return spawn(options, ret_pid, &no_exec);
    const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (here < 0)
        return -errno;
    int rc = chdir(dir) < 0 ? -errno : spawn(options, ret_pid, &no_exec);
    if (fchdir(here) < 0 && rc == 0)
        rc = -errno;
    (void)close(here);
    return rc;
}

/* Waits for the end or the deadline; false then. Whoever was interrupted and goes on is
 * not waited for much longer. */
static bool wait_for(struct child *child, uint64_t deadline_ns)
{
    bool told = false;
    while (!child->ended) {
        const uint64_t now = moment_ns(CLOCK_MONOTONIC);
        if (child->interrupted && !told) {
            told = true;
            if (!deadline_ns || deadline_ns > now + GRACE_NS)
                deadline_ns = now + GRACE_NS;
        }
        if (deadline_ns && now >= deadline_ns)
            return false;
        (void)child_wait(child, deadline_ns ? (int64_t)((deadline_ns - now) / 1000 + 1)
                                            : CHILD_FOREVER);
    }
    return true;
}

static enum measured_end run_plain(struct measuring *m, char *const *argv,
                                   const char *dir, struct plain *ret,
                                   struct buf *ret_message)
{
    const struct spawn_options options = { .argv = argv,
                                           .signals = &m->signals,
                                           .null_stdin = true,
                                           .null_stdout = !m->show_output };
    struct child child = { 0 };
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    const int rc = spawn_in(&options, dir, &child.pid);
    if (rc < 0) {
        buf_printf(ret_message, "cannot run '%s'%s%s: %s", argv[0], dir ? " in " : "",
                   dir ? dir : "", error_text(rc));
        return MEASURED_FAILED;
    }
    const bool in_time = wait_for(&child, m->deadline_ns);
    ret->wall_s = (double)(moment_ns(CLOCK_MONOTONIC) - start) / 1e9;
    if (!in_time || child.interrupted) {
        m->ended_by = child.asked.signal ? child.asked.signal : SIGINT;
        leftovers_end(GRACE_NS);
        return child.interrupted ? MEASURED_INTERRUPTED : MEASURED_LATE;
    }
    m->leaves_running = m->leaves_running || leftovers_count() > 0;
    ret->cpu_s = seconds(child.usage.ru_utime) + seconds(child.usage.ru_stime);
    ret->memory_mb = (double)child.usage.ru_maxrss / 1024;
    ret->status = child.status;
    if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0)
        return MEASURED_GOOD;
    if (WIFSIGNALED(child.status))
        buf_printf(ret_message, "'%s' was killed by signal %d", argv[0],
                   WTERMSIG(child.status));
    else
        buf_printf(ret_message, "'%s' ended with status %d", argv[0],
                   WEXITSTATUS(child.status));
    return MEASURED_FAILED;
}

/* ---- From a profile ----------------------------------------------------------------- */

static double of_zone(const struct report *r, const char *name, bool time)
{
    double sum = NAN;
    for (size_t i = 1; i < r->ops.count; i++) {
        const struct op *op = &r->ops.ops[i];
        if (strcmp(op->name, name) != 0)
            continue;
        const double one = time ? op->total_ns / 1e9 : (double)op->durations.count;
        sum = isnan(sum) ? one : sum + one;
    }
    return sum;
}

static double of_metric(const struct report *r, const char *name)
{
    for (const struct op_value *v = r->metrics; v; v = v->next)
        if (strcmp(v->name, name) == 0)
            return v->last;
    return NAN;
}

static double of_report(const struct report *r, const char *name)
{
    const bool alloc = r->allocations.known, io = r->io.captured;
    if (begins(name, "calls."))
        return of_zone(r, name + 6, false);
    if (begins(name, "time."))
        return of_zone(r, name + 5, true);
    if (begins(name, "metrics."))
        return of_metric(r, name + 8);
    if (strcmp(name, "allocations") == 0)
        return alloc ? (double)r->allocations.count : NAN;
    if (strcmp(name, "allocated_bytes") == 0)
        return alloc ? (double)r->allocations.bytes : NAN;
    if (strcmp(name, "io_calls") == 0)
        return io ? (double)(r->io.total[0].calls + r->io.total[1].calls) : NAN;
    if (strcmp(name, "io_bytes") == 0)
        return io ? (double)(r->io.total[0].bytes + r->io.total[1].bytes) : NAN;
    if (strcmp(name, "steps") == 0)
        return r->steps.calls ? (double)r->steps.calls : NAN;
    if (strcmp(name, "step_ms") == 0)
        return r->steps.durations.count
                   ? r->steps.total_ns / (double)r->steps.durations.count / 1e6
                   : NAN;
    if (strcmp(name, "samples_per_s") == 0)
        return step_samples_per_s(&r->steps);
    if (strcmp(name, "energy_j") == 0)
        return r->energy.joules;
    if (strcmp(name, "wall") == 0)
        return report_duration_s(r);
    if (strcmp(name, "cpu") == 0)
        return report_cpu_percent(r) / 100 * report_duration_s(r);
    return report_peak_rss_mb(r);
}

static int read_profile(const struct measuring *m, const char *dir,
                        double ret_values[GATE_METRICS])
{
    struct run *run = NULL;
    struct report *report = NULL;
    int rc = run_open(dir, &run);
    if (rc == 0)
        rc = report_build(run, &report);
    for (size_t i = 0; rc == 0 && i < m->count; i++)
        ret_values[i] = of_report(report, m->metrics[i].name);
    report_free(report);
    run_free(run);
    return rc;
}

static enum measured_end run_profiled(struct measuring *m, char *const *argv,
                                      const char *dir, double ret_values[GATE_METRICS],
                                      struct buf *ret_message)
{
    char place[] = "/tmp/sonde-check-XXXXXX";
    static char self[] = "/proc/self/exe", run[] = "run", quiet[] = "-q", into[] = "-o",
                end[] = "--";
    size_t count = 0;
    while (argv[count])
        count++;
    char **words = calloc(count + 7, sizeof *words);
    if (!words || !mkdtemp(place)) {
        buf_puts(ret_message, "no place for a profile in /tmp");
        free(words);
        return MEASURED_FAILED;
    }
    char *const head[] = { self, run, quiet, into, place, end };
    memcpy(words, head, sizeof head);
    memcpy(words + 6, argv, (count + 1) * sizeof *words);
    struct plain plain;
    enum measured_end ended = run_plain(m, words, dir, &plain, ret_message);
    if (ended == MEASURED_GOOD && read_profile(m, place, ret_values) < 0) {
        buf_printf(ret_message, "cannot read the profile in '%s'", place);
        ended = MEASURED_FAILED;
    }
    (void)file_remove_tree(place);
    free(words);
    return ended;
}

enum measured_end measure_once(struct measuring *m, char *const *argv, const char *dir,
                               double ret_values[GATE_METRICS], struct buf *ret_message)
{
    struct plain plain;
    for (size_t i = 0; i < GATE_METRICS; i++)
        ret_values[i] = NAN;
    if (m->profile)
        return run_profiled(m, argv, dir, ret_values, ret_message);
    const enum measured_end ended = run_plain(m, argv, dir, &plain, ret_message);
    for (size_t i = 0; ended == MEASURED_GOOD && i < m->count; i++)
        ret_values[i] = strcmp(m->metrics[i].name, "wall") == 0  ? plain.wall_s
                        : strcmp(m->metrics[i].name, "cpu") == 0 ? plain.cpu_s
                                                                 : plain.memory_mb;
    return ended;
}
