/* pystack_files.h: whose a Python function is, by the file it is in.
 *
 * The sampler looks closer at the program's own, the report names its lines. */
#ifndef SONDE_TRACE_PYSTACK_FILES_H
#define SONDE_TRACE_PYSTACK_FILES_H

#include <stdbool.h>
#include <string.h>

/* Not the program's own: installed, built in, or Sonde's. */
static inline bool pystack_is_library(const char *file)
{
    return file[0] == '<' || strstr(file, "/site-packages/") ||
           strstr(file, "/dist-packages/") || strstr(file, "/lib/python") ||
           strstr(file, "/sonde/inject/") || strstr(file, "/sonde/python/") || !file[0];
}

#endif
