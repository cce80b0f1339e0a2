/* cmd_check.c: `sonde check`: fails when a change made it slower, and only then.
 *
 * The baseline is run again, in turn with the change, when that is honest: from a commit
 * checked out beside this tree, or when nothing it runs has changed since it was set.
 * Otherwise the samples stored with it stand in, which is weaker, and said.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyse/gatepairs.h"
#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "base/moment.h"
#include "base/redact.h"
#include "cli/cli.h"
#include "cli/gate_out.h"
#include "cli/gatesamples.h"
#include "cli/gitref.h"
#include "cli/keep.h"
#include "cli/leftovers.h"
#include "cli/measured.h"
#include "cli/measures.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/sharedtree.h"
#include "store/baselinefile.h"
#include "store/fingerprint.h"
#include "store/list.h"

enum { MOST = GATE_SAMPLES_MOST, STORED_RUNS = 20, BASELINE_MOST = 4 << 20 };

struct check_options {
    const char *baseline, *threshold, *build, *output, *samples;
    struct option_list metrics;
    uint64_t budget_ns, runs, warmup;
    int inconclusive, format;
    bool json, show_output, quiet;
};

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

enum way { GIT, RERUN, STORED };

struct check {
    const struct check_options *options;
    struct measuring measuring;
    char **argv; /* of the change */
    char *const *base_argv;
    const char *base_dir; /* NULL: here */
    enum way way;
    struct gitref git;
    struct arena arena;
    struct baseline_doc doc;
    struct buf title, weaker, line;
    bool other_machine, other_settings;
    double base[GATE_METRICS][MOST], now[GATE_METRICS][MOST];
    struct gate_pairs runs;
    size_t pairs; /* or runs, compared with stored samples */
    struct gate_metric metrics[GATE_METRICS];
    struct gate_result results[GATE_METRICS];
    uint64_t started_ns, deadline_ns;
    bool late; /* the budget ended in the middle of a run */
};

/* ---- Which baseline ----------------------------------------------------------------- */

static bool parse_doc(struct check *c, const char *json, size_t len, const char *what)
{
    struct buf message = BUF_INIT;
    const int rc = baseline_parse(json, len, &c->arena, &c->doc, &message);
    if (rc < 0)
        cli_error("%s: %s", what, message.len ? message.data : error_text(rc));
    buf_release(&message);
    return rc == 0;
}

static bool read_file(struct check *c, const char *path)
{
    struct buf text = BUF_INIT;
    const int rc = file_read_all(path, BASELINE_MOST, &text);
    if (rc < 0)
        cli_error("cannot read the baseline '%s': %s", path, error_text(rc));
    const bool good = rc == 0 && parse_doc(c, text.data, text.len, path);
    buf_release(&text);
    return good;
}

static int keep_json(void *arg, const struct baseline *b)
{
    buf_puts(arg, b->json ? b->json : "");
    return 0;
}

/* 1 found, 0 not there, −1 told. */
static int read_named(struct check *c, const char *name)
{
    struct store *store = NULL;
    struct buf json = BUF_INIT, why = BUF_INIT;
    int rc = store_open(store_directory(), 0, &store, &why);
    if (rc == 0)
        rc = store_each_baseline(store, name, keep_json, &json);
    else if (rc == -ENOENT || rc == SONDE_E_UNSUPPORTED)
        rc = 0;
    if (rc < 0)
        cli_error("%s", why.len ? why.data : error_text(rc));
    int found = rc < 0 ? -1 : json.len > 0;
    if (found == 1 && !parse_doc(c, json.data, json.len, name))
        found = -1;
    store_close(store);
    buf_release(&json);
    buf_release(&why);
    return found;
}

