/* modelargs.h: the sizes of a model on the command line: `flops`, `model` and `scale`
 * share them, in both spellings: --hidden-dim and the document's --hidden_dim. */
#ifndef SONDE_CLI_MODELARGS_H
#define SONDE_CLI_MODELARGS_H

#include <stdbool.h>

#include "cli/options.h"
#include "model/config.h"

/* NULL or MODEL_NOT_GIVEN: not given. A zero that was given is an error, not a default. */
#define MODEL_NOT_GIVEN UINT64_MAX
struct model_args {
    const char *message, *encoding, *optimizer, *dropout;
    uint64_t hidden, layers, heads, ffn, nodes, edges, degree, batch, features, outputs,
        tokens, vocabulary, encoding_dim, seed;
};

#define MODEL_ARG(at, name) (offsetof(at, model) + offsetof(struct model_args, name))

/* Option rows for a struct `type` whose member `model` is a struct model_args. */
#define MODEL_OPTIONS(type)                                                                \
    { "hidden-dim", 0,                                                                     \
      OPTION_COUNT, MODEL_ARG(type, hidden),                                               \
      .value = "N", .help = "width of the model (default 256)" },                          \
        { "num-layers", 0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, layers),                                           \
          .value = "N", .help = "layers (default 6; mlp 3)" },                             \
        { "num-heads",  0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, heads),                                            \
          .value = "N", .help = "attention heads (default 8)" },                           \
        { "ffn-dim",                                                                       \
          0,                                                                               \
          OPTION_COUNT,                                                                    \
          MODEL_ARG(type, ffn),                                                            \
          .value = "N",                                                                    \
          .help =                                                                          \
              "inner width of the feed-forward part (default 2 × hidden; gpt2 4 ×)" },     \
        { "num-nodes",  0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, nodes),                                            \
          .value = "N", .help = "nodes of each graph (default 500)" },                     \
        { "num-edges",  0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, edges),                                            \
          .value = "N", .help = "directed edges of each graph (default nodes × degree)" }, \
        { "avg-degree", 0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, degree),                                           \
          .value = "N", .help = "edges per node (default 5)" },                            \
        { "batch-size", 'b',                                                               \
          OPTION_COUNT, MODEL_ARG(type, batch),                                            \
          .value = "N", .help = "graphs, sequences or rows at a time" },                   \
        { "features",   0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, features),                                         \
          .value = "N", .help = "features of a node or row (default 16; mlp 784)" },       \
        { "outputs",    0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, outputs),                                          \
          .value = "N", .help = "results (default 10)" },                                  \
        { "seq-len",    0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, tokens),                                           \
          .value = "N", .help = "gpt2: tokens of a sequence (default 128)" },              \
        { "vocab",      0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, vocabulary),                                       \
          .value = "N", .help = "gpt2: different tokens (default 256: bytes)" },           \
        { "mpnn",                                                                          \
          0,                                                                               \
          OPTION_TEXT,                                                                     \
          MODEL_ARG(type, message),                                                        \
          .value = "KIND",                                                                 \
          .help =                                                                          \
              "message passing: gin, gcn, gine, gat, gatedgcn, pna, sage or none" },       \
        { "pe",                                                                            \
          0,                                                                               \
          OPTION_TEXT,                                                                     \
          MODEL_ARG(type, encoding),                                                       \
          .value = "KIND",                                                                 \
          .help = "positional encoding: none, lap, lap_lanczos, rwse, rwse_sparse" },      \
        { "pe-dim",     0,                                                                 \
          OPTION_COUNT, MODEL_ARG(type, encoding_dim),                                     \
          .value = "N", .help = "its size (default 16)" },                                 \
        { "optimizer",     0,                                                              \
          OPTION_TEXT,     MODEL_ARG(type, optimizer),                                     \
          .value = "KIND", .help = "sgd, sgd_momentum, adam or adamw (the default)" },     \
        { "dropout",                                                                       \
          0,                                                                               \
          OPTION_TEXT,                                                                     \
          MODEL_ARG(type, dropout),                                                        \
          .value = "P",                                                                    \
          .help =                                                                          \
              "part of the elements that training drops, 0 to below 1 (default 0)" },      \
    {                                                                                      \
        "seed", 0, OPTION_COUNT, MODEL_ARG(type, seed),                                    \
            .value = "N", .help = "of weights, graphs and dropout (default 42)"            \
    }

void modelargs_init(struct model_args *args);

/* "--hidden_dim" becomes "--hidden-dim" in place: the parser knows one spelling. */
void modelargs_spell(int argc, char **argv);

/* The family's defaults with what was given, checked. False: the error was printed. */
bool modelargs_config(const struct command *command, const struct model_args *args,
                      enum family family, struct model_config *ret_config);

/* For models whose other sizes we do not know: whatever was given is 1 or more, and the
 * optimizer is one. False: the error was printed. */
bool modelargs_plausible(const struct command *command, const struct model_args *args);

/* The optimizer, or −1 after an error was printed. */
int modelargs_optimizer(const struct command *command, const struct model_args *args);

#endif
