/* net.c: see net.h.
 *
 * Every layer is a convolution done as one matrix product: `columns` holds, row by
 * row, the inputs that each output looks at. A fully connected layer is the same with
 * a kernel as large as its input.
 *
 *     forward    output    = columns · weights + bias
 *     backward   d_weights = columnsᵀ · d_output
 *                d_columns = d_output · weightsᵀ, added back to the layer below
 */
#include "demo/net.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

#include "demo/dataset.h"
#include "demo/image.h"
#include "demo/matmul.h"
#include "demo/random.h"

static const struct {
    const char *name;
    size_t in_side, in_channels, kernel, stride, pad, out_side, out_channels;
} shapes[NET_LAYERS] = {
    { "conv1", IMAGE_SIDE, 1, 5, 2, 2, 12, 8 },
    { "conv2", 12, 8, 3, 2, 1, 6, 16 },
    { "hidden", 6, 16, 6, 1, 0, 1, 64 },
    { "logits", 1, 64, 1, 1, 0, 1, CLASSES },
};

static size_t layer_rows(const struct layer *layer)
{
    return layer->out_side * layer->out_side;
}

static size_t layer_parameters(const struct layer *layer)
{
    return (layer->depth + 1) * layer->out_channels;
}

/* No phase of its own: the same layer serves training and evaluation. */
static struct sonde_site *layer_site(const struct layer *layer, const char *pass)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s %s", layer->name, pass);
    return sonde_site_named(name, SONDE_NO_PHASE, "net", "layer", NULL);
}

static void layer_shape(struct layer *layer, size_t i)
{
    layer->name = shapes[i].name;
    layer->in_side = shapes[i].in_side;
    layer->in_channels = shapes[i].in_channels;
    layer->kernel = shapes[i].kernel;
    layer->stride = shapes[i].stride;
    layer->pad = shapes[i].pad;
    layer->out_side = shapes[i].out_side;
    layer->out_channels = shapes[i].out_channels;
    layer->depth = layer->kernel * layer->kernel * layer->in_channels;
}

static int layer_init(struct layer *layer, size_t batch)
{
    const size_t rows = batch * layer_rows(layer);
    const size_t inputs = rows * layer->depth, outputs = rows * layer->out_channels;
    assert(inputs > 0 && outputs > 0); /* no shape has an empty side */
    layer->columns = calloc(inputs, sizeof *layer->columns);
    layer->output = calloc(outputs, sizeof *layer->output);
    layer->d_output = calloc(outputs, sizeof *layer->d_output);
    layer->forward = layer_site(layer, "forward");
    layer->backward = layer_site(layer, "backward");
    return layer->columns && layer->output && layer->d_output ? 0 : -ENOMEM;
}

/* Hands each layer its part of the two arrays and fills the weights. */
static void parameters_share(struct net *net, uint64_t seed)
{
    size_t at = 0;
    for (size_t i = 0; i < NET_LAYERS; i++) {
        struct layer *layer = &net->layers[i];
        const size_t weights = layer->depth * layer->out_channels;
        layer->weights = net->parameters + at;
        layer->d_weights = net->gradients + at;
        layer->bias = layer->weights + weights;
        layer->d_bias = layer->d_weights + weights;
        at += layer_parameters(layer);

        struct rng rng = rng_for(seed, 3, i);
        const float spread = sqrtf(2.0F / (float)layer->depth);
        for (size_t w = 0; w < weights; w++)
            layer->weights[w] = spread * rng_normal(&rng);
    }
}

