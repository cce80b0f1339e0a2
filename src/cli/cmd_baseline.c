/* cmd_baseline.c: `sonde baseline`: named references for `sonde check`. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "base/moment.h"
#include "base/redact.h"
#include "cli/cli.h"
#include "cli/keep.h"
#include "cli/leftovers.h"
#include "cli/measured.h"
#include "cli/measures.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "store/baselinefile.h"
#include "store/fingerprint.h"
#include "store/list.h"
#include "store/run.h"
#include "trace/runfile.h"

enum { DEFAULT_RUNS = 20, MOST_RUNS = 100 };

struct baseline_options {
    struct option_list metrics;
    uint64_t runs, warmup;
    const char *output;
    bool json, show_output;
};

#define FIELD(name) offsetof(struct baseline_options, name)

static const struct option options[] = {
    { "runs", 'n', OPTION_COUNT, FIELD(runs), .value = "N",
      .help = "set: measured runs of the command (default 20; check wants 8)" },
    { "warmup", 'w', OPTION_COUNT, FIELD(warmup), .value = "N",
      .help = "set: runs before them that are not counted (default 1)" },
    { "metric", 'm', OPTION_TEXTS, FIELD(metrics), .value = "NAME",
      .help = "set: what to measure (default wall, cpu, memory); may be repeated" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "export: write to FILE" },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "list: print JSON" },
    { "show-output", 0, OPTION_FLAG, FIELD(show_output),
      .help = "set: let the command write to stdout" },
};

static const struct command command = {
    .verb = "baseline",
    .usage = "[options] set NAME [RUN | -- COMMAND…] | list | rm NAME | export NAME",
    .summary = "named references for sonde check",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "  set NAME -- COMMAND   measures the command now; its samples are kept\n"
        "  set NAME [RUN]        from a recorded run (default @last): one sample, so that\n"
        "                        check runs it again while its sources are unchanged\n"
        "  export NAME           a small JSON to keep in git: check --baseline FILE\n",
};

/* ---- set ---------------------------------------------------------------------------- */

struct setting {
    struct arena arena;
    struct baseline_doc doc;
    struct buf machine, environment;
    char cwd[4096];
    char fingerprint[FINGERPRINT_LEN];
    double values[GATE_METRICS][MOST_RUNS];
};

static bool store_doc(struct setting *s)
{
    struct store *store;
    struct buf json = BUF_INIT;
    if (!cli_store_open(STORE_WRITE, &store))
        return false;
    int rc = baseline_write(&s->doc, &json);
    const struct baseline b = { .name = s->doc.name,
                                .run = s->doc.run[0] ? s->doc.run : NULL,
                                .created_ns = s->doc.created_ns,
                                .json = json.data };
    if (rc == 0)
        rc = store_put_baseline(store, &b);
    if (rc < 0)
        cli_error("cannot keep the baseline '%s': %s", s->doc.name, error_text(rc));
    store_close(store);
    buf_release(&json);
    return rc == 0;
}

static void start_doc(struct setting *s, const char *name)
{
    s->doc = (struct baseline_doc){ .name = name,
                                    .run = "",
                                    .cwd = "",
                                    .machine = "",
                                    .environment = "",
                                    .fingerprint = "",
                                    .created_ns = (int64_t)moment_ns(CLOCK_REALTIME) };
    machine_words(&s->machine);
    s->doc.machine = s->machine.data;
}

/* Only of samples that are taken now: what a recorded run had is not known. */
static void note_environment(struct setting *s)
{
    settings_words(&s->environment);
    s->doc.environment = s->environment.len ? s->environment.data : "";
    s->doc.has_environment = true;
}

static void add_number(struct setting *s, const char *name, double value)
{
    if (!isfinite(value) || s->doc.metric_count == BASELINE_METRICS)
        return;
    const size_t i = s->doc.metric_count++;
    s->values[i][0] = value;
    s->doc.metrics[i] = (struct baseline_metric){ name, s->values[i], 1 };
}

/* The command as it was given to us: secrets in it are redacted, and then it cannot be
 * run again. */
static bool is_redacted(char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(words[i], REDACTED_TEXT))
            return true;
    return false;
}

/* What failed half way is no reference: check would end with its error, or compare with
 * a run that did not do its work. */
static bool ended_well(const struct experiment *e)
{
    if (e->exit_code == 0 || !e->cause || !*e->cause || strcmp(e->cause, "ok") == 0)
        return true;
    if (e->exit_code > 0)
        cli_error(
            "run %s ended with status %d: no baseline (choose another: sonde list)",
            e->id, e->exit_code);
    else
        cli_error(
            "run %s did not end well (%s): no baseline (choose another: sonde list)",
            e->id, e->cause);
    return false;
}

