/* net.h: what all reference nets have: named parameters in one array, gradients and the
 * optimizer's moments in arrays of the same shape, a tape, and a clock per part.
 *
 *     struct refnet net;
 *     rc = refnet_init(&net, &config);
 *     for (…) {
 *         rc = refnet_forward(&net, &batch, &loss);
 *         rc = refnet_backward(&net);
 *         refnet_update(&net, rate);
 *     }
 *     refnet_release(&net);
 *
 * The nets are meant to be read: forward and backward of each layer stand side by side
 * (layers.c, attention.c, message.c), a family is how they are put together
 * (graph_transformer.c, gpt2.c, mlp.c). Parameters have torch's names, shapes and order,
 * so that either side can load the other's; `sonde run -- sonde model …` shows their
 * zones. Single-threaded but for the matrix products.
 */
#ifndef SONDE_MODEL_REF_NET_H
#define SONDE_MODEL_REF_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <sonde/sonde.h>

#include "model/config.h"
#include "model/ref/graphs.h"
#include "model/ref/tape.h"

enum { PARAMETER_NAME_LEN = 64 };

struct parameter {
    char name[PARAMETER_NAME_LEN]; /* "layers.0.ffn.0.weight" */
    size_t rows, columns;          /* columns 0: a vector of `rows` */
    size_t at;                     /* in the arrays of the net */
    float *value, *grad;
};

/* Parts are timed apart, in the order and by the names of the cost formulas. */
enum part {
    PART_ENCODER,
    PART_MESSAGE,
    PART_ATTENTION,
    PART_FFN,
    PART_NORM,
    PART_HEAD,
    PART_OPTIMIZER,
    PART_COUNT
};
const char *refpart_name(enum part part);

struct part_time {
    uint64_t forward_ns, backward_ns;
};

/* What inside a part grows by a law of its own, without the products around it. */
enum inner {
    INNER_PAIRS, /* of attention: scores, softmax, context: the square of the nodes */
    INNER_MESSAGES, /* of message passing: what is done for each edge */
    INNER_COUNT
};
const char *refinner_name(enum inner inner);

/* One batch of whatever the family eats. Borrowed from forward to backward. */
struct batch {
    const struct graphs *graphs;  /* graph_transformer */
    const int32_t *tokens, *next; /* gpt2: batch × tokens, and what follows each */
    const float *rows;            /* mlp: batch × features */
    const int32_t *classes;       /* mlp: of each row */
    size_t count;                 /* sequences or rows */
};

struct refnet;
struct refnet_family {
    int (*init)(struct refnet *net); /* declares its parameters */
    double (*forward)(struct refnet *net, const struct batch *batch);
    void (*backward)(struct refnet *net);
    void (*release)(struct refnet *net);
};

struct refnet {
    struct model_config config;
    const struct refnet_family *family;
    void *own; /* the family's layers */
    struct parameter *parameters;
    size_t parameter_count, parameter_cap, count;
    float *values, *grads, *moment1, *moment2;
    struct tape tape;
    bool training;    /* dropout only then */
    uint64_t step;    /* updates done: dropout and AdamW depend on it */
    uint64_t dropped; /* dropouts so far in this step */
    bool has_forward;
    const float *output; /* of the last forward: logits */
    size_t output_count;
    struct part_time times[PART_COUNT];
    struct part_time inner[INNER_COUNT];
    clockid_t clock; /* of both; 0 is CLOCK_REALTIME: set by refnet_init() */
};

/* 0, −ENOMEM, −EINVAL when config_check() would refuse, SONDE_E_UNSUPPORTED for a part
 * the reference nets do not have. */
int refnet_init(struct refnet *net, const struct model_config *config);
void refnet_release(struct refnet *net);

/* The loss of a batch; keeps what refnet_backward() needs. 0 or −ENOMEM. */
int refnet_forward(struct refnet *net, const struct batch *batch, double *ret_loss);
/* Fills the gradients from zero. −EINVAL without a forward pass before it. */
int refnet_backward(struct refnet *net);
/* AdamW with torch's defaults. */
void refnet_update(struct refnet *net, float rate);

/* NULL when there is none of that name. */
struct parameter *refnet_parameter(struct refnet *net, const char *name);

/* ---- For families ------------------------------------------------------------------- */

/* While the family declares; the values come later. −ENOMEM. */
int refnet_declare(struct refnet *net, size_t rows, size_t columns, const char *fmt,
                   ...) __attribute__((format(printf, 4, 5)));

/* Drops elements when training; the second call of a pair, in the backward pass, is
 * given what the first returned. */
uint64_t refnet_dropout(struct refnet *net, float *y, size_t n);
void refnet_dropout_again(struct refnet *net, float *dy, size_t n, uint64_t which);

/* A part of a pass: a zone for whoever profiles the net, and time for net->times.
 *
 *     struct part_clock clock = refpart_begin(net, PART_FFN, false);
 *     …
 *     refpart_end(&clock); */
struct part_clock {
    struct refnet *net;
    enum part part;
    bool backward;
    uint64_t start_ns;
    struct sonde_site *site;
};
struct part_clock refpart_begin(struct refnet *net, enum part part, bool backward);
void refpart_end(struct part_clock *clock);

extern const struct refnet_family graph_transformer_family, gpt2_family, mlp_family;

#endif
