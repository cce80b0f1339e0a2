/* segment.h: some tens of thousands of experiments by column, for search.
 *
 * The store keeps experiments as rows of JSON; asking a million of them for
 * metrics.accuracy >= 0.9 that way takes seconds. A segment holds the same facts by
 * name, typed, in a form that is mapped and read as it lies: derived data, thrown away
 * and built anew whenever something is odd. Segments never change once written.
 *
 * Names: "params.lr", "metrics.accuracy", "tags.team"; the fields every experiment has
 * without a dot: "duration_s", "id", "name", "kind", "started" (seconds since the
 * epoch), "document" …
 *
 * Layout, all little-endian words at multiples of 8:
 *   0          struct segment_head
 *   seq_at     rows × int64: seq of the store, ascending
 *   columns_at columns × struct segment_column, by name
 *   …          per column: rows (sparse), types (unless uniform), values, dictionary
 *   text_at    all texts
 */
#ifndef SONDE_SEARCH_SEGMENT_H
#define SONDE_SEARCH_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/experiment.h"
#include "store/store.h"

enum { SEGMENT_ROWS = 65536, SEGMENT_VERSION = 1 };

struct segment_head {
    char magic[8];           /* "SondeSeg" */
    uint32_t version, order; /* order: 0x01020304 */
    uint32_t rows, columns;
    uint64_t seq_at, columns_at, text_at, text_len, size;
};

struct segment_column {
    uint64_t name_at; /* in the texts */
    uint32_t name_len;
    uint32_t count;      /* values */
    uint32_t uniform;    /* enum value_type of all of them, 0: see types */
    uint32_t dictionary; /* distinct texts */
    uint64_t rows_at;    /* uint32 row of each value; 0: value i is of row i */
    uint64_t types_at;   /* uint8 each; 0: uniform */
    uint64_t values_at;  /* uint64 each: int64, double, or number in the dictionary */
    uint64_t texts_at;   /* dictionary × struct segment_text */
};

struct segment_text {
    uint64_t at; /* in the texts */
    uint64_t len;
};

struct segment {
    const unsigned char *base;
    size_t len;
    bool mapped; /* else from malloc */
    const struct segment_head *head;
    const int64_t *seq;
    const struct segment_column *columns;
    const char *text;
};

/* One column, ready to be read. */
struct column {
    uint32_t count, uniform, dictionary;
    const uint32_t *rows; /* NULL: dense */
    const uint8_t *types; /* NULL: uniform */
    const uint64_t *values;
    const struct segment_text *texts;
    const char *text;
    uint64_t text_len;
};

/* Checks that nothing points outside. SONDE_E_FORMAT or SONDE_E_VERSION. */
int segment_attach(const void *base, size_t len, bool mapped, struct segment *ret);
int segment_map(const char *path, struct segment *ret_segment);
void segment_release(struct segment *segment);

/* False: no experiment here has it. */
bool segment_find(const struct segment *segment, const char *name, size_t len,
                  struct column *ret_column);
bool segment_column(const struct segment *segment, uint32_t index,
                    struct column *ret_column, const char **ret_name, size_t *ret_len);
/* A text of the dictionary; "" for a number that is not in it. */
const char *column_text(const struct column *column, uint64_t number, size_t *ret_len);
/* Value i of the column. */
struct value column_value(const struct column *column, uint32_t i);
/* The value of one row; VALUE_NONE without. */
struct value column_at(const struct column *column, uint32_t row);

/* ---- Building ----------------------------------------------------------------------- */

struct segment_builder;

struct segment_builder *segment_builder_new(void);
void segment_builder_free(struct segment_builder *b);
/* In ascending order of seq, at most SEGMENT_ROWS. */
int segment_builder_add(struct segment_builder *b, const struct experiment *e);
uint32_t segment_builder_rows(const struct segment_builder *b);
/* Appends the bytes of the segment. */
int segment_builder_write(struct segment_builder *b, struct buf *out);

#endif
