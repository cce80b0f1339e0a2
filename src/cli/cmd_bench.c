/* cmd_bench.c: `sonde bench`: time a command over several runs.
 *
 * Wall time is from just before fork to the news of the end; CPU time and memory are
 * those of the command and the children it waited for. Its input is empty and its
 * output discarded: a terminal is the slowest part of many commands.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/human.h"
#include "base/json.h"
#include "base/redact.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "launch/child.h"
#include "launch/signals.h"
#include "launch/spawn.h"
#include "num/summary.h"

enum { MAX_RUNS = 1000000 };

/* Starting a process takes about a millisecond: below this it is what one measures. */
static const double SHORT_S = 0.005;

struct bench_options {
    uint64_t runs, warmup;
    const char *name;
    bool json, show_output, ignore_failure, quiet;
};

#define FIELD(name) offsetof(struct bench_options, name)

static const struct option options[] = {
    { "runs", 'n', OPTION_COUNT, FIELD(runs), .value = "N",
      .help = "measured runs (default 10)", .env = "SONDE_BENCH_RUNS" },
    { "warmup", 'w', OPTION_COUNT, FIELD(warmup), .value = "N",
      .help = "runs before them that are not counted (default 1)",
      .env = "SONDE_BENCH_WARMUP" },
    { "name", 0, OPTION_TEXT, FIELD(name), .value = "NAME",
      .help = "what to call it in the output" },
    { "json", 0, OPTION_FLAG, FIELD(json),
      .help = "print JSON, with every measurement" },
    { "show-output", 0, OPTION_FLAG, FIELD(show_output),
      .help = "let the command write to stdout" },
    { "ignore-failure", 'i', OPTION_FLAG, FIELD(ignore_failure),
      .help = "measure also runs that end with a status other than 0" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "no progress line" },
};

static const struct command command = {
    .verb = "bench",
    .usage = "[options] [--] COMMAND [ARGUMENT…]",
    .summary = "time a command over several runs",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "The command gets no input. Ctrl-C ends the series early and reports what\n"
            "was measured. Exit status: 0, or the command's own when it fails.\n",
    .stop_at_word = true,
};

enum measure { WALL, USER, SYSTEM, MEMORY, MEASURES };

static const struct {
    const char *key, *title;
} measures[MEASURES] = {
    [WALL] = { "wall_s", "wall" },
    [USER] = { "user_s", "user CPU" },
    [SYSTEM] = { "system_s", "system CPU" },
    [MEMORY] = { "max_rss_mb", "peak memory" },
};

struct bench {
    const struct bench_options *options;
    char *const *argv;
    int argc;
    struct signals signals;
    double *values[MEASURES];
    size_t done;
    uint64_t failures;
    bool interrupted;
    int status; /* not 0: ended by a failure of the command or of ours */
};

/* ---- Measuring ----------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static int exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* False when the series is over. */
static bool run_once(struct bench *b, double ret_measured[MEASURES])
{
    const struct spawn_options spawning = {
        .argv = b->argv,
        .signals = &b->signals,
        .null_stdin = true,
        .null_stdout = !b->options->show_output,
    };
    struct child child = { 0 };
    bool no_exec;
    const double start = now_s();
    const int rc = spawn(&spawning, &child.pid, &no_exec);
    if (rc < 0) {
        cli_error("cannot run '%s': %s", b->argv[0], error_text(rc));
        b->status = CLI_FAILED;
        return false;
    }
    while (!child_wait(&child, CHILD_FOREVER))
        ;
    ret_measured[WALL] = now_s() - start;
    ret_measured[USER] = seconds(child.usage.ru_utime);
    ret_measured[SYSTEM] = seconds(child.usage.ru_stime);
    ret_measured[MEMORY] = (double)child.usage.ru_maxrss / 1024;
    b->interrupted = child.interrupted;
    if (child.interrupted)
        return false;
    if (exit_status(child.status) != 0) {
        b->failures++;
        if (!b->options->ignore_failure) {
            b->status = exit_status(child.status);
            return false;
        }
    }
    return true;
}

