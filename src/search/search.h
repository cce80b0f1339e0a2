/* search.h: experiments by what they are and by what they resemble. */
#ifndef SONDE_SEARCH_SEARCH_H
#define SONDE_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/filter.h"
#include "search/index.h"

struct search_query {
    const struct filter *filter; /* NULL: everything */
    /* Likeness to this vector, nearest first; NULL: not asked for. */
    const int8_t *like;
    int64_t except_seq; /* the experiment itself is not among its likes; 0: none */
    const char *sort;   /* a name; NULL: newest first, or nearest */
    bool ascending;
    size_t limit, offset; /* limit 0: all */
};

struct search_hit {
    int64_t seq;
    uint32_t part, row;
    uint32_t distance; /* squared; 0 without likeness */
    double similarity; /* 1: equal in all that counts; NaN without likeness */
};

struct search_result {
    struct search_hit *hits;
    size_t count;
    uint64_t matched; /* that passed the filter */
    uint64_t total;
};

int search_run(const struct index *index, const struct search_query *query,
               struct search_result *ret_result);
void search_result_release(struct search_result *result);

/* The vector of an experiment of the index. SONDE_E_NOTFOUND. */
int search_vector_of(const struct index *index, int64_t seq,
                     int8_t ret_vector[EMBED_DIMS]);
/* Of one that is not in it. */
int search_vector_for(const struct index *index, const struct experiment *e,
                      int8_t ret_vector[EMBED_DIMS]);

/* The number that each hit has under a name (a field, or bare), NaN without. */
void search_numbers(const struct index *index, const struct search_result *result,
                    const char *name, double *ret_numbers);

/* ---- Why ---------------------------------------------------------------------------- */

enum likeness_state { LIKE_SAME, LIKE_NEAR, LIKE_FAR, LIKE_MISSING };

struct likeness {
    const char *name;
    size_t name_len;
    struct value a, b;
    enum likeness_state state;
    double difference; /* 0 to 1 of the range; 1 for other words; NaN when missing */
};

/* What two experiments have in common and what not, by name: the largest differences
 * first. Values point into the index. `room` entries at most; returns how many. */
size_t search_explain(const struct index *index, int64_t a, int64_t b,
                      struct likeness *ret_likeness, size_t room);

#endif
