/* io_stdio.c: what happened between a FILE and its descriptor (io_stdio.h explains). */
#include "capture/interpose/io_stdio.h"

#include <unistd.h>

/* glibc's own names for these are not in headers. */
enum { IN_BACKUP = 0x100, EOF_SEEN = 0x10, ERROR_SEEN = 0x20 };

/* ungetc() may have put a second, smaller get area in front of the first. */
static size_t unread_of(const FILE *fp)
{
    size_t n = stream_unread(fp);
    if (fp->_flags & IN_BACKUP)
        n += (size_t)(fp->_IO_save_end - fp->_IO_save_base);
    return n;
}

static size_t pending_of(const FILE *fp)
{
    return fp->_IO_write_ptr > fp->_IO_write_base
               ? (size_t)(fp->_IO_write_ptr - fp->_IO_write_base)
               : 0;
}

static bool is_standard(const FILE *fp)
{
    return fp == stdin || fp == stdout || fp == stderr;
}

static void remember(struct io_fd *f, FILE *fp)
{
    const uint32_t fd = (uint32_t)(f - io->fd);
    if (fd >= IO_FDS)
        return;
    f->stream = fp;
    if (fd > io->stream_top)
        io->stream_top = fd;
}

/* Bytes that left the buffer while nobody looked. */
static void count_unseen(struct io_call *c, size_t pending)
{
    struct io_side *side = &c->row->side[IO_WRITE];
    if (c->fd->pending <= pending)
        return;
    const uint64_t bytes = c->fd->pending - pending;
    if (io_follows(c->fd, IO_WRITE, IO_HERE, bytes))
        io_add(&side->sequential, 1, c->alone);
    io_add(&side->bytes, bytes, c->alone);
    io_add(&side->sizes[io_size_class(bytes)], 1, c->alone);
    c->fd->pending = pending;
}

bool window_open(struct window *w, FILE *fp, bool lock)
{
    w->fp = w->locked = NULL;
    if (inside_busy || fp->_fileno < 0 || !io_begin(&w->call, fp->_fileno))
        return false;
    if (lock && !__libc_single_threaded) {
        flockfile(fp);
        w->locked = fp;
    }
    w->fp = fp;
    w->flags = fp->_flags;
    w->unread = unread_of(fp);
    w->pending = pending_of(fp);
    w->read_end = fp->_IO_read_end;
    w->offset = fp->_offset;
    count_unseen(&w->call, w->pending);
    if (UNLIKELY(!w->call.fd->stream) && is_standard(fp))
        remember(w->call.fd, fp);
    return true;
}

void window_release(struct window *w)
{
    FILE *fp = w->locked;
    w->locked = NULL;
    if (fp)
        funlockfile(fp);
}

static void count(struct window *w, enum io_direction d, int64_t bytes)
{
    const int failed = w->fp->_flags & ~w->flags & ERROR_SEEN;
    const int ended = w->fp->_flags & ~w->flags & EOF_SEEN;
    if (bytes > 0)
        io_end(&w->call, d, IO_WAY_STDIO, bytes, IO_HERE);
    else if (failed)
        io_end(&w->call, d, IO_WAY_STDIO, -1, IO_HERE);
    else if (ended && d == IO_READ)
        io_end(&w->call, d, IO_WAY_STDIO, 0, IO_HERE);
}

static void count_written(struct window *w, size_t produced)
{
    const size_t pending = pending_of(w->fp);
    count(w, IO_WRITE, (int64_t)(w->pending + produced) - (int64_t)pending);
    w->call.fd->pending = pending;
}

void window_read(struct window *w, size_t consumed)
{
    const int saved = errno;
    count(w, IO_READ, (int64_t)(consumed + unread_of(w->fp)) - (int64_t)w->unread);
    if (UNLIKELY(w->pending)) /* a stream for both: what was written goes out first */
        count_written(w, 0);
    errno = saved;
}

void window_wrote(struct window *w, size_t produced)
{
    const int saved = errno;
    count_written(w, produced);
    errno = saved;
}

