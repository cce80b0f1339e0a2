// link: all
/* ref_net: a reference net, its batch, one forward and backward pass, written down so that
 * torch can do the same; then, with steps=N, N training steps and their losses.
 *
 *     ref_net DIR key=value…
 *
 * DIR/list.txt has a line per array: name, rows, columns, place in DIR/floats.bin.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/ref/blas.h"
#include "model/ref/data.h"
#include "model/ref/net.h"

struct sink {
    FILE *list, *floats;
    size_t at;
};

static void put(struct sink *s, const char *name, const float *data, size_t rows,
                size_t columns)
{
    const size_t n = rows * (columns ? columns : 1);
    fprintf(s->list, "%s %zu %zu %zu\n", name, rows, columns, s->at);
    fwrite(data, sizeof *data, n, s->floats);
    s->at += n;
}

static void put_whole(struct sink *s, const char *name, const uint32_t *data, size_t n)
{
    float *copy = malloc((n + 1) * sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = (float)data[i];
    put(s, name, copy, n, 0);
    free(copy);
}

static void put_batch(struct sink *s, const struct batch *b,
                      const struct model_config *c)
{
    if (b->graphs) {
        const struct graphs *g = b->graphs;
        put(s, "x", g->x, g->nodes, g->features);
        put(s, "labels", g->labels, g->count, g->outputs);
        put_whole(s, "source", g->source, g->edges);
        put_whole(s, "target", g->target, g->edges);
    }
    if (b->tokens) {
        put_whole(s, "tokens", (const uint32_t *)b->tokens, b->count * c->tokens);
        put_whole(s, "next", (const uint32_t *)b->next, b->count * c->tokens);
    }
    if (b->rows) {
        put(s, "x", b->rows, b->count, c->features);
        put_whole(s, "classes", (const uint32_t *)b->classes, b->count);
    }
}

static int set(struct model_config *c, uint64_t *steps, char *pair)
{
    char *value = strchr(pair, '=');
    if (!value)
        return -1;
    *value++ = '\0';
    const struct {
        const char *name;
        uint64_t *field;
    } fields[] = {
        { "hidden", &c->hidden },    { "layers", &c->layers },
        { "heads", &c->heads },      { "ffn", &c->ffn },
        { "batch", &c->batch },      { "nodes", &c->nodes },
        { "degree", &c->degree },    { "features", &c->features },
        { "outputs", &c->outputs },  { "tokens", &c->tokens },
        { "vocab", &c->vocabulary }, { "pe_dim", &c->encoding_dim },
        { "seed", &c->seed },        { "steps", steps },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, pair) == 0) {
            *fields[i].field = strtoull(value, NULL, 10);
            return 0;
        }
    if (strcmp(pair, "message") == 0)
        return c->message = sonde_message_of(value);
    if (strcmp(pair, "encoding") == 0)
        return c->encoding = sonde_encoding_of(value);
    if (strcmp(pair, "dropout") == 0)
        return c->dropout = strtod(value, NULL), 0;
    return -1;
}

static int dump(const char *directory, struct refnet *net, const struct data *data)
{
    char path[4096];
    struct sink s = { .at = 0 };
    double loss;
    snprintf(path, sizeof path, "%s/list.txt", directory);
    s.list = fopen(path, "w");
    snprintf(path, sizeof path, "%s/floats.bin", directory);
    s.floats = fopen(path, "wb");
    if (!s.list || !s.floats || refnet_forward(net, &data->batch, &loss) < 0 ||
        refnet_backward(net) < 0)
        return -1;
    put_batch(&s, &data->batch, &net->config);
    put(&s, "output", net->output, net->output_count, 0);
    for (size_t i = 0; i < net->parameter_count; i++) {
        const struct parameter *p = &net->parameters[i];
        char name[128];
        snprintf(name, sizeof name, "value:%s", p->name);
        put(&s, name, p->value, p->rows, p->columns);
        snprintf(name, sizeof name, "grad:%s", p->name);
        put(&s, name, p->grad, p->rows, p->columns);
    }
    refnet_update(net, 1e-3F); /* one step, for the optimizer */
    for (size_t i = 0; i < net->parameter_count; i++) {
        const struct parameter *p = &net->parameters[i];
        char name[128];
        snprintf(name, sizeof name, "after:%s", p->name);
        put(&s, name, p->value, p->rows, p->columns);
    }
    printf("loss %.9g\n", loss);
    return fclose(s.list) || fclose(s.floats) ? -1 : 0;
}

/* FNV-1a over the bits of the weights. */
static uint64_t bits_of(const struct refnet *net)
{
    uint64_t hash = 0xcbf29ce484222325U;
    const unsigned char *bytes = (const unsigned char *)net->values;
    for (size_t i = 0; i < net->count * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3U;
    return hash;
}

static int train(struct refnet *net, const struct data *data, uint64_t steps)
{
    double loss;
    for (uint64_t i = 0; i < steps; i++) {
        sonde_step();
        if (refnet_forward(net, &data->batch, &loss) < 0 || refnet_backward(net) < 0)
            return -1;
        refnet_update(net, 1e-3F);
        printf("step %" PRIu64 " %.9g\n", i, loss);
    }
    printf("bits %016" PRIx64 "\n", bits_of(net));
    return 0;
}

int main(int argc, char **argv)
{
    const char *family = argc > 2 ? argv[2] : "graph_transformer";
    if (argc < 3 || family_of(family) < 0)
        return fprintf(stderr, "ref_net DIR FAMILY key=value…\n"), 2;
    struct model_config c = config_default((enum family)family_of(family));
    uint64_t steps = 0;
    for (int i = 3; i < argc; i++)
        if (set(&c, &steps, argv[i]) < 0)
            return fprintf(stderr, "ref_net: %s?\n", argv[i]), 2;
    struct data data;
    struct refnet net;
    if (data_synthetic(&data, &c, c.seed) < 0)
        return 3;
    if (refnet_init(&net, &c) < 0)
        return 4;
    printf("blas %s\n", blas_name());
    int rc = strcmp(argv[1], "-") == 0 ? 0 : dump(argv[1], &net, &data);
    if (rc == 0)
        rc = train(&net, &data, steps);
    refnet_release(&net);
    data_release(&data);
    return rc < 0;
}