/* Rerunning is honest only while nothing it runs has changed. */
static void choose_way(struct check *c, bool from_file)
{
    char now[FINGERPRINT_LEN] = "";
    struct buf machine = BUF_INIT, differ = BUF_INIT;
    struct stat st;
    const struct baseline_doc *d = &c->doc;
    machine_words(&machine);
    c->other_machine = d->machine[0] && strcmp(d->machine, machine.data) != 0;
    if (d->has_environment) /* those of earlier versions do not say */
        settings_compare(d->environment, &differ);
    c->other_settings = differ.len > 0;
    c->way = STORED;
    if (!from_file && d->command_count && d->cwd[0] && stat(d->cwd, &st) == 0 &&
        d->fingerprint[0])
        (void)fingerprint_of(d->command, d->command_count, d->cwd, now, NULL);
    if (now[0] && strcmp(now, d->fingerprint) == 0) {
        c->way = RERUN;
        c->base_argv = d->command;
        c->base_dir = d->cwd;
        buf_printf(&c->title, "'%s', run again in turn: its sources are unchanged",
                   d->name);
    } else {
        buf_printf(&c->title, "'%s', as it was measured then", d->name);
        buf_printf(&c->weaker,
                   "the baseline is not run again (%s): what the machine did "
                   "in between counts too",
                   from_file            ? "it is a file"
                   : !d->fingerprint[0] ? "what it runs is not known"
                                        : "its sources have changed since");
        if (c->other_machine)
            buf_printf(&c->weaker, "; it was measured on another machine (%s, here %s)",
                       d->machine, machine.data);
        if (c->other_settings)
            buf_printf(&c->weaker, "; with other settings (%s)", differ.data);
    }
    buf_release(&machine);
    buf_release(&differ);
}

