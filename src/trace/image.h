/* image.h: a process file taken apart for reading: statistics, names, and where its
 * events are. Shared by the reader and by compaction; hostile input throughout. */
#ifndef SONDE_TRACE_IMAGE_H
#define SONDE_TRACE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/fold.h"
#include "trace/format.h"

/* Bytes from a descriptor or from memory. */
struct source {
    int fd; /* −1: memory */
    const uint8_t *memory;
    uint64_t len;
};
/* Reads up to len bytes; what lies past the end is zero-filled. False on I/O error. */
bool source_read(const struct source *source, uint64_t offset, void *ret, size_t len);

struct event_block {
    uint32_t lane, seq;
    uint64_t offset;     /* of the block, or of the packed section's payload */
    uint32_t packed_len; /* 0: a raw block */
    uint32_t packed_crc;
    bool pending; /* not in the published statistics: image_load folded it */
};

struct image {
    struct source source;
    bool packed;
    struct trace_head head;
    struct trace_live live;
    struct fold *fold;
    char *strings;
    uint64_t string_bytes;
    struct site_entry *sites;
    uint32_t site_count;
    struct event_block *events; /* by lane, then sequence */
    size_t event_count;
    uint32_t lane_tid[MAX_LANES];
    char lane_name[MAX_LANES][16];
    bool alive;
    uint64_t unfolded_blocks;
    unsigned damaged_cells;
    char damage[200];
};

/* Reads everything but the events; folds what no folder has counted; ends open zones
 * when the process is dead. `source` is borrowed for the image's life. */
int image_load(const struct source *source, struct image *ret_image);
void image_release(struct image *image);

/* The words of one event block into out[EVENTS_WORDS]; returns their number, 0 when
 * the block is not there any more, or a negative error when it is damaged. */
int image_words(const struct image *image, const struct event_block *block,
                uint64_t *ret_words, uint64_t *ret_base_ticks);

#endif
