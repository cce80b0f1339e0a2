/* train.h: the training program behind `sonde demo`.
 *
 * Reads drawn digits from a file, learns to tell them apart, evaluates after every
 * epoch, writes checkpoints; instrumented with the public header alone. An example to
 * copy from. The result depends on the options only: not on time, not on threads, not
 * on whether anything records.
 */
#ifndef SONDE_DEMO_TRAIN_H
#define SONDE_DEMO_TRAIN_H

#include <stdint.h>
#include <stdio.h>

/* Zero means default. */
struct train_options {
    uint64_t seed;     /* 1 */
    unsigned steps;    /* ten epochs */
    unsigned pictures; /* 6,000 to train with; at least one batch */
    unsigned held_out; /* 1,000 to evaluate with */
    FILE *log;         /* progress; NULL is silent */
};

struct train_result {
    unsigned steps, epochs;
    double first_loss; /* mean of the first epoch */
    double last_loss;  /* mean of the last epoch */
    double accuracy;   /* on held-out pictures, 0 … 1 */
    uint64_t checksum; /* of all parameters: equal when two runs learned the same */
};

/* 0 or −errno. */
int train_run(const struct train_options *options, struct train_result *ret_result);

#endif
