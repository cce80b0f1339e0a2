/* layer.c: one layer's cost: the table of kinds, what each needs, names. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/cost.h"

enum { SIZE_LIMIT_BITS = 40 };

enum need {
    ROWS = 1 << 0,
    IN = 1 << 1,
    OUT = 1 << 2,
    HIDDEN = 1 << 3,
    HEADS = 1 << 4,
    KERNEL = 1 << 5,
};

static const struct kind {
    const char *name;
    int needs;
    void (*cost)(struct costing *);
} kinds[SONDE_LAYER_KIND_COUNT] = {
    [SONDE_LAYER_LINEAR] = { "linear", ROWS | IN | OUT, linear_cost },
    [SONDE_LAYER_EMBEDDING] = { "embedding", ROWS | IN | OUT, embedding_cost },
    [SONDE_LAYER_NORM] = { "norm", ROWS | IN, norm_cost },
    [SONDE_LAYER_SOFTMAX] = { "softmax", ROWS | IN, softmax_cost },
    [SONDE_LAYER_ACTIVATION] = { "activation", ROWS | IN, activation_cost },
    [SONDE_LAYER_ELEMENTS] = { "elements", ROWS | IN, elements_cost },
    [SONDE_LAYER_ATTENTION] = { "attention", ROWS | IN | HEADS, attention_cost },
    [SONDE_LAYER_FFN] = { "ffn", ROWS | IN | HIDDEN, ffn_cost },
    [SONDE_LAYER_CONV] = { "conv", ROWS | IN | OUT | KERNEL, conv_cost },
    [SONDE_LAYER_POOL] = { "pool", ROWS | IN, pool_cost },
    [SONDE_LAYER_MESSAGE] = { "message_passing", ROWS | IN, message_cost },
    [SONDE_LAYER_ENCODING] = { "encoding", ROWS | OUT, encoding_cost },
};

static const char *const activations[SONDE_ACTIVATION_COUNT] = {
    [SONDE_RELU] = "relu",
    [SONDE_GELU] = "gelu",
    [SONDE_GELU_TANH] = "gelu_tanh",
    [SONDE_SILU] = "silu",
    [SONDE_SIGMOID] = "sigmoid",
    [SONDE_TANH] = "tanh",
    [SONDE_LEAKY_RELU] = "leaky_relu",
    [SONDE_NO_ACTIVATION] = "none",
};

static const char *const messages[SONDE_MESSAGE_COUNT] = {
    [SONDE_GIN] = "gin",   [SONDE_GCN] = "gcn",         [SONDE_GINE] = "gine",
    [SONDE_GAT] = "gat",   [SONDE_PNA] = "pna",         [SONDE_GATED_GCN] = "gatedgcn",
    [SONDE_SAGE] = "sage", [SONDE_NO_MESSAGE] = "none",
};

static const char *const encodings[SONDE_ENCODING_COUNT] = {
    [SONDE_NO_ENCODING] = "none",
    [SONDE_LAPLACIAN] = "lap",
    [SONDE_LAPLACIAN_LANCZOS] = "lap_lanczos",
    [SONDE_RANDOM_WALK] = "rwse",
    [SONDE_RANDOM_WALK_SPARSE] = "rwse_sparse",
};

static int find(const char *const *names, int count, const char *name)
{
    for (int i = 0; name && i < count; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return i;
    return -EINVAL;
}

static const char *name_at(const char *const *names, int count, int at)
{
    return at >= 0 && at < count ? names[at] : NULL;
}

const char *sonde_activation_name(int activation)
{
    return name_at(activations, SONDE_ACTIVATION_COUNT, activation);
}

int sonde_activation_of(const char *name)
{
    return find(activations, SONDE_ACTIVATION_COUNT, name);
}

const char *sonde_message_name(int message)
{
    return name_at(messages, SONDE_MESSAGE_COUNT, message);
}

int sonde_message_of(const char *name)
{
    return find(messages, SONDE_MESSAGE_COUNT, name);
}

const char *sonde_encoding_name(int encoding)
{
    return name_at(encodings, SONDE_ENCODING_COUNT, encoding);
}

int sonde_encoding_of(const char *name)
{
    return find(encodings, SONDE_ENCODING_COUNT, name);
}

const char *sonde_layer_kind_name(int kind)
{
    return kind > SONDE_LAYER_NONE && kind < SONDE_LAYER_KIND_COUNT ? kinds[kind].name
                                                                    : NULL;
}

int sonde_layer_kind_of(const char *name)
{
    for (int i = 1; name && i < SONDE_LAYER_KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return i;
    return -EINVAL;
}

/* ---- What is wrong with a layer ---------------------------------------------- */

