/* lines.c: three generations of line tables. */
#include "capture/python/lines.h"

/* 3.9: an instruction belongs to the last pair at or before it. */
static int find_lnotab(const uint8_t *t, size_t len, int first, int64_t offset)
{
    int64_t at = 0, line = first;
    for (size_t i = 0; i + 1 < len; i += 2) {
        at += t[i];
        if (at > offset)
            break;
        line += (int8_t)t[i + 1];
    }
    return (int)line;
}

/* 3.10: ranges, −128 stands for instructions without a line. */
static int find_pep626(const uint8_t *t, size_t len, int first, int64_t offset)
{
    int64_t end = 0, line = first;
    for (size_t i = 0; i + 1 < len; i += 2) {
        const int8_t delta = (int8_t)t[i + 1];
        end += t[i];
        line += delta == -128 ? 0 : delta;
        if (offset < end)
            return delta == -128 ? 0 : (int)line;
    }
    return 0;
}

static uint64_t varint(const uint8_t *t, size_t len, size_t *at)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < len && shift < 60; shift += 6) {
        const uint8_t byte = t[(*at)++];
        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int64_t signed_varint(const uint8_t *t, size_t len, size_t *at)
{
    const uint64_t value = varint(t, len, at);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* 3.11 on: entries of a byte (kind and length in code units) and what belongs to it; a
 * byte with the highest bit begins the next. */
static int find_location(const uint8_t *t, size_t len, int first, int64_t offset)
{
    enum { NO_COLUMNS = 13, LONG = 14, NONE = 15, UNIT = 2 };
    int64_t end = 0, line = first;
    for (size_t at = 0; at < len;) {
        const uint8_t head = t[at++];
        const unsigned code = head >> 3 & 15;
        end += (int64_t)((head & 7) + 1) * UNIT;
        if (code == LONG || code == NO_COLUMNS)
            line += signed_varint(t, len, &at);
        else if (code >= 10 && code < NO_COLUMNS)
            line += code - 10;
        if (offset < end)
            return code == NONE || line < 0 || line > INT32_MAX ? 0 : (int)line;
        while (at < len && !(t[at] & 0x80))
            at++;
    }
    return 0;
}

int lines_find(enum line_table kind, const uint8_t *table, size_t len, int first,
               int64_t offset)
{
    if (offset < 0)
        return first;
    const int line = kind == LINES_LNOTAB   ? find_lnotab(table, len, first, offset)
                     : kind == LINES_PEP626 ? find_pep626(table, len, first, offset)
                                            : find_location(table, len, first, offset);
    return line > 0 ? line : 0;
}
