/* data.c: see data.h. */
#include "model/ref/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/ref/encode.h"
#include "model/ref/random.h"

static int make_graphs(struct data *d, const struct model_config *c, uint64_t seed)
{
    int rc = graphs_synthetic(&d->graphs, c->batch, c->nodes, config_edges(c),
                              c->features, c->outputs, seed);
    if (rc == 0 && c->encoding != SONDE_NO_ENCODING)
        rc = encode_graphs(&d->graphs, c->encoding, c->encoding_dim);
    d->batch = (struct batch){ .graphs = &d->graphs, .count = c->batch };
    return rc;
}

/* Bytes of one sentence over and over, from a random place; what follows is certain. */
static int make_tokens(struct data *d, const struct model_config *c, uint64_t seed)
{
    static const char text[] = "a probe goes down where nobody looks and says what it "
                               "found; then it goes down again. ";
    const size_t n = c->batch * c->tokens, len = sizeof text - 1;
    struct prng random;
    d->tokens = calloc(n, sizeof *d->tokens);
    d->next = calloc(n, sizeof *d->next);
    if (!d->tokens || !d->next)
        return -ENOMEM;
    prng_init(&random, seed);
    for (size_t s = 0; s < c->batch; s++) {
        const size_t start = prng_below(&random, len);
        for (size_t i = 0; i < c->tokens; i++) {
            const size_t at = s * c->tokens + i;
            d->tokens[at] = text[(start + i) % len] % (int32_t)c->vocabulary;
            d->next[at] = text[(start + i + 1) % len] % (int32_t)c->vocabulary;
        }
    }
    d->batch = (struct batch){ .tokens = d->tokens,
                               .next = d->next,
                               .count = c->batch };
    return 0;
}

static int make_rows(struct data *d, const struct model_config *c, uint64_t seed)
{
    d->rows = calloc(c->batch * c->features, sizeof *d->rows);
    d->classes = calloc(c->batch, sizeof *d->classes);
    if (!d->rows || !d->classes)
        return -ENOMEM;
    struct prng random;
    prng_init(&random, seed);
    for (size_t r = 0; r < c->batch; r++) {
        const size_t class = prng_below(&random, c->outputs);
        d->classes[r] = (int32_t) class;
        for (size_t f = 0; f < c->features; f++)
            d->rows[r * c->features + f] = random_normal(&random) +
                                           (f % c->outputs == class ? 1 : 0);
    }
    d->batch = (struct batch){ .rows = d->rows,
                               .classes = d->classes,
                               .count = c->batch };
    return 0;
}

int data_synthetic(struct data *data, const struct model_config *config, uint64_t seed)
{
    *data = (struct data){ .tokens = NULL };
    int rc;
    switch (config->family) {
    case FAMILY_GRAPH_TRANSFORMER:
        rc = make_graphs(data, config, seed);
        break;
    case FAMILY_GPT2:
        rc = make_tokens(data, config, seed);
        break;
    default:
        rc = make_rows(data, config, seed);
    }
    if (rc < 0)
        data_release(data);
    return rc;
}

void data_release(struct data *data)
{
    graphs_release(&data->graphs);
    free(data->tokens);
    free(data->next);
    free(data->classes);
    free(data->rows);
    *data = (struct data){ .tokens = NULL };
}