static const struct {
    enum need need;
    const char *name;
    size_t offset;
} fields[] = {
    { ROWS, "rows", offsetof(struct sonde_layer, rows) },
    { IN, "in", offsetof(struct sonde_layer, in) },
    { OUT, "out", offsetof(struct sonde_layer, out) },
    { HIDDEN, "hidden", offsetof(struct sonde_layer, hidden) },
    { HEADS, "heads", offsetof(struct sonde_layer, heads) },
    { KERNEL, "kernel", offsetof(struct sonde_layer, kernel) },
    { 0, "edges", offsetof(struct sonde_layer, edges) },
    { 0, "repeat", offsetof(struct sonde_layer, repeat) },
    { 0, "keys", offsetof(struct sonde_layer, keys) },
    { 0, "pairs", offsetof(struct sonde_layer, pairs) },
    { 0, "sequences", offsetof(struct sonde_layer, sequences) },
    { 0, "edge_dim", offsetof(struct sonde_layer, edge_dim) },
};

static uint64_t field(const struct sonde_layer *l, size_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)l + fields[i].offset, sizeof value);
    return value;
}

static int check_sizes(const struct sonde_layer *l, char *text, size_t len)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const uint64_t value = field(l, i);
        if ((kinds[l->kind].needs & (int)fields[i].need) && value == 0) {
            (void)snprintf(text, len, "%s must be 1 or more", fields[i].name);
            return -EINVAL;
        }
        if (value >> SIZE_LIMIT_BITS) {
            (void)snprintf(text, len, "%s (%" PRIu64 ") is too large", fields[i].name,
                           value);
            return -ERANGE;
        }
    }
    return 0;
}

static int wrong(char *text, size_t len, const char *what, uint64_t a, uint64_t b)
{
    (void)snprintf(text, len, "%s (%" PRIu64 ") must divide %" PRIu64, what, a, b);
    return -EINVAL;
}

static int check_fit(const struct sonde_layer *l, char *text, size_t len)
{
    if (l->kind == SONDE_LAYER_ATTENTION && !l->key_dim && l->in % l->heads)
        return wrong(text, len, "heads", l->heads, l->in);
    if (l->kind == SONDE_LAYER_ATTENTION && l->kv_heads && l->heads % l->kv_heads)
        return wrong(text, len, "kv_heads", l->kv_heads, l->heads);
    if (l->sequences && !l->pairs && l->rows % l->sequences)
        return wrong(text, len, "sequences", l->sequences, l->rows);
    if (l->groups && (l->in % l->groups || l->out % l->groups))
        return wrong(text, len, "groups", l->groups,
                     l->in % l->groups ? l->in : l->out);
    if (!(l->sparse_ratio >= 0 && l->sparse_ratio <= 1)) {
        (void)snprintf(text, len, "sparse_ratio must lie between 0 and 1");
        return -EINVAL;
    }
    if (!sonde_activation_name(l->activation) || !sonde_message_name(l->message) ||
        !sonde_encoding_name(l->encoding)) {
        (void)snprintf(text, len, "unknown activation, message or encoding");
        return -EINVAL;
    }
    return 0;
}

static int check(const struct sonde_layer *l, char *text, size_t len)
{
    text[0] = '\0';
    if (l->size < sizeof *l || !sonde_layer_kind_name(l->kind)) {
        (void)snprintf(text, len, "%s",
                       l->size < sizeof *l ? "size is not set"
                                           : "unknown kind of layer");
        return -EINVAL;
    }
    const int rc = check_sizes(l, text, len);
    return rc < 0 ? rc : check_fit(l, text, len);
}

const char *sonde_layer_error(const struct sonde_layer *layer, char *ret_text,
                              size_t len)
{
    (void)check(layer, ret_text, len);
    return ret_text;
}

/* ---- The cost ------------------------------------------------------------------ */

static double or_default(double value, double standard)
{
    return value > 0 ? value : standard;
}

static struct sonde_counting rules_of(const struct sonde_counting *given)
{
    struct sonde_counting r = { .size = sizeof r };
    if (given)
        memcpy(&r, given, given->size < sizeof r ? given->size : sizeof r);
    r.softmax = or_default(r.softmax, 5);
    r.norm = or_default(r.norm, 5);
    r.gelu = or_default(r.gelu, 4);
    r.smooth = or_default(r.smooth, 4);
    r.simple = or_default(r.simple, 1);
    r.element_bytes = or_default(r.element_bytes, sizeof(float));
    return r;
}

static void scale_ops(struct sonde_ops *ops, double factor)
{
    ops->macs *= factor;
    ops->elementwise *= factor;
    ops->bytes *= factor;
}

static void scale(struct sonde_cost *cost, double factor)
{
    scale_ops(&cost->forward, factor);
    scale_ops(&cost->backward, factor);
    cost->parameters *= factor;
    cost->saved *= factor;
    cost->attention *= factor;
}

int sonde_layer_cost(const struct sonde_layer *layer,
                     const struct sonde_counting *counting, struct sonde_cost *ret_cost)
{
    char text[96];
    const int rc = check(layer, text, sizeof text);
    if (rc < 0)
        return rc;
    struct costing c = { .layer = layer, .rules = rules_of(counting) };
    kinds[layer->kind].cost(&c);
    if (layer->shared)
        c.cost.parameters = 0;
    scale(&c.cost, layer->repeat ? (double)layer->repeat : 1);
    c.cost.size = ret_cost->size;
    *ret_cost = c.cost;
    return 0;
}
