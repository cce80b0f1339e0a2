/* model.h: what layers and whole models cost, by formula, without running them.
 *
 *     struct sonde_layer ffn = { .size = sizeof ffn, .kind = SONDE_LAYER_FFN,
 *                                .rows = 500, .in = 256, .hidden = 512 };
 *     struct sonde_cost cost = { .size = sizeof cost };
 *     if (sonde_layer_cost(&ffn, NULL, &cost) == 0)
 *         printf("%.0f FLOPs\n", 2 * cost.forward.macs);
 *
 * Link with libsonde-model (pure maths: libc and libm alone). `sonde flops` prints the
 * same from the command line.
 *
 * What is counted, and what is kept apart:
 *  - macs: multiply-adds of matrix products, convolutions, weighted aggregations. One
 *    of them is two FLOPs. Published "GFLOPs" are often MACs: say which you mean.
 *  - elementwise: everything else, by the rules of struct sonde_counting.
 *  - bytes: the least that must move between memory and the processor when nothing
 *    stays in a cache between two operators: every operand read once, every result
 *    written once.
 * Numbers are doubles that hold whole numbers, exact up to 2^53.
 *
 * Every struct begins with its size, set by the caller; fields added later are then
 * known to be missing in an older caller's struct. Zero means default.
 */
#ifndef SONDE_MODEL_H
#define SONDE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SONDE_API
#define SONDE_API __attribute__((visibility("default")))
#endif

/* ---- Layers ------------------------------------------------------------------
 *
 * Which fields a layer reads is said behind its kind; `rows` is the number of vectors
 * it works on: tokens, nodes, pixels; those of the whole batch. */
enum sonde_layer_kind {
    SONDE_LAYER_NONE,
    SONDE_LAYER_LINEAR,     /* rows in out; no_bias */
    SONDE_LAYER_EMBEDDING,  /* rows in (entries) out */
    SONDE_LAYER_NORM,       /* rows in; no_bias (RMS norm): batch norm costs the same */
    SONDE_LAYER_SOFTMAX,    /* rows in */
    SONDE_LAYER_ACTIVATION, /* rows in; activation */
    SONDE_LAYER_ELEMENTS,   /* rows in: residual sum, scale, mask: one each */
    SONDE_LAYER_ATTENTION, /* rows in heads; keys sequences pairs out key_dim sparse_ratio
                               causal flash no_bias kv_heads */
    SONDE_LAYER_FFN,       /* rows in hidden; out activation no_bias gated */
    SONDE_LAYER_CONV,      /* rows (output positions) in out kernel; kernel_width
                               groups no_bias */
    SONDE_LAYER_POOL,      /* rows in; kernel kernel_width: positions read by each of
                               `rows` results (graph pooling: rows nodes, kernel 1) */
    SONDE_LAYER_MESSAGE,   /* rows edges in; out message edge_dim heads no_bias (GAT) */
    SONDE_LAYER_ENCODING, /* rows edges out (dimensions) encoding; sequences */
    SONDE_LAYER_KIND_COUNT
};

enum sonde_activation {
    SONDE_RELU,
    SONDE_GELU,
    SONDE_GELU_TANH,
    SONDE_SILU,
    SONDE_SIGMOID,
    SONDE_TANH,
    SONDE_LEAKY_RELU,
    SONDE_NO_ACTIVATION,
    SONDE_ACTIVATION_COUNT
};

/* Message passing; edges are directed: an undirected one counts twice. */
enum sonde_message {
    SONDE_GIN,
    SONDE_GCN,
    SONDE_GINE,
    SONDE_GAT,
    SONDE_GATED_GCN,
    SONDE_PNA,
    SONDE_SAGE,
    SONDE_NO_MESSAGE,
    SONDE_MESSAGE_COUNT
};

enum sonde_encoding {
    SONDE_NO_ENCODING,
    SONDE_LAPLACIAN, /* dense eigenvectors: all of N, then the first k are kept */
    SONDE_LAPLACIAN_LANCZOS, /* sparse, k of them */
    SONDE_RANDOM_WALK,       /* dense: k powers of an N × N matrix */
    SONDE_RANDOM_WALK_SPARSE,
    SONDE_ENCODING_COUNT
};

