/* cfi_int.h: the insides of struct cfi. Private to cfi.c and cfistep.c. */
#ifndef SONDE_CAPTURE_SAMPLE_CFI_INT_H
#define SONDE_CAPTURE_SAMPLE_CFI_INT_H

#include "capture/sample/cfi.h"
#include "capture/sample/cursor.h"

enum { CFI_SEGMENTS = 16 };

struct cfi_segment {
    uint64_t offset, len, vaddr;
};

struct cfi {
    struct cfi_segment load[CFI_SEGMENTS];
    unsigned load_count;
    const uint8_t *bytes; /* the segment that has the tables */
    uint64_t len, vaddr;
    uint64_t index_vaddr;
    size_t table; /* its place in bytes */
    uint32_t table_count;
    void *map; /* NULL: an image of somebody else's */
    size_t map_len;
};

#endif
