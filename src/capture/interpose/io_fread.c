/* io_fread.c: stdio calls that read. */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1 /* headers would define some of these functions, too */
#endif
#include "capture/interpose/io_stdio.h"

#include <stdarg.h>
#include <string.h>

/* Macros and redirections of the headers would be in the way. */
#undef fread_unlocked
#undef getc
#undef getchar
#undef fgetc_unlocked
#undef getc_unlocked
#undef getchar_unlocked

size_t __fread_chk(void *to, size_t room, size_t size, size_t n, FILE *fp);
size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t n, FILE *fp);
char *__fgets_chk(char *to, size_t room, int n, FILE *fp);
char *__fgets_unlocked_chk(char *to, size_t room, int n, FILE *fp);
int _IO_getc(FILE *fp);
ssize_t __getdelim(char **line, size_t *room, int end, FILE *fp);

/* ---- Blocks ------------------------------------------------------------------------------- */

/* Asking for size × n single bytes is what glibc makes of it; the result then says how
 * many were taken, also of a last item that is not complete. */
static size_t items(size_t got, size_t size, size_t n)
{
    return got == size * n ? n : got / size;
}

static bool countable(size_t size, size_t n)
{
    size_t bytes;
    return size && n && !__builtin_mul_overflow(size, n, &bytes);
}

#define FREAD(name, lock, declaration, as_it_is, as_bytes)                             \
    REAL_OF(name);                                                                     \
    EXPORTED size_t name declaration                                                   \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (!countable(size, n) || stream_serves(fp, size * n) ||                      \
            !window_open(&w, fp, lock))                                                \
            return REAL(name) as_it_is;                                                \
        const size_t got = REAL(name) as_bytes;                                        \
        window_read(&w, got);                                                          \
        return items(got, size, n);                                                    \
    }
FREAD(fread, true, (void *to, size_t size, size_t n, FILE *fp), (to, size, n, fp),
      (to, 1, size *n, fp))
FREAD(fread_unlocked, false, (void *to, size_t size, size_t n, FILE *fp),
      (to, size, n, fp), (to, 1, size *n, fp))
FREAD(__fread_chk, true, (void *to, size_t room, size_t size, size_t n, FILE *fp),
      (to, room, size, n, fp), (to, room, 1, size *n, fp))
FREAD(__fread_unlocked_chk, false,
      (void *to, size_t room, size_t size, size_t n, FILE *fp), (to, room, size, n, fp),
      (to, room, 1, size *n, fp))

/* ---- Lines -------------------------------------------------------------------------------- */

/* A line ends with its newline, with the room or with the file. When none of these fits,
 * there was a zero byte in it and its length is not what strlen says. */
static void read_line(struct window *w, const char *line, int n)
{
    const size_t len = line ? strlen(line) : 0;
    const bool whole = !line || (len && line[len - 1] == '\n') ||
                       len + 1 >= (size_t)n || feof_unlocked(w->fp);
    if (whole)
        window_read(w, len);
    else
        window_scanned(w);
}

#define FGETS(name, lock, declaration, arguments)                                      \
    REAL_OF(name);                                                                     \
    EXPORTED char *name declaration                                                    \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (n <= 0 || stream_serves_line(fp, '\n') || !window_open(&w, fp, lock))      \
            return REAL(name) arguments;                                               \
        char *const line = REAL(name) arguments;                                       \
        read_line(&w, line, n);                                                        \
        return line;                                                                   \
    }
FGETS(fgets, true, (char *to, int n, FILE *fp), (to, n, fp))
FGETS(fgets_unlocked, false, (char *to, int n, FILE *fp), (to, n, fp))
FGETS(__fgets_chk, true, (char *to, size_t room, int n, FILE *fp), (to, room, n, fp))
FGETS(__fgets_unlocked_chk, false, (char *to, size_t room, int n, FILE *fp),
      (to, room, n, fp))

#define GETLINE(name, end_, declaration, arguments)                                    \
    REAL_OF(name);                                                                     \
    EXPORTED ssize_t name declaration                                                  \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (stream_serves_line(fp, end_) || !window_open(&w, fp, true))                \
            return REAL(name) arguments;                                               \
        const ssize_t len = REAL(name) arguments;                                      \
        window_read(&w, len > 0 ? (size_t)len : 0);                                    \
        return len;                                                                    \
    }
GETLINE(getline, '\n', (char **line, size_t *room, FILE *fp), (line, room, fp))
GETLINE(getdelim, end, (char **line, size_t *room, int end, FILE *fp),
        (line, room, end, fp))
GETLINE(__getdelim, end, (char **line, size_t *room, int end, FILE *fp),
        (line, room, end, fp))

/* ---- Characters ------------------------------------------------------------------------- */

#define GETC(name, lock, declaration, arguments, stream)                               \
    REAL_OF(name);                                                                     \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (stream_serves(stream, 1) || !window_open(&w, stream, lock))                \
            return REAL(name) arguments;                                               \
        const int got = REAL(name) arguments;                                          \
        window_read(&w, got != EOF);                                                   \
        return got;                                                                    \
    }
GETC(fgetc, true, (FILE * fp), (fp), fp)
GETC(getc, true, (FILE * fp), (fp), fp)
GETC(_IO_getc, true, (FILE * fp), (fp), fp)
GETC(getchar, true, (void), (), stdin)
GETC(fgetc_unlocked, false, (FILE * fp), (fp), fp)
GETC(getc_unlocked, false, (FILE * fp), (fp), fp)
GETC(getchar_unlocked, false, (void), (), stdin)
/* What inlined getc_unlocked() calls when the buffer is empty. */
GETC(__uflow, false, (FILE * fp), (fp), fp)

/* ---- Formats ------------------------------------------------------------------------------
 *
 * Three names each: as of old, C99, C23. Headers redirect the plain name to one of the
 * others, so the symbols are spelt out. */
#define SCANF(prefix, symbol)                                                          \
    int prefix##_vf(FILE *, const char *, va_list) __asm__(symbol "vfscanf");          \
    int prefix##_v(const char *, va_list) __asm__(symbol "vscanf");                    \
    int prefix##_f(FILE *, const char *, ...) __asm__(symbol "fscanf");                \
    int prefix##_plain(const char *, ...) __asm__(symbol "scanf");                     \
    static __typeof__(prefix##_vf) *real_##prefix;                                     \
    EXPORTED int prefix##_vf(FILE *fp, const char *format, va_list more)               \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (!real_##prefix)                                                            \
            real_##prefix = (__typeof__(real_##prefix))io_real(symbol "vfscanf");      \
        if (!window_open(&w, fp, true))                                                \
            return real_##prefix(fp, format, more);                                    \
        const int result = real_##prefix(fp, format, more);                            \
        window_scanned(&w);                                                            \
        return result;                                                                 \
    }                                                                                  \
    EXPORTED int prefix##_v(const char *format, va_list more)                          \
    {                                                                                  \
        return prefix##_vf(stdin, format, more);                                       \
    }                                                                                  \
    EXPORTED int prefix##_f(FILE *fp, const char *format, ...)                         \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, format);                                                        \
        const int result = prefix##_vf(fp, format, more);                              \
        va_end(more);                                                                  \
        return result;                                                                 \
    }                                                                                  \
    EXPORTED int prefix##_plain(const char *format, ...)                               \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, format);                                                        \
        const int result = prefix##_vf(stdin, format, more);                           \
        va_end(more);                                                                  \
        return result;                                                                 \
    }
SCANF(scanf_old, "")
SCANF(scanf_c99, "__isoc99_")
SCANF(scanf_c23, "__isoc23_")
