/* sums.h: profiles that are sums, without a timeline: cProfile and folded stacks. */
#ifndef SONDE_IMPORT_SUMS_H
#define SONDE_IMPORT_SUMS_H

#include "import/build.h"
#include "import/source.h"

int cprofile_import(struct import_source *source, const char *dir,
                    struct built *ret_built, struct import_result *result);
int folded_import(struct import_source *source, double rate_hz, const char *dir,
                  struct built *ret_built, struct import_result *result);

/* The trace of the one process such a profile is of. */
struct packwriter;
int sums_open(const char *dir, const char *exe, struct packwriter **ret_writer,
              struct built *ret_built);
/* Reads all of it, at most `most` bytes; the caller frees. */
int source_slurp(struct import_source *source, size_t most, char **ret_data,
                 size_t *ret_len);

#endif
