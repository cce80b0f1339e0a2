/* index.h: the store's experiments, ready to be searched.
 *
 * Derived from the store and kept beside it in DIR/index: segments of columns, their
 * vectors, and a list of them. Bringing it up to date reads only what the store got
 * since; small segments are merged as they come, so that their number stays
 * logarithmic. Whatever is odd about the files makes it build them anew. Where nothing
 * can be written it is built in memory.
 *
 * The space of the embedding is learned again whenever the number of experiments has
 * doubled (below 64: always), from those there are then, and all vectors made anew.
 */
#ifndef SONDE_SEARCH_INDEX_H
#define SONDE_SEARCH_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "search/embed.h"
#include "search/segment.h"
#include "store/store.h"

struct index_part {
    struct segment segment;
    const int8_t *vectors; /* rows × EMBED_DIMS by plane */
    size_t vectors_len;
    bool vectors_mapped;
    uint64_t *removed; /* bits of rows that are gone; NULL: none */
    uint32_t removed_count;
    uint64_t file; /* its name; 0: in memory only */
};

struct index {
    struct index_part *parts; /* ascending by seq */
    size_t count, cap;
    struct embed_space space;
    uint64_t space_rows; /* experiments when it was learned */
    uint64_t store;      /* its identity */
    int64_t last_seq, last_removed;
    uint64_t rows; /* with removed ones */
    char *dir;     /* of the files; NULL: in memory only */
};

/* Opens the index of the store and brings it up to date. */
int index_open(struct store *store, struct index **ret_index);
void index_free(struct index *index);

/* Where an experiment is; false when it is not here. */
bool index_find_seq(const struct index *index, int64_t seq, size_t *ret_part,
                    uint32_t *ret_row);

#endif
