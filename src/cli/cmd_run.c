/* cmd_run.c: `sonde run`: profile a program, then report.
 *
 * Whatever happens to Sonde, the program runs: when no run directory can be made, or
 * no second process, we become the program. Everything we print goes to stderr and
 * comes before the program starts or after it has ended; on a terminal one line of its
 * own tells how it goes (status.h).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/keep.h"
#include "cli/options.h"
#include "cli/report_measure.h"
#include "cli/rules.h"
#include "cli/status.h"
#include "launch/capture_alerts.h"
#include "launch/launch.h"
#include "present/report/report.h"
#include "store/list.h"

/* Exit statuses of `sonde run` when the program did not run (as env(1) has them). */
enum { STATUS_FAILED = 125, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

/* Below this a process has no room for its statistics and one block per thread. */
static const uint64_t MIN_MAX_TRACE = 2 << 20;

static const uint64_t MIN_INTERVAL_NS = 10000000, MAX_INTERVAL_NS = 3600000000000;

struct run_options {
    const char *output, *name;
    struct option_list tags, params;
    int level; /* index in `levels` */
    uint64_t max_trace, min_zone_ns, after_ns, duration_ns, timeout_ns;
    uint64_t hang_ns, memory_limit;
    struct option_range steps;
    int format; /* index in `formats` */
    uint64_t interval_ns, rate_hz;
    const char *trace; /* a list of "alloc", "io", "stacks" */
    bool lossy, quiet, no_redact, json, full, no_report, no_monitors, no_preload,
        no_sites, no_hang, no_energy, no_python, no_status, syscalls, merge_stacks;
    struct option_list alerts;
    const char *grid;
};

/* --rate was not given: the level decides. */
#define RATE_DEFAULT UINT64_MAX
static const uint64_t RATE_MOST = 10000;

static const char *const levels[] = { "basic", "detailed", "comprehensive", NULL };
static const char *const formats[] = { "text", "json", NULL };
enum { LEVEL_DETAILED = 1, FORMAT_TEXT = 0, FORMAT_JSON = 1 };

#define FIELD(name) offsetof(struct run_options, name)

static const struct option options[] = {
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "DIR",
      .help = "put the run into DIR, which must be new or empty" },
    { "name", 0, OPTION_TEXT, FIELD(name), .value = "NAME", .help = "name of the run",
      .env = "SONDE_NAME" },
    { "tag", 0, OPTION_PAIRS, FIELD(tags), .value = "KEY=VALUE",
      .help = "tag the run; may be repeated" },
    { "param", 0, OPTION_PAIRS, FIELD(params), .value = "KEY=VALUE",
      .help = "note a parameter of the run; may be repeated" },
    { "level", 0, OPTION_CHOICE, FIELD(level), .value = "LEVEL",
      .help = "how much to record", .env = "SONDE_LEVEL", .choices = levels },
    { "max-trace", 0, OPTION_SIZE, FIELD(max_trace), .value = "SIZE",
      .help = "most disk space the trace may take (default 1GiB)",
      .env = "SONDE_MAX_TRACE" },
    { "lossy", 0, OPTION_FLAG, FIELD(lossy),
      .help = "drop events rather than make the program wait; drops are counted",
      .env = "SONDE_LOSSY" },
    { "min-zone", 0, OPTION_DURATION, FIELD(min_zone_ns), .value = "DURATION",
      .help = "only count zones shorter than this", .env = "SONDE_MIN_ZONE" },
    { "steps", 0, OPTION_RANGE, FIELD(steps), .value = "A:B",
      .help =
          "record from training step A up to, not including, step B (the first is 1)",
      .env = "SONDE_STEPS" },
    { "after", 0, OPTION_SECONDS, FIELD(after_ns), .value = "DURATION",
      .help = "start recording after this time", .env = "SONDE_AFTER" },
    { "duration", 0, OPTION_SECONDS, FIELD(duration_ns), .value = "DURATION",
      .help = "record for this long; the program goes on", .env = "SONDE_DURATION" },
    { "timeout", 0, OPTION_SECONDS, FIELD(timeout_ns), .value = "DURATION",
      .help = "end the program after this time: SIGTERM, 10 s later SIGKILL",
      .env = "SONDE_TIMEOUT" },
    { "interval", 0, OPTION_SECONDS, FIELD(interval_ns), .value = "DURATION",
      .help = "time between readings of the monitors, 10ms to 1h (default 1s)",
      .env = "SONDE_INTERVAL" },
    { "no-monitors", 0, OPTION_FLAG, FIELD(no_monitors),
      .help = "do not watch CPU, memory, disk, network, temperature",
      .env = "SONDE_NO_MONITORS" },
    { "no-preload", 0, OPTION_FLAG, FIELD(no_preload),
      .help = "leave allocations and I/O out: nothing stands in front of libc",
      .env = "SONDE_NO_PRELOAD" },
    { "no-sites", 0, OPTION_FLAG, FIELD(no_sites),
      .help = "of allocations count calls and bytes alone: no call sites, live bytes, "
              "leaks",
      .env = "SONDE_NO_SITES" },
    { "no-python", 0, OPTION_FLAG, FIELD(no_python),
      .help = "leave Python programs as they are: no phases of torch",
      .env = "SONDE_NO_PYTHON" },
    { "trace", 0, OPTION_TEXT, FIELD(trace), .value = "LIST",
      .help = "record every event of: alloc, io (comma between); "
              "stacks: with the call path of each allocation",
      .env = "SONDE_TRACE" },
    { "syscalls", 0, OPTION_FLAG, FIELD(syscalls),
      .help = "count the system calls of the program and all it starts",
      .env = "SONDE_SYSCALLS" },
    { "merge-stacks", 0, OPTION_FLAG, FIELD(merge_stacks),
      .help = "record Python functions and the native ones they call as one stack, for "
              "sonde export --what merged",
      .env = "SONDE_MERGE_STACKS" },
    { "rate", 0, OPTION_COUNT, FIELD(rate_hz), .value = "HZ",
      .help = "samples of native stacks per second of CPU time and thread, 0 for none "
              "(default: none at level basic, 99 at detailed, 199 at comprehensive)",
      .env = "SONDE_RATE" },
    { "memory-limit", 0, OPTION_SIZE, FIELD(memory_limit), .value = "SIZE",
      .help = "most memory the program and its children may take together",
      .env = "SONDE_MEMORY_LIMIT" },
    { "hang", 0, OPTION_SECONDS, FIELD(hang_ns), .value = "DURATION",
      .help = "save the stacks of every process after this time without progress "
              "(default 60 s and 10 times a slow step)",
      .env = "SONDE_HANG" },
    { "no-hang", 0, OPTION_FLAG, FIELD(no_hang), .help = "do not look for hangs",
      .env = "SONDE_NO_HANG" },
    { "alert", 0, OPTION_TEXTS, FIELD(alerts), .value = "EXPRESSION",
      .help =
          "tell in the report when e.g. 'cpu>80%:10s' held; 'reference' is a set of "
          "them; may be repeated",
      .env = "SONDE_ALERT" },
    { "grid", 0, OPTION_TEXT, FIELD(grid), .value = "G_PER_KWH",
      .help = "grams of CO2e per kWh of your electricity (default 458, the world's)",
      .env = "SONDE_GRID" },
    { "no-energy", 0, OPTION_FLAG, FIELD(no_energy), .help = "no energy, no CO2e",
      .env = "SONDE_NO_ENERGY" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "print nothing",
      .env = "SONDE_QUIET" },
    { "no-report", 0, OPTION_FLAG, FIELD(no_report),
      .help = "no report at the end, only messages" },
    { "no-status", 0, OPTION_FLAG, FIELD(no_status),
      .help = "no line that tells how it goes, on a terminal",
      .env = "SONDE_NO_STATUS" },
    { "full", 0, OPTION_FLAG, FIELD(full), .help = "the long report" },
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "form of the report", .env = "SONDE_FORMAT", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
    { "no-redact", 0, OPTION_FLAG, FIELD(no_redact),
      .help = "keep what looks like a secret in the command line",
      .env = "SONDE_NO_REDACT" },
};

