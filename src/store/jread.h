/* jread.h: reads JSON text piece by piece, without building a tree.
 *
 * Thousands of experiments a second arrive as JSON lines and are read back for the
 * search index; building jansson's hash table for each would take most of that time.
 * The text is hostile: everything RFC 8259 forbids is an error, nesting is limited,
 * and nothing is read beyond the end. tests/unit/store/jread_test.c compares it with
 * jansson.
 *
 *     struct jread r;
 *     jread_init(&r, text, len);
 *     while (jread_next(&r) != JREAD_END && r.token != JREAD_ERROR)
 *         …
 */
#ifndef SONDE_STORE_JREAD_H
#define SONDE_STORE_JREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { JREAD_DEPTH = 64 };

enum jread_token {
    JREAD_END, /* after the one value and blanks */
    JREAD_ERROR,
    JREAD_OBJECT_BEGIN,
    JREAD_OBJECT_END,
    JREAD_ARRAY_BEGIN,
    JREAD_ARRAY_END,
    JREAD_KEY,
    JREAD_STRING,
    JREAD_INT,   /* digits alone, and it fits */
    JREAD_FLOAT, /* with point or exponent, or too large for int64_t */
    JREAD_TRUE,
    JREAD_FALSE,
    JREAD_NULL,
};

struct jread {
    const char *begin, *at, *end;
    enum jread_token token; /* the last one */
    const char *text;       /* of keys and strings between the quotes, else of all */
    size_t len;
    bool escaped; /* a key or string with backslashes: see jread_text() */
    int64_t integer;
    double number; /* of both kinds of numbers */
    unsigned depth;
    uint64_t in_object; /* bit d: depth d + 1 is an object */
    unsigned char want; /* ours: what may come */
    const char *error;  /* in words; NULL without */
    size_t error_at;    /* byte */
};

void jread_init(struct jread *r, const char *text, size_t len);
enum jread_token jread_next(struct jread *r);

/* The key or string just read, without escapes, NUL behind it; NULL when memory is
 * out. May hold NUL bytes, hence the length. */
const char *jread_text(const struct jread *r, struct arena *arena, size_t *ret_len);

/* After a value's first token: goes on to its last. False on an error. */
bool jread_skip(struct jread *r);

/* Whether a key is exactly this word. */
bool jread_is(const struct jread *r, const char *word);

/* A number as people and JSON write them, the whole text; locale does not matter.
 * False when it is none. */
bool number_parse(const char *text, size_t len, double *ret_number, bool *ret_integer,
                  int64_t *ret_value);

#endif
