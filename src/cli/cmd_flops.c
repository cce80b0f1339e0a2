/* cmd_flops.c: `sonde flops`: what a model costs, by formula; nothing is run. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/modelargs.h"
#include "cli/output.h"
#include "model/answer.h"
#include "model/ref/plan.h"
#include "present/model/model.h"

struct flops_options {
    struct model_args model;
    bool json, list, mixed;
    const char *output;
};

#define FIELD(name) offsetof(struct flops_options, name)

static const struct option options[] = {
    { "list", 'l', OPTION_FLAG, FIELD(list),
      .help = "the published models, their figures and ours" },
    MODEL_OPTIONS(struct flops_options),
    { "mixed", 0, OPTION_FLAG, FIELD(mixed),
      .help = "memory of mixed-precision training" },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "print JSON" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write there instead of to the terminal" },
};

static const struct command command = {
    .verb = "flops",
    .usage = "[options] [MODEL]",
    .summary = "what a model costs, by formula: operations, parameters, memory",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "MODEL is graph_transformer (the default), gpt2 or mlp, with the sizes above,\n"
        "or a published one of --list. Options may be written with underscores too.\n"
        "For a torch model: sonde.flops(model, inputs) in Python.\n"
        "\n"
        "A multiply-add is two operations; softmax and norms count 5 per element,\n"
        "GELU 4, other element-wise work 1. Figures called \"GFLOPs\" elsewhere are\n"
        "often multiply-adds: compare with the column MAC.\n",
};

static int unknown_model(const char *name)
{
    const char *names[64];
    unsigned count = 0;
    for (int i = 0; i < FAMILY_COUNT; i++)
        names[count++] = family_name((enum family)i);
    for (size_t i = 0; zoo_at(i) && count < 64; i++)
        names[count++] = zoo_at(i)->name;
    const char *near = cli_nearest(name, names, count);
    return near ? options_fail(&command, "there is no model '%s'; did you mean '%s'?",
                               name, near)
                : options_fail(&command, "there is no model '%s' (--list shows them)",
                               name);
}

/* Prints its errors itself; a negative number or 0. */
static int estimate(const struct flops_options *o, const char *name,
                    struct model_config *config, struct plan *plan,
                    struct model_answer *ret_answer)
{
    const int optimizer = modelargs_optimizer(&command, &o->model);
    const int precision = o->mixed ? SONDE_MIXED : SONDE_FLOAT32;
    const struct zoo_model *zoo = zoo_find(name);
    const int family = family_of(name);
    if (optimizer < 0)
        return -1;
    if (zoo)
        return answer_estimate_zoo(zoo, optimizer, precision, ret_answer);
    if (family < 0) {
        (void)unknown_model(name);
        return -1;
    }
    if (!modelargs_config(&command, &o->model, (enum family)family, config))
        return -1;
    const int rc = answer_estimate_config(config, optimizer, precision, ret_answer);
    if (rc < 0 || plan_training(config, plan) < 0)
        return -1;
    ret_answer->plan = plan;
    return 0;
}

int cmd_flops(int argc, char **argv)
{
    struct flops_options o = { 0 };
    struct model_config config;
    struct plan plan;
    struct model_answer answer;
    struct output out;
    int status, rc = 0;
    modelargs_init(&o.model);
    modelargs_spell(argc, argv);
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc > 2)
        return options_fail(&command, "one model at a time, got also '%s'", argv[2]);
    if (!o.list && estimate(&o, argc == 2 ? argv[1] : "graph_transformer", &config,
                            &plan, &answer) < 0)
        return CLI_FAILED;
    if (!output_open(&out, o.output))
        return CLI_FAILED;
    if (o.list)
        rc = o.json ? zoo_json(out.file) : zoo_text(out.file);
    else
        rc = o.json ? model_json(&answer, out.file) : model_text(&answer, out.file);
    return output_close(&out, rc, "the estimate") ? CLI_GOOD : CLI_FAILED;
}
