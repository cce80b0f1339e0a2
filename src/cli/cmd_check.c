/* cmd_check.c: `sonde check`: fails when a change made it slower, and only then.
 *
 * Its options, the order of things, and what is told in the end.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/files.h"
#include "base/moment.h"
#include "base/redact.h"
#include "cli/check.h"
#include "cli/cli.h"
#include "cli/gate_out.h"
#include "cli/leftovers.h"
#include "cli/measures.h"
#include "cli/output.h"

static const char *const inconclusives[] = { "3", "pass", "fail", NULL };
static const char *const formats[] = { [GATE_TEXT] = "text",
                                       [GATE_JSON] = "json",
                                       [GATE_JUNIT] = "junit",
                                       [GATE_MARKDOWN] = "markdown",
                                       NULL };

#define FIELD(name) offsetof(struct check_options, name)

static const struct option options[] = {
    { "baseline", 'b', OPTION_TEXT, FIELD(baseline), .value = "NAME|REF|FILE",
      .help = "what to compare with: a baseline's name, a commit, an exported file",
      .env = "SONDE_BASELINE" },
    { "threshold", 't', OPTION_TEXT, FIELD(threshold), .value = "PERCENT",
      .help = "how much worse is allowed (default 20%)", .env = "SONDE_THRESHOLD" },
    { "metric", 'm', OPTION_TEXTS, FIELD(metrics), .value = "NAME[=PERCENT][:more]",
      .help = "what to compare (default wall); may be repeated; :more when more is "
              "better" },
    { "build", 0, OPTION_TEXT, FIELD(build), .value = "COMMAND",
      .help = "run this in the tree of the commit first (sh -c)" },
    { "budget", 0, OPTION_SECONDS, FIELD(budget_ns), .value = "DURATION",
      .help = "stop measuring after this time (default 10m)" },
    { "runs", 'n', OPTION_COUNT, FIELD(runs), .value = "N",
      .help = "runs to compare with stored samples (default 20)" },
    { "warmup", 'w', OPTION_COUNT, FIELD(warmup), .value = "N",
      .help = "runs of each side that are not counted (default 1)" },
    { "inconclusive", 0, OPTION_CHOICE, FIELD(inconclusive), .value = "WHAT",
      .help = "exit status when it cannot tell: 3 (default), pass or fail",
      .choices = inconclusives },
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "text, json, junit or markdown", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write the result to FILE" },
    { "samples", 0, OPTION_TEXT, FIELD(samples), .value = "FILE",
      .help = "judge numbers that are there: {\"wall\": {\"baseline\": […], \"now\": "
              "[…]}}; - is the standard input" },
    { "show-output", 0, OPTION_FLAG, FIELD(show_output),
      .help = "let the command write to stdout" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "no progress line" },
};

static const struct command command = {
    .verb = "check",
    .usage = "[options] --baseline NAME|REF|FILE [--] COMMAND [ARGUMENT…]",
    .summary = "fail when a change made it slower, and only then",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "Exit status: 0 passed, 1 slower, 2 error, 3 cannot tell.\n\n"
        "  sonde check --baseline main --build make -- ./bench.sh\n"
        "  sonde baseline set good -- ./bench.sh; … ; sonde check -b good -- ./bench.sh\n"
        "  sonde check -b perf.json -m wall -m allocations=0% --format junit -o c.xml -- "
        "…\n\n"
        "Pairs are measured in turn and looked at after 8, 12 and 20. docs/gate.md has "
        "the\nstatistics and how often they err.\n",
    .stop_at_word = true,
};

/* ---- Setting up --------------------------------------------------------------------- */

static bool parse_percent(const char *text, double *ret_share)
{
    char *end;
    const double percent = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "%") != 0) || !(percent >= 0) ||
        percent > 10000)
        return false;
    *ret_share = percent / 100;
    return true;
}

