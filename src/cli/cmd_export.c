/* cmd_export.c: `sonde export`: a run in another tool's format.
 *
 * Formats are the exporters of present/export and, for convenience, the two forms of
 * the report that other programs read.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/human.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/runs.h"
#include "present/export/export.h"
#include "present/report/report.h"

struct export_options {
    const char *format, *output, *what;
    bool list, quiet, unredacted;
};

#define FIELD(name) offsetof(struct export_options, name)

static const struct option options[] = {
    { "format", 'f', OPTION_TEXT, FIELD(format), .value = "FORMAT",
      .help = "what to write; --list names them (default chrome)" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE (default: the standard output)" },
    { "what", 'w', OPTION_TEXT, FIELD(what), .value = "WHAT",
      .help = "which part, where a format fits several: zones, stacks, python, "
              "merged, allocations, monitors, alloc-events, io-events" },
    { "unredacted", 0, OPTION_FLAG, FIELD(unredacted),
      .help = "leave names of users, homes and hosts and secrets in a bundle" },
    { "list", 0, OPTION_FLAG, FIELD(list),
      .help = "name the formats and what each can hold" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "do not say what was written",
      .env = "SONDE_QUIET" },
};

static const struct command command = {
    .verb = "export",
    .usage = "[options] [RUN]",
    .summary = "a run's timeline for other tools",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "RUN defaults to @last. To look at a timeline:\n"
            "  sonde export --format chrome -o trace.json    then open it in\n"
            "  https://ui.perfetto.dev (it stays in your browser) or chrome://tracing\n"
            "To hand a run to somebody else:\n"
            "  sonde export --format bundle -o run.tgz       sonde report run.tgz\n",
};

/* Forms of the report under the names of exporters. */
static const struct {
    const char *name;
    enum report_format format;
    const char *help;
} report_formats[] = {
    { "json", REPORT_JSON, "the report (sonde.report/1)" },
    { "csv", REPORT_CSV, "the report's operations" },
    { "markdown", REPORT_MARKDOWN, "the report, for pull requests and wikis" },
};
enum { REPORT_FORMATS = sizeof report_formats / sizeof *report_formats };

static bool holds(const struct exporter *e, int what)
{
    return e->whats >> what & 1;
}

static void list_whats(const struct exporter *e)
{
    const char *between = "";
    if (!e->whats)
        return;
    printf("%12s--what ", "");
    for (int i = 0; i < EXPORT_WHATS; i++)
        if (holds(e, i)) {
            printf("%s%s", between, export_what_names[i]);
            between = ", ";
        }
    putchar('\n');
}

static int list_formats(void)
{
    for (size_t i = 0; i < exporter_count; i++) {
        printf("%-10s  %s\n", exporters[i].name, exporters[i].help);
        list_whats(&exporters[i]);
    }
    for (size_t i = 0; i < REPORT_FORMATS; i++)
        if (!exporter_find(report_formats[i].name))
            printf("%-10s  %s\n", report_formats[i].name, report_formats[i].help);
    return CLI_GOOD;
}

