/* cmd_export.c: `sonde export`: a run in another tool's format.
 *
 * Formats are the exporters of present/export and, for convenience, the two forms of
 * the report that other programs read.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/human.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "present/export/export.h"
#include "present/report/report.h"

struct export_options {
    const char *format, *output;
    bool list, quiet;
};

#define FIELD(name) offsetof(struct export_options, name)

static const struct option options[] = {
    { "format", 'f', OPTION_TEXT, FIELD(format), .value = "FORMAT",
      .help = "what to write; --list names them (default chrome)" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE (default: the standard output)" },
    { "list", 0, OPTION_FLAG, FIELD(list), .help = "name the formats" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "do not say what was written",
      .env = "SONDE_QUIET" },
};

static const struct command command = {
    .verb = "export",
    .usage = "[options] [RUN]",
    .summary = "a run's timeline for other tools",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "RUN defaults to @last. To look at a timeline:\n"
        "  sonde export --format chrome -o trace.json    then open it in\n"
        "  https://ui.perfetto.dev (it stays in your browser) or chrome://tracing\n",
};

/* Forms of the report under the names of exporters. */
static const struct {
    const char *name;
    enum report_format format;
    const char *help;
} report_formats[] = {
    { "json", REPORT_JSON, "the report (sonde.report/1)" },
    { "csv", REPORT_CSV, "the report's operations" },
};
enum { REPORT_FORMATS = sizeof report_formats / sizeof *report_formats };

static int list_formats(void)
{
    for (size_t i = 0; i < exporter_count; i++)
        printf("%-8s  %s\n", exporters[i].name, exporters[i].help);
    for (size_t i = 0; i < REPORT_FORMATS; i++)
        printf("%-8s  %s\n", report_formats[i].name, report_formats[i].help);
    return CLI_GOOD;
}

static int unknown_format(const char *name)
{
    struct buf names = BUF_INIT;
    for (size_t i = 0; i < exporter_count; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", exporters[i].name);
    for (size_t i = 0; i < REPORT_FORMATS; i++)
        buf_printf(&names, ", %s", report_formats[i].name);
    const int status = options_fail(&command, "--format wants one of %s, got '%s'",
                                    names.data, name);
    buf_release(&names);
    return status;
}

static void say_what_was_written(const struct export_totals *t, const char *path)
{
    char zones[HUMAN_LEN], left[HUMAN_LEN];
    if (t->samples)
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
    if (t->unreadable)
        cli_error("%u trace%s could not be read", t->unreadable,
                  t->unreadable == 1 ? "" : "s");
}

static int write_timeline(const struct exporter *exporter, const struct run *run,
                          const struct export_options *o)
{
    static char buffer[1 << 18];
    struct export_totals totals = { 0 };
    struct output out;
    if (!output_open(&out, o->output))
        return CLI_FAILED;
    (void)setvbuf(out.file, buffer, _IOFBF, sizeof buffer);
    const int rc = exporter->write(run, out.file, &totals);
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
    int rc = report_build(run, &report);
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
    if (!o.output && exporter && isatty(STDOUT_FILENO))
        return options_fail(&command,
                            "a timeline is long: give -o FILE, or -o - to see "
                            "it here");
    if (!cli_run_open(ref, &run))
        return CLI_FAILED;
    status = exporter ? write_timeline(exporter, run, &o)
                      : write_report(report_formats[form].format, run, &o);
    run_free(run);
    return status;
}
