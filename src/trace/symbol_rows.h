/* symbol_rows.h: names of code addresses, kind "symbols".
 *
 * launch/symbolise.c writes one such file when a run has ended; trace/symbols.h reads
 * it. Tables:
 *
 *     sources     the files of tables whose addresses were looked up
 *     modules     the files they were looked up in, and how that went
 *     functions   each function once
 *     places      one per address and, where calls were inlined there, one more for
 *                 each function around it
 *
 * A place is found by its source and its key: for files with FRAMES_TABLE the address
 * as it stands there; for stacks (stack_rows.h) the number of the frame + 1.
 */
#ifndef SONDE_TRACE_SYMBOL_ROWS_H
#define SONDE_TRACE_SYMBOL_ROWS_H

#include <stdint.h>

#define SYMBOLS_KIND "symbols"

enum {
    SYMBOLS_SOURCES = 1, /* numbers of the tables */
    SYMBOLS_MODULES,
    SYMBOLS_FUNCTIONS,
    SYMBOLS_PLACES,
    SYMBOLS_INLINE_MAX = 16, /* places of one address */
};

struct symbol_source_row {
    uint64_t key;  /* 1 */
    uint32_t name; /* of the file in the run directory */
    uint32_t pad;
};

/* How looking into a module went. */
enum symbol_state {
    SYMBOL_PENDING, /* begun and not ended: the run was not finished */
    SYMBOL_DONE,
    SYMBOL_NO_FILE,     /* gone, or not readable */
    SYMBOL_REPLACED,    /* another file is at its path by now */
    SYMBOL_NO_NAMES,    /* stripped, and no separate file of symbols */
    SYMBOL_BROKEN,      /* no ELF file, or damaged */
    SYMBOL_CRASHED,     /* the child that read it died of it */
    SYMBOL_TOO_SLOW,    /* took longer than a module may */
    SYMBOL_UNSUPPORTED, /* built without elfutils */
};

struct symbol_module_row {
    uint64_t key; /* 1 */
    uint32_t path;
    uint32_t state;            /* enum symbol_state */
    uint32_t addresses, named; /* looked up, and those that got a name */
    uint32_t with_line, pad;
};

struct symbol_function_row {
    uint64_t key;  /* 1 */
    uint32_t name; /* demangled where that was possible; never 0 */
    uint32_t file; /* where it is defined; 0 unknown */
    uint32_t line;
    uint32_t module; /* path of the module */
};

struct symbol_place_row {
    uint64_t key;
    uint32_t source;     /* number of its row */
    uint32_t function;   /* number of its row + 1; 0 unknown */
    uint32_t file, line; /* 0 unknown */
    uint32_t outer;      /* number + 1 of the place it is inlined into; 0: it is not */
    uint32_t depth;      /* 0: the innermost; others are reached by `outer` only */
};

#endif
