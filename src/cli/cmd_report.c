/* cmd_report.c: `sonde report`: what is known about a run, for people and programs. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "analyse/trials.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report_html.h"
#include "cli/report_measure.h"
#include "cli/rules.h"
#include "cli/runs.h"
#include "present/report/report.h"
#include "store/list.h"

struct report_options {
    const char *output, *rules;
    struct option_list what_if;
    int fail_on; /* index in `severities`; 0: never */
    int format;  /* enum report_format */
    bool json, full, no_color, unredacted, measure;
    uint64_t min_time_ns, depth, width, steps, budget_ns;
};

static const char *const formats[] = {
    [REPORT_TEXT] = "text", [REPORT_JSON] = "json",         [REPORT_CSV] = "csv",
    [REPORT_HTML] = "html", [REPORT_MARKDOWN] = "markdown", NULL
};

static const char *const severities[] = { "never", "low",      "medium",
                                          "high",  "critical", NULL };

#define FIELD(name) offsetof(struct report_options, name)

static const struct option options[] = {
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "text, json, csv (the operations), markdown, or html (one page with "
              "everything)",
      .env = "SONDE_FORMAT", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE" },
    { "full", 0, OPTION_FLAG, FIELD(full), .help = "everything, not just one screen" },
    { "rules", 0, OPTION_TEXT, FIELD(rules), .value = "SET",
      .help = "judge by the set default or reference", .env = "SONDE_RULES" },
    { "what-if", 0, OPTION_TEXTS, FIELD(what_if), .value = "SETTINGS",
      .help = "predict the time with other settings of the loader: workers=N, "
              "prefetch=N, transform=TIMES, collate=TIMES (as fast), data=free; with "
              "evaluation=TIMES, checkpoint=TIMES, logging=TIMES, gc=TIMES, "
              "exchange=TIMES (so many times more seldom), optimizer=TIMES (its step "
              "as fast), batch=TIMES "
              "(as large); threads=N (of each process); commas between" },
    { "measure", 0, OPTION_FLAG, FIELD(measure),
      .help =
          "measure it: run the program again for some steps with the illness's work "
          "left out (of each --what-if, or else the first finding's cure); what "
          "the program does besides training happens again" },
    { "steps", 0, OPTION_COUNT, FIELD(steps), .value = "N",
      .help = "--measure: steps to measure (default 60, and 2 s of them; after 10 of "
              "warm-up)" },
    { "budget", 0, OPTION_SECONDS, FIELD(budget_ns), .value = "DURATION",
      .help = "--measure: most time for one cure, which is tried up to three times "
              "(default 120 s)" },
    { "fail-on", 0, OPTION_CHOICE, FIELD(fail_on), .value = "SEVERITY",
      .help = "exit 1 with a finding of at least low, medium, high or critical",
      .choices = severities },
    { "min-time", 0, OPTION_DURATION, FIELD(min_time_ns), .value = "DURATION",
      .help = "sum up operations that took less" },
    { "depth", 0, OPTION_COUNT, FIELD(depth), .value = "N",
      .help = "sum up operations nested deeper than N" },
    { "width", 0, OPTION_COUNT, FIELD(width), .value = "N",
      .help = "columns, 60 to 200 (default: the terminal's)" },
    { "unredacted", 0, OPTION_FLAG, FIELD(unredacted),
      .help = "html: with home folders, names of people and machines, and what looks "
              "like a secret" },
    { "no-color", 0, OPTION_FLAG, FIELD(no_color), .help = "no colour on a terminal" },
};

static const struct command command = {
    .verb = "report",
    .usage = "[options] [RUN…]",
    .summary = "where the time of a run went",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "RUN defaults to @last. The JSON follows schema sonde.report/1.\n"
        "Several runs make one page that compares them:\n"
        "  sonde report @1 @0 --format html -o both.html\n"
        "--measure starts the run's command again in its folder. Its checkpoints and\n"
        "temporary files go to a folder that is removed afterwards; other files it\n"
        "writes are listed. The result is kept with the run.\n",
};

static void make_style(const struct report_options *o, const char *ref,
                       struct report_style *ret_style)
{
    struct report_style style = {
        .format = o->json ? REPORT_JSON : (enum report_format)o->format,
        .full = o->full,
        .min_time_ns = o->min_time_ns,
        .depth = o->depth > UINT32_MAX ? 0 : (unsigned)o->depth,
        .ref = ref,
    };
    report_style_detect(&style, STDOUT_FILENO);
    if (o->output) {
        style.width = 0; /* the file outlives this terminal */
        style.color = false;
    }
    if (o->width)
        style.width = o->width < 10000 ? (int)o->width : 10000;
    if (o->no_color)
        style.color = false;
    *ret_style = style;
}

static bool ask_what_if(const struct report_options *o, struct report *report)
{
    char error[WHATIF_ERROR_LEN];
    for (size_t i = 0; i < o->what_if.count; i++) {
        const int rc = report_what_if(report, o->what_if.items[i], error);
        if (rc == 0)
            continue;
        cli_error("cannot predict %s: %s", o->what_if.items[i],
                  rc == SONDE_E_NOTFOUND ? "no DataLoader of this run was recorded "
                                           "(run it with sonde run -- python …)"
                  : rc == -EINVAL        ? error
                                         : error_text(rc));
        return false;
    }
    return true;
}

/* Whether a finding is as bad as the caller fears. */
static bool is_failure(const struct report_options *o, const struct report *report)
{
    for (size_t i = 0; i < report->diagnosis.finding_count; i++)
        if (o->fail_on > 0 &&
            (int)report->diagnosis.findings[i].severity >= o->fail_on - 1)
            return true;
    return false;
}

int cmd_report(int argc, char **argv)
{
    struct report_options o = { 0 };
    struct report_style style;
    struct run *run = NULL;
    struct report *report = NULL;
    const char *ref;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (o.format == REPORT_HTML && !o.json)
        return report_html(&command, argc, argv, o.output, !o.unredacted);
    if (!cli_run_argument(&command, argc, argv, &ref, &status))
        return status;
    struct thresholds thresholds;
    if (!cli_thresholds(o.rules, &thresholds) || !cli_run_open(ref, &run))
        return CLI_FAILED;
    make_style(&o, ref, &style);

    status = CLI_FAILED;
    struct output out;
    int rc = cli_report_build(run, &report);
    if (rc == 0)
        rc = report_diagnose(report, &thresholds);
    if (rc == 0) {
        rc = trial_enter(report, store_directory());
        trials_recall(report, store_directory());
    }
    if (rc == 0 && !ask_what_if(&o, report)) {
        report_free(report);
        run_free(run);
        return CLI_FAILED;
    }
    if (rc == 0) {
        const struct measure_options measure = { o.measure, o.steps,
                                                 (double)o.budget_ns / 1e9 };
        report_measure(report, &measure, &thresholds);
    }
    if (rc < 0) {
        cli_error("cannot analyse the run '%s': %s", run->dir, error_text(rc));
    } else if (output_open(&out, o.output)) {
        rc = report_print(report, &style, out.file);
        status = output_close(&out, rc, "the report") ? CLI_GOOD : CLI_FAILED;
        if (status == CLI_GOOD && is_failure(&o, report))
            status = CLI_NO;
    }
    report_free(report);
    run_free(run);
    return status;
}