/* A regular file's position says it. Of others the last refill is in the buffer. */
void window_scanned(struct window *w)
{
    const int saved = errno;
    const FILE *fp = w->fp;
    const bool refilled = fp->_IO_read_end != w->read_end || unread_of(fp) > w->unread;
    off_t at = -1;
    if (refilled && w->call.fd->io_class == IO_CLASS_FILE) {
        inside_busy++;
        at = lseek(fp->_fileno, 0, SEEK_CUR);
        inside_busy--;
    }
    if (at >= 0)
        count(w, IO_READ, (int64_t)at - (int64_t)w->call.fd->pos);
    else if (refilled)
        count(w, IO_READ, fp->_IO_read_end - fp->_IO_read_base);
    errno = saved;
}

/* fseek() of a file being read leaves the buffer when the place is in it; else it seeks
 * to the start of a block and reads that. */
void window_moved(struct window *w)
{
    const int saved = errno;
    const FILE *fp = w->fp;
    const bool same = fp->_IO_read_end == w->read_end && fp->_offset == w->offset;
    const int64_t ahead = fp->_IO_read_end - fp->_IO_buf_base;
    if (w->pending)
        count_written(w, 0);
    if (!same && fp->_offset >= 0) {
        w->call.fd->pos = (uint64_t)fp->_offset;
        if (ahead > 0 && ahead <= fp->_offset && fp->_IO_buf_base) {
            w->call.fd->pos -= (uint64_t)ahead;
            count(w, IO_READ, ahead);
        }
    }
    errno = saved;
}

/* ---- Streams that are known -------------------------------------------------------------- */

void stream_opened(FILE *fp)
{
    struct io_state *s = io;
    if (!inside_busy && s && s->on && (unsigned)fp->_fileno < IO_FDS)
        remember(&s->fd[fp->_fileno], fp);
}

void stream_closing(struct window *w, FILE *fp, struct io_fd *ret_gone)
{
    if (!window_open(w, fp, false))
        return;
    *ret_gone = *w->call.fd;
    io_closing(fp->_fileno);
    w->call.fd = ret_gone;
}

void stream_closed(struct window *w, struct io_fd *gone)
{
    if (!w->fp || !w->pending)
        return;
    const int saved = errno;
    gone->stream = NULL;
    io_end(&w->call, IO_WRITE, IO_WAY_STDIO, (int64_t)w->pending, IO_HERE);
    errno = saved;
}

/* Every stream that holds bytes, before (`bytes` NULL) and after fflush(NULL). */
static void look_at_all(bool flushed)
{
    struct io_state *s = io;
    for (uint32_t fd = 0; s && s->on && fd <= s->stream_top; fd++) {
        struct io_fd *f = &s->fd[fd];
        FILE *fp = f->stream;
        struct io_call c;
        if (!fp || fp->_fileno != (int)fd)
            continue;
        if (!flushed)
            f->pending = pending_of(fp);
        else if (f->pending && io_begin(&c, (int)fd))
            count_unseen(&c, pending_of(fp));
    }
}

REAL_OF(fflush);
EXPORTED int fflush(FILE *fp)
{
    WINDOW(w);
    w.locked = NULL;
    if (!fp) {
        if (!inside_busy)
            look_at_all(false);
        const int result = REAL(fflush)(fp);
        if (!inside_busy)
            look_at_all(true);
        return result;
    }
    if (!window_open(&w, fp, true))
        return REAL(fflush)(fp);
    const int result = REAL(fflush)(fp);
    window_wrote(&w, 0);
    return result;
}

REAL_OF(fflush_unlocked);
EXPORTED int fflush_unlocked(FILE *fp)
{
    WINDOW(w);
    w.locked = NULL;
    if (!fp || !window_open(&w, fp, false))
        return REAL(fflush_unlocked)(fp);
    const int result = REAL(fflush_unlocked)(fp);
    window_wrote(&w, 0);
    return result;
}

/* exit() writes what is left, after us: counted now, without a latency. */
void io_streams_finish(void)
{
    struct io_state *s = io;
    const uint32_t busy = inside_busy;
    inside_busy = 0;
    look_at_all(false);
    for (uint32_t fd = 0; fd <= s->stream_top; fd++) {
        struct io_call c;
        if (s->fd[fd].stream && s->fd[fd].pending && io_begin(&c, (int)fd))
            count_unseen(&c, 0);
    }
    inside_busy = busy;
}