int net_init(struct net *net, size_t batch, uint64_t seed)
{
    int rc = 0;
    size_t widest = 0;
    if (batch == 0)
        return -EINVAL;
    *net = (struct net){ .batch = batch };
    for (size_t i = 0; i < NET_LAYERS; i++) {
        struct layer *layer = &net->layers[i];
        layer_shape(layer, i);
        net->count += layer_parameters(layer);
        const size_t floats = batch * layer_rows(layer) * layer->depth;
        widest = floats > widest ? floats : widest;
        if (rc == 0)
            rc = layer_init(layer, batch);
    }
    net->parameters = calloc(net->count, sizeof *net->parameters);
    net->gradients = calloc(net->count, sizeof *net->gradients);
    net->d_columns = calloc(widest, sizeof *net->d_columns);
    if (rc < 0 || !net->parameters || !net->gradients || !net->d_columns) {
        net_release(net);
        return -ENOMEM;
    }
    parameters_share(net, seed);
    return 0;
}

void net_release(struct net *net)
{
    for (size_t i = 0; i < NET_LAYERS; i++) {
        free(net->layers[i].columns);
        free(net->layers[i].output);
        free(net->layers[i].d_output);
    }
    free(net->parameters);
    free(net->gradients);
    free(net->d_columns);
    *net = (struct net){ 0 };
}

/* The inputs that one row of the kernel reads for one output: a run of floats. Returns
 * the run's offset in the picture, or −1 when the row lies outside; the first
 * `ret_skip` floats of the kernel row are outside too, then `ret_len` are inside. */
static ptrdiff_t kernel_run(const struct layer *layer, size_t out_row,
                            size_t out_column, size_t kernel_row, size_t *ret_skip,
                            size_t *ret_len)
{
    const ptrdiff_t side = (ptrdiff_t)layer->in_side;
    const ptrdiff_t row = (ptrdiff_t)(out_row * layer->stride + kernel_row) -
                          (ptrdiff_t)layer->pad;
    const ptrdiff_t left = (ptrdiff_t)(out_column * layer->stride) -
                           (ptrdiff_t)layer->pad;
    const ptrdiff_t right = left + (ptrdiff_t)layer->kernel;
    if (row < 0 || row >= side)
        return -1;
    const ptrdiff_t from = left < 0 ? 0 : left;
    const ptrdiff_t to = right > side ? side : right;
    *ret_skip = (size_t)(from - left) * layer->in_channels;
    *ret_len = (size_t)(to - from) * layer->in_channels;
    return (row * side + from) * (ptrdiff_t)layer->in_channels;
}

static void columns_gather(struct layer *layer, const float *image, float *columns)
{
    const size_t run = layer->kernel * layer->in_channels;
    for (size_t r = 0; r < layer->out_side; r++) {
        for (size_t c = 0; c < layer->out_side; c++) {
            for (size_t k = 0; k < layer->kernel; k++, columns += run) {
                size_t skip, len;
                const ptrdiff_t at = kernel_run(layer, r, c, k, &skip, &len);
                if (at >= 0)
                    memcpy(columns + skip, image + at, len * sizeof *columns);
            }
        }
    }
}

/* The reverse: adds each column's gradient to the input it came from. */
static void columns_scatter(const struct layer *layer, const float *d_columns,
                            float *d_image)
{
    const size_t run = layer->kernel * layer->in_channels;
    for (size_t r = 0; r < layer->out_side; r++) {
        for (size_t c = 0; c < layer->out_side; c++) {
            for (size_t k = 0; k < layer->kernel; k++, d_columns += run) {
                size_t skip, len;
                const ptrdiff_t at = kernel_run(layer, r, c, k, &skip, &len);
                for (size_t i = 0; at >= 0 && i < len; i++)
                    d_image[(size_t)at + i] += d_columns[skip + i];
            }
        }
    }
}

static void layer_forward(struct layer *layer, const float *input, size_t count,
                          bool relu)
{
    const size_t rows = count * layer_rows(layer), width = layer->out_channels;
    const size_t in_size = layer->in_side * layer->in_side * layer->in_channels;
    for (size_t i = 0; i < count; i++)
        columns_gather(layer, input + i * in_size,
                       layer->columns + i * layer_rows(layer) * layer->depth);

    for (size_t r = 0; r < rows; r++)
        memcpy(layer->output + r * width, layer->bias, width * sizeof(float));
    const struct matrix columns = { layer->columns, layer->depth, 1 };
    const struct matrix weights = { layer->weights, width, 1 };
    matmul(rows, width, layer->depth, columns, weights, layer->output, width, true);
    for (size_t i = 0; relu && i < rows * width; i++)
        layer->output[i] = fmaxf(layer->output[i], 0);
}

