/* experiments_out.h: a list of experiments as table, JSON or CSV. */
#ifndef SONDE_CLI_EXPERIMENTS_OUT_H
#define SONDE_CLI_EXPERIMENTS_OUT_H

#include <stdint.h>
#include <stdio.h>

#include "store/store.h"

enum experiments_format { EXPERIMENTS_TABLE, EXPERIMENTS_JSON, EXPERIMENTS_CSV };

/* One of them, with what belongs to this list alone. */
struct experiments_row {
    int64_t seq;
    double similarity;         /* NaN: not asked for */
    const char *why;           /* JSON array, printed as it is; NULL: none */
    const char *words;         /* the same for people; NULL: none */
    const signed char *vector; /* of the embedding, in JSON; NULL: not asked for */
};

struct experiments_list {
    struct store *store;
    const struct experiments_row *rows;
    size_t count;
    uint64_t matched, total;
};

int experiments_print(const struct experiments_list *list,
                      enum experiments_format format, FILE *out);

/* Writes a CSV field. */
void csv_field(FILE *out, const char *text, size_t len);

#endif
