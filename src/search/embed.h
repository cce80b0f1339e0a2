/* embed.h: an experiment as 256 signed bytes, so that likeness becomes distance.
 *
 * The bytes are made so that the squared Euclidean distance of two of them is, up to a
 * factor and rounding, Gower's distance of the experiments: the mean, over the names
 * both have, of |x − y| / range for numbers and 0 or 1 for the rest. A number is a
 * thermometer: d bytes, of which the first ones are hot up to its place in the range,
 * one is part hot, the rest cold; two numbers differ in the bytes between them. A text
 * or truth is a row of a Hadamard matrix: any two differ in half the bytes. A name that
 * is missing leaves zeros, halfway between all.
 *
 * Which names count, their ranges and their words are the *space*, learned from
 * experiments. Given a space the bytes are a function of the experiment alone, the same
 * on every machine: integers throughout, but for one subtraction and one division of
 * doubles that IEEE 754 rounds exactly; logarithms are computed bit by bit.
 *
 * Bytes lie in four planes of 64: byte i of a name goes to plane i mod 4, so that the
 * first plane alone is a coarse version of all. Search uses it to pass over most
 * experiments after a quarter of the work (nearest.h).
 */
#ifndef SONDE_SEARCH_EMBED_H
#define SONDE_SEARCH_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "search/segment.h"

enum {
    EMBED_DIMS = 256,
    EMBED_PLANES = 4,
    EMBED_PLANE = EMBED_DIMS / EMBED_PLANES,
    EMBED_NAMES = 64,  /* at most, the commonest */
    EMBED_WORDS = 256, /* distinct texts that have a number of their own */
    EMBED_HOT = 88,    /* thermometer: −88 … 88 */
    EMBED_WORD = 124,  /* Hadamard: ±124, for 124² · d/2 = 88² · d */
};

struct embed_name {
    const char *name;
    size_t len;
    bool is_text, is_log;
    double low, high;   /* of numbers */
    const char **words; /* of texts, ascending */
    size_t *word_lens;
    size_t word_count;
    uint64_t coverage; /* experiments that have it */
};

struct embed_space {
    struct arena arena;
    struct embed_name *names; /* commonest first, then by name */
    size_t count;
    unsigned dims;         /* per name, a multiple of four */
    uint64_t learned_from; /* experiments */
    uint64_t fingerprint;  /* of all above: vectors of one space only are compared */
};

void embed_space_release(struct embed_space *space);

/* Learning: show it segments, then finish. */
struct embed_learner;
struct embed_learner *embed_learner_new(void);
void embed_learner_free(struct embed_learner *l);
int embed_learn(struct embed_learner *l, const struct segment *segment);
int embed_learner_finish(struct embed_learner *l, struct embed_space *ret_space);

/* The space as bytes, and back. */
int embed_space_write(const struct embed_space *space, struct buf *out);
int embed_space_read(const void *bytes, size_t len, struct embed_space *ret_space);

/* All rows of a segment: plane after plane, rows × 64 bytes each. `out` has
 * rows × EMBED_DIMS bytes. */
void embed_segment(const struct embed_space *space, const struct segment *segment,
                   int8_t *out);
/* One row of one segment. */
void embed_row(const struct embed_space *space, const struct segment *segment,
               uint32_t row, int8_t ret_vector[EMBED_DIMS]);

/* Where x lies between low and high: 0 to 65536. Exposed for tests. */
uint32_t embed_place(const struct embed_name *name, double x);
/* log2(x) · 2^32 for x > 0, rounded down. */
int64_t embed_log2(double x);

/* The largest squared distance two vectors of the space can have, between names that
 * both have: what 1 minus similarity is measured in. */
uint32_t embed_scale(const struct embed_space *space);

#endif
