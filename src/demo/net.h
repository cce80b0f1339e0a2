/* net.h: a small convolutional network, forward and backward, in plain C.
 *
 *     24×24×1 ─5×5/2─► 12×12×8 ─3×3/2─► 6×6×16 ─► 64 ─► 10 classes
 *
 * ReLU between layers, softmax and cross-entropy at the end. Activations are stored
 * picture, row, column, channel. All parameters lie in one array, the gradients in
 * a second one of the same shape.
 */
#ifndef SONDE_DEMO_NET_H
#define SONDE_DEMO_NET_H

#include <stddef.h>
#include <stdint.h>

enum { NET_LAYERS = 4 };

struct layer {
    const char *name;
    size_t in_side, in_channels, kernel, stride, pad, out_side, out_channels;
    size_t depth;              /* inputs of one output: kernel² × in_channels */
    float *weights, *bias;     /* depth × out_channels; out_channels */
    float *d_weights, *d_bias; /* the same, of the gradient */
    float *columns;            /* the inputs of each output, one output a row */
    float *output, *d_output;
    struct sonde_site *forward, *backward;
};

struct net {
    size_t batch; /* largest number of pictures in one call */
    size_t count; /* of parameters */
    float *parameters, *gradients;
    float *d_columns; /* scratch, for the largest layer */
    struct layer layers[NET_LAYERS];
};

/* Random weights from the seed (He). 0, −ENOMEM, or −EINVAL for a batch of none. */
int net_init(struct net *net, size_t batch, uint64_t seed);
void net_release(struct net *net);

/* Runs `count` pictures through the net; logits are in the last layer's output. */
void net_forward(struct net *net, const float *images, size_t count);
/* Mean cross-entropy of the last forward; sets its gradient for net_backward(). */
double net_loss(struct net *net, const uint8_t *labels, size_t count);
/* Fills net->gradients from the last net_loss(). */
void net_backward(struct net *net, size_t count);
/* How many of the last forward's pictures have their highest logit at the label. */
size_t net_correct(const struct net *net, const uint8_t *labels, size_t count);

#endif
