/* answer.h: what is known about one model: estimates always, measurements where they
 * were asked for and could be had. src/present/model prints it. */
#ifndef SONDE_MODEL_ANSWER_H
#define SONDE_MODEL_ANSWER_H

#include <stdbool.h>

#include <sonde/model.h>

#include "model/config.h"
#include "model/zoo.h"

struct measurement;
struct plan;
struct roofline;
struct scaling;

struct model_answer {
    const char *name;                  /* "graph_transformer", "resnet50" */
    const struct zoo_model *zoo;       /* NULL: not a published one */
    const struct model_config *config; /* NULL: not of a family */
    int optimizer, precision;
    struct sonde_estimate estimate;
    struct sonde_memory training, inference;
    bool has_attention, has_storage;
    struct sonde_attention_memory attention; /* of one layer */
    struct sonde_encoding_storage storage;
    bool has_padding;
    struct sonde_padding padding;

    /* Measured; NULL: not asked for. Borrowed. */
    const struct measurement *measured;
    const struct plan *plan; /* predicted memory of the net that ran */
    const struct roofline *roofline;
    const struct scaling *const *scalings;
    size_t scaling_count;
    const char *note; /* about the data: "a generated sample of …" */
    bool hide_flops, hide_memory, has_runtime;
};

/* Everything that formulas say; the rest is zero. `config` passed config_check(). */
int answer_estimate_config(const struct model_config *config, int optimizer,
                           int precision, struct model_answer *ret_answer);
int answer_estimate_zoo(const struct zoo_model *model, int optimizer, int precision,
                        struct model_answer *ret_answer);

#endif
