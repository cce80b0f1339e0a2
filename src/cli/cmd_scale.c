/* cmd_scale.c: `sonde scale`: how time and memory grow along one size of a model. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/modelargs.h"
#include "cli/modelrun.h"
#include "cli/output.h"
#include "model/run/scaling.h"
#include "present/model/scaling.h"

struct scale_args {
    struct model_args model;
    const char *family, *output, *plot;
    uint64_t runs, warmup, budget_ns, threads, memory;
    bool json, quiet, cpu_time;
};

#define FIELD(name) offsetof(struct scale_args, name)

static const struct option options[] = {
    { "model", 0, OPTION_TEXT, FIELD(family), .value = "NAME",
      .help = "graph_transformer (the default), gpt2 or mlp" },
    MODEL_OPTIONS(struct scale_args),
    { "num-runs", 'n', OPTION_COUNT, FIELD(runs), .value = "N",
      .help = "repeats of each size (default 10)" },
    { "warmup-runs", 'w', OPTION_COUNT, FIELD(warmup), .value = "N",
      .help = "runs before them that are not counted (default 2)" },
    { "budget", 0, OPTION_SECONDS, FIELD(budget_ns), .value = "TIME",
      .help =
          "for all sizes together (default 2m); what would take longer is skipped" },
    { "threads", 't', OPTION_COUNT, FIELD(threads), .value = "N",
      .help = "of the matrix products (default: one per core)" },
    { "memory", 0, OPTION_SIZE, FIELD(memory), .value = "SIZE",
      .help = "use no more than this (default: what is free)" },
    { "plot", 0, OPTION_TEXT, FIELD(plot), .value = "FILE.svg",
      .help = "also draw the curves" },
    { "cpu-time", 0, OPTION_FLAG, FIELD(cpu_time),
      .help =
          "measure processor time, not wall time: for busy machines, with --threads 1" },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "print JSON" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write there instead of to the terminal" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "no progress line" },
};

static const struct command command = {
    .verb = "scale",
    .usage = "[options] nodes|edges|layers|hidden|heads|batch|tokens|pe|matmul [SIZE…]",
    .summary = "how time and memory grow along one size of a model",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "Without SIZE: nodes 100 500 1000 2000 5000, layers 2 4 6 8 12 16, pe none\n"
        "lap rwse, and lists of that kind for the others. On pe a SIZE is none, lap,\n"
        "lap_lanczos, rwse or rwse_sparse, with :DIM behind it (default 16).\n"
        "\n"
        "Graphs are synthetic, from --seed. A size that would not fit into memory, or\n"
        "take longer than the budget, is predicted and skipped with a note.\n",
};

/* Only where the model has that axis. */
static bool axis_fits(enum axis axis, enum family family)
{
    switch (axis) {
    case AXIS_NODES:
    case AXIS_EDGES:
    case AXIS_PE:
        return family == FAMILY_GRAPH_TRANSFORMER;
    case AXIS_TOKENS:
        return family == FAMILY_GPT2;
    case AXIS_HEADS:
        return family != FAMILY_MLP;
    default:
        return true;
    }
}

static bool parse_sizes(int argc, char **argv, struct scale_options *ret)
{
    const int axis = argc > 1 ? axis_of(argv[1]) : -1;
    if (axis < 0) {
        (void)options_fail(&command,
                           argc > 1
                               ? "there is no axis '%s': nodes, edges, "
                                 "layers, hidden, heads, batch, tokens, pe or matmul"
                               : "along which axis? nodes, edges, layers, "
                                 "hidden, heads, batch, tokens, pe or matmul",
                           argc > 1 ? argv[1] : "");
        return false;
    }
    ret->axis = (enum axis)axis;
    if (argc - 2 > SCALE_POINTS) {
        (void)options_fail(&command, "at most %d sizes", SCALE_POINTS);
        return false;
    }
    for (int i = 2; i < argc; i++)
        if (scale_size_parse(ret->axis, argv[i], &ret->sizes[ret->count++]) < 0) {
            (void)options_fail(&command, "'%s' is not a size on the axis %s", argv[i],
                               argv[1]);
            return false;
        }
    if (ret->count == 0)
        ret->count = scale_default_sizes(ret->axis, ret->sizes);
    return true;
}

static bool prepare(const struct scale_args *a, int argc, char **argv,
                    struct scale_options *ret)
{
    const char *name = a->family ? a->family : "graph_transformer";
    const int family = family_of(name);
    if (!parse_sizes(argc, argv, ret))
        return false;
    if (family < 0 || !axis_fits(ret->axis, (enum family)family)) {
        (void)options_fail(&command,
                           family < 0 ? "--model wants graph_transformer, gpt2 or mlp, "
                                        "got '%s'"
                                      : "the model %s has no such axis",
                           name);
        return false;
    }
    if (!modelargs_config(&command, &a->model, (enum family)family, &ret->base))
        return false;
    ret->measure = (struct measure_options){ .runs = a->runs,
                                             .warmup = a->warmup,
                                             .threads = (int)a->threads,
                                             .cpu_time = a->cpu_time };
    ret->budget_s = (double)a->budget_ns / 1e9;
    ret->memory_bytes = a->memory ? (double)a->memory : NAN;
    return true;
}

static int print(const struct scale_args *a, const struct scaling *s)
{
    struct output out;
    if (a->plot) {
        if (!output_open(&out, a->plot))
            return CLI_FAILED;
        if (!output_close(&out, scaling_svg(s, out.file), "the plot"))
            return CLI_FAILED;
    }
    if (!output_open(&out, a->output))
        return CLI_FAILED;
    if (!a->json)
        scaling_title(s, out.file);
    const int rc = a->json ? scaling_document(s, out.file) : scaling_text(s, out.file);
    return output_close(&out, rc, "the result") ? CLI_GOOD : CLI_FAILED;
}

int cmd_scale(int argc, char **argv)
{
    struct scale_args a = { .runs = 10, .warmup = 2, .budget_ns = 120000000000 };
    struct scale_options o = { .memory_bytes = NAN };
    char error[MEASURE_ERROR_LEN] = "";
    int status;
    modelargs_init(&a.model);
    modelargs_spell(argc, argv);
    if (!options_parse(&command, &argc, argv, &a, &status))
        return status;
    if (a.runs == 0)
        return options_fail(&command, "--num-runs must be 1 or more");
    if (!prepare(&a, argc, argv, &o) || modelargs_optimizer(&command, &a.model) < 0 ||
        !output_possible(a.output) || (a.plot && !output_possible(a.plot)))
        return CLI_FAILED;
    struct progress progress = { .quiet = a.quiet };
    o.progress = progress_point;
    o.arg = &progress;
    struct scaling *s = calloc(1, sizeof *s);
    if (!s) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    const int rc = scaling_run(&o, s, error);
    progress_clear(&progress);
    if (rc < 0)
        cli_error("cannot measure: %s", error);
    status = rc < 0 ? CLI_FAILED : print(&a, s);
    free(s);
    return status;
}
