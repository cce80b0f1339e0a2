/* proto.c: see proto.h. */
#include "present/export/proto.h"

#include <stdbool.h>

/* Bytes of the character at `p`, 0 when there is none: overlong forms, surrogates and
 * what lies beyond Unicode are none. */
static size_t utf8_length(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    const size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0; /* the NUL at the end too */
    const bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
                     (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : n;
}

static void append_clean(struct buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        const size_t n = utf8_length(p);
        if (n)
            buf_append(out, p, n);
        else
            buf_puts(out, "\xef\xbf\xbd");
        p += n ? n : 1;
    }
}

static bool is_clean(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        const size_t n = utf8_length(p);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

void proto_text(struct buf *out, unsigned field, const char *text)
{
    if (is_clean(text)) {
        proto_bytes(out, field, text, strlen(text));
        return;
    }
    struct buf clean = BUF_INIT;
    append_clean(&clean, text);
    proto_message(out, field, &clean);
    buf_release(&clean);
}
