/* filter.h: which experiments are meant.
 *
 * Two ways to say it, one tree behind them:
 *
 *   metrics.accuracy >= 0.9 and params.batch = 32 and not tags.team = 'x'
 *   {"$and": [{"metrics.accuracy": {"$gte": 0.9}}, {"params.batch": 32}]}
 *
 * The second is Chroma's `where` with Chroma's meaning (tests compare with a real
 * ChromaDB): an experiment that lacks a name fails every comparison but $ne, $nin and
 * $not_contains, which it passes. Beyond Chroma: $exists, and several keys in one
 * object mean AND.
 *
 * In the language a name that is missing makes a comparison neither true nor false, as
 * NULL does in SQL: `not params.x = 3` does not find experiments without x; `params.x
 * is missing` does.
 *
 * Numbers compare with numbers whether written 1 or 1.0; truths and texts only with
 * their own kind. A name without "params.", "metrics." or "tags." is a field
 * (duration_s, name …) or else the metric, parameter or tag of that name, whichever an
 * experiment has first.
 *
 * Filters are hostile input: depth and size are limited, nothing is executed.
 */
#ifndef SONDE_SEARCH_FILTER_H
#define SONDE_SEARCH_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "search/segment.h"

enum { FILTER_DEPTH = 48, FILTER_NODES = 10000 };

enum filter_op {
    FILTER_ALL, /* no condition */
    FILTER_AND,
    FILTER_OR,
    FILTER_NOT,
    FILTER_EQ,
    FILTER_NE,
    FILTER_LT,
    FILTER_LE,
    FILTER_GT,
    FILTER_GE,
    FILTER_IN,
    FILTER_NOT_IN,
    FILTER_CONTAINS, /* a part of the text */
    FILTER_NOT_CONTAINS,
    FILTER_MATCHES, /* a regular expression */
    FILTER_NOT_MATCHES,
    FILTER_EXISTS,
    FILTER_MISSING,
};

struct filter {
    enum filter_op op;
    bool chroma; /* missing is an answer, not unknown */
    bool never;  /* chroma: $contains of a plain value */
    const char *name;
    size_t name_len;
    bool bare; /* any of metrics, params, tags */
    struct value *values;
    size_t value_count;
    size_t position;             /* of the text of MATCHES, for its error */
    void *pattern;               /* compiled, of MATCHES */
    struct filter *first, *next; /* children; siblings */
};

struct filter_error {
    size_t position; /* byte, from 1 */
    char message[200];
};

/* The tree lies in the arena; release what it holds besides with filter_release().
 * SONDE_E_FORMAT with the error filled in. NULL or "" means everything. */
int filter_parse(const char *text, struct arena *arena, struct filter **ret_filter,
                 struct filter_error *ret_error);
int filter_parse_where(const char *json, size_t len, struct arena *arena,
                       struct filter **ret_filter, struct filter_error *ret_error);
int filter_parse_where_document(const char *json, size_t len, struct arena *arena,
                                struct filter **ret_filter,
                                struct filter_error *ret_error);
void filter_release(struct filter *filter);

/* Both of them; either may be NULL. */
struct filter *filter_and(struct arena *arena, struct filter *a, struct filter *b);
/* name op number, for options like --max-duration. */
struct filter *filter_number(struct arena *arena, const char *name, enum filter_op op,
                             double number);

/* Sets bit i of ret_bits for each row that is meant; (rows + 63) / 64 words. */
int filter_apply(const struct filter *filter, const struct segment *segment,
                 uint64_t *ret_bits);

/* ---- Between the files of the filter ------------------------------------------------ */

struct filter *filter_node(struct arena *arena, enum filter_op op);
/* Sets name and bare; false when it is too long or empty. */
bool filter_set_name(struct filter *f, const char *name, size_t len);
/* Compiles the patterns of a tree; releases it on failure. */
int filter_compile(struct filter *f, struct filter_error *ret_error);
/* 1, 0, or negative on trouble (a pattern that takes too long counts as no match). */
int filter_pattern_matches(const struct filter *f, const char *text, size_t len);

#endif
