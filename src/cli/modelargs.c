/* modelargs.c: see modelargs.h. */
#include "cli/modelargs.h"

#include <stdlib.h>
#include <string.h>

void modelargs_spell(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], "--", 2) == 0)
            for (char *c = argv[i]; *c && *c != '='; c++)
                if (*c == '_')
                    *c = '-';
}

void modelargs_init(struct model_args *args)
{
    const uint64_t no = MODEL_NOT_GIVEN;
    *args = (struct model_args){ .hidden = no,
                                 .layers = no,
                                 .heads = no,
                                 .ffn = no,
                                 .nodes = no,
                                 .edges = no,
                                 .degree = no,
                                 .batch = no,
                                 .features = no,
                                 .outputs = no,
                                 .tokens = no,
                                 .vocabulary = no,
                                 .encoding_dim = no,
                                 .seed = no };
}

static void set(uint64_t *field, uint64_t given)
{
    if (given != MODEL_NOT_GIVEN)
        *field = given;
}

static void set_sizes(struct model_config *c, const struct model_args *a)
{
    set(&c->hidden, a->hidden);
    set(&c->layers, a->layers);
    set(&c->heads, a->heads);
    set(&c->ffn, a->ffn);
    set(&c->nodes, a->nodes);
    set(&c->edges, a->edges);
    set(&c->degree, a->degree);
    set(&c->batch, a->batch);
    set(&c->features, a->features);
    set(&c->outputs, a->outputs);
    set(&c->tokens, a->tokens);
    set(&c->vocabulary, a->vocabulary);
    set(&c->encoding_dim, a->encoding_dim);
    set(&c->seed, a->seed);
}

static bool set_dropout(const struct command *command, const char *text,
                        struct model_config *c)
{
    char *end = NULL;
    c->dropout = text ? strtod(text, &end) : 0;
    if (!text || (end != text && *end == '\0' && c->dropout >= 0 && c->dropout < 1))
        return true;
    (void)options_fail(command, "--dropout wants a number from 0 to below 1, got '%s'",
                       text);
    return false;
}

static bool set_kinds(const struct command *command, const struct model_args *a,
                      struct model_config *c)
{
    enum { ENCODING_DIM = 16 };
    if (a->message && (c->message = sonde_message_of(a->message)) < 0) {
        (void)options_fail(command,
                           "--mpnn wants gin, gcn, gine, gat, gatedgcn, pna, "
                           "sage or none, got '%s'",
                           a->message);
        return false;
    }
    if (a->encoding && (c->encoding = sonde_encoding_of(a->encoding)) < 0) {
        (void)options_fail(command,
                           "--pe wants none, lap, lap_lanczos, rwse or "
                           "rwse_sparse, got '%s'",
                           a->encoding);
        return false;
    }
    if (c->encoding != SONDE_NO_ENCODING && !c->encoding_dim)
        c->encoding_dim = a->encoding_dim == 0 ? 0 : ENCODING_DIM; /* 0: refused */
    return set_dropout(command, a->dropout, c);
}

bool modelargs_config(const struct command *command, const struct model_args *args,
                      enum family family, struct model_config *ret_config)
{
    char error[CONFIG_ERROR_LEN];
    struct model_config c = config_default(family);
    set_sizes(&c, args);
    if (!set_kinds(command, args, &c))
        return false;
    if (config_check(&c, error) < 0) {
        (void)options_fail(command, "%s", error);
        return false;
    }
    *ret_config = c;
    return true;
}

bool modelargs_plausible(const struct command *command, const struct model_args *a)
{
    const struct {
        const char *option;
        uint64_t given;
    } sizes[] = {
        { "--hidden-dim", a->hidden }, { "--num-layers", a->layers },
        { "--num-heads", a->heads },   { "--ffn-dim", a->ffn },
        { "--num-nodes", a->nodes },   { "--num-edges", a->edges },
        { "--batch-size", a->batch },  { "--features", a->features },
        { "--outputs", a->outputs },   { "--seq-len", a->tokens },
        { "--vocab", a->vocabulary },  { "--pe-dim", a->encoding_dim },
    };
    struct model_config unused = { .family = FAMILY_MLP };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].given == 0) {
            (void)options_fail(command, "%s must be 1 or more, got 0", sizes[i].option);
            return false;
        }
    return set_dropout(command, a->dropout, &unused) &&
           modelargs_optimizer(command, a) >= 0;
}

int modelargs_optimizer(const struct command *command, const struct model_args *args)
{
    if (!args->optimizer)
        return SONDE_ADAMW;
    const int optimizer = sonde_optimizer_of(args->optimizer);
    if (optimizer < 0) {
        (void)options_fail(
            command, "--optimizer wants sgd, sgd_momentum, adam or adamw, got '%s'",
            args->optimizer);
        return -1;
    }
    return optimizer;
}
