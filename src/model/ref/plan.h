/* plan.h: the memory a training step of a reference net takes, before it is built.
 *
 * What the cost formulas say is kept, and what the backward pass needs beside it. The nets
 * do not read this: it is a prediction, tested against what they allocate.
 */
#ifndef SONDE_MODEL_REF_PLAN_H
#define SONDE_MODEL_REF_PLAN_H

#include "model/config.h"

struct plan {
    double parameters; /* bytes: weights, gradients and two moments */
    double activations;
    double scratch; /* gradients under way, the largest part's temporaries */
    double data;
    double total;
};

/* `config` passed config_check(). 0 or −ENOMEM. */
int plan_training(const struct model_config *config, struct plan *ret_plan);

/* Bytes this process may still take: the least of free memory, cgroup limit and
 * RLIMIT_AS. NaN when nothing is known. */
double plan_available(void);

#endif
