/* io_fwrite.c: stdio calls that write. */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1 /* headers would define some of these functions, too */
#endif
#include "capture/interpose/io_stdio.h"

#include <stdarg.h>
#include <string.h>

#undef fwrite_unlocked
#undef putc
#undef putchar
#undef fputc_unlocked
#undef putc_unlocked
#undef putchar_unlocked

int _IO_putc(int c, FILE *fp);
int __fprintf_chk(FILE *fp, int flag, const char *format, ...);
int __printf_chk(int flag, const char *format, ...);
int __vfprintf_chk(FILE *fp, int flag, const char *format, va_list more);
int __vprintf_chk(int flag, const char *format, va_list more);
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list more);

/* ---- Blocks and strings -------------------------------------------------------------------- */

static bool countable(size_t size, size_t n)
{
    size_t bytes;
    return size && n && !__builtin_mul_overflow(size, n, &bytes);
}

#define FWRITE(name, lock)                                                             \
    REAL_OF(name);                                                                     \
    EXPORTED size_t name(const void *from, size_t size, size_t n, FILE *fp)            \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (!countable(size, n) || stream_takes(fp, size * n) ||                       \
            !window_open(&w, fp, lock))                                                \
            return REAL(name)(from, size, n, fp);                                      \
        const size_t put = REAL(name)(from, 1, size * n, fp);                          \
        window_wrote(&w, put);                                                         \
        return put == size * n ? n : put / size;                                       \
    }
FWRITE(fwrite, true)
FWRITE(fwrite_unlocked, false)

#define FPUTS(name, lock)                                                              \
    REAL_OF(name);                                                                     \
    EXPORTED int name(const char *text, FILE *fp)                                      \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        const size_t len = strlen(text);                                               \
        if (stream_takes(fp, len) || !window_open(&w, fp, lock))                       \
            return REAL(name)(text, fp);                                               \
        const int result = REAL(name)(text, fp);                                       \
        window_wrote(&w, result == EOF ? 0 : len);                                     \
        return result;                                                                 \
    }
FPUTS(fputs, true)
FPUTS(fputs_unlocked, false)

REAL_OF(puts);
EXPORTED int puts(const char *text)
{
    WINDOW(w);
    w.locked = NULL;
    const size_t len = strlen(text) + 1;
    FILE *fp = stdout;
    if (stream_takes(fp, len) || !window_open(&w, fp, true))
        return REAL(puts)(text);
    const int result = REAL(puts)(text);
    window_wrote(&w, result == EOF ? 0 : len);
    return result;
}

/* ---- Characters ------------------------------------------------------------------------- */

#define PUTC(name, lock, declaration, arguments, stream)                               \
    REAL_OF(name);                                                                     \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (stream_takes(stream, 1) || !window_open(&w, stream, lock))                 \
            return REAL(name) arguments;                                               \
        const int result = REAL(name) arguments;                                       \
        window_wrote(&w, result != EOF);                                               \
        return result;                                                                 \
    }
PUTC(fputc, true, (int c, FILE *fp), (c, fp), fp)
PUTC(putc, true, (int c, FILE *fp), (c, fp), fp)
PUTC(_IO_putc, true, (int c, FILE *fp), (c, fp), fp)
PUTC(putchar, true, (int c), (c), stdout)
PUTC(fputc_unlocked, false, (int c, FILE *fp), (c, fp), fp)
PUTC(putc_unlocked, false, (int c, FILE *fp), (c, fp), fp)
PUTC(putchar_unlocked, false, (int c), (c), stdout)

/* What inlined putc_unlocked() calls when the buffer is full. EOF for a character means
 * flush. */
REAL_OF(__overflow);
EXPORTED int __overflow(FILE *fp, int c)
{
    WINDOW(w);
    w.locked = NULL;
    if (!window_open(&w, fp, false))
        return REAL(__overflow)(fp, c);
    const int result = REAL(__overflow)(fp, c);
    window_wrote(&w, c != EOF && result != EOF);
    return result;
}

/* ---- Formats ------------------------------------------------------------------------------ */

#define VPRINTF(name, declaration, arguments, stream)                                  \
    REAL_OF(name);                                                                     \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (!window_open(&w, stream, true))                                            \
            return REAL(name) arguments;                                               \
        const int result = REAL(name) arguments;                                       \
        window_wrote(&w, result > 0 ? (size_t)result : 0);                             \
        return result;                                                                 \
    }
/* The same with three dots, through the one before. */
#define PRINTF(name, through, declaration, ...)                                        \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, format);                                                        \
        const int result = through(__VA_ARGS__, more);                                 \
        va_end(more);                                                                  \
        return result;                                                                 \
    }
VPRINTF(vfprintf, (FILE * fp, const char *format, va_list more), (fp, format, more), fp)
VPRINTF(vprintf, (const char *format, va_list more), (format, more), stdout)
VPRINTF(__vfprintf_chk, (FILE * fp, int flag, const char *format, va_list more),
        (fp, flag, format, more), fp)
VPRINTF(__vprintf_chk, (int flag, const char *format, va_list more),
        (flag, format, more), stdout)
PRINTF(fprintf, vfprintf, (FILE * fp, const char *format, ...), fp, format)
PRINTF(printf, vprintf, (const char *format, ...), format)
PRINTF(__fprintf_chk, __vfprintf_chk, (FILE * fp, int flag, const char *format, ...),
       fp, flag, format)
PRINTF(__printf_chk, __vprintf_chk, (int flag, const char *format, ...), flag, format)

/* Straight to a descriptor. */
#define VDPRINTF(name, declaration, arguments)                                         \
    REAL_OF(name);                                                                     \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        struct io_call c;                                                              \
        if (!io_begin(&c, fd))                                                         \
            return REAL(name) arguments;                                               \
        const int result = REAL(name) arguments;                                       \
        io_end(&c, IO_WRITE, IO_WAY_STDIO, result, IO_HERE);                           \
        return result;                                                                 \
    }
VDPRINTF(vdprintf, (int fd, const char *format, va_list more), (fd, format, more))
VDPRINTF(__vdprintf_chk, (int fd, int flag, const char *format, va_list more),
         (fd, flag, format, more))
PRINTF(dprintf, vdprintf, (int fd, const char *format, ...), fd, format)
PRINTF(__dprintf_chk, __vdprintf_chk, (int fd, int flag, const char *format, ...), fd,
       flag, format)
