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
#include "cli/measures.h"
#include "launch/child.h"
#include "launch/spawn.h"
#include "launch/syscalls.h"
#include "trace/machine.h"

/* What is asked to end gets so long. */
static const uint64_t GRACE_NS = UINT64_C(2) * 1000000000;

/* ---- Names -------------------------------------------------------------------------- */

/* Once, for it takes a look at what the kernel lets us do. */
static bool may_count(const struct measuring *m)
{
    char why[SYSCALLS_WHY] = "";
    if (m->counted || syscalls_countable(why))
        return true;
    cli_error("--metric syscalls: they cannot be counted here: %s; io_calls, the calls "
              "that read and write, can",
              why);
    return false;
}

static bool set_source(struct measuring *m, struct measured_metric *one)
{
    struct measure found;
    if (!measure_find(one->name, &found)) {
        cli_error("--metric: there is no '%s' (%s)", one->name, measure_names);
        return false;
    }
    if (found.source == MEASURE_COUNTED && !may_count(m))
        return false;
    one->name = found.name;
    one->more_is_better |= found.more_is_better;
    m->plain |= found.source == MEASURE_PLAIN;
    m->profile |= found.source == MEASURE_PROFILED;
    m->counted |= found.source == MEASURE_COUNTED;
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
    if (!set_source(m, &one))
        return false;
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
    bool count; /* the system calls; false: do not */
    double wall_s, cpu_s, memory_mb, syscalls;
    int status;
    struct syscall_counter counter;
    char why[SYSCALLS_WHY];
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

static void start_counting(void *arg, pid_t pid)
{
    struct plain *p = arg;
    if (p->count)
        (void)syscall_counter_open(pid, &p->counter, p->why);
}

static bool stop_counting(struct plain *p)
{
    uint64_t count = 0;
    const bool good = p->counter.fd >= 0 &&
                      syscall_counter_read(&p->counter, &count) == 0;
    p->syscalls = (double)count;
    syscall_counter_close(&p->counter);
    return good;
}

static enum measured_end run_plain(struct measuring *m, char *const *argv,
                                   const char *dir, struct plain *ret,
                                   struct buf *ret_message)
{
    ret->counter.fd = -1;
    const struct spawn_options options = { .argv = argv,
                                           .signals = &m->signals,
                                           .null_stdin = true,
                                           .null_stdout = !m->show_output,
                                           .before_exec = ret->count ? start_counting
                                                                     : NULL,
                                           .arg = ret };
    struct child child = { 0 };
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    const int rc = spawn_in(&options, dir, &child.pid);
    if (rc < 0) {
        syscall_counter_close(&ret->counter);
        buf_printf(ret_message, "cannot run '%s'%s%s: %s", argv[0], dir ? " in " : "",
                   dir ? dir : "", error_text(rc));
        return MEASURED_FAILED;
    }
    const bool in_time = wait_for(&child, m->deadline_ns);
    const bool counted = stop_counting(ret);
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
    if (ret->count && !counted) {
        buf_printf(ret_message, "the system calls of '%s' could not be counted: %s",
                   argv[0], ret->why);
        return MEASURED_FAILED;
    }
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

static int read_profile(const struct measuring *m, const char *dir,
                        double ret_values[GATE_METRICS])
{
    struct run *run = NULL;
    struct report *report = NULL;
    int rc = run_open(dir, &run);
    if (rc == 0)
        rc = report_build(run, &report);
    for (size_t i = 0; rc == 0 && i < m->count; i++)
        ret_values[i] = measure_of_report(report, m->metrics[i].name);
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
    /* A gate compares counts: they are not to be estimated (capture/interpose/heap_pace.c),
     * unless somebody wants them so. */
    (void)setenv("SONDE_ALLOC_EXACT_S", "inf", 0);
    char *const head[] = { self, run, quiet, into, place, end };
    memcpy(words, head, sizeof head);
    memcpy(words + 6, argv, (count + 1) * sizeof *words);
    struct plain plain = { 0 };
    enum measured_end ended = run_plain(m, words, dir, &plain, ret_message);
    if (ended == MEASURED_GOOD && read_profile(m, place, ret_values) < 0) {
        buf_printf(ret_message, "cannot read the profile in '%s'", place);
        ended = MEASURED_FAILED;
    }
    (void)file_remove_tree(place);
    free(words);
    return ended;
}

/* ---- All kinds ---------------------------------------------------------------------- */

static double of_plain(const struct plain *p, const char *name)
{
    return strcmp(name, "wall") == 0     ? p->wall_s
           : strcmp(name, "cpu") == 0    ? p->cpu_s
           : strcmp(name, "memory") == 0 ? p->memory_mb
                                         : NAN;
}

static enum measured_end run_timed(struct measuring *m, char *const *argv,
                                   const char *dir, double ret_values[GATE_METRICS],
                                   struct buf *ret_message)
{
    struct plain plain = { 0 };
    const enum measured_end ended = run_plain(m, argv, dir, &plain, ret_message);
    for (size_t i = 0; ended == MEASURED_GOOD && i < m->count; i++) {
        const double value = of_plain(&plain, m->metrics[i].name);
        if (!isnan(value))
            ret_values[i] = value;
    }
    return ended;
}

/* A run of its own: a profile adds calls of ours, and counting adds time to each. */
static enum measured_end run_counted(struct measuring *m, char *const *argv,
                                     const char *dir, double ret_values[GATE_METRICS],
                                     struct buf *ret_message)
{
    struct plain plain = { .count = true };
    const enum measured_end ended = run_plain(m, argv, dir, &plain, ret_message);
    for (size_t i = 0; ended == MEASURED_GOOD && i < m->count; i++)
        if (strcmp(m->metrics[i].name, "syscalls") == 0)
            ret_values[i] = plain.syscalls;
    return ended;
}

enum measured_end measure_once(struct measuring *m, char *const *argv, const char *dir,
                               double ret_values[GATE_METRICS], struct buf *ret_message)
{
    enum measured_end ended = MEASURED_GOOD;
    for (size_t i = 0; i < GATE_METRICS; i++)
        ret_values[i] = NAN;
    if (m->profile)
        ended = run_profiled(m, argv, dir, ret_values, ret_message);
    if (ended == MEASURED_GOOD && m->plain && (m->apart || !m->profile))
        ended = run_timed(m, argv, dir, ret_values, ret_message);
    if (ended == MEASURED_GOOD && m->counted)
        ended = run_counted(m, argv, dir, ret_values, ret_message);
    return ended;
}
