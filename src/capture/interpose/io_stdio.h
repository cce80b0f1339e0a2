/* io_stdio.h: what happened between a FILE and its descriptor; private to io_f*.c.
 *
 * fread, fprintf and their kin call libc's own read and write, which cannot be
 * interposed. But a FILE (glibc's) shows its buffer, and that is enough to know exactly
 * what went through the descriptor during one call:
 *
 *     read from the kernel  =  what the call gave the program
 *                              + unread bytes in the buffer after − before
 *     written to the kernel =  what the call took from the program
 *                              − (unwritten bytes in the buffer after − before)
 *
 * The first terms are the call's result. Bytes that inlined getc_unlocked and
 * putc_unlocked took or put in between are in the buffer's state on both sides and do no
 * harm; their slow halves, __uflow and __overflow, are calls like others. When the sum
 * is not zero, the call refilled or flushed: it counts as one read or write of so many
 * bytes, and its duration as the latency (memory copying included). It may have been
 * several: bytes are exact, calls are not. A call served from the buffer alone is not
 * counted and costs a few nanoseconds.
 *
 * With threads, buffer and call must be looked at together: the FILE is locked around
 * both, as the call itself would (the lock is recursive). It is released by unwinding
 * when the thread is cancelled in the call: these files are compiled with -fexceptions.
 *
 * Flushes nobody calls (exit, reading a terminal flushes stdout, setvbuf) show as bytes
 * missing from the buffer the next time we look. Wide characters are not followed.
 */
#ifndef SONDE_CAPTURE_INTERPOSE_IO_STDIO_H
#define SONDE_CAPTURE_INTERPOSE_IO_STDIO_H

#include "capture/interpose/io.h"

#include <string.h>
#include <sys/single_threaded.h>

struct window {
    struct io_call call;
    FILE *fp;     /* NULL: not counted */
    FILE *locked; /* by us */
    size_t unread, pending;
    const char *read_end;
    int64_t offset;
    int flags;
};

/* In the functions: `WINDOW(w);` then window_open(), the call, one of window_…(). */
#define WINDOW(w) struct window w __attribute__((cleanup(window_release)))

/* False: pass the call through. Locks the FILE when asked and there are threads. */
bool window_open(struct window *w, FILE *fp, bool lock);
void window_release(struct window *w);

void window_read(struct window *w, size_t consumed);
/* The call does not tell how much it took (scanf). */
void window_scanned(struct window *w);
void window_wrote(struct window *w, size_t produced);
/* The call may have moved the position, read ahead, flushed. */
void window_moved(struct window *w);

/* A FILE of this descriptor that stays until stream_closing(). */
void stream_opened(FILE *fp);
/* Looks at the FILE for the last time; count the call afterwards with stream_closed().
 * ret_gone keeps what is needed then: the descriptor may be somebody else's by now. */
void stream_closing(struct window *w, FILE *fp, struct io_fd *ret_gone);
void stream_closed(struct window *w, struct io_fd *gone);

static inline size_t stream_unread(const FILE *fp)
{
    return (size_t)(fp->_IO_read_end - fp->_IO_read_ptr);
}
static inline size_t stream_room(const FILE *fp)
{
    return (size_t)(fp->_IO_write_end - fp->_IO_write_ptr);
}

/* Whether n bytes can be had from the buffer: then nothing happens to the descriptor.
 * Only without threads can we know. */
static inline bool stream_serves(const FILE *fp, size_t n)
{
    return __libc_single_threaded && fp->_IO_read_end > fp->_IO_read_ptr &&
           stream_unread(fp) >= n;
}
/* The same for a line: its end is in the buffer. */
static inline bool stream_serves_line(const FILE *fp, int end)
{
    return __libc_single_threaded && fp->_IO_read_end > fp->_IO_read_ptr &&
           memchr(fp->_IO_read_ptr, end, stream_unread(fp));
}
static inline bool stream_takes(const FILE *fp, size_t n)
{
    return __libc_single_threaded && fp->_IO_write_end > fp->_IO_write_ptr &&
           stream_room(fp) > n;
}

#endif
