/* pack.h: the compact form of a process file.
 *
 *     0   8  magic "sndpack1"
 *     8   2  major   10  2  minor
 *    12   4  number of sections
 *    16      sections, each: 4 kind, 4 CRC32C of payload, 8 length, payload padded to 8
 *
 * One section each of HEAD, LIVE (structs of format.h), STRINGS, SITES (from number
 * 0), NODES, LANES, VALUES; then one EVENTS section per retained block. Sections of
 * unknown kind are skipped. Written beside the original and renamed over it. */
#ifndef SONDE_TRACE_PACK_H
#define SONDE_TRACE_PACK_H

#include <stdint.h>

#include "base/buf.h"
#include "trace/fold.h"
#include "trace/format.h"

#define PACK_MAGIC 0x316b636170646e73ULL /* "sndpack1" */
enum pack_kind {
    PACK_HEAD = 1,
    PACK_LIVE,
    PACK_STRINGS,
    PACK_SITES,
    PACK_NODES,
    PACK_LANES,
    PACK_VALUES,
    PACK_EVENTS,
};
struct pack_head {
    uint64_t magic;
    uint16_t major, minor;
    uint32_t sections;
};
struct pack_section {
    uint32_t kind, crc;
    uint64_t len;
};
struct
    pack_node { /* followed by `octaves` × { u16 octave, u16 n, n × {u64 count<<8|sub} } */
    uint16_t number, parent, site, octaves;
    struct node_stats stats;
};
struct pack_octave {
    uint16_t octave, buckets;
    uint32_t reserved;
};
struct pack_lane { /* followed by carry.depth frames */
    uint32_t number, tid;
    char name[16];
    struct lane_carry carry;
};
struct pack_value {
    uint16_t node, name;
    uint32_t kind;
    struct value_stats stats;
};
struct pack_events { /* followed by packed words (wordpack.h) */
    uint32_t lane, seq;
    uint64_t base_ticks;
    uint32_t kept, reserved;
};

/* Appends a section's header and payload. */
void pack_section_put(struct buf *out, enum pack_kind kind, const void *payload,
                      size_t len);
/* Statistics to payloads and back. Loading checks everything; E_FORMAT when the
 * payload ends too early. */
void pack_nodes(const struct fold *fold, struct buf *out);
void pack_values(const struct fold *fold, struct buf *out);
int unpack_nodes(struct fold *fold, const uint8_t *p, size_t len);
int unpack_values(struct fold *fold, const uint8_t *p, size_t len);

#endif
