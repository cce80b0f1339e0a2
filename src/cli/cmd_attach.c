/* cmd_attach.c: `sonde attach PID`: watch a program that already runs, then report. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/rules.h"
#include "launch/attach.h"
#include "launch/companion.h"
#include "present/report/report.h"
#include "store/list.h"

struct attach_options {
    const char *output, *name;
    const char *session, *monitors;
    uint64_t duration_ns, max_trace, interval_ns, rate_hz;
    bool quiet, full, json, no_redact;
};

/* --rate was not given. */
#define RATE_DEFAULT UINT64_MAX
static const uint64_t RATE_MOST = 10000;
static const uint64_t MIN_INTERVAL_NS = 10000000, MAX_INTERVAL_NS = 3600000000000;

#define FIELD(name) offsetof(struct attach_options, name)

static const struct option options[] = {
    { "duration", 0, OPTION_SECONDS, FIELD(duration_ns), .value = "DURATION",
      .help = "watch for this long (default: until it ends, or Ctrl-C)",
      .env = "SONDE_DURATION" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "DIR",
      .help = "put the run into DIR, which must be new or empty" },
    { "name", 0, OPTION_TEXT, FIELD(name), .value = "NAME", .help = "name of the run",
      .env = "SONDE_NAME" },
    { "max-trace", 0, OPTION_SIZE, FIELD(max_trace), .value = "SIZE",
      .help = "most disk space the run may take (default 1GiB)",
      .env = "SONDE_MAX_TRACE" },
    { "interval", 0, OPTION_SECONDS, FIELD(interval_ns), .value = "DURATION",
      .help = "time between readings of the monitors, 10ms to 1h (default 1s)",
      .env = "SONDE_INTERVAL" },
    { "monitors", 0, OPTION_TEXT, FIELD(monitors), .value = "LIST",
      .help = "only these (comma between), or none: cpu, mem, disk, cgroup, pressure, "
              "net, temp, power, nvml, nvml_energy" },
    { "rate", 0, OPTION_COUNT, FIELD(rate_hz), .value = "HZ",
      .help = "looks at Python stacks per second, 0 for none (default 100)",
      .env = "SONDE_RATE" },
    { "session", 0, OPTION_TEXT, FIELD(session), .value = "DIR",
      .help = "for sonde.session: watch in the background, into its run DIR, until "
              "standard input ends" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "print nothing",
      .env = "SONDE_QUIET" },
    { "full", 0, OPTION_FLAG, FIELD(full), .help = "the long report" },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the report as JSON" },
    { "no-redact", 0, OPTION_FLAG, FIELD(no_redact),
      .help = "keep what looks like a secret in the command line",
      .env = "SONDE_NO_REDACT" },
};

static const struct command command = {
    .verb = "attach",
    .usage = "[options] PID",
    .summary = "watch a program that already runs, then report",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "Nothing is put into the program, and it is not stopped: what can be seen\n"
            "from outside is captured (CPU, memory, disk, network, GPU, stacks of it\n"
            "and its children), zones and allocations are not. Ctrl-C ends watching,\n"
            "not the program.\n",
};

static int say_no_target(const char *word, int rc)
{
    if (rc == -ESRCH)
        cli_error("there is no process %s (ps -e lists them)", word);
    else if (rc == -EACCES)
        cli_error("process %s may not be looked at: it belongs to somebody else "
                  "(try sudo sonde attach %s)",
                  word, word);
    else if (rc == -EINVAL)
        cli_error("process %s has no command line: it is part of the kernel, a zombie, "
                  "or this very command",
                  word);
    else
        cli_error("cannot attach to process %s: %s", word, error_text(rc));
    return CLI_FAILED;
}

static void say_what_is_missing(const struct attach_target *target)
{
    if (target->run)
        cli_error("process %d is recorded already, with its phases: "
                  "sonde report %s",
                  (int)target->pid, target->run);
}

