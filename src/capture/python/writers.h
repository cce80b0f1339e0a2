/* writers.h: what programs call to write a record, by its name.
 *
 * A code object keeps the names of the globals and attributes it uses. They are what runs,
 * whatever became of the source file since, and there without one. */
#ifndef SONDE_CAPTURE_PYTHON_WRITERS_H
#define SONDE_CAPTURE_PYTHON_WRITERS_H

#include <stdbool.h>
#include <stddef.h>

/* `name` need not end with 0. */
bool writers_has(const char *name, size_t len);

#endif
