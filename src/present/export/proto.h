/* proto.h: the wire format of Protocol Buffers, written. Private to export/.
 *
 * A message is bytes in a buffer, fields one after the other in any order; an inner
 * message is written into a buffer of its own first and then added with proto_bytes().
 * Errors stick in the buffer.
 */
#ifndef SONDE_PRESENT_EXPORT_PROTO_H
#define SONDE_PRESENT_EXPORT_PROTO_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

enum { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2 };

static inline void proto_varint(struct buf *out, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    buf_append(out, bytes, n);
}

static inline void proto_tag(struct buf *out, unsigned field, unsigned kind)
{
    proto_varint(out, (uint64_t)field << 3 | kind);
}

/* uint64, int64 (two's complement), bool, enum. */
static inline void proto_uint(struct buf *out, unsigned field, uint64_t value)
{
    proto_tag(out, field, PROTO_VARINT);
    proto_varint(out, value);
}

static inline void proto_double(struct buf *out, unsigned field, double value)
{
    uint64_t bits;
    char bytes[8];
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++) /* little-endian, whatever we are */
        bytes[i] = (char)(bits >> 8 * i);
    proto_tag(out, field, PROTO_FIXED64);
    buf_append(out, bytes, sizeof bytes);
}

static inline void proto_bytes(struct buf *out, unsigned field, const void *bytes,
                               size_t len)
{
    proto_tag(out, field, PROTO_BYTES);
    proto_varint(out, len);
    buf_append(out, bytes, len);
}

static inline void proto_message(struct buf *out, unsigned field,
                                 const struct buf *inner)
{
    if (inner->error && !out->error)
        out->error = inner->error;
    proto_bytes(out, field, inner->data, inner->len);
}

/* Texts must be UTF-8 or readers refuse the whole file: other bytes become U+FFFD. */
void proto_text(struct buf *out, unsigned field, const char *text);

#endif
