/* cursor.h: reading numbers of DWARF from bytes that are not trusted. Private. */
#ifndef SONDE_CAPTURE_SAMPLE_CURSOR_H
#define SONDE_CAPTURE_SAMPLE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Past the end everything is 0 and `bad` is set. */
struct cursor {
    const uint8_t *bytes;
    size_t at, end;
    bool bad;
};

static inline uint64_t take_fixed(struct cursor *c, size_t size)
{
    uint64_t v = 0;
    if (c->bad || !c->bytes || c->end - c->at < size) {
        c->bad = true;
        return 0;
    }
    memcpy(&v, c->bytes + c->at, size); /* little-endian */
    c->at += size;
    return v;
}

static inline int64_t take_signed(struct cursor *c, size_t size)
{
    const uint64_t v = take_fixed(c, size);
    const unsigned shift = 64 - 8 * (unsigned)size;
    return (int64_t)(v << shift) >> shift;
}

static inline uint64_t take_uleb(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = take_fixed(c, 1);
        v |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    c->bad = true;
    return 0;
}

static inline int64_t take_sleb(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64;) {
        const uint64_t byte = take_fixed(c, 1);
        v |= (byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        if (shift < 64 && (byte & 0x40))
            v |= ~0ULL << shift;
        return (int64_t)v;
    }
    c->bad = true;
    return 0;
}

static inline void skip(struct cursor *c, uint64_t count)
{
    if (c->bad || c->end - c->at < count)
        c->bad = true;
    else
        c->at += count;
}

#endif
