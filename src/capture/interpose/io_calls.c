/* io_calls.c: the read and write families.
 *
 * Also the names that fortified programs call (__read_chk …): their check is libc's.
 */
#include "capture/interpose/io.h"

#include <sys/uio.h>
#include <unistd.h>

/* As libc exports them; no header does. */
ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t room);

/* A call `name` without, and one with an offset. */
#define AT_POSITION(name, direction, declaration, arguments)                           \
    REAL_OF(name);                                                                     \
    EXPORTED ssize_t name declaration                                                  \
    {                                                                                  \
        struct io_call c;                                                              \
        const bool counts = io_begin(&c, fd);                                          \
        const ssize_t moved = REAL(name) arguments;                                    \
        if (UNLIKELY(!counts)) {                                                       \
            io_passed(fd, direction, moved);                                           \
            return moved;                                                              \
        }                                                                              \
        io_end(&c, direction, IO_WAY_READ, moved, IO_HERE);                            \
        return moved;                                                                  \
    }

#define AT_OFFSET(name, direction, declaration, arguments)                             \
    REAL_OF(name);                                                                     \
    EXPORTED ssize_t name declaration                                                  \
    {                                                                                  \
        struct io_call c;                                                              \
        const bool counts = io_begin(&c, fd);                                          \
        const ssize_t moved = REAL(name) arguments;                                    \
        if (UNLIKELY(!counts)) {                                                       \
            io_passed(fd, direction, moved);                                           \
            return moved;                                                              \
        }                                                                              \
        io_end(&c, direction, IO_WAY_PREAD, moved, at < 0 ? IO_HERE : (uint64_t)at);   \
        return moved;                                                                  \
    }

AT_POSITION(read, IO_READ, (int fd, void *buf, size_t n), (fd, buf, n))
AT_POSITION(write, IO_WRITE, (int fd, const void *buf, size_t n), (fd, buf, n))
AT_POSITION(readv, IO_READ, (int fd, const struct iovec *v, int n), (fd, v, n))
AT_POSITION(writev, IO_WRITE, (int fd, const struct iovec *v, int n), (fd, v, n))
AT_POSITION(__read_chk, IO_READ, (int fd, void *buf, size_t n, size_t room),
            (fd, buf, n, room))

AT_OFFSET(pread, IO_READ, (int fd, void *buf, size_t n, off_t at), (fd, buf, n, at))
AT_OFFSET(pread64, IO_READ, (int fd, void *buf, size_t n, off64_t at), (fd, buf, n, at))
AT_OFFSET(pwrite, IO_WRITE, (int fd, const void *buf, size_t n, off_t at),
          (fd, buf, n, at))
AT_OFFSET(pwrite64, IO_WRITE, (int fd, const void *buf, size_t n, off64_t at),
          (fd, buf, n, at))
AT_OFFSET(__pread_chk, IO_READ, (int fd, void *buf, size_t n, off_t at, size_t room),
          (fd, buf, n, at, room))
AT_OFFSET(__pread64_chk, IO_READ,
          (int fd, void *buf, size_t n, off64_t at, size_t room),
          (fd, buf, n, at, room))
AT_OFFSET(preadv, IO_READ, (int fd, const struct iovec *v, int n, off_t at),
          (fd, v, n, at))
AT_OFFSET(preadv64, IO_READ, (int fd, const struct iovec *v, int n, off64_t at),
          (fd, v, n, at))
AT_OFFSET(pwritev, IO_WRITE, (int fd, const struct iovec *v, int n, off_t at),
          (fd, v, n, at))
AT_OFFSET(pwritev64, IO_WRITE, (int fd, const struct iovec *v, int n, off64_t at),
          (fd, v, n, at))
/* An offset of −1 means the file's position. */
AT_OFFSET(preadv2, IO_READ, (int fd, const struct iovec *v, int n, off_t at, int flags),
          (fd, v, n, at, flags))
AT_OFFSET(preadv64v2, IO_READ,
          (int fd, const struct iovec *v, int n, off64_t at, int flags),
          (fd, v, n, at, flags))
AT_OFFSET(pwritev2, IO_WRITE,
          (int fd, const struct iovec *v, int n, off_t at, int flags),
          (fd, v, n, at, flags))
AT_OFFSET(pwritev64v2, IO_WRITE,
          (int fd, const struct iovec *v, int n, off64_t at, int flags),
          (fd, v, n, at, flags))

/* ---- Positions --------------------------------------------------------------------------- */

static void moved_to(int fd, off64_t at)
{
    struct io_state *s = io;
    if (at < 0 || inside_busy || !s || !s->on || (unsigned)fd >= IO_FDS)
        return;
    s->fd[fd].pos = (uint64_t)at;
    io_add(&s->process->seeks, 1, false);
}

REAL_OF(lseek);
EXPORTED off_t lseek(int fd, off_t offset, int whence)
{
    const off_t at = REAL(lseek)(fd, offset, whence);
    moved_to(fd, at);
    return at;
}

REAL_OF(lseek64);
EXPORTED off64_t lseek64(int fd, off64_t offset, int whence)
{
    const off64_t at = REAL(lseek64)(fd, offset, whence);
    moved_to(fd, at);
    return at;
}
