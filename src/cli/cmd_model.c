/* cmd_model.c: `sonde model`: one model measured and estimated: time, memory, operations,
 * growth.
 *
 * Families run as our own nets in C. FILE.py:factory is a torch model: the same command
 * with the same options, carried out by the Python package (modelpy.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/human.h"
#include "cli/cli.h"
#include "cli/modelargs.h"
#include "cli/modelpy.h"
#include "cli/modelrun.h"
#include "cli/output.h"
#include "model/answer.h"
#include "model/ref/dataset.h"
#include "model/run/roofline.h"
#include "model/run/scaling.h"
#include "present/model/model.h"

enum { RUNTIME = 1, MEMORY = 2, FLOPS = 4, SCALING = 8 };

struct model_options {
    struct model_args model;
    const char *name, *output, *dataset, *device;
    struct option_list profile;
    uint64_t runs, warmup, budget_ns, threads;
    bool json, quiet, cpu_time;
};

#define FIELD(name) offsetof(struct model_options, name)

static const struct option options[] = {
    { "model", 'm', OPTION_TEXT, FIELD(name), .value = "NAME",
      .help = "graph_transformer (the default), gpt2, mlp or FILE.py:FACTORY" },
    { "profile", 'p', OPTION_TEXTS, FIELD(profile), .value = "WHAT…",
      .help =
          "runtime, memory, flops, scaling; several (default: runtime memory flops)" },
    { "dataset", 'd', OPTION_TEXT, FIELD(dataset), .value = "NAME",
      .help =
          "graphs of a folder of CSV files (Open Graph Benchmark) or peptides_func; "
          "default: synthetic ones" },
    MODEL_OPTIONS(struct model_options),
    { "num-runs", 'n', OPTION_COUNT, FIELD(runs), .value = "N",
      .help = "measured runs (default 100)" },
    { "warmup-runs", 'w', OPTION_COUNT, FIELD(warmup), .value = "N",
      .help = "runs before them that are not counted (default 10)" },
    { "budget", 0, OPTION_SECONDS, FIELD(budget_ns), .value = "TIME",
      .help = "stop measuring after this, with fewer runs (default 20s)" },
    { "threads", 't', OPTION_COUNT, FIELD(threads), .value = "N",
      .help = "of the matrix products (default: one per core)" },
    { "device", 0, OPTION_TEXT, FIELD(device), .value = "NAME",
      .help = "torch models: cpu or cuda (default: cuda where there is one)" },
    { "cpu-time", 0, OPTION_FLAG, FIELD(cpu_time),
      .help =
          "measure processor time, not wall time: for busy machines, with --threads 1" },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "print JSON" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write there instead of to the terminal" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "no progress line" },
};

static const struct command command = {
    .verb = "model",
    .usage = "[options]",
    .summary = "profile a model: runtime, memory, FLOPs, scaling",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "Options may be written with underscores too: --hidden_dim 512.\n"
        "The built-in models are nets in C (OpenBLAS where there is one); FACTORY is a\n"
        "function in FILE.py that returns a torch module, or (module, inputs).\n",
};

/* "--profile a b c" becomes "--profile a --profile b --profile c": the document's way to
 * give several. The caller frees the list. */
static char **spread_profile(int *argc, char **argv)
{
    static char flag[] = "--profile";
    char **out = calloc(2 * (size_t)*argc + 1, sizeof *out);
    int n = 0, wide = 0;
    for (int i = 0; out && i < *argc; i++) {
        const bool word = argv[i][0] != '-';
        if (wide > 1 && word)
            out[n++] = flag;
        out[n++] = argv[i];
        wide = strcmp(argv[i], "--profile") == 0 || strcmp(argv[i], "-p") == 0 ? 1
               : word && wide > 0                                              ? 2
                                                                               : 0;
    }
    if (out)
        *argc = n;
    return out;
}

/* The sections asked for, or −1 after an error was printed. */
static int profile_of(const struct option_list *list)
{
    static const char *const names[] = { "runtime", "memory", "flops", "scaling" };
    int profile = 0;
    for (size_t i = 0; i < list->count; i++) {
        int bit = 0;
        while (bit < 4 && strcmp(names[bit], list->items[i]) != 0)
            bit++;
        if (bit == 4) {
            (void)options_fail(&command,
                               "--profile wants runtime, memory, flops or scaling, got "
                               "'%s'",
                               list->items[i]);
            return -1;
        }
        profile |= 1 << bit;
    }
    return profile ? profile : RUNTIME | MEMORY | FLOPS;
}

/* ---- The data set ------------------------------------------------------------------------ */

struct sizes {
    uint64_t *nodes, *edges;
    char note[160];
};

