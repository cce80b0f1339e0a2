/* dataset.c: see dataset.h. */
#include "model/ref/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "model/ref/random.h"

enum { FEATURES = 9, LABELS = 10, SMALLEST = 30, SPREAD = 243 }; /* mean 151 nodes */

/* A tree that is mostly a chain, and a ring now and then: molecules have about one edge
 * more per hundred nodes than a tree. Returns undirected edges. */
static size_t draw_molecule(struct prng *r, size_t base, size_t nodes, uint32_t *source,
                            uint32_t *target)
{
    enum { REACH = 4, RING = 5 };
    size_t edges = 0;
    for (size_t i = 1; i < nodes; i++) {
        const size_t back = 1 + prng_below(r, i < REACH ? i : REACH);
        source[edges] = (uint32_t)(base + i - (back > 2 ? back : 1));
        target[edges++] = (uint32_t)(base + i);
        if (i >= RING && prng_below(r, 64) == 0) {
            source[edges] = (uint32_t)(base + i - RING);
            target[edges++] = (uint32_t)(base + i);
        }
    }
    return edges;
}

static void draw_atoms(struct prng *r, struct graphs *g, size_t graph)
{
    for (size_t i = g->first[graph]; i < g->first[graph + 1]; i++)
        for (size_t f = 0; f < FEATURES; f++)
            g->x[i * FEATURES + f] = (float)prng_below(r, 1 + 10 / (f + 1));
    for (size_t k = 0; k < LABELS; k++)
        g->labels[graph * LABELS + k] = (float)(prng_below(r, 4) == 0);
}

/* Sizes first: they decide the memory. The same seed draws the same again. */
static size_t size_of(uint64_t seed, size_t graph)
{
    struct prng r;
    prng_init(&r, seed * 31 + graph);
    return SMALLEST + prng_below(&r, SPREAD);
}

int dataset_sample(size_t count, uint64_t seed, struct graphs *ret_graphs)
{
    struct graphs g;
    size_t nodes = 0, edges = 0;
    for (size_t i = 0; i < count; i++)
        nodes += size_of(seed, i);
    /* At most two undirected edges per node; trimmed below. */
    int rc = graphs_alloc(&g, count, nodes, 4 * nodes, FEATURES, LABELS);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        struct prng r;
        const size_t n = size_of(seed, i);
        prng_init(&r, seed * 101 + i);
        g.first[i + 1] = g.first[i] + n;
        const size_t more = draw_molecule(&r, g.first[i], n, g.source + edges,
                                          g.target + edges);
        memcpy(g.source + edges + more, g.target + edges, more * sizeof *g.source);
        memcpy(g.target + edges + more, g.source + edges, more * sizeof *g.target);
        edges += 2 * more;
        draw_atoms(&r, &g, i);
    }
    g.edges = edges;
    rc = graphs_index(&g);
    if (rc < 0)
        graphs_release(&g);
    else
        *ret_graphs = g;
    return rc;
}

/* "dataset/NAME" here or $SONDE_DATA/NAME; an empty path when neither is there. */
static void find_named(const char *name, struct buf *ret_path)
{
    const char *data = getenv("SONDE_DATA");
    path_join(ret_path, data && *data ? data : "dataset", name);
    if (!path_is_dir(ret_path->data))
        buf_clear(ret_path);
}

int dataset_load(const char *name, size_t limit, uint64_t seed,
                 struct dataset *ret_dataset, char ret_error[OGB_ERROR_LEN])
{
    enum { SAMPLE = 32 };
    struct buf path = BUF_INIT;
    struct dataset d = { .generated = false };
    int rc;
    find_named(name, &path);
    if (path_is_dir(name)) {
        rc = ogb_load(name, limit, &d.graphs, ret_error);
    } else if (path.len > 0) {
        rc = ogb_load(path.data, limit, &d.graphs, ret_error);
    } else if (strcmp(name, "peptides_func") == 0) {
        d.generated = true;
        rc = dataset_sample(limit ? limit : SAMPLE, seed, &d.graphs);
    } else {
        rc = -ENOENT;
        (void)snprintf(ret_error, OGB_ERROR_LEN,
                       "there is no folder '%s', nor one in ./dataset or $SONDE_DATA "
                       "(peptides_func works without)",
                       name);
    }
    buf_release(&path);
    if (rc == 0)
        *ret_dataset = d;
    return rc;
}

void dataset_release(struct dataset *dataset)
{
    graphs_release(&dataset->graphs);
}

int dataset_batch(const char *name, size_t limit, uint64_t seed, struct data *ret_data)
{
    char error[OGB_ERROR_LEN];
    struct dataset d;
    const int rc = dataset_load(name, limit, seed, &d, error);
    if (rc < 0)
        return rc;
    *ret_data = (struct data){ .graphs = d.graphs };
    ret_data->batch = (struct batch){ .graphs = &ret_data->graphs,
                                      .count = d.graphs.count };
    return 0;
}
