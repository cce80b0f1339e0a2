/* cmd_attach.c: `sonde attach PID`: watch a program that already runs, then report. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/rules.h"
#include "launch/attach.h"
#include "present/report/report.h"
#include "store/list.h"

struct attach_options {
    const char *output, *name;
    uint64_t duration_ns, max_trace;
    bool quiet, full, json, no_redact;
};

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
        .capture = { .no_preload = true },
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
    struct attach_options o = { 0 };
    struct attach_target target;
    uint64_t pid;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc != 2)
        return options_fail(&command, "give the number of one process");
    if (parse_uint(argv[1], &pid) < 0 || pid == 0 || pid > INT32_MAX)
        return options_fail(&command, "'%s' is no process number", argv[1]);
    int rc = attach_target_find((pid_t)pid, &target);
    if (rc < 0)
        return say_no_target(argv[1], rc);
    if (!o.quiet)
        say_what_is_missing(&target);
    status = watch(&o, &target);
    attach_target_release(&target);
    return status;
}
