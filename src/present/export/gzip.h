/* gzip.h: a gzip stream into a FILE, as it comes. Private to export/. */
#ifndef SONDE_PRESENT_EXPORT_GZIP_H
#define SONDE_PRESENT_EXPORT_GZIP_H

#include <stddef.h>
#include <stdio.h>

#include <zlib.h>

struct gzip {
    FILE *out;
    z_stream z;
    unsigned char room[1 << 16];
};

int gzip_begin(struct gzip *gzip, FILE *out);
int gzip_put(struct gzip *gzip, const void *bytes, size_t len);
/* Writes the end unless rc is negative already, and frees; rc or the error. */
int gzip_end(struct gzip *gzip, int rc);

#endif