static bool set_metrics(struct check *c)
{
    const struct option_list *names = &c->options->metrics;
    double threshold = 0.2;
    if (c->options->threshold && !parse_percent(c->options->threshold, &threshold)) {
        cli_error("--threshold wants a percentage, got '%s'", c->options->threshold);
        return false;
    }
    for (size_t i = 0; i < names->count; i++)
        if (!measuring_add(&c->measuring, names->items[i]))
            return false;
    if (names->count == 0 && !measuring_add(&c->measuring, "wall"))
        return false;
    for (size_t i = 0; i < c->measuring.count; i++) {
        const struct measured_metric *m = &c->measuring.metrics[i];
        c->metrics[i] = (struct gate_metric){
            .name = m->name,
            .baseline = c->base[i],
            .now = c->now[i],
            .paired = true,
            .more_is_better = m->more_is_better,
            .threshold = isnan(m->threshold) ? threshold : m->threshold,
        };
    }
    return true;
}

/* Whether times and memory were those of runs under the profiler. Baselines of earlier
 * versions do not say: those beside what only a profile tells were. */
static bool was_profiled(const struct baseline_doc *doc)
{
    struct measure found;
    if (doc->profiled || doc->run[0])
        return true;
    for (size_t i = 0; i < doc->metric_count; i++)
        if (measure_find(doc->metrics[i].name, &found) &&
            found.source == MEASURE_PROFILED)
            return true;
    return false;
}

/* A profile takes time and memory of its own: the runs now have it where the stored ones
 * had it, or else the profiler's cost would be taken for the change's. */
static void measure_as_then(struct measuring *m, const struct baseline_doc *doc)
{
    if (was_profiled(doc))
        m->profile |= m->plain;
    else
        m->apart = true;
}

static void use_stored(struct check *c)
{
    measure_as_then(&c->measuring, &c->doc);
    for (size_t i = 0; i < c->measuring.count; i++) {
        const struct baseline_metric *m = baseline_find(&c->doc, c->metrics[i].name);
        c->metrics[i].paired = false;
        c->metrics[i].baseline = m ? m->values : NULL;
        c->metrics[i].baseline_count = m ? m->count : 0;
    }
}

/* ---- The end ------------------------------------------------------------------------ */

static int exit_status(const struct check_options *o, enum gate_verdict verdict)
{
    if (verdict == GATE_INCONCLUSIVE)
        return o->inconclusive == 1   ? CLI_GOOD
               : o->inconclusive == 2 ? CLI_NO
                                      : CLI_INCONCLUSIVE;
    return verdict == GATE_PASS ? CLI_GOOD : CLI_NO;
}

static int report(struct check *c, bool paired)
{
    struct output out;
    const size_t runs = gate_pairs_runs(&c->runs);
    const struct gate_report g = {
        .command = c->line.data,
        .baseline = c->title.data,
        .weaker = c->weaker.len ? c->weaker.data : NULL,
        .paired = paired,
        .count = c->pairs,
        .runs = runs ? runs : c->pairs,
        .elapsed_s = (double)(moment_ns(CLOCK_MONOTONIC) - c->started_ns) / 1e9,
        .verdict = gate_together(c->results, c->measuring.count),
        .metrics = c->metrics,
        .results = c->results,
        .metric_count = c->measuring.count,
    };
    if (!output_open(&out, c->options->output))
        return CLI_FAILED;
    const int rc = gate_print(
        &g, c->options->json ? GATE_JSON : (enum gate_format)c->options->format,
        out.file);
    if (!output_close(&out, rc, "the result"))
        return CLI_FAILED;
    return exit_status(c->options, g.verdict);
}

static void put_line(struct check *c)
{
    char **shown;
    int count = 0;
    while (c->argv[count])
        count++;
    if (redact_args(count, c->argv, &c->arena, &shown) < 0)
        return;
    for (int i = 0; i < count; i++)
        buf_printf(&c->line, "%s%s", i ? " " : "", shown[i]);
}

static void note_leftovers(struct check *c)
{
    if (c->measuring.leaves_running)
        buf_printf(&c->weaker,
                   "%sthe command leaves processes running, beside the runs after it",
                   c->weaker.len ? "; " : "");
}

