/* source.h: the bytes of a file to import, unpacked when they are gzip. */
#ifndef SONDE_IMPORT_SOURCE_H
#define SONDE_IMPORT_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "import/import.h"

struct import_source {
    void *gz;          /* gzFile */
    uint64_t size;     /* of the file */
    uint64_t produced; /* bytes given out */
    const struct import_options *options;
};

/* −EISDIR, −ENOENT …; only regular files and pipes. */
int import_source_open(const char *path, const struct import_options *options,
                       struct import_source *ret_source);
void import_source_close(struct import_source *source);
/* For jsonpull: bytes read, 0 at the end, negative error. */
long import_source_read(void *source, void *into, size_t len);
/* From the beginning again. */
int import_source_rewind(struct import_source *source);

#endif
