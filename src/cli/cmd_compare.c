/* cmd_compare.c: `sonde compare`: several runs side by side. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "analyse/compare.h"
#include "analyse/trials.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report_html.h"
#include "cli/runs.h"
#include "present/report/compare.h"
#include "store/list.h"

enum compare_format { COMPARE_TEXT, COMPARE_JSON, COMPARE_CSV, COMPARE_HTML };

struct compare_options {
    const char *output, *metric;
    int format;
    bool json, full, no_color, unredacted;
    uint64_t width;
};

static const char *const formats[] = { [COMPARE_TEXT] = "text",
                                       [COMPARE_JSON] = "json",
                                       [COMPARE_CSV] = "csv",
                                       [COMPARE_HTML] = "html",
                                       NULL };

#define FIELD(name) offsetof(struct compare_options, name)

static const struct option options[] = {
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "text, json, csv or html", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE" },
    { "metric", 0, OPTION_TEXT, FIELD(metric), .value = "NAME",
      .help = "also NAME per second of the run (default: accuracy, if recorded)" },
    { "full", 0, OPTION_FLAG, FIELD(full), .help = "all rows, not just one screen" },
    { "width", 0, OPTION_COUNT, FIELD(width), .value = "N",
      .help = "columns, 60 to 200 (default: the terminal's)" },
    { "unredacted", 0, OPTION_FLAG, FIELD(unredacted),
      .help = "html: with home folders, names of people and machines, and what looks "
              "like a secret" },
    { "no-color", 0, OPTION_FLAG, FIELD(no_color), .help = "no colour on a terminal" },
};

static const struct command command = {
    .verb = "compare",
    .usage = "[options] [RUN RUN…]",
    .summary = "what differs between runs, and what that did",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "The first RUN is what the others are measured against; without any, @1 and\n"
        "@0. On different hardware there is no verdict on speed. Two runs show what\n"
        "happened, not what would happen again: sonde check proves it.\n",
};

_Static_assert((int)COMPARE_RUNS <= (int)CLI_RUNS_MOST, "all of them are opened");

static int print(const struct comparison *comparison, const struct compare_options *o,
                 FILE *out)
{
    struct report_style style = { .full = o->full };
    if (o->json || o->format == COMPARE_JSON)
        return compare_json(comparison, out);
    if (o->format == COMPARE_CSV)
        return compare_csv(comparison, out);
    report_style_detect(&style, STDOUT_FILENO);
    if (o->output) {
        style.width = 0; /* the file outlives this terminal */
        style.color = false;
    }
    if (o->width)
        style.width = o->width < 10000 ? (int)o->width : 10000;
    if (o->no_color)
        style.color = false;
    return compare_text(comparison, &style, out);
}

static int compare_and_print(const struct cli_runs *c, const struct compare_options *o)
{
    struct comparison *comparison;
    struct output out;
    int rc = c->count == 2
                 ? trial_between(c->reports[0], c->reports[1], store_directory())
                 : 0;
    if (rc == 0)
        rc = compare_runs((const struct report *const *)c->reports, c->count, o->metric,
                          &comparison);
    if (rc < 0) {
        cli_error("cannot compare the runs: %s", error_text(rc));
        return CLI_FAILED;
    }
    int status = CLI_FAILED;
    if (output_open(&out, o->output)) {
        rc = print(comparison, o, out.file);
        status = output_close(&out, rc, "the comparison") ? CLI_GOOD : CLI_FAILED;
    }
    comparison_free(comparison);
    return status;
}

int cmd_compare(int argc, char **argv)
{
    static char before[] = "@1", last[] = "@0";
    struct compare_options o = { 0 };
    struct cli_runs c = { .count = 0 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc == 2)
        return options_fail(&command, "one run alone cannot be compared: name another");
    if (argc > COMPARE_RUNS + 1)
        return options_fail(&command, "at most %d runs at a time", COMPARE_RUNS);
    char *two[] = { argv[0], before, last, NULL };
    char **named = argc == 1 ? two : argv;
    const int count = argc == 1 ? 3 : argc;
    if (o.format == COMPARE_HTML && !o.json)
        return report_html(&command, count, named, o.output, !o.unredacted);
    status = cli_runs_add_all(&c, count, named) ? compare_and_print(&c, &o)
                                                : CLI_FAILED;
    cli_runs_release(&c);
    return status;
}