static int unknown_format(const char *name)
{
    struct buf names = BUF_INIT;
    for (size_t i = 0; i < exporter_count; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", exporters[i].name);
    for (size_t i = 0; i < REPORT_FORMATS; i++)
        if (!exporter_find(report_formats[i].name))
            buf_printf(&names, ", %s", report_formats[i].name);
    const int status = options_fail(&command, "--format wants one of %s, got '%s'",
                                    names.data, name);
    buf_release(&names);
    return status;
}

/* The part asked for; EXPORT_WHATS: said what was wrong. */
static enum export_what find_what(const struct exporter *e, const char *name)
{
    struct buf names = BUF_INIT;
    int what = e->usual;
    if (name) {
        what = 0;
        while (what < EXPORT_WHATS &&
               (!holds(e, what) || strcmp(export_what_names[what], name) != 0))
            what++;
    }
    for (int i = 0; what == EXPORT_WHATS && i < EXPORT_WHATS; i++)
        if (holds(e, i))
            buf_printf(&names, "%s%s", names.len ? ", " : "", export_what_names[i]);
    if (what == EXPORT_WHATS && names.len)
        (void)options_fail(&command, "--what wants one of %s for %s, got '%s'",
                           names.data, e->name, name);
    else if (what == EXPORT_WHATS)
        (void)options_fail(&command, "%s holds everything it can: leave --what out",
                           e->name);
    buf_release(&names);
    return (enum export_what)what;
}

static const char *missing_words(enum export_what what)
{
    switch (what) {
    case EXPORT_ALLOC_EVENTS:
        return "no single allocation was recorded (sonde run --trace alloc does)";
    case EXPORT_IO_EVENTS:
        return "no single I/O call was recorded (sonde run --trace io does)";
    case EXPORT_MONITORS:
        return "no monitor ran";
    case EXPORT_STACKS:
        return "no native stacks were sampled (sonde doctor tells why)";
    case EXPORT_PYTHON:
        return "no Python stacks were sampled: no Python process, or one that could not "
               "be looked into";
    case EXPORT_MERGED:
        return "native stacks were not merged with those of Python (sonde run "
               "--merge-stacks does)";
    case EXPORT_ALLOCATIONS:
        return "no call sites of allocations were sampled";
    case EXPORT_ZONES:
        return "no zones were recorded (sampled stacks are another part: --what python "
               "or --what stacks, where the format holds them)";
    default:
        return "it holds nothing of the kind";
    }
}

static void say_what_was_written(const struct export_totals *t, const char *path)
{
    char zones[HUMAN_LEN], left[HUMAN_LEN];
    if (t->files)
        cli_error("%s files of the run in '%s'", human_count(zones, t->files), path);
    else if (t->rows && !t->zones)
        cli_error("%s rows in '%s'", human_count(zones, t->rows), path);
    else if (t->samples)
        cli_error("%s samples of stacks in '%s'", human_count(zones, t->samples), path);
    else
        cli_error("%s zones of %u trace%s in '%s'", human_count(zones, t->zones),
                  t->traces, t->traces == 1 ? "" : "s", path);
    if (t->incomplete)
        cli_error(
            "older events of %u trace%s were recycled (--max-trace): the report's "
            "statistics still count them",
            t->incomplete, t->incomplete == 1 ? "" : "s");
    if (t->left_out)
        cli_error("%s events had no counterpart and were left out",
                  human_count(left, t->left_out));
    if (t->lost)
        cli_error("%s events had found no room while they were recorded",
                  human_count(left, t->lost));
    if (t->unreadable)
        cli_error("%u file%s could not be read and %s left out", t->unreadable,
                  t->unreadable == 1 ? "" : "s", t->unreadable == 1 ? "was" : "were");
}

/* ---- Writing ---------------------------------------------------------------------------- */

static int write_timeline(const struct exporter *exporter, enum export_what what,
                          const struct run *run, const struct export_options *o)
{
    static char buffer[1 << 18];
    struct export_totals totals = { 0 };
    struct progress progress;
    struct output out;
    if (!output_open(&out, o->output))
        return CLI_FAILED;
    (void)setvbuf(out.file, buffer, _IOFBF, sizeof buffer);
    progress_begin(&progress, "exporting", o->quiet || !out.path);
    const struct export_job job = {
        .run = run,
        .out = out.file,
        .what = what,
        .unredacted = o->unredacted,
        .progress = progress_share,
        .progress_arg = &progress,
    };
    const int rc = exporter->write(&job, &totals);
    progress_end(&progress);
    if (rc == SONDE_E_BUSY || rc == SONDE_E_UNSUPPORTED) {
        cli_error("cannot export '%s' as %s: %s", run->dir, exporter->name,
                  rc == SONDE_E_BUSY
                      ? "it goes on (wait for its end)"
                      : "give the run's directory, not one of its traces");
        output_cancel(&out);
        return CLI_FAILED;
    }
    if (rc == SONDE_E_NOTFOUND) {
        cli_error("cannot export %s of '%s': %s", export_what_names[what], run->dir,
                  missing_words(what));
        output_cancel(&out);
        return CLI_FAILED;
    }
    if (!output_close(&out, rc, "the export"))
        return CLI_FAILED;
    if (out.path && !o->quiet)
        say_what_was_written(&totals, out.path);
    return CLI_GOOD;
}

static int write_report(enum report_format format, const struct run *run,
                        const struct export_options *o)
{
    const struct report_style style = { .format = format };
    struct report *report = NULL;
    struct output out;
    int status = CLI_FAILED;
    int rc = cli_report_build(run, &report);
    if (rc < 0) {
        cli_error("cannot analyse the run '%s': %s", run->dir, error_text(rc));
    } else if (output_open(&out, o->output)) {
        rc = report_print(report, &style, out.file);
        status = output_close(&out, rc, "the export") ? CLI_GOOD : CLI_FAILED;
    }
    report_free(report);
    return status;
}

int cmd_export(int argc, char **argv)
{
    struct export_options o = { .format = "chrome" };
    struct run *run = NULL;
    const char *ref;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        !cli_run_argument(&command, argc, argv, &ref, &status))
        return status;
    if (o.list)
        return list_formats();
    const struct exporter *exporter = exporter_find(o.format);
    size_t form = 0;
    while (form < REPORT_FORMATS && strcmp(report_formats[form].name, o.format) != 0)
        form++;
    if (!exporter && form == REPORT_FORMATS)
        return unknown_format(o.format);
    if (form < REPORT_FORMATS && !o.what)
        exporter = NULL; /* the report under that name */
    else if (!exporter)
        return options_fail(&command, "%s is the whole report: leave --what out",
                            o.format);
    enum export_what what = exporter ? find_what(exporter, o.what) : EXPORT_ALL;
    if (what == EXPORT_WHATS)
        return CLI_FAILED;
    if (exporter && exporter->binary && isatty(STDOUT_FILENO) &&
        (!o.output || strcmp(o.output, "-") == 0))
        return options_fail(&command, "%s is not for a terminal: give -o FILE",
                            o.format);
    if (!o.output && exporter && isatty(STDOUT_FILENO))
        return options_fail(&command,
                            "a timeline is long: give -o FILE, or -o - to see "
                            "it here");
    if (!cli_run_open(ref, &run))
        return CLI_FAILED;
    if (exporter && !o.what)
        what = export_usual(exporter, run);
    status = exporter ? write_timeline(exporter, what, run, &o)
                      : write_report(report_formats[form].format, run, &o);
    run_free(run);
    return status;
}
