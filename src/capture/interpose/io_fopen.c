/* io_fopen.c: stdio calls that open, close and position. */
#include "capture/interpose/io_stdio.h"

static FILE *opened(FILE *fp, const char *path, uint64_t start, const void *caller)
{
    if (fp && fp->_fileno >= 0) {
        io_opened(fp->_fileno, path, start, caller);
        stream_opened(fp);
    } else if (!fp && !inside_busy && io && io->on) {
        io_add(&io->process->open_errors, 1, false);
    }
    return fp;
}

#define FOPEN(name, declaration, arguments, path)                                      \
    REAL_OF(name);                                                                     \
    EXPORTED FILE *name declaration                                                    \
    {                                                                                  \
        const uint64_t start = io_ticks();                                             \
        return opened(REAL(name) arguments, path, start, IO_CALLER);                   \
    }
FOPEN(fopen, (const char *path, const char *mode), (path, mode), path)
FOPEN(fopen64, (const char *path, const char *mode), (path, mode), path)
FOPEN(popen, (const char *command, const char *mode), (command, mode), NULL)
FOPEN(tmpfile, (void), (), NULL)
FOPEN(tmpfile64, (void), (), NULL)

REAL_OF(fdopen);
EXPORTED FILE *fdopen(int fd, const char *mode)
{
    FILE *fp = REAL(fdopen)(fd, mode);
    if (fp)
        stream_opened(fp);
    return fp;
}

/* The old file is flushed and closed on the way; the FILE stays, often the number too. */
#define FREOPEN(name)                                                                  \
    REAL_OF(name);                                                                     \
    EXPORTED FILE *name(const char *path, const char *mode, FILE *fp)                  \
    {                                                                                  \
        struct window w = { .fp = NULL };                                              \
        struct io_fd gone;                                                             \
        const uint64_t start = io_ticks();                                             \
        stream_closing(&w, fp, &gone);                                                 \
        FILE *again = REAL(name)(path, mode, fp);                                      \
        stream_closed(&w, &gone);                                                      \
        return opened(again, path, start, IO_CALLER);                                  \
    }
FREOPEN(freopen)
FREOPEN(freopen64)

#define FCLOSE(name)                                                                   \
    REAL_OF(name);                                                                     \
    EXPORTED int name(FILE *fp)                                                        \
    {                                                                                  \
        struct window w = { .fp = NULL };                                              \
        struct io_fd gone;                                                             \
        stream_closing(&w, fp, &gone);                                                 \
        const int result = REAL(name)(fp);                                             \
        stream_closed(&w, &gone);                                                      \
        return result;                                                                 \
    }
FCLOSE(fclose)
FCLOSE(pclose)

REAL_OF(fcloseall);
EXPORTED int fcloseall(void)
{
    for (uint32_t fd = 0; !inside_busy && io && io->on && fd <= io->stream_top; fd++)
        io->fd[fd].stream = NULL;
    return REAL(fcloseall)();
}

/* ---- Positions ----------------------------------------------------------------------------- */

#define MOVE(name, declaration, arguments)                                             \
    REAL_OF(name);                                                                     \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        WINDOW(w);                                                                     \
        w.locked = NULL;                                                               \
        if (!window_open(&w, fp, true))                                                \
            return REAL(name) arguments;                                               \
        const int result = REAL(name) arguments;                                       \
        window_moved(&w);                                                              \
        return result;                                                                 \
    }
MOVE(fseek, (FILE * fp, long at, int whence), (fp, at, whence))
MOVE(fseeko, (FILE * fp, off_t at, int whence), (fp, at, whence))
MOVE(fseeko64, (FILE * fp, off64_t at, int whence), (fp, at, whence))
MOVE(fsetpos, (FILE * fp, const fpos_t *at), (fp, at))
MOVE(fsetpos64, (FILE * fp, const fpos64_t *at), (fp, at))

REAL_OF(rewind);
EXPORTED void rewind(FILE *fp)
{
    WINDOW(w);
    w.locked = NULL;
    const bool counts = window_open(&w, fp, true);
    REAL(rewind)(fp);
    if (counts)
        window_moved(&w);
}
