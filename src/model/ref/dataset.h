/* dataset.h: graphs by name or folder, for `--dataset`.
 *
 * A folder is read as ogb.h says. `peptides_func` is looked for in ./dataset and in
 * $SONDE_DATA; where it is not, a sample of its shape is made: chains of residues with
 * side chains, about 151 nodes and 307 directed edges each, 9 features, 10 labels. Time
 * and memory are then those of the real set; what is learnt is not.
 */
#ifndef SONDE_MODEL_REF_DATASET_H
#define SONDE_MODEL_REF_DATASET_H

#include <stdbool.h>

#include "model/ref/data.h"
#include "model/ref/ogb.h"

struct dataset {
    struct graphs graphs;
    bool generated;
};

/* The first `limit` graphs. 0, or a negative number and a sentence in ret_error. */
int dataset_load(const char *name, size_t limit, uint64_t seed,
                 struct dataset *ret_dataset, char ret_error[OGB_ERROR_LEN]);
void dataset_release(struct dataset *dataset);

/* The same as a batch to run. */
int dataset_batch(const char *name, size_t limit, uint64_t seed, struct data *ret_data);

/* Graphs of the shape of peptides_func. */
int dataset_sample(size_t count, uint64_t seed, struct graphs *ret_graphs);

#endif