static int print_report(const struct attach_options *o, const char *dir)
{
    struct report_style style = { .format = o->json ? REPORT_JSON : REPORT_TEXT,
                                  .full = o->full,
                                  .ref = o->output };
    report_style_detect(&style, STDOUT_FILENO);
    struct thresholds thresholds;
    if (cli_thresholds(NULL, &thresholds))
        style.thresholds = &thresholds;
    const int rc = report_run_to_stream(dir, &style, stdout);
    if (rc < 0)
        cli_error("cannot report on the run: %s (it is in '%s')", error_text(rc), dir);
    return rc < 0 || fflush(stdout) != 0 ? CLI_FAILED : CLI_GOOD;
}

static struct capture_options captures_of(const struct attach_options *o)
{
    return (struct capture_options){
        .no_preload = true,
        .no_stacks = o->rate_hz == 0,
        .rate_hz = o->rate_hz == RATE_DEFAULT ? 0 : (unsigned)o->rate_hz,
        .interval_ns = o->interval_ns,
        .no_monitors = o->monitors && strcmp(o->monitors, "none") == 0,
        .monitors = o->monitors,
    };
}

/* Beside a session of the process: into its run, not a run of our own. */
static int accompany(const struct attach_options *o, pid_t pid, const char *word)
{
    struct companion_options companion = { .dir = o->session,
                                           .pid = pid,
                                           .capture = captures_of(o) };
    companion.capture.no_native = true; /* threads that run already are not sampled */
    const int rc = companion_run(&companion);
    if (rc == -ESRCH)
        return say_no_target(word, rc);
    if (rc < 0)
        cli_error("cannot watch beside the session in '%s': %s", o->session,
                  error_text(rc));
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

static int watch(const struct attach_options *o, const struct attach_target *target)
{
    const struct launch_options launch_options = {
        .argv = target->argv,
        .argc = target->argc,
        .sonde_dir = store_directory(),
        .output = o->output,
        .name = o->name,
        .level = SONDE_DETAILED,
        .max_trace = o->max_trace,
        .duration_ns = o->duration_ns,
        .redact = !o->no_redact,
        .attached = true,
        .capture = captures_of(o),
    };
    struct launch launch;
    int rc = launch_prepare(&launch, &launch_options);
    if (rc == -ENOTEMPTY)
        return options_fail(&command, "the output directory '%s' is not empty",
                            o->output);
    if (rc < 0) {
        cli_error("no run directory in '%s': %s (try -o DIR or SONDE_DIR)",
                  o->output ? o->output : store_directory(), error_text(rc));
        return CLI_FAILED;
    }
    attach_follow(&launch, target, o->duration_ns);
    rc = launch_finish(&launch);
    if (rc < 0)
        cli_error("cannot write run.json in '%s': %s", launch.dir.path, error_text(rc));
    signals_give_back(&launch.signals);
    const int status = o->quiet ? rc < 0 ? CLI_FAILED : CLI_GOOD
                                : print_report(o, launch.dir.path);
    launch_release(&launch);
    return status;
}

int cmd_attach(int argc, char **argv)
{
    struct attach_options o = { .rate_hz = RATE_DEFAULT };
    struct attach_target target;
    uint64_t pid;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc != 2)
        return options_fail(&command, "give the number of one process");
    if (parse_uint(argv[1], &pid) < 0 || pid == 0 || pid > INT32_MAX)
        return options_fail(&command, "'%s' is no process number", argv[1]);
    if (o.interval_ns &&
        (o.interval_ns < MIN_INTERVAL_NS || o.interval_ns > MAX_INTERVAL_NS))
        return options_fail(&command, "--interval wants 10ms to 1h");
    if (o.rate_hz != RATE_DEFAULT && o.rate_hz > RATE_MOST)
        return options_fail(&command, "--rate wants at most 10000");
    if (o.monitors && strcmp(o.monitors, "none") != 0 &&
        !capture_monitors_exist(o.monitors))
        return options_fail(&command, "--monitors: not all of '%s' exist", o.monitors);
    if (o.session)
        return accompany(&o, (pid_t)pid, argv[1]);
    int rc = attach_target_find((pid_t)pid, &target);
    if (rc < 0)
        return say_no_target(argv[1], rc);
    if (!o.quiet)
        say_what_is_missing(&target);
    status = watch(&o, &target);
    attach_target_release(&target);
    return status;
}
