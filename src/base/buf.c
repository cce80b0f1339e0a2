/* buf.c: growable bytes with a sticky error. */
#include "base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 };

char buf_empty[1];

void buf_init(struct buf *b)
{
    *b = (struct buf)BUF_INIT;
}

void buf_release(struct buf *b)
{
    if (b->cap > 0)
        free(b->data);
    buf_init(b);
}

void buf_clear(struct buf *b)
{
    buf_truncate(b, 0);
    b->error = 0;
}

int buf_reserve(struct buf *b, size_t more)
{
    if (b->error < 0)
        return b->error;
    if (more >= SIZE_MAX / 2 - b->len)
        return b->error = -ENOMEM;

    const size_t need = b->len + more + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap > 0 ? b->cap : FIRST_CAP;
    while (cap < need)
        cap *= 2;
    char *data = realloc(b->cap > 0 ? b->data : NULL, cap);
    if (!data)
        return b->error = -ENOMEM;
    data[b->len] = '\0';
    b->data = data;
    b->cap = cap;
    return 0;
}

void buf_append(struct buf *b, const void *bytes, size_t len)
{
    if (len == 0 || buf_reserve(b, len) < 0)
        return;
    memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
    buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_vprintf(b, fmt, args);
    va_end(args);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, args);
    if (len < 0 && b->error == 0)
        b->error = -errno;
    if (len > 0 && buf_reserve(b, (size_t)len) == 0) {
        (void)vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    }
    va_end(again);
}

void buf_truncate(struct buf *b, size_t len)
{
    if (len >= b->len)
        return;
    b->len = len;
    b->data[len] = '\0';
}

char *buf_steal(struct buf *b)
{
    if (buf_reserve(b, 0) < 0) /* an empty buffer still yields memory of its own */
        return NULL;
    char *data = b->data;
    buf_init(b);
    return data;
}
