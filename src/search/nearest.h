/* nearest.h: which vectors lie nearest, exactly.
 *
 * Squared distances are sums over planes and only grow: a row whose first plane is
 * already farther than the worst of the best so far is passed over after 64 of its 256
 * bytes. Nothing is approximated; the answer is that of comparing everything.
 */
#ifndef SONDE_SEARCH_NEAREST_H
#define SONDE_SEARCH_NEAREST_H

#include <stddef.h>
#include <stdint.h>

#include "search/embed.h"

struct neighbour {
    uint32_t distance; /* squared */
    uint32_t segment, row;
    int64_t seq;
};

/* The best so far, a heap with the worst on top. Equal distances: the older first. */
struct nearest {
    struct neighbour *heap;
    size_t count, most;
};

int nearest_init(struct nearest *n, size_t most);
void nearest_release(struct nearest *n);

/* Rows of a segment whose bit is set in `wanted` (NULL: all). `planes` as
 * embed_segment() writes them. */
void nearest_scan(struct nearest *n, const int8_t query[EMBED_DIMS],
                  const int8_t *planes, uint32_t rows, const uint64_t *wanted,
                  uint32_t segment, const int64_t *seq);
/* Sorts: nearest first. The heap is one no longer. */
void nearest_sort(struct nearest *n);

/* Of one plane. Chosen for this machine when first used. */
typedef uint32_t (*plane_distance_fn)(const int8_t *a, const int8_t *b);
plane_distance_fn plane_distance(void);
uint32_t plane_distance_scalar(const int8_t *a, const int8_t *b);
/* "avx2", "neon" or "scalar" */
const char *plane_distance_name(void);

#endif
