/* zoo_vision.c: convolutional nets as torchvision builds them. One image. */
#include "model/zoo.h"

/* A convolution without bias, its batch norm and, mostly, its activation. */
static void conv(struct layer_list *list, uint64_t side, uint64_t in, uint64_t out,
                 uint64_t kernel, uint64_t groups)
{
    const uint64_t rows = side * side;
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_CONV,
                                         .rows = rows,
                                         .in = in,
                                         .out = out,
                                         .kernel = kernel,
                                         .groups = groups,
                                         .no_bias = 1,
                                         .no_grad = in == 3 });
    list_add(list,
             (struct sonde_layer){ .kind = SONDE_LAYER_NORM, .rows = rows, .in = out });
}

static void relu(struct layer_list *list, uint64_t side, uint64_t channels)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ACTIVATION,
                                         .rows = side * side,
                                         .in = channels });
}

static void pool(struct layer_list *list, uint64_t side, uint64_t channels,
                 uint64_t kernel)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_POOL,
                                         .rows = side * side,
                                         .in = channels,
                                         .kernel = kernel });
}

static void classes(struct layer_list *list, uint64_t in)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                         .component = "head",
                                         .rows = 1,
                                         .in = in,
                                         .out = 1000 });
}

/* 1×1 down, 3×3 (with the stride), 1×1 up to four times the width, and the shortcut. */
static void bottleneck(struct layer_list *list, uint64_t in_side, uint64_t side,
                       uint64_t in, uint64_t width)
{
    conv(list, in_side, in, width, 1, 1);
    relu(list, in_side, width);
    conv(list, side, width, width, 3, 1);
    relu(list, side, width);
    conv(list, side, width, 4 * width, 1, 1);
    if (in != 4 * width)
        conv(list, side, in, 4 * width, 1, 1);
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ELEMENTS,
                                         .component = "residual",
                                         .rows = side * side,
                                         .in = 4 * width });
    relu(list, side, 4 * width);
}

void zoo_resnet50(struct layer_list *list)
{
    static const int blocks[] = { 3, 4, 6, 3 };
    uint64_t side = 56, in = 64, width = 64;
    conv(list, 112, 3, 64, 7, 1);
    relu(list, 112, 64);
    pool(list, 56, 64, 3);
    for (int stage = 0; stage < 4; stage++, width *= 2) {
        for (int i = 0; i < blocks[stage]; i++, in = 4 * width) {
            const uint64_t in_side = side;
            if (stage > 0 && i == 0)
                side /= 2;
            bottleneck(list, in_side, side, in, width);
        }
    }
    pool(list, 1, in, 7);
    classes(list, in);
}

void zoo_vgg16(struct layer_list *list)
{
    static const struct {
        uint64_t side, out;
        int convs;
    } stages[] = {
        { 224, 64, 2 }, { 112, 128, 2 }, { 56, 256, 3 }, { 28, 512, 3 }, { 14, 512, 3 }
    };
    uint64_t in = 3;
    for (int s = 0; s < 5; s++) {
        for (int i = 0; i < stages[s].convs; i++, in = stages[s].out) {
            const uint64_t rows = stages[s].side * stages[s].side;
            list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_CONV,
                                                 .rows = rows,
                                                 .in = in,
                                                 .out = stages[s].out,
                                                 .kernel = 3,
                                                 .no_grad = in == 3 });
            relu(list, stages[s].side, stages[s].out);
        }
        pool(list, stages[s].side / 2, in, 2);
    }
    const struct sonde_layer wide = { .kind = SONDE_LAYER_LINEAR,
                                      .component = "head",
                                      .rows = 1,
                                      .in = 4096,
                                      .out = 4096 };
    struct sonde_layer first = wide;
    first.in = in * 7 * 7;
    list_add(list, first);
    list_add(list, wide);
    classes(list, 4096);
}

/* 1×1 up, 3×3 one filter per channel, 1×1 down. */
static void inverted(struct layer_list *list, uint64_t in_side, uint64_t side,
                     uint64_t in, uint64_t out, uint64_t expand)
{
    const uint64_t wide = in * expand;
    if (expand > 1) {
        conv(list, in_side, in, wide, 1, 1);
        relu(list, in_side, wide);
    }
    conv(list, side, wide, wide, 3, wide);
    relu(list, side, wide);
    conv(list, side, wide, out, 1, 1);
}

void zoo_mobilenet_v2(struct layer_list *list)
{
    static const struct {
        uint64_t expand, out, repeat, stride;
    } stages[] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
                   { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    uint64_t side = 112, in = 32;
    conv(list, side, 3, in, 3, 1);
    relu(list, side, in);
    for (int s = 0; s < 7; s++) {
        for (uint64_t i = 0; i < stages[s].repeat; i++, in = stages[s].out) {
            const uint64_t in_side = side;
            if (i == 0)
                side /= stages[s].stride;
            inverted(list, in_side, side, in, stages[s].out, stages[s].expand);
        }
    }
    conv(list, side, in, 1280, 1, 1);
    relu(list, side, 1280);
    pool(list, 1, 1280, side);
    classes(list, 1280);
}
