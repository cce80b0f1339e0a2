/* lines.h: from an instruction to its line, by the table the compiler left. */
#ifndef SONDE_CAPTURE_PYTHON_LINES_H
#define SONDE_CAPTURE_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "capture/python/layout.h"

/* The line of the instruction `offset` bytes into the code; `first` is the function's.
 * 0 when it has none. Hostile input. */
int lines_find(enum line_table kind, const uint8_t *table, size_t len, int first,
               int64_t offset);

#endif
