/* estimate.c: layers become a model: sums by component; memory of training; padding. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/cost.h"

double sonde_ops_total(const struct sonde_ops *ops)
{
    return 2 * ops->macs + ops->elementwise;
}

static void add_ops(struct sonde_ops *sum, const struct sonde_ops *more)
{
    sum->macs += more->macs;
    sum->elementwise += more->elementwise;
    sum->bytes += more->bytes;
}

static void add(struct sonde_cost *sum, const struct sonde_cost *more)
{
    add_ops(&sum->forward, &more->forward);
    add_ops(&sum->backward, &more->backward);
    sum->parameters += more->parameters;
    sum->saved += more->saved;
    sum->attention += more->attention;
}

static struct sonde_component *component(struct sonde_estimate *e, const char *name)
{
    for (size_t i = 0; i < e->component_count; i++)
        if (strcmp(e->components[i].name, name) == 0)
            return &e->components[i];
    if (e->component_count == SONDE_COMPONENTS_MAX)
        return &e->components[SONDE_COMPONENTS_MAX - 1];
    if (e->component_count == SONDE_COMPONENTS_MAX - 1)
        name = "other";
    struct sonde_component *new = &e->components[e->component_count++];
    (void)snprintf(new->name, sizeof new->name, "%s", name);
    new->cost.size = sizeof new->cost;
    return new;
}

int sonde_estimate_layers(const struct sonde_layer *layers, size_t count,
                          const struct sonde_counting *counting,
                          struct sonde_estimate *ret_estimate, size_t *ret_bad)
{
    struct sonde_estimate e = { .size = sizeof e, .total.size = sizeof e.total };
    for (size_t i = 0; i < count; i++) {
        struct sonde_cost cost = { .size = sizeof cost };
        const int rc = sonde_layer_cost(&layers[i], counting, &cost);
        if (rc < 0 && ret_bad)
            *ret_bad = i;
        if (rc < 0)
            return rc;
        const char *name = layers[i].component ? layers[i].component
                                               : sonde_layer_kind_name(layers[i].kind);
        add(&component(&e, name)->cost, &cost);
        add(&e.total, &cost);
    }
    *ret_estimate = e;
    return 0;
}

/* ---- Memory ----------------------------------------------------------------------- */

/* `state`: values kept per parameter; `ops`: counted off the update rules. */
static const struct {
    const char *name;
    double state, ops;
} optimizers[SONDE_OPTIMIZER_COUNT] = {
    [SONDE_SGD] = { "sgd", 0, 2 },
    [SONDE_SGD_MOMENTUM] = { "sgd_momentum", 1, 4 },
    [SONDE_ADAM] = { "adam", 2, 12 },
    [SONDE_ADAMW] = { "adamw", 2, 14 },
};

static int known(int optimizer)
{
    return optimizer >= 0 && optimizer < SONDE_OPTIMIZER_COUNT;
}

const char *sonde_optimizer_name(int optimizer)
{
    return known(optimizer) ? optimizers[optimizer].name : NULL;
}

int sonde_optimizer_of(const char *name)
{
    for (int i = 0; name && i < SONDE_OPTIMIZER_COUNT; i++)
        if (strcmp(optimizers[i].name, name) == 0)
            return i;
    return -EINVAL;
}

double sonde_optimizer_ops(int optimizer, double parameters)
{
    return known(optimizer) ? optimizers[optimizer].ops * parameters : 0;
}

int sonde_training_memory(const struct sonde_cost *cost, int optimizer, int precision,
                          struct sonde_memory *ret_memory)
{
    if ((optimizer >= 0 && !known(optimizer)) || precision < 0 ||
        precision >= SONDE_PRECISION_COUNT)
        return -EINVAL;
    const double full = sizeof(float),
                 size = precision == SONDE_MIXED ? full / 2 : full;
    struct sonde_memory m = { .size = ret_memory->size,
                              .parameters = cost->parameters * size };
    if (optimizer >= 0) {
        const double master = precision == SONDE_MIXED ? 1 : 0;
        m.gradients = cost->parameters * size;
        m.optimizer = cost->parameters * full * (optimizers[optimizer].state + master);
        m.activations = cost->saved * size;
        m.attention = cost->attention * size;
    }
    m.total = m.parameters + m.gradients + m.optimizer + m.activations;
    *ret_memory = m;
    return 0;
}

/* ---- Padding ------------------------------------------------------------------------ */

int sonde_padding_waste(const uint64_t *nodes, size_t graphs,
                        struct sonde_padding *ret_padding)
{
    struct sonde_padding p = { .size = ret_padding->size, .graphs = graphs };
    double pairs = 0;
    for (size_t i = 0; i < graphs; i++) {
        p.nodes += nodes[i];
        p.largest = nodes[i] > p.largest ? nodes[i] : p.largest;
        pairs += (double)nodes[i] * (double)nodes[i];
    }
    if (p.largest == 0)
        return -EINVAL;
    const double padded = (double)graphs * (double)p.largest;
    p.node_waste = 1 - (double)p.nodes / padded;
    p.pair_waste = 1 - pairs / (padded * (double)p.largest);
    *ret_padding = p;
    return 0;
}