static const struct command command = {
    .verb = "run",
    .usage = "[options] [--] COMMAND [ARGUMENT…]",
    .summary = "run a program and report where its time went",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "The program keeps its terminal, input, output, signals and exit status;\n"
            "the report goes to stderr when it has ended. Exit status: the program's\n"
            "own, also by signal; 127 not found, 126 not executable, 125 wrong usage.\n"
            "SONDE_DISABLE=1 runs the program as if Sonde were not there.\n",
    .stop_at_word = true,
    .usage_status = STATUS_FAILED,
};

/* ---- Without a supervisor ---------------------------------------------------- */

static int say_not_executed(const char *program, int rc)
{
    if (rc == -ENOENT) {
        cli_error("cannot run '%s': %s", program,
                  strchr(program, '/') ? "no such file, or its interpreter is missing"
                                       : "not found in PATH");
        return STATUS_NOT_FOUND;
    }
    cli_error("cannot run '%s': %s", program, error_text(rc));
    return STATUS_NOT_EXECUTABLE;
}

/* Becomes the program; returns only when that fails. */
static int become(char **argv)
{
    (void)execvp(argv[0], argv);
    return say_not_executed(argv[0], -errno);
}

static int run_unprofiled(const struct run_options *o, int rc, char **argv)
{
    if (!o->quiet)
        cli_error("cannot profile: %s '%s': %s (try -o DIR or SONDE_DIR); "
                  "running '%s' without",
                  "no run directory in", o->output ? o->output : store_directory(),
                  error_text(rc), argv[0]);
    return become(argv);
}