struct sonde_layer {
    size_t size;
    int kind; /* enum sonde_layer_kind */
    const char
        *component;  /* groups the breakdown: "attention"; NULL: the kind's name */
    uint64_t repeat; /* the layer stands there so often; 0 means once */
    uint64_t rows, in, out, hidden;
    uint64_t heads, kv_heads; /* 0: one; as many as heads */
    uint64_t key_dim;         /* size of one head; 0: in / heads */
    uint64_t sequences;       /* independent ones among rows; 0: one */
    uint64_t keys;            /* each query sees; 0: rows / sequences */
    uint64_t pairs; /* of queries and keys in all sequences, where they differ in
                                 length; 0: by rows and keys */
    uint64_t edges, edge_dim;
    uint64_t kernel, kernel_width, groups; /* width 0: as high; groups 0: one */
    double sparse_ratio; /* part of the pairs attention computes; 0: all */
    int activation, message, encoding;
    int no_bias, causal, flash, gated;
    int shared;  /* its parameters are another layer's: a tied head */
    int no_grad; /* its input needs no gradient: the first layer */
};

/* What counts as one operation. NULL wherever it is asked for, and 0 in a field, mean
 * the defaults given here. */
struct sonde_counting {
    size_t size;
    double softmax;       /* 5 per element */
    double norm;          /* 5 per element */
    double gelu;          /* 4 per element, either form */
    double smooth;        /* 4: sigmoid, tanh, silu */
    double simple;        /* 1: relu, leaky relu, sums, scales */
    double element_bytes; /* 4: float32 */
};

struct sonde_ops {
    double macs;
    double elementwise;
    double bytes;
};

struct sonde_cost {
    size_t size;
    struct sonde_ops forward;
    struct sonde_ops backward; /* of input and parameters */
    double parameters;
    double saved;     /* elements kept from the forward for the backward pass */
    double attention; /* those of them that are attention matrices */
};

/* 0, −EINVAL when a field the kind needs is 0 or does not fit (heads that do not divide,
 * a ratio above 1, an unknown kind), −ERANGE when a size is beyond 2^40. ret_cost keeps
 * its `size`, all else is set; on failure nothing is. */
SONDE_API int sonde_layer_cost(const struct sonde_layer *layer,
                               const struct sonde_counting *counting,
                               struct sonde_cost *ret_cost);

/* Why that would be −EINVAL: "heads (5) do not divide 16"; "" when it would not. */
SONDE_API const char *sonde_layer_error(const struct sonde_layer *layer, char *ret_text,
                                        size_t len);

/* "attention"; NULL for a number out of range. The second: the number, or −EINVAL. */
SONDE_API const char *sonde_layer_kind_name(int kind);
SONDE_API int sonde_layer_kind_of(const char *name);
SONDE_API const char *sonde_activation_name(int activation);
SONDE_API int sonde_activation_of(const char *name);
SONDE_API const char *sonde_message_name(int message);
SONDE_API int sonde_message_of(const char *name);
SONDE_API const char *sonde_encoding_name(int encoding);
SONDE_API int sonde_encoding_of(const char *name);

/* ---- Whole models --------------------------------------------------------------- */

enum { SONDE_COMPONENTS_MAX = 32 };

struct sonde_component {
    char name[32];
    struct sonde_cost cost;
};

struct sonde_estimate {
    size_t size;
    struct sonde_cost total;
    size_t component_count;
    struct sonde_component components[SONDE_COMPONENTS_MAX]; /* in order of appearance;
        past the last place everything goes to "other" */
};

/* The sum over the layers, by component. Fails as the first layer that fails; its index
 * is then in *ret_bad where ret_bad is not NULL. */
SONDE_API int sonde_estimate_layers(const struct sonde_layer *layers, size_t count,
                                    const struct sonde_counting *counting,
                                    struct sonde_estimate *ret_estimate,
                                    size_t *ret_bad);

