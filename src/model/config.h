/* config.h: a model of a known family, by its sizes: what `sonde flops`, `sonde model` and
 * `sonde scale` are told, and what the reference nets are built from.
 *
 * One struct for all families; each reads what concerns it (models[] in config.c lists
 * that). config_default() gives the document's sizes.
 */
#ifndef SONDE_MODEL_CONFIG_H
#define SONDE_MODEL_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <sonde/model.h>

#include "model/list.h"

enum family { FAMILY_GRAPH_TRANSFORMER, FAMILY_GPT2, FAMILY_MLP, FAMILY_COUNT };

struct model_config {
    enum family family;
    uint64_t layers, hidden, heads, ffn; /* ffn 0: twice hidden; gpt2: four times */
    uint64_t batch;                      /* graphs, sequences or rows */
    uint64_t nodes, degree;              /* of each graph; edges = nodes · degree */
    uint64_t edges;                      /* of each graph; 0: by degree */
    const uint64_t *graph_nodes, *graph_edges; /* `batch` of each, where graphs differ;
                                                  NULL: all alike. Borrowed. */
    uint64_t features, outputs;
    uint64_t tokens, vocabulary; /* gpt2 */
    int message, encoding;       /* enum sonde_message, sonde_encoding */
    uint64_t encoding_dim;       /* 0: none */
    double dropout;
    uint64_t seed;
};

enum { CONFIG_ERROR_LEN = 160 };

const char *family_name(enum family family);
/* −EINVAL when there is none of that name. */
int family_of(const char *name);

struct model_config config_default(enum family family);

/* 0, or −EINVAL with what is wrong and what would be right in ret_error. Sizes that the
 * family does not read are not looked at. */
int config_check(const struct model_config *config, char ret_error[CONFIG_ERROR_LEN]);

/* The layers of one forward pass over the whole batch. `config` passed config_check(). */
void config_layers(const struct model_config *config, struct layer_list *list);

/* Whether the net gives its edges features: gine and gatedgcn look at them. */
int config_has_edge_features(const struct model_config *config);
/* So many, of which any graph has: 1 and the degrees at both ends. */
enum { CONFIG_EDGE_FEATURES = 3 };

uint64_t config_ffn(const struct model_config *config);
/* Of one graph, the average where they differ. */
uint64_t config_edges(const struct model_config *config);

/* Rows the model works on, and what they are called: nodes, tokens, rows. */
uint64_t config_rows(const struct model_config *config);

#endif
