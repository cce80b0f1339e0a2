/* answer.c: see answer.h. */
#include "model/answer.h"

#include <errno.h>

static int estimate(struct model_answer *a, const struct layer_list *list)
{
    int rc = list_estimate(list, NULL, &a->estimate);
    a->training.size = a->inference.size = sizeof a->training;
    if (rc == 0)
        rc = sonde_training_memory(&a->estimate.total, a->optimizer, a->precision,
                                   &a->training);
    if (rc == 0)
        rc = sonde_training_memory(&a->estimate.total, -1, a->precision, &a->inference);
    for (size_t i = 0; rc == 0 && i < list->count && !a->has_attention; i++) {
        a->attention.size = sizeof a->attention;
        a->has_attention = sonde_attention_memory(&list->layers[i], NULL,
                                                  &a->attention) == 0;
    }
    return rc;
}

static int finish(struct model_answer *a, struct layer_list *list, int rc,
                  struct model_answer *ret_answer)
{
    list_release(list);
    if (rc == 0)
        *ret_answer = *a;
    return rc;
}

int answer_estimate_config(const struct model_config *config, int optimizer,
                           int precision, struct model_answer *ret_answer)
{
    enum { BUCKETS = 16 }; /* the document's */
    struct model_answer a = { .name = family_name(config->family),
                              .config = config,
                              .optimizer = optimizer,
                              .precision = precision };
    struct layer_list list = LAYER_LIST_INIT;
    config_layers(config, &list);
    a.storage.size = sizeof a.storage;
    if (config->family == FAMILY_GRAPH_TRANSFORMER)
        a.has_storage = sonde_encoding_storage(config->nodes, config->encoding_dim,
                                               BUCKETS, 0.1, &a.storage) == 0;
    return finish(&a, &list, estimate(&a, &list), ret_answer);
}

int answer_estimate_zoo(const struct zoo_model *model, int optimizer, int precision,
                        struct model_answer *ret_answer)
{
    struct model_answer a = { .name = model->name,
                              .zoo = model,
                              .optimizer = optimizer,
                              .precision = precision };
    struct layer_list list = LAYER_LIST_INIT;
    model->layers(&list);
    return finish(&a, &list, estimate(&a, &list), ret_answer);
}