static int run_check(struct check *c)
{
    int status = CLI_FAILED;
    leftovers_adopt();
    signals_take(&c->measuring.signals);
    enum measured_end ended = MEASURED_FAILED;
    if (check_open_baseline(c)) {
        if (c->way == CHECK_STORED)
            use_stored(c);
        c->started_ns = moment_ns(CLOCK_MONOTONIC);
        c->deadline_ns = c->started_ns + c->options->budget_ns;
        c->measuring.deadline_ns = c->deadline_ns;
        ended = check_warm_up(c);
        c->late = ended == MEASURED_LATE;
        if (ended == MEASURED_GOOD || c->late)
            ended = check_measure(c);
        note_leftovers(c);
        check_clear_progress(c);
    } else if (c->git.ended_by) {
        c->measuring.ended_by = c->git.ended_by;
        ended = MEASURED_INTERRUPTED;
    }
    gitref_release(&c->git);
    signals_give_back(&c->measuring.signals);
    if (ended == MEASURED_INTERRUPTED) {
        cli_error("interrupted after %zu %s: nothing is decided", c->pairs,
                  c->way == CHECK_STORED ? "runs" : "pairs");
        signal_die_by(c->measuring.ended_by);
    }
    const int never = check_never_told(c);
    if (ended == MEASURED_GOOD && never >= 0)
        cli_error("%s was recorded in no run: %s", c->metrics[never].name,
                  measure_hint(c->metrics[never].name));
    else if (ended == MEASURED_GOOD)
        status = report(c, c->way != CHECK_STORED);
    return status;
}

/* ---- Numbers that are there already ------------------------------------------------- */

static int report_samples(struct check *c, const struct gate_samples *s)
{
    memcpy(c->metrics, s->metrics, sizeof c->metrics);
    c->measuring.count = s->count;
    c->pairs = s->metrics[s->count - 1].now_count;
    c->way = CHECK_STORED;
    c->started_ns = moment_ns(CLOCK_MONOTONIC);
    gate_judge(c->metrics, c->measuring.count, -1, c->results);
    buf_puts(&c->title, "given samples");
    return report(c, c->metrics[0].paired);
}

static int judge_samples(struct check *c)
{
    struct buf text = BUF_INIT;
    struct gate_samples *s = calloc(1, sizeof *s);
    const bool standard = strcmp(c->options->samples, "-") == 0;
    const int rc = s ? file_read_all(standard ? "/dev/stdin" : c->options->samples,
                                     CHECK_FILE_MOST, &text)
                     : -ENOMEM;
    int status = CLI_FAILED;
    if (rc < 0)
        cli_error("--samples: %s", error_text(rc));
    else if (!gate_samples_parse(text.data, text.len, &c->arena, s))
        cli_error("--samples: wants {\"NAME\": {\"baseline\": [numbers], \"now\": "
                  "[numbers], \"paired\": false, \"threshold\": 0.2}, …}");
    else
        status = report_samples(c, s);
    buf_release(&text);
    free(s);
    return status;
}

static bool check_options(const struct check_options *o, int argc, int *ret_status)
{
    *ret_status = 0;
    if (o->samples && argc > 1)
        *ret_status = options_fail(&command, "--samples runs no command");
    else if (!o->samples && !o->baseline)
        *ret_status = options_fail(&command, "what to compare with? --baseline NAME, "
                                             "commit or file");
    else if (!o->samples && argc < 2)
        *ret_status = options_fail(&command,
                                   "no command given: sonde check -b NAME -- COMMAND");
    else if (o->runs > GATE_SAMPLES_MOST || o->warmup > 1000)
        *ret_status = options_fail(&command, "--runs wants at most %d",
                                   GATE_SAMPLES_MOST);
    return *ret_status == 0;
}

int cmd_check(int argc, char **argv)
{
    struct check_options o = { .budget_ns = UINT64_C(600) * 1000000000, .warmup = 1 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        !check_options(&o, argc, &status))
        return status;
    struct check *c = calloc(1, sizeof *c);
    if (!c)
        return CLI_FAILED;
    c->options = &o;
    c->argv = argv + 1;
    c->measuring.show_output = o.show_output;
    buf_init(&c->title);
    buf_init(&c->weaker);
    buf_init(&c->line);
    buf_init(&c->git.place);
    buf_init(&c->git.tree);
    buf_init(&c->git.cwd);
    buf_init(&c->git.top);
    status = CLI_FAILED;
    if (o.samples)
        status = judge_samples(c);
    else if (set_metrics(c)) {
        put_line(c);
        status = run_check(c);
    }
    buf_release(&c->title);
    buf_release(&c->weaker);
    buf_release(&c->line);
    arena_release(&c->arena);
    free(c);
    return status;
}