static bool open_git(struct check *c, const char *ref)
{
    c->way = GIT;
    if (!gitref_open(&c->git, ref, c->options->build))
        return false;
    c->base_argv = c->argv;
    c->base_dir = c->git.cwd.data;
    buf_printf(&c->title, "%s (commit %.10s), checked out beside and run in turn", ref,
               c->git.commit);
    sharedtree_words(c->git.top.len ? c->git.top.data : "", c->argv, &c->weaker);
    return true;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool open_baseline(struct check *c)
{
    const char *ref = c->options->baseline;
    if (is_file(ref)) {
        if (!read_file(c, ref))
            return false;
        choose_way(c, true);
        return true;
    }
    const int named = read_named(c, ref);
    if (named < 0)
        return false;
    if (named) {
        choose_way(c, false);
        return true;
    }
    if (gitref_is(ref))
        return open_git(c, ref);
    cli_error(
        "there is no baseline '%s': no such name (sonde baseline list), commit or "
        "file",
        ref);
    return false;
}

/* ---- Measuring ---------------------------------------------------------------------- */

static void show_progress(const struct check *c, size_t done, size_t of)
{
    char took[HUMAN_LEN];
    if (c->options->quiet || c->options->show_output || !isatty(STDERR_FILENO))
        return;
    (void)fprintf(
        stderr, "\r\033[K%s %zu of %zu · %s", c->way == STORED ? "run" : "pair",
        done + 1, of,
        human_duration(took, (double)(moment_ns(CLOCK_MONOTONIC) - c->started_ns)));
}

static void clear_progress(const struct check *c)
{
    if (!c->options->quiet && !c->options->show_output && isatty(STDERR_FILENO))
        (void)fputs("\r\033[K", stderr);
}

/* side 0 is the baseline. */
static enum measured_end run_side(struct check *c, int side, double *values)
{
    struct buf message = BUF_INIT;
    const enum measured_end ended = side ? measure_once(&c->measuring, c->argv, NULL,
                                                        values, &message)
                                         : measure_once(&c->measuring, c->base_argv,
                                                        c->base_dir, values, &message);
    if (ended == MEASURED_FAILED) {
        clear_progress(c);
        cli_error("%s: %s", side ? "the change" : "the baseline", message.data);
    }
    buf_release(&message);
    return ended;
}

static enum measured_end warm_up(struct check *c)
{
    double values[GATE_METRICS];
    enum measured_end ended = MEASURED_GOOD;
    for (uint64_t i = 0; ended == MEASURED_GOOD && i < c->options->warmup; i++) {
        if (c->way != STORED)
            ended = run_side(c, 0, values);
        if (ended == MEASURED_GOOD)
            ended = run_side(c, 1, values);
    }
    return ended;
}

static enum measured_end run_pair(struct check *c, size_t pair, int first)
{
    double values[2][GATE_METRICS];
    for (int k = 0; k < 2; k++) {
        const int side = k ? !first : first;
        const enum measured_end ended = run_side(c, side, values[side]);
        if (ended != MEASURED_GOOD)
            return ended; /* half a pair does not count */
    }
    gate_pairs_add(&c->runs, pair, c->measuring.count, values);
    c->pairs = gate_pairs_count(&c->runs);
    return MEASURED_GOOD;
}

static bool out_of_time(const struct check *c)
{
    return c->late || moment_ns(CLOCK_MONOTONIC) >= c->deadline_ns;
}

static bool is_missing(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            return false;
    return true;
}

/* A metric that no run of either side has told, after two of each: it is not that it
 * varies, it is not recorded. −1: none. */
static int never_told(const struct check *c)
{
    for (size_t i = 0; i < c->measuring.count; i++) {
        const struct gate_metric *m = &c->metrics[i];
        if (m->now_count > 1 && is_missing(m->now, m->now_count) &&
            is_missing(m->baseline, m->baseline_count))
            return (int)i;
    }
    return -1;
}

/* What to do about a number that one side lacks. */
static void add_hint(const struct gate_metric *m, struct gate_result *r)
{
    const size_t len = strlen(r->why);
    const char *hint = m->baseline_count ? measure_hint(m->name)
                                         : "sonde baseline set … -m measures it";
    if (strncmp(r->why, "not measured", 12) == 0 && hint[0])
        (void)snprintf(r->why + len, sizeof r->why - len, ": %s", hint);
}

static void judge(struct check *c, int look)
{
    gate_judge(c->metrics, c->measuring.count, look, c->results);
    for (size_t i = 0; i < c->measuring.count; i++)
        add_hint(&c->metrics[i], &c->results[i]);
    for (size_t i = 0; i < c->measuring.count; i++)
        if (c->way == STORED && (c->other_machine || c->other_settings) &&
            !c->results[i].exact) {
            c->results[i].hopeless = true;
            c->results[i].verdict = GATE_INCONCLUSIVE;
            (void)snprintf(c->results[i].why, sizeof c->results[i].why, "%s",
                           c->other_machine
                               ? "the baseline was measured on another machine"
                               : "the baseline was measured with other settings");
        }
}

/* More runs might have told: it was the time that was short. */
static void name_budget(struct check *c)
{
    char budget[HUMAN_LEN];
    (void)human_duration(budget, (double)c->options->budget_ns);
    for (size_t i = 0; out_of_time(c) && i < c->measuring.count; i++) {
        struct gate_result *r = &c->results[i];
        const size_t len = strlen(r->why);
        if (r->verdict == GATE_INCONCLUSIVE && !r->hopeless)
            (void)snprintf(r->why + len, sizeof r->why - len,
                           "%sthe budget of %s is spent", len ? "; " : "", budget);
    }
}

static void judge_pairs(struct check *c, int look)
{
    for (size_t i = 0; i < c->measuring.count; i++)
        gate_pairs_fold(&c->runs, i, &c->metrics[i]);
    judge(c, look);
}

/* Counts that are the same everywhere need no more runs. When they differ it may be the
 * program that varies: two runs of each side would not show that. */
static bool all_the_same(const struct check *c)
{
    for (size_t i = 0; i < c->measuring.count; i++)
        if (!c->results[i].exact || c->results[i].ratio != 1)
            return false;
    return true;
}

/* Whether further runs could still decide something. */
static bool is_open(const struct check *c)
{
    bool open = false;
    for (size_t i = 0; i < c->measuring.count; i++)
        if (c->results[i].verdict == GATE_FAIL)
            return false;
        else
            open |= c->results[i].verdict == GATE_INCONCLUSIVE &&
                    !c->results[i].hopeless;
    return open;
}

static enum measured_end measure_pairs(struct check *c)
{
    for (int look = 0; look < GATE_LOOKS; look++) {
        size_t pair;
        int first;
        while (!out_of_time(c) && gate_pairs_next(&c->runs, look, &pair, &first)) {
            show_progress(c, gate_pairs_runs(&c->runs),
                          gate_looks[look] * (size_t)gate_rounds[look]);
            const enum measured_end ended = run_pair(c, pair, first);
            c->late = ended == MEASURED_LATE;
            if (c->late)
                break;
            if (ended != MEASURED_GOOD)
                return ended;
            if (gate_pairs_runs(&c->runs) != 2)
                continue;
            judge_pairs(c, 0);
            if (all_the_same(c) || never_told(c) >= 0)
                return ended;
        }
        judge_pairs(c, look);
        if (!is_open(c) || out_of_time(c))
            break;
    }
    return MEASURED_GOOD;
}

static enum measured_end measure_stored(struct check *c)
{
    enum measured_end ended = MEASURED_GOOD;
    const size_t most = c->options->runs ? c->options->runs : STORED_RUNS;
    while (ended == MEASURED_GOOD && c->pairs < most && c->pairs < MOST &&
           !out_of_time(c)) {
        double values[GATE_METRICS];
        show_progress(c, c->pairs, most);
        ended = run_side(c, 1, values);
        for (size_t i = 0; i < c->measuring.count; i++)
            c->now[i][c->pairs] = values[i];
        c->pairs += ended == MEASURED_GOOD;
        for (size_t i = 0; i < c->measuring.count; i++)
            c->metrics[i].now_count = c->pairs;
        if (never_told(c) >= 0)
            break;
    }
    c->late = ended == MEASURED_LATE;
    judge(c, -1);
    return c->late ? MEASURED_GOOD : ended;
}

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

static void use_stored(struct check *c)
{
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
    if (open_baseline(c)) {
        if (c->way == STORED)
            use_stored(c);
        c->started_ns = moment_ns(CLOCK_MONOTONIC);
        c->deadline_ns = c->started_ns + c->options->budget_ns;
        c->measuring.deadline_ns = c->deadline_ns;
        ended = warm_up(c);
        c->late = ended == MEASURED_LATE;
        if (ended == MEASURED_GOOD || c->late)
            ended = c->way == STORED ? measure_stored(c) : measure_pairs(c);
        name_budget(c);
        note_leftovers(c);
        clear_progress(c);
    } else if (c->git.ended_by) {
        c->measuring.ended_by = c->git.ended_by;
        ended = MEASURED_INTERRUPTED;
    }
    gitref_release(&c->git);
    signals_give_back(&c->measuring.signals);
    if (ended == MEASURED_INTERRUPTED) {
        cli_error("interrupted after %zu %s: nothing is decided", c->pairs,
                  c->way == STORED ? "runs" : "pairs");
        signal_die_by(c->measuring.ended_by);
    }
    const int never = never_told(c);
    if (ended == MEASURED_GOOD && never >= 0)
        cli_error("%s was recorded in no run: %s", c->metrics[never].name,
                  measure_hint(c->metrics[never].name));
    else if (ended == MEASURED_GOOD)
        status = report(c, c->way != STORED);
    return status;
}

/* ---- Numbers that are there already ------------------------------------------------- */

static int report_samples(struct check *c, const struct gate_samples *s)
{
    memcpy(c->metrics, s->metrics, sizeof c->metrics);
    c->measuring.count = s->count;
    c->pairs = s->metrics[s->count - 1].now_count;
    c->way = STORED;
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
                                     BASELINE_MOST, &text)
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
    else if (o->runs > MOST || o->warmup > 1000)
        *ret_status = options_fail(&command, "--runs wants at most %d", MOST);
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