/* The config takes the shape of the data: features, labels, sizes of the graphs. */
static bool shape_of_dataset(const char *name, struct model_config *c,
                             struct sizes *sizes, struct sonde_padding *padding)
{
    char error[OGB_ERROR_LEN] = "";
    struct dataset d;
    const int rc = dataset_load(name, c->batch, c->seed, &d, error);
    if (rc < 0) {
        cli_error("cannot read the data set '%s': %s", name,
                  error[0] ? error : error_text(rc));
        return false;
    }
    const struct graphs *g = &d.graphs;
    c->batch = g->count;
    c->features = g->features;
    c->outputs = g->outputs;
    c->nodes = g->nodes / g->count ? g->nodes / g->count : 1;
    c->edges = g->edges / g->count;
    sizes->nodes = calloc(2 * g->count, sizeof *sizes->nodes);
    sizes->edges = sizes->nodes ? sizes->nodes + g->count : NULL;
    for (size_t i = 0; sizes->nodes && i < g->count; i++) {
        sizes->nodes[i] = g->first[i + 1] - g->first[i];
        sizes->edges[i] = g->out_first[g->first[i + 1]] - g->out_first[g->first[i]];
    }
    c->graph_nodes = sizes->nodes;
    c->graph_edges = sizes->edges;
    (void)snprintf(
        sizes->note, sizeof sizes->note,
        "%s: %zu graphs, %zu nodes, %zu directed edges%s", name, g->count, g->nodes,
        g->edges,
        d.generated ? "; a generated sample of its shape, the set is not here" : "");
    padding->size = sizeof *padding;
    (void)sonde_padding_waste(sizes->nodes, g->count, padding);
    dataset_release(&d);
    return sizes->nodes != NULL;
}

/* ---- Measuring ----------------------------------------------------------------------------- */

static bool fits(const struct plan *plan)
{
    const double available = plan_available();
    char needed[HUMAN_LEN], there[HUMAN_LEN];
    if (!(plan->total > 0.8 * available))
        return true;
    cli_error("a training step would take %s, more than 80 %% of the %s that are free: "
              "choose smaller sizes, or "
              "--profile flops, which runs nothing",
              human_bytes(needed, plan->total), human_bytes(there, available));
    return false;
}

static bool measure(const struct model_options *o, const struct model_config *c,
                    bool roof, double budget_s, struct measurement *ret)
{
    char error[MEASURE_ERROR_LEN];
    const struct measure_options m = {
        .runs = o->runs,
        .warmup = o->warmup,
        .budget_s = budget_s,
        .threads = (int)o->threads,
        .cpu_time = o->cpu_time,
        .peaks_s = roof ? 1 : 0,
        .dataset = o->dataset,
    };
    struct progress progress = { .quiet = o->quiet };
    progress_point(&progress, 0, 1, "running the model");
    const int rc = measure_in_child(c, &m, ret, error);
    progress_clear(&progress);
    if (rc < 0)
        cli_error("cannot run the model: %s", error);
    return rc == 0;
}

/* Of the budget: a run alone has it whole. With scaling all three take 2.7 of them, 54 s of
 * the default 20; the largest sizes of the first axis need most. */
static const double BESIDE_SCALING = 0.5, FIRST_AXIS = 1.6, SECOND_AXIS = 0.6;