/* From layer->d_output to its parameters' gradients and, with `d_input`, to the layer
 * below, whose output was `input`. */
static void layer_backward(struct layer *layer, float *d_columns, const float *input,
                           float *d_input, size_t count)
{
    const size_t rows = count * layer_rows(layer), width = layer->out_channels;
    const struct matrix columns_t = { layer->columns, 1, layer->depth };
    const struct matrix d_output = { layer->d_output, width, 1 };
    matmul(layer->depth, width, rows, columns_t, d_output, layer->d_weights, width,
           false);
    memset(layer->d_bias, 0, width * sizeof(float));
    for (size_t i = 0; i < rows * width; i++)
        layer->d_bias[i % width] += layer->d_output[i];
    if (!d_input)
        return;

    const struct matrix weights_t = { layer->weights, 1, width };
    matmul(rows, layer->depth, width, d_output, weights_t, d_columns, layer->depth,
           false);
    const size_t in_size = layer->in_side * layer->in_side * layer->in_channels;
    memset(d_input, 0, count * in_size * sizeof(float));
    for (size_t i = 0; i < count; i++)
        columns_scatter(layer, d_columns + i * layer_rows(layer) * layer->depth,
                        d_input + i * in_size);
    for (size_t i = 0; i < count * in_size; i++)
        d_input[i] = input[i] > 0 ? d_input[i] : 0;
}

void net_forward(struct net *net, const float *images, size_t count)
{
    const float *input = images;
    for (size_t i = 0; i < NET_LAYERS; i++) {
        struct layer *layer = &net->layers[i];
        SONDE_ZONE_OF(layer->forward)
        {
            layer_forward(layer, input, count, i + 1 < NET_LAYERS);
        }
        input = layer->output;
    }
}

double net_loss(struct net *net, const uint8_t *labels, size_t count)
{
    struct layer *last = &net->layers[NET_LAYERS - 1];
    double loss = 0;
    for (size_t i = 0; i < count; i++) {
        const float *logits = last->output + i * CLASSES;
        float *d_logits = last->d_output + i * CLASSES;
        float highest = logits[0];
        for (int c = 1; c < CLASSES; c++)
            highest = fmaxf(highest, logits[c]);
        double sum = 0;
        for (int c = 0; c < CLASSES; c++)
            sum += exp((double)(logits[c] - highest));
        for (int c = 0; c < CLASSES; c++) {
            const double share = exp((double)(logits[c] - highest)) / sum;
            d_logits[c] = (float)((share - (c == labels[i])) / (double)count);
        }
        loss += log(sum) - (double)(logits[labels[i]] - highest);
    }
    return loss / (double)count;
}

void net_backward(struct net *net, size_t count)
{
    for (size_t i = NET_LAYERS; i-- > 0;) {
        struct layer *below = i > 0 ? &net->layers[i - 1] : NULL;
        SONDE_ZONE_OF(net->layers[i].backward)
        {
            layer_backward(&net->layers[i], net->d_columns,
                           below ? below->output : NULL, below ? below->d_output : NULL,
                           count);
        }
    }
}

size_t net_correct(const struct net *net, const uint8_t *labels, size_t count)
{
    const struct layer *last = &net->layers[NET_LAYERS - 1];
    size_t correct = 0;
    for (size_t i = 0; i < count; i++) {
        const float *logits = last->output + i * CLASSES;
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            best = logits[c] > logits[best] ? c : best;
        correct += best == labels[i];
    }
    return correct;
}
