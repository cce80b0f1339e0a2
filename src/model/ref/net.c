/* net.c: see net.h. */
#include "model/ref/net.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/moment.h"
#include "model/ref/kernels.h"
#include "model/ref/random.h"

static const struct refnet_family *const families[FAMILY_COUNT] = {
    [FAMILY_GRAPH_TRANSFORMER] = &graph_transformer_family,
    [FAMILY_GPT2] = &gpt2_family,
    [FAMILY_MLP] = &mlp_family,
};

static const char *const parts[PART_COUNT] = {
    [PART_ENCODER] = "encoder",     [PART_MESSAGE] = "mpnn",
    [PART_ATTENTION] = "attention", [PART_FFN] = "ffn",
    [PART_NORM] = "norm",           [PART_HEAD] = "head",
    [PART_OPTIMIZER] = "optimizer",
};

const char *refpart_name(enum part part)
{
    return parts[part];
}

const char *refinner_name(enum inner inner)
{
    return inner == INNER_PAIRS ? "attention pairs" : "messages";
}

/* ---- Parameters ----------------------------------------------------------------------- */

int refnet_declare(struct refnet *net, size_t rows, size_t columns, const char *fmt,
                   ...)
{
    if (net->parameter_count == net->parameter_cap) {
        const size_t cap = net->parameter_cap ? 2 * net->parameter_cap : 64;
        struct parameter *more = realloc(net->parameters, cap * sizeof *more);
        if (!more)
            return -ENOMEM;
        net->parameters = more;
        net->parameter_cap = cap;
    }
    struct parameter *p = &net->parameters[net->parameter_count++];
    *p = (struct parameter){ .rows = rows, .columns = columns, .at = net->count };
    net->count += rows * (columns ? columns : 1);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(p->name, sizeof p->name, fmt, args);
    va_end(args);
    return 0;
}

struct parameter *refnet_parameter(struct refnet *net, const char *name)
{
    for (size_t i = 0; i < net->parameter_count; i++)
        if (strcmp(net->parameters[i].name, name) == 0)
            return &net->parameters[i];
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* Matrices uniform within 1/√columns, as torch's linear layers; biases zero; gains of
 * norms one. Each parameter draws from its own stream: adding one moves no other. */
static void draw_parameter(const struct refnet *net, struct parameter *p, size_t index)
{
    const bool gain = !p->columns && ends_with(p->name, "weight");
    struct prng random;
    prng_init(&random, net->config.seed * 1000003 + index);
    const float bound = p->columns ? 1 / sqrtf((float)p->columns) : 0;
    const size_t n = p->rows * (p->columns ? p->columns : 1);
    for (size_t i = 0; i < n; i++)
        p->value[i] = p->columns ? random_uniform(&random, -bound, bound) : gain;
}

static int make_arrays(struct refnet *net)
{
    net->values = calloc(net->count, sizeof(float));
    net->grads = calloc(net->count, sizeof(float));
    net->moment1 = calloc(net->count, sizeof(float));
    net->moment2 = calloc(net->count, sizeof(float));
    if (!net->values || !net->grads || !net->moment1 || !net->moment2)
        return -ENOMEM;
    for (size_t i = 0; i < net->parameter_count; i++) {
        struct parameter *p = &net->parameters[i];
        p->value = net->values + p->at;
        p->grad = net->grads + p->at;
        draw_parameter(net, p, i);
    }
    return 0;
}

int refnet_init(struct refnet *net, const struct model_config *config)
{
    char unused[CONFIG_ERROR_LEN];
    if (config_check(config, unused) < 0)
        return -EINVAL;
    *net = (struct refnet){ .config = *config,
                            .family = families[config->family],
                            .training = true,
                            .clock = CLOCK_MONOTONIC };
    int rc = net->family->init(net);
    if (rc == 0)
        rc = make_arrays(net);
    if (rc < 0)
        refnet_release(net);
    return rc;
}

void refnet_release(struct refnet *net)
{
    if (net->family)
        net->family->release(net);
    free(net->parameters);
    free(net->values);
    free(net->grads);
    free(net->moment1);
    free(net->moment2);
    tape_release(&net->tape);
    *net = (struct refnet){ 0 };
}

/* ---- A step --------------------------------------------------------------------------- */

int refnet_forward(struct refnet *net, const struct batch *batch, double *ret_loss)
{
    net->has_forward = false;
    tape_rewind(&net->tape);
    net->dropped = 0;
    if (setjmp(net->tape.out_of_memory))
        return -ENOMEM;
    SONDE_ZONE("forward", SONDE_FORWARD) {
        *ret_loss = net->family->forward(net, batch);
    }
    net->has_forward = true;
    return 0;
}

int refnet_backward(struct refnet *net)
{
    if (!net->has_forward)
        return -EINVAL;
    if (setjmp(net->tape.out_of_memory))
        return -ENOMEM;
    SONDE_ZONE("backward", SONDE_BACKWARD) {
        memset(net->grads, 0, net->count * sizeof(float));
        net->family->backward(net);
    }
    return 0;
}

void refnet_update(struct refnet *net, float rate)
{
    struct part_clock clock = refpart_begin(net, PART_OPTIMIZER, false);
    const double t = (double)++net->step;
    const struct adamw rule = {
        .rate = rate,
        .beta1 = 0.9F,
        .beta2 = 0.999F,
        .epsilon = 1e-8F,
        .decay = 0.01F,
        .correct1 = (float)(1 - pow(0.9, t)),
        .correct2 = (float)(1 - pow(0.999, t)),
    };
    kernel_adamw(net->values, net->grads, net->moment1, net->moment2, net->count,
                 &rule);
    refpart_end(&clock);
}

/* ---- Dropout --------------------------------------------------------------------------- */

static void drop(struct refnet *net, float *y, size_t n, uint64_t which)
{
    const uint64_t seed = (net->config.seed * 0x9e3779b97f4a7c15U) ^ (net->step << 32) ^
                          which;
    if (net->training && net->config.dropout > 0)
        kernel_dropout(y, n, (float)net->config.dropout, seed);
}

uint64_t refnet_dropout(struct refnet *net, float *y, size_t n)
{
    const uint64_t which = ++net->dropped;
    drop(net, y, n, which);
    return which;
}

void refnet_dropout_again(struct refnet *net, float *dy, size_t n, uint64_t which)
{
    drop(net, dy, n, which);
}

/* ---- Parts ----------------------------------------------------------------------------- */

static struct sonde_site *site_of(enum part part, bool backward)
{
    static struct sonde_site *sites[PART_COUNT][2];
    struct sonde_site **site = &sites[part][backward];
    if (!*site) {
        char name[48];
        (void)snprintf(name, sizeof name, "%s%s", parts[part],
                       part == PART_OPTIMIZER ? ""
                       : backward             ? " backward"
                                              : " forward");
        *site = sonde_site_named(
            name, part == PART_OPTIMIZER ? SONDE_OPTIMIZER : SONDE_NO_PHASE, "net",
            "layer", NULL);
    }
    return *site;
}

struct part_clock refpart_begin(struct refnet *net, enum part part, bool backward)
{
    struct part_clock clock = {
        .net = net, .part = part, .backward = backward, .site = site_of(part, backward)
    };
    sonde_begin(clock.site);
    clock.start_ns = moment_ns(net->clock);
    return clock;
}

void refpart_end(struct part_clock *clock)
{
    struct part_time *time = &clock->net->times[clock->part];
    *(clock->backward
          ? &time->backward_ns
          : &time->forward_ns) += moment_ns(clock->net->clock) - clock->start_ns;
    sonde_end(clock->site);
}