/* Nodes and layers, as the document does; what the family has of them. */
static struct scaling *scale(const struct model_options *o,
                             const struct model_config *c, enum axis axis,
                             double budget_s)
{
    char error[MEASURE_ERROR_LEN] = "";
    struct progress progress = { .quiet = o->quiet, .what = axis_name(axis) };
    struct scaling *s = calloc(1, sizeof *s);
    struct scale_options *p = calloc(1, sizeof *p);
    int rc = s && p ? 0 : -ENOMEM;
    if (rc == 0) {
        p->axis = axis;
        p->base = *c;
        p->base.graph_nodes = p->base.graph_edges = NULL;
        p->base.edges = axis == AXIS_NODES ? 0 : p->base.edges;
        p->count = scale_default_sizes(axis, p->sizes);
        p->measure = (struct measure_options){
            .runs = 5, .warmup = 1, .threads = (int)o->threads, .cpu_time = o->cpu_time
        };
        p->budget_s = budget_s;
        p->memory_bytes = NAN;
        p->progress = progress_point;
        p->arg = &progress;
        rc = scaling_run(p, s, error);
        progress_clear(&progress);
    }
    free(p);
    if (rc < 0) {
        cli_error("cannot measure the scaling by %s: %s", axis_name(axis),
                  error[0] ? error : error_text(rc));
        free(s);
        return NULL;
    }
    return s;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Everything that is kept until the answer is printed. */
struct work {
    struct model_config config;
    struct sizes sizes;
    struct model_answer answer;
    struct plan plan;
    struct measurement measurement;
    struct roofline roofline;
    struct scaling *scalings[2];
};

static void work_free(struct work *w)
{
    if (!w)
        return;
    free(w->sizes.nodes);
    free(w->scalings[0]);
    free(w->scalings[1]);
    free(w);
}

static bool configure(const struct model_options *o, const char *name, struct work *w)
{
    struct sonde_padding padding = { 0 };
    const int family = family_of(name),
              optimizer = modelargs_optimizer(&command, &o->model);
    if (optimizer < 0)
        return false;
    if (family < 0) {
        (void)options_fail(&command,
                           "--model wants graph_transformer, gpt2, mlp or "
                           "FILE.py:FACTORY, got '%s' (sonde flops knows more names)",
                           name);
        return false;
    }
    if (!modelargs_config(&command, &o->model, (enum family)family, &w->config))
        return false;
    if (o->dataset && family != FAMILY_GRAPH_TRANSFORMER) {
        (void)options_fail(&command, "--dataset holds graphs, %s wants none", name);
        return false;
    }
    if (o->dataset && o->model.batch == MODEL_NOT_GIVEN)
        w->config.batch = 8;
    if (o->dataset && !shape_of_dataset(o->dataset, &w->config, &w->sizes, &padding))
        return false;
    const int rc = answer_estimate_config(&w->config, optimizer, SONDE_FLOAT32,
                                          &w->answer);
    if (rc < 0)
        cli_error("cannot estimate the model: %s", error_text(rc));
    w->answer.note = o->dataset ? w->sizes.note : NULL;
    w->answer.has_padding = o->dataset != NULL;
    w->answer.padding = padding;
    return rc == 0;
}

static bool run(const struct model_options *o, int profile, struct work *w)
{
    struct model_answer *a = &w->answer;
    const double budget = (double)o->budget_ns / 1e9;
    a->hide_flops = !(profile & FLOPS);
    a->hide_memory = !(profile & MEMORY);
    a->has_runtime = profile & RUNTIME;
    a->plan = &w->plan;
    if (plan_training(&w->config, &w->plan) < 0)
        return false;
    if (profile & (RUNTIME | MEMORY)) {
        if (!fits(&w->plan) ||
            !measure(o, &w->config, profile & RUNTIME,
                     profile & SCALING ? BESIDE_SCALING * budget : budget,
                     &w->measurement))
            return false;
        a->measured = &w->measurement;
    }
    if (profile & RUNTIME &&
        roofline_compute(&a->estimate, a->optimizer, a->measured, &w->roofline))
        a->roofline = &w->roofline;
    static const enum axis axes[FAMILY_COUNT][2] = {
        [FAMILY_GRAPH_TRANSFORMER] = { AXIS_NODES, AXIS_LAYERS },
        [FAMILY_GPT2] = { AXIS_BATCH, AXIS_LAYERS },
        [FAMILY_MLP] = { AXIS_BATCH, AXIS_HIDDEN },
    };
    for (int i = 0; i < 2 && profile & SCALING; i++) {
        w->scalings[i] = scale(o, &w->config, axes[w->config.family][i],
                               budget * (i == 0 ? FIRST_AXIS : SECOND_AXIS));
        if (!w->scalings[i])
            return false;
        a->scaling_count++;
    }
    a->scalings = (const struct scaling *const *)w->scalings;
    return true;
}

static int profile_factory(const struct model_options *o, const char *name, char **kept)
{
    if (o->dataset)
        return options_fail(&command, "--dataset is for the built-in models: let "
                                      "FACTORY return (module, inputs) instead");
    return modelargs_plausible(&command, &o->model) ? modelpy_run(name, kept)
                                                    : CLI_FAILED;
}

/* `kept`: the words as they were given, for a model in Python. */
static int profile_model(int argc, char **argv, char **kept)
{
    struct model_options o = { .runs = 100, .warmup = 10, .budget_ns = 20000000000 };
    int status;
    modelargs_init(&o.model);
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    const int profile = profile_of(&o.profile);
    if (profile < 0)
        return CLI_FAILED;
    if (argc > 1)
        return options_fail(&command, "what is '%s'? (--model NAME)", argv[1]);
    if (o.runs == 0)
        return options_fail(&command, "--num-runs must be 1 or more");
    const char *name = o.name ? o.name : "graph_transformer";
    if (!output_possible(o.output))
        return CLI_FAILED;
    if (strstr(name, ".py"))
        return profile_factory(&o, name, kept);
    struct work *w = calloc(1, sizeof *w);
    struct output out;
    status = CLI_FAILED;
    if (w && configure(&o, name, w) && run(&o, profile, w) &&
        output_open(&out, o.output)) {
        const int rc = o.json ? model_json(&w->answer, out.file)
                              : model_text(&w->answer, out.file);
        status = output_close(&out, rc, "the profile") ? CLI_GOOD : CLI_FAILED;
    }
    work_free(w);
    return status;
}

int cmd_model(int argc, char **argv)
{
    modelargs_spell(argc, argv);
    char **spread = spread_profile(&argc, argv);
    char **words = spread ? spread : argv;
    char **kept = modelpy_copy(argc, words);
    const int status = profile_model(argc, words, kept);
    free(spread);
    free(kept);
    return status;
}