static int set_from_run(struct setting *s, const char *name, const char *ref)
{
    struct store *store;
    struct experiment e;
    struct run *run = NULL;
    bool edited = false;
    if (!cli_store_ready(&store))
        return CLI_FAILED;
    const bool found = cli_find_experiment(store, ref ? ref : "@last", &s->arena, &e);
    store_close(store);
    if (!found || !ended_well(&e))
        return CLI_FAILED;
    start_doc(s, name);
    s->doc.run = e.id;
    s->doc.profiled = true;
    add_number(s, "wall", e.core[CORE_DURATION_S]);
    add_number(s, "memory", e.core[CORE_MEMORY_PEAK_MB]);
    add_number(s, "step_ms", e.core[CORE_STEP_MS]);
    add_number(s, "samples_per_s", e.core[CORE_SAMPLES_PER_S]);
    if (e.directory && run_open(e.directory, &run) == 0 && run->meta.command_count &&
        run->meta.cwd[0] &&
        !is_redacted((char *const *)run->meta.command, run->meta.command_count)) {
        s->doc.command = (char **)(uintptr_t)run->meta.command;
        s->doc.command_count = run->meta.command_count;
        s->doc.cwd = run->meta.cwd;
        int64_t newest_ns = 0;
        (void)fingerprint_of(s->doc.command, s->doc.command_count, s->doc.cwd,
                             s->fingerprint, &newest_ns);
        edited = newest_ns > run->meta.ended_ns;
        if (!edited) /* else what is there now is not what ran */
            s->doc.fingerprint = s->fingerprint;
    }
    const bool kept = store_doc(s);
    run_free(run);
    if (kept && edited)
        printf("baseline '%s' is run %s, but files beside it were written to since: it "
               "will not be run again\n(measure it anew: sonde baseline set %s -- "
               "COMMAND)\n",
               name, e.id, name);
    else if (kept)
        printf(
            "baseline '%s' is run %s: check runs it again while its sources are "
            "unchanged\n(measure samples to compare with later: sonde baseline set %s "
            "-- COMMAND)\n",
            name, e.id, name);
    return kept ? CLI_GOOD : CLI_FAILED;
}

static bool measure(struct setting *s, struct measuring *m, char **argv,
                    const struct baseline_options *o)
{
    struct buf message = BUF_INIT;
    double values[GATE_METRICS];
    enum measured_end ended = MEASURED_GOOD;
    leftovers_adopt();
    signals_take(&m->signals);
    for (uint64_t i = 0; ended == MEASURED_GOOD && i < o->warmup; i++)
        ended = measure_once(m, argv, NULL, values, &message);
    for (uint64_t i = 0; ended == MEASURED_GOOD && i < o->runs; i++) {
        ended = measure_once(m, argv, NULL, values, &message);
        for (size_t k = 0; k < m->count; k++)
            s->values[k][i] = values[k];
    }
    signals_give_back(&m->signals);
    if (ended == MEASURED_INTERRUPTED)
        signal_die_by(m->ended_by);
    if (ended == MEASURED_FAILED)
        cli_error("%s", message.data);
    buf_release(&message);
    return ended == MEASURED_GOOD;
}

