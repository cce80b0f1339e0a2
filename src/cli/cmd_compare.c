/* cmd_compare.c: `sonde compare`: several runs side by side. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "analyse/compare.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "present/report/compare.h"

enum compare_format { COMPARE_TEXT, COMPARE_JSON, COMPARE_CSV };

struct compare_options {
    const char *output, *metric;
    int format;
    bool json, full, no_color;
    uint64_t width;
};

static const char *const formats[] = {
    [COMPARE_TEXT] = "text", [COMPARE_JSON] = "json", [COMPARE_CSV] = "csv", NULL
};

#define FIELD(name) offsetof(struct compare_options, name)

static const struct option options[] = {
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "text, json or csv", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE" },
    { "metric", 0, OPTION_TEXT, FIELD(metric), .value = "NAME",
      .help = "also NAME per second of the run (default: accuracy, if recorded)" },
    { "full", 0, OPTION_FLAG, FIELD(full), .help = "all rows, not just one screen" },
    { "width", 0, OPTION_COUNT, FIELD(width), .value = "N",
      .help = "columns, 60 to 200 (default: the terminal's)" },
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

struct compared {
    struct run *runs[COMPARE_RUNS];
    struct report *reports[COMPARE_RUNS];
    size_t count;
};

static void compared_release(struct compared *c)
{
    for (size_t i = 0; i < c->count; i++) {
        report_free(c->reports[i]);
        run_free(c->runs[i]);
    }
}

static bool open_one(struct compared *c, const char *ref)
{
    struct run *run;
    if (!cli_run_open(ref, &run))
        return false;
    const size_t at = c->count++;
    c->runs[at] = run;
    c->reports[at] = NULL;
    const int rc = report_build(run, &c->reports[at]);
    if (rc < 0)
        cli_error("cannot analyse the run '%s': %s", run->dir, error_text(rc));
    return rc == 0;
}

static bool open_all(struct compared *c, int argc, char **argv)
{
    if (argc == 1)
        return open_one(c, "@1") && open_one(c, "@0");
    for (int i = 1; i < argc; i++)
        if (!open_one(c, argv[i]))
            return false;
    return true;
}

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

static int compare_and_print(const struct compared *c, const struct compare_options *o)
{
    struct comparison *comparison;
    struct output out;
    int rc = compare_runs((const struct report *const *)c->reports, c->count, o->metric,
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
    struct compare_options o = { 0 };
    struct compared c = { .count = 0 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc == 2)
        return options_fail(&command, "one run alone cannot be compared: name another");
    if (argc > COMPARE_RUNS + 1)
        return options_fail(&command, "at most %d runs at a time", COMPARE_RUNS);
    status = open_all(&c, argc, argv) ? compare_and_print(&c, &o) : CLI_FAILED;
    compared_release(&c);
    return status;
}
