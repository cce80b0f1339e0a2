/* data.h: something for a reference net to learn, made from a seed. */
#ifndef SONDE_MODEL_REF_DATA_H
#define SONDE_MODEL_REF_DATA_H

#include "model/ref/net.h"

struct data {
    struct graphs graphs;
    int32_t *tokens, *next, *classes;
    float *rows;
    struct batch batch; /* points into the above */
};

/* One batch of the config's sizes: graphs, a text that repeats itself, or noisy centres
 * of classes. 0 or −ENOMEM. */
int data_synthetic(struct data *data, const struct model_config *config, uint64_t seed);
void data_release(struct data *data);

#endif