static void show_progress(const struct bench *b, uint64_t run, bool warmup)
{
    if (b->options->quiet || b->options->show_output || !isatty(STDERR_FILENO))
        return;
    char left[HUMAN_LEN] = "";
    if (b->done > 0) {
        double sum = 0;
        for (size_t i = 0; i < b->done; i++)
            sum += b->values[WALL][i];
        (void)human_duration(left, sum / (double)b->done * 1e9 *
                                       (double)(b->options->runs - b->done));
    }
    (void)fprintf(stderr, "\r\033[K%s %" PRIu64 " of %" PRIu64 "%s%s",
                  warmup ? "warm-up" : "run", run + 1,
                  warmup ? b->options->warmup : b->options->runs,
                  left[0] ? " · left " : "", left);
}

static void clear_progress(const struct bench *b)
{
    if (!b->options->quiet && !b->options->show_output && isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}

static void run_series(struct bench *b)
{
    double measured[MEASURES];
    bool going = true;
    for (uint64_t i = 0; going && i < b->options->warmup; i++) {
        show_progress(b, i, true);
        going = run_once(b, measured);
    }
    if (going)
        b->failures = 0; /* those of the warm-up do not count */
    for (uint64_t i = 0; going && i < b->options->runs; i++) {
        show_progress(b, i, false);
        going = run_once(b, measured);
        if (!going)
            break;
        for (int m = 0; m < MEASURES; m++)
            b->values[m][b->done] = measured[m];
        b->done++;
    }
    clear_progress(b);
}

/* ---- Reporting ------------------------------------------------------------------ */

static void put_command(struct buf *out, const struct bench *b)
{
    struct arena arena = ARENA_INIT;
    char **clean;
    if (b->options->name)
        buf_puts(out, b->options->name);
    else if (redact_args(b->argc, b->argv, &arena, &clean) == 0)
        for (int i = 0; i < b->argc; i++)
            buf_printf(out, "%s%s", i ? " " : "", clean[i]);
    arena_release(&arena);
}

static const char *show_value(enum measure m, double value, char text[HUMAN_LEN])
{
    return m == MEMORY ? human_bytes(text, value * 1048576)
                       : human_duration(text, value * 1e9);
}

static void print_measure(enum measure m, const struct summary *s)
{
    char mean[HUMAN_LEN], std[HUMAN_LEN], min[HUMAN_LEN], median[HUMAN_LEN],
        p95[HUMAN_LEN], max[HUMAN_LEN];
    printf("  %-12s %10s ± %-9s  min %s · median %s · p95 %s · max %s\n",
           measures[m].title, show_value(m, s->mean, mean), show_value(m, s->std, std),
           show_value(m, s->min, min), show_value(m, s->median, median),
           show_value(m, s->p95, p95), show_value(m, s->max, max));
}

static void print_text(const struct bench *b, const struct summary *all)
{
    struct buf title = BUF_INIT;
    put_command(&title, b);
    printf("sonde bench · %s · %zu run%s after %" PRIu64 " warm-up%s\n\n", title.data,
           b->done, b->done == 1 ? "" : "s", b->options->warmup,
           b->interrupted ? " · interrupted" : "");
    buf_release(&title);
    for (int m = 0; m < MEASURES; m++)
        print_measure((enum measure)m, &all[m]);

    char low[HUMAN_LEN], high[HUMAN_LEN], note[SUMMARY_NOTE_LEN];
    printf("\n  95 %% interval of the mean wall time: %s to %s\n",
           show_value(WALL, all[WALL].mean_t.low, low),
           show_value(WALL, all[WALL].mean_t.high, high));
    if (*summary_note(&all[WALL], note))
        printf("  %s\n", note);
    if (all[WALL].mean < SHORT_S)
        puts("  starting the process is a large part of so short a time");
    if (b->failures > 0)
        printf("  %" PRIu64 " of %zu runs ended with a status other than 0\n",
               b->failures, b->done);
}

static void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_put_double(w, value);
}