static bool all_finite(const double *values, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static void say_left_out(const char *name)
{
    const char *hint = measure_hint(name);
    cli_error("%s could not be measured in every run and is left out%s%s", name,
              hint[0] ? ": " : "", hint);
}

static int set_measured(struct setting *s, const char *name, int argc, char **argv,
                        const struct baseline_options *o)
{
    struct measuring m = { .show_output = o->show_output };
    static const char *const usual[] = { "wall", "cpu", "memory" };
    for (size_t i = 0; i < o->metrics.count; i++)
        if (!measuring_add(&m, o->metrics.items[i]))
            return CLI_FAILED;
    for (size_t i = 0; o->metrics.count == 0 && i < 3; i++)
        if (!measuring_add(&m, usual[i]))
            return CLI_FAILED;
    start_doc(s, name);
    s->doc.profiled = m.profile;
    note_environment(s);
    if (!getcwd(s->cwd, sizeof s->cwd))
        s->cwd[0] = '\0';
    s->doc.cwd = s->cwd;
    (void)fingerprint_of(argv, (size_t)argc, s->cwd, s->fingerprint, NULL);
    if (!measure(s, &m, argv, o))
        return CLI_FAILED;
    char **shown;
    if (redact_args(argc, argv, &s->arena, &shown) < 0)
        return CLI_FAILED;
    s->doc.command = shown;
    s->doc.command_count = (size_t)argc;
    if (!is_redacted(shown, (size_t)argc))
        s->doc.fingerprint = s->fingerprint;
    for (size_t k = 0; k < m.count; k++)
        if (all_finite(s->values[k], o->runs))
            s->doc.metrics[s->doc.metric_count++] = (struct baseline_metric){
                m.metrics[k].name, s->values[k], (size_t)o->runs
            };
        else
            say_left_out(m.metrics[k].name);
    if (!store_doc(s))
        return CLI_FAILED;
    printf("baseline '%s': %" PRIu64 " runs of %s\n", name, o->runs, shown[0]);
    return CLI_GOOD;
}

/* `words` is the command behind "--", NULL without. */
static int set(int argc, char **argv, int count, char **words,
               const struct baseline_options *o)
{
    if (argc < 3 || !argv[2][0])
        return options_fail(&command, "set wants a NAME");
    if (o->runs < 1 || o->runs > MOST_RUNS || o->warmup > 1000)
        return options_fail(&command, "--runs wants 1 to %d", MOST_RUNS);
    if (argc > 4 || (argc > 3 && words) || (words && count == 0))
        return options_fail(&command, "set NAME [RUN], or set NAME -- COMMAND");
    struct setting *s = calloc(1, sizeof *s);
    if (!s)
        return CLI_FAILED;
    buf_init(&s->machine);
    buf_init(&s->environment);
    const int status = words ? set_measured(s, argv[2], count, words, o)
                             : set_from_run(s, argv[2], argc == 4 ? argv[3] : NULL);
    buf_release(&s->machine);
    buf_release(&s->environment);
    arena_release(&s->arena);
    free(s);
    return status;
}

/* ---- list, rm, export --------------------------------------------------------------- */

struct listing {
    bool json;
    size_t count;
};

static int list_one(void *arg, const struct baseline *b)
{
    struct listing *l = arg;
    char time[ISO_TIME_LEN];
    struct arena arena = ARENA_INIT;
    struct buf message = BUF_INIT;
    struct baseline_doc doc;
    if (l->json) {
        printf("%s%s", l->count++ ? ",\n" : "[\n", b->json);
        return 0;
    }
    if (l->count++ == 0)
        printf("%-20s %-25s %-18s %s\n", "NAME", "SET", "SAMPLES", "COMMAND");
    if (baseline_parse(b->json, strlen(b->json), &arena, &doc, &message) == 0) {
        char samples[40] = "";
        if (doc.metric_count)
            (void)snprintf(samples, sizeof samples, "%zu of %.20s",
                           doc.metrics[0].count, doc.metrics[0].name);
        printf("%-20s %-25s %-18s", b->name, iso_time(b->created_ns, time), samples);
        for (size_t i = 0; i < doc.command_count; i++)
            printf(" %s", doc.command[i]);
        puts("");
    } else {
        printf("%-20s damaged: %s\n", b->name, message.data);
    }
    arena_release(&arena);
    buf_release(&message);
    return 0;
}

static int list(const struct baseline_options *o)
{
    struct store *store;
    struct listing l = { .json = o->json };
    struct buf why = BUF_INIT;
    int rc = store_open(store_directory(), 0, &store, &why);
    if (rc == 0) {
        rc = store_each_baseline(store, NULL, list_one, &l);
        store_close(store);
    } else if (rc == -ENOENT) {
        rc = 0;
    }
    if (rc < 0)
        cli_error("%s", why.len ? why.data : error_text(rc));
    else if (o->json)
        puts(l.count ? "]" : "[]");
    else if (l.count == 0)
        cli_error("no baselines yet (sonde baseline set NAME -- COMMAND)");
    buf_release(&why);
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

static int remove_one(const char *name)
{
    struct store *store;
    if (!cli_store_open(0, &store))
        return CLI_FAILED;
    const int rc = store_remove_baseline(store, name);
    store_close(store);
    if (rc == SONDE_E_NOTFOUND)
        cli_error("there is no baseline '%s' (sonde baseline list)", name);
    else if (rc < 0)
        cli_error("cannot remove '%s': %s", name, error_text(rc));
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

static int keep_json(void *arg, const struct baseline *b)
{
    buf_puts(arg, b->json);
    return 0;
}

static int export_one(const char *name, const struct baseline_options *o)
{
    struct store *store;
    struct buf json = BUF_INIT;
    struct output out;
    if (!cli_store_open(0, &store))
        return CLI_FAILED;
    int rc = store_each_baseline(store, name, keep_json, &json);
    store_close(store);
    if (rc == 0 && json.len == 0) {
        cli_error("there is no baseline '%s' (sonde baseline list)", name);
        rc = SONDE_E_NOTFOUND;
    } else if (rc == 0 && output_open(&out, o->output)) {
        rc = fputs(json.data, out.file) < 0 ? -errno : 0;
        rc = output_close(&out, rc, "the baseline") ? 0 : -EIO;
    }
    buf_release(&json);
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

int cmd_baseline(int argc, char **argv)
{
    struct baseline_options o = { .runs = DEFAULT_RUNS, .warmup = 1 };
    int status;
    int before = 0;
    while (before < argc && strcmp(argv[before], "--") != 0)
        before++;
    char **words = before < argc ? argv + before + 1 : NULL;
    const int count = before < argc ? argc - before - 1 : 0;
    argv[before] = NULL;
    argc = before;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    const char *what = argc > 1 ? argv[1] : "list";
    if (strcmp(what, "set") == 0)
        return set(argc, argv, count, words, &o);
    if (strcmp(what, "list") == 0 && argc <= 2)
        return list(&o);
    if (strcmp(what, "rm") == 0 && argc == 3)
        return remove_one(argv[2]);
    if (strcmp(what, "export") == 0 && argc == 3)
        return export_one(argv[2], &o);
    return options_fail(&command, "set NAME, list, rm NAME or export NAME; got '%s'",
                        what);
}