/* Models of a known family by their sizes; 0 in a field means its default: the sizes of
 * `sonde flops FAMILY` (docs/guide-model.md). */
struct sonde_model_sizes {
    size_t size;
    const char *family; /* "graph_transformer" (NULL), "gpt2", "mlp" */
    uint64_t layers, hidden, heads, ffn;
    uint64_t batch;              /* graphs, sequences, rows */
    uint64_t nodes, edges;       /* of each graph; edges 0: five per node */
    uint64_t features, outputs;  /* of a node or row; of a graph or row */
    uint64_t tokens, vocabulary; /* gpt2 */
    int message, encoding;       /* enum sonde_message, sonde_encoding */
    uint64_t encoding_dim;
};

/* −EINVAL with a sentence in ret_error (of `len` bytes) when the sizes do not fit. */
SONDE_API int sonde_estimate_model(const struct sonde_model_sizes *sizes,
                                   const struct sonde_counting *counting,
                                   struct sonde_estimate *ret_estimate, char *ret_error,
                                   size_t len);

/* 2 · macs + elementwise: the document's "FLOPs". */
SONDE_API double sonde_ops_total(const struct sonde_ops *ops);

/* ---- Memory ------------------------------------------------------------------------ */

enum sonde_optimizer {
    SONDE_SGD,
    SONDE_SGD_MOMENTUM,
    SONDE_ADAM,
    SONDE_ADAMW,
    SONDE_OPTIMIZER_COUNT
};

enum sonde_precision {
    SONDE_FLOAT32,
    SONDE_MIXED, /* 16-bit weights, gradients and activations; 32-bit master weights and
                    optimizer state */
    SONDE_PRECISION_COUNT
};

struct sonde_memory {
    size_t size;
    double parameters, gradients, optimizer; /* bytes */
    double activations;                      /* all that the backward pass needs */
    double attention;                        /* … of it, attention matrices */
    double total;
};

/* What a training step holds. optimizer < 0: inference, which keeps parameters alone and
 * no activations. −EINVAL for unknown ones. */
SONDE_API int sonde_training_memory(const struct sonde_cost *cost, int optimizer,
                                    int precision, struct sonde_memory *ret_memory);

/* Element-wise operations of one optimizer step over `parameters`. */
SONDE_API double sonde_optimizer_ops(int optimizer, double parameters);

SONDE_API const char *sonde_optimizer_name(int optimizer);
SONDE_API int sonde_optimizer_of(const char *name);

/* Bytes of attention over one batch: queries, keys, values and the matrices of scores
 * and probabilities; `flash` keeps none of the latter. */
struct sonde_attention_memory {
    size_t size;
    double qkv, scores, probabilities, output, total;
};
SONDE_API int sonde_attention_memory(const struct sonde_layer *attention,
                                     const struct sonde_counting *counting,
                                     struct sonde_attention_memory *ret_memory);

/* Bytes that positional encodings take when precomputed and kept. Relative ones either
 * as one float per pair and bucket, or as the bucket's number per pair (1, 2 or 4
 * bytes); sparse: only `sparse_ratio` of the pairs, with their two indices. */
struct sonde_encoding_storage {
    size_t size;
    double node;
    double relative_dense, relative_sparse;
    double index_dense, index_sparse;
};
SONDE_API int sonde_encoding_storage(uint64_t nodes, uint64_t dimensions,
                                     uint64_t buckets, double sparse_ratio,
                                     struct sonde_encoding_storage *ret_storage);

/* ---- Padding -------------------------------------------------------------------------
 *
 * Graphs of a batch made equally large by padding: what part of the work is on nodes
 * (and pairs of nodes, for attention) that do not exist. */
struct sonde_padding {
    size_t size;
    uint64_t graphs, nodes, largest;
    double node_waste, pair_waste; /* 0 to 1 */
};
SONDE_API int sonde_padding_waste(const uint64_t *nodes, size_t graphs,
                                  struct sonde_padding *ret_padding);

#ifdef __cplusplus
}
#endif

#endif
