/* symbols.h: reading the names that launch/symbolise.c found for a run.
 *
 *     rc = symbols_open(dir, &symbols);           -ENOENT: nothing was looked up
 *     n = symbols_find(symbols, "heap-….tables", address, names, SYMBOLS_INLINE_MAX);
 *
 * Hostile input, as all files of a run.
 */
#ifndef SONDE_TRACE_SYMBOLS_H
#define SONDE_TRACE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "trace/symbol_rows.h"

struct symbols;

/* One function at a place; "" and 0 are unknown. Texts live as long as the symbols. */
struct symbol_name {
    const char *function, *module; /* module: path of the file it is in */
    const char *function_file;     /* where it is defined */
    uint32_t function_line;
    const char *file; /* where in it the place is */
    uint32_t line;
    uint32_t id; /* number of the function + 1: equal ones are the same; 0 unknown */
};

struct symbols_totals {
    uint64_t addresses, named, with_line;
    uint32_t modules;
    uint32_t by_state[SYMBOL_UNSUPPORTED + 1]; /* modules by enum symbol_state */
};

/* Takes the newest file of kind "symbols" in the directory. */
int symbols_open(const char *dir, struct symbols **ret_symbols);
void symbols_free(struct symbols *symbols);

/* The functions at a place: the innermost first, then those it is inlined into.
 * `source` is the name of the file of tables that has the key (symbol_rows.h). Returns
 * how many, at most `max`; 0: not known. */
unsigned symbols_find(const struct symbols *symbols, const char *source, uint64_t key,
                      struct symbol_name *ret_names, unsigned max);

void symbols_totals(const struct symbols *symbols, struct symbols_totals *ret_totals);

#endif