static void put_summary(struct json_writer *w, const struct summary *s)
{
    json_object_begin(w);
    put_number(w, "mean", s->mean);
    put_number(w, "std", s->std);
    put_number(w, "min", s->min);
    put_number(w, "max", s->max);
    put_number(w, "median", s->median);
    put_number(w, "p95", s->p95);
    put_number(w, "ci95_low", s->mean_t.low);
    put_number(w, "ci95_high", s->mean_t.high);
    json_key(w, "outliers");
    json_put_uint(w, s->outliers_low + s->outliers_high);
    json_object_end(w);
}

static void put_values(struct json_writer *w, const struct bench *b)
{
    json_key(w, "values");
    json_object_begin(w);
    for (int m = 0; m < MEASURES; m++) {
        json_key(w, measures[m].key);
        json_array_begin(w);
        for (size_t i = 0; i < b->done; i++)
            json_put_double(w, b->values[m][i]);
        json_array_end(w);
    }
    json_object_end(w);
}

static void print_json(const struct bench *b, const struct summary *all)
{
    struct buf title = BUF_INIT;
    struct json_writer w;
    char note[SUMMARY_NOTE_LEN];
    put_command(&title, b);
    json_init_file(&w, stdout, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    json_key(&w, "schema");
    json_put_string(&w, "sonde.bench/1");
    json_key(&w, "name");
    json_put_string(&w, title.data);
    json_key(&w, "runs");
    json_put_uint(&w, b->done);
    json_key(&w, "warmup");
    json_put_uint(&w, b->options->warmup);
    json_key(&w, "failures");
    json_put_uint(&w, b->failures);
    json_key(&w, "interrupted");
    json_put_bool(&w, b->interrupted);
    for (int m = 0; m < MEASURES; m++) {
        json_key(&w, measures[m].key);
        put_summary(&w, &all[m]);
    }
    json_key(&w, "note");
    json_put_string(&w, *summary_note(&all[WALL], note) ? note : NULL);
    put_values(&w, b);
    json_object_end(&w);
    json_newline(&w);
    (void)json_finish(&w); /* main() notices a stdout that failed */
    buf_release(&title);
}

static int report(const struct bench *b)
{
    struct summary all[MEASURES];
    for (int m = 0; m < MEASURES; m++) {
        const int rc = summary_compute(b->values[m], b->done, 1, &all[m]);
        if (rc < 0) {
            cli_error("cannot summarise the measurements: %s", error_text(rc));
            return CLI_FAILED;
        }
    }
    if (b->options->json)
        print_json(b, all);
    else
        print_text(b, all);
    return CLI_GOOD;
}

static bool check_options(const struct bench_options *o, int argc, int *ret_status)
{
    *ret_status = 0;
    if (argc < 2)
        *ret_status = options_fail(&command,
                                   "no command given: sonde bench -- COMMAND");
    else if (o->runs < 1 || o->runs > MAX_RUNS || o->warmup > MAX_RUNS)
        *ret_status = options_fail(&command, "-n wants 1 to %d runs", MAX_RUNS);
    return *ret_status == 0;
}

static int finish(struct bench *b)
{
    int status = b->status;
    if (status != 0 && b->failures > 0)
        cli_error("'%s' ended with status %d (--ignore-failure measures it anyway)",
                  b->argv[0], status);
    else if (status == 0 && b->done > 0)
        status = report(b);
    else if (status == 0)
        cli_error("interrupted before the first run was measured");
    if (b->interrupted) {
        (void)fflush(stdout);
        signal_die_by(SIGINT);
    }
    return status;
}

int cmd_bench(int argc, char **argv)
{
    struct bench_options o = { .runs = 10, .warmup = 1 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        !check_options(&o, argc, &status))
        return status;

    struct bench b = { .options = &o, .argv = argv + 1, .argc = argc - 1 };
    double *values = calloc((size_t)o.runs * MEASURES, sizeof *values);
    if (!values) {
        cli_error("not enough memory for %" PRIu64 " runs", o.runs);
        return CLI_FAILED;
    }
    for (int m = 0; m < MEASURES; m++)
        b.values[m] = values + (size_t)m * o.runs;
    signals_take(&b.signals);
    run_series(&b);
    signals_give_back(&b.signals);
    status = finish(&b);
    free(values);
    return status;
}