/* ---- The end ------------------------------------------------------------------ */

/* Read by the signal handler below. */
static volatile sig_atomic_t program_status;

/* What the program's end asks us to do; async-signal-safe. */
static int end_like_program(void)
{
    const int status = program_status;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    signal_die_by(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

static void leave_report(int signal)
{
    static const char text[] = "\nsonde: report left; sonde report @last shows it\n";
    (void)signal;
    /* Whoever does not read may be why we are being interrupted. */
    struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
    if (poll(&fd, 1, 0) == 1)
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(end_like_program());
}

/* Ctrl-C while the report is being made means "enough": the run is on disk. The
 * exit status stays the program's. */
static void allow_interrupts(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction action = { .sa_handler = leave_report };
    (void)sigfillset(&action.sa_mask);
    child_forget_signals();
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        (void)sigaction(signals[i], &action, NULL);
        (void)sigaddset(&set, signals[i]);
    }
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void print_report(const struct run_options *o, struct report *report)
{
    static char buffer[1 << 16]; /* stderr writes byte by byte of its own accord */
    struct report_style style = {
        .format = o->json || o->format == FORMAT_JSON ? REPORT_JSON : REPORT_TEXT,
        .full = o->full,
        .ref = o->output,
    };
    report_style_detect(&style, STDERR_FILENO);
    struct thresholds thresholds; /* a bad sonde.yaml is said, and left out */
    if (cli_thresholds(NULL, &thresholds))
        style.thresholds = &thresholds;
    style.store = store_directory();
    (void)setvbuf(stderr, buffer, _IOFBF, sizeof buffer);
    int rc = report_judge(report, &style);
    if (rc == 0) {
        report_offer_trial(report);
        rc = report_print(report, &style, stderr);
    }
    if (rc < 0)
        cli_error("cannot report on the run: %s (it is in '%s')", error_text(rc),
                  report->run->dir);
    (void)fflush(stderr);
}

/* One analysis for the reader and for the store. Nobody waits for a report that nobody
 * reads: the store then gets what run.json says, and the rest when it is next asked. */
static void report_and_keep(const struct run_options *o, const char *dir)
{
    struct run *run = NULL;
    struct report *report = NULL;
    if (!o->quiet && !o->no_report) {
        int rc = run_open(dir, &run);
        if (rc == 0)
            rc = report_build(run, &report);
        if (rc == 0)
            print_report(o, report);
        else
            cli_error("cannot report on the run: %s (it is in '%s')", error_text(rc),
                      dir);
    }
    keep_after_run(dir, report, o->quiet);
    report_free(report);
    run_free(run);
}

/* ---- The verb ----------------------------------------------------------------- */

/* Whether `item` is in the list; false with *ret_ok false when the list has others. */
static bool traces(const char *list, const char *item, bool *ret_ok)
{
    static const char *const known[] = { "alloc", "io", "stacks" };
    bool found = false;
    for (const char *p = list; p && *p;) {
        const size_t len = strcspn(p, ",");
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known |= strlen(known[i]) == len && strncmp(p, known[i], len) == 0;
        *ret_ok &= is_known;
        found |= strlen(item) == len && strncmp(p, item, len) == 0;
        p += len + (p[len] == ',');
    }
    return found;
}

static bool parse_grid(const char *text, double *ret_g_per_kwh)
{
    char *end;
    if (!*text || strspn(text, "0123456789.") != strlen(text))
        return false;
    const double value = strtod(text, &end);
    if (*end || value > 10000)
        return false;
    *ret_g_per_kwh = value;
    return true;
}

static bool check_alerts(const struct run_options *o, int *ret_status)
{
    char message[320];
    for (size_t i = 0; i < o->alerts.count; i++)
        if (!alert_expression_check(o->alerts.items[i], message, sizeof message)) {
            *ret_status = options_fail(&command, "--alert %s", message);
            return false;
        }
    return true;
}

static bool check_options(const struct run_options *o, int argc, int *ret_status)
{
    bool trace_ok = true;
    (void)traces(o->trace, "", &trace_ok);
    *ret_status = 0;
    if (argc < 2)
        *ret_status = options_fail(&command, "no command given: sonde run -- COMMAND");
    else if (o->name && (!*o->name || *o->name == '@'))
        *ret_status = options_fail(&command,
                                   "--name may not be empty or begin with '@'");
    else if (o->max_trace && o->max_trace < MIN_MAX_TRACE)
        *ret_status = options_fail(&command, "--max-trace wants at least 2MiB");
    else if (o->interval_ns &&
             (o->interval_ns < MIN_INTERVAL_NS || o->interval_ns > MAX_INTERVAL_NS))
        *ret_status = options_fail(&command, "--interval wants 10ms to 1h");
    else if (!trace_ok)
        *ret_status = options_fail(&command,
                                   "--trace takes a list of: alloc, io, stacks");
    else if (o->rate_hz != RATE_DEFAULT && o->rate_hz > RATE_MOST)
        *ret_status = options_fail(&command, "--rate wants at most 10000");
    else if (o->steps.text && (o->after_ns || o->duration_ns))
        *ret_status = options_fail(&command,
                                   "--steps and --after/--duration are two ways to "
                                   "say when to record: give one");
    else if (o->grid && !parse_grid(o->grid, &(double){ 0 }))
        *ret_status = options_fail(&command,
                                   "--grid wants grams of CO2e per kWh, at most 10000, "
                                   "got '%s'",
                                   o->grid);
    else
        return check_alerts(o, ret_status);
    return *ret_status == 0;
}

static void set_launch_options(struct launch_options *l, const struct run_options *o,
                               int argc, char **argv)
{
    *l = (struct launch_options){
        .argv = argv,
        .argc = argc,
        .sonde_dir = store_directory(),
        .output = o->output,
        .name = o->name,
        .tags = o->tags.items,
        .tag_count = o->tags.count,
        .params = o->params.items,
        .param_count = o->params.count,
        .level = SONDE_BASIC + o->level,
        .max_trace = o->max_trace,
        .min_zone_ns = o->min_zone_ns,
        .steps = o->steps.text,
        .after_ns = o->after_ns,
        .duration_ns = o->duration_ns,
        .timeout_ns = o->timeout_ns,
        .hang_ns = o->no_hang ? UINT64_MAX : o->hang_ns,
        .lossy = o->lossy,
        .redact = !o->no_redact,
        .capture = { .no_monitors = o->no_monitors,
                     .interval_ns = o->interval_ns,
                     .rate_hz = o->rate_hz == RATE_DEFAULT ? 0 : (unsigned)o->rate_hz,
                     .no_stacks = o->rate_hz == 0,
                     .memory_limit = o->memory_limit,
                     .no_energy = o->no_energy,
                     .no_python = o->no_python,
                     .alerts = o->alerts.items,
                     .alert_count = o->alerts.count },
    };
    bool ok = true;
    l->capture.no_preload = o->no_preload;
    l->capture.no_sites = o->no_sites;
    l->capture.syscalls = o->syscalls;
    l->capture.merge_stacks = o->merge_stacks;
    l->capture.grid_given = o->grid && parse_grid(o->grid, &l->capture.grid_g_per_kwh);
    l->capture.trace_alloc = traces(o->trace, "alloc", &ok);
    l->capture.trace_stacks = traces(o->trace, "stacks", &ok);
    l->capture.trace_io = traces(o->trace, "io", &ok);
    if (o->steps.text) {
        l->first_step = o->steps.first ? o->steps.first : 1;
        l->last_step = o->steps.end == UINT64_MAX ? 0 : o->steps.end - 1; /* 0: open */
    }
}

static int profile(const struct run_options *o, int argc, char **argv)
{
    struct launch_options launch_options;
    struct launch launch;
    struct status_line status;
    const struct launch_watcher watcher = { status_line_tick, status_line_hide,
                                            &status };
    set_launch_options(&launch_options, o, argc, argv);
    if (!o->quiet && !o->no_status && status_line_init(&status, STDERR_FILENO))
        launch_options.watcher = &watcher;
    int rc = launch_prepare(&launch, &launch_options);
    if (rc == -ENOTEMPTY)
        return options_fail(&command, "the output directory '%s' is not empty",
                            o->output);
    if (rc < 0)
        return run_unprofiled(o, rc, argv);

    bool no_exec;
    rc = launch_start(&launch, &no_exec);
    if (rc < 0) {
        launch_abandon(&launch);
        return no_exec ? say_not_executed(argv[0], rc) : run_unprofiled(o, rc, argv);
    }
    launch_follow(&launch);
    if (launch_options.watcher)
        status_line_release(&status);
    program_status = launch.child.status;
    rc = launch_finish(&launch);
    if (rc < 0 && !o->quiet)
        cli_error("cannot write run.json in '%s': %s (sonde recover @last)",
                  launch.dir.path, error_text(rc));
    allow_interrupts();
    report_and_keep(o, launch.dir.path);
    launch_release(&launch);
    return end_like_program();
}

int cmd_run(int argc, char **argv)
{
    struct run_options o = { .level = LEVEL_DETAILED, .rate_hz = RATE_DEFAULT };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        (!options_disabled() && !check_options(&o, argc, &status)))
        return status;
    if (argc < 2)
        return options_fail(&command, "no command given: sonde run -- COMMAND");
    if (options_disabled() || rundir_inside_run())
        return become(argv + 1);
    return profile(&o, argc - 1, argv + 1);
}
