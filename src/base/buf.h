/* buf.h: growable bytes, always NUL-terminated.
 *
 * Appending never needs checking one by one: the first failure sticks in
 * `error`, later appends do nothing, and the caller looks once at the end.
 *
 *     struct buf b = BUF_INIT;
 *     buf_printf(&b, "%d of %d", 3, 4);
 *     if (b.error == 0)
 *         use(b.data, b.len);
 *     buf_release(&b);
 *
 * Invariants: (1) data is never NULL  (2) data[len] == 0
 *             (3) error is 0 or negative
 */
#ifndef SONDE_BASE_BUF_H
#define SONDE_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len;
    size_t cap; /* bytes allocated, the NUL included; 0 while data is the shared "" */
    int error;
};

/* Shared terminator of empty buffers; nobody writes to it. */
extern char buf_empty[1];

/* clang-format off */
#define BUF_INIT { .data = buf_empty }
/* clang-format on */

void buf_init(struct buf *b);
void buf_release(struct buf *b);

/* Forgets content and error, keeps the memory. */
void buf_clear(struct buf *b);

/* Makes room for `more` bytes beyond len. Returns 0 or the sticky error. */
int buf_reserve(struct buf *b, size_t more);

void buf_append(struct buf *b, const void *bytes, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Cuts the content to at most `len` bytes. */
void buf_truncate(struct buf *b, size_t len);

/* Hands the bytes to the caller, who frees them, and empties the buffer.
 * NULL when the buffer has an error or memory is out. */
char *buf_steal(struct buf *b);

#endif
