/* io_copy.c: calls that move bytes between two descriptors, and those that wait for the
 * disk.
 *
 * A copy is a read of one file and a write of the other. Its time is the reader's: twice
 * would be too much, and nobody knows the halves. The writer's row gets the call and its
 * bytes without a latency.
 */
#include "capture/interpose/io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

static void count_writer(int fd, uint64_t bytes, enum io_way way, uint64_t offset)
{
    struct io_call c;
    if (!io_begin(&c, fd))
        return;
    struct io_side *side = &c.row->side[IO_WRITE];
    if (bytes && io_follows(c.fd, IO_WRITE, offset, bytes))
        io_add(&side->sequential, 1, c.alone);
    io_add(&side->bytes, bytes, c.alone);
    io_add(&side->sizes[io_size_class(bytes)], 1, c.alone);
    if (way == IO_WAY_SPLICE)
        io_add(&side->uncounted, bytes, c.alone);
    (void)__atomic_fetch_or(&c.row->ways, 1u << way, __ATOMIC_RELAXED);
    if (inside_zone())
        io_count_zone(inside_zone(), IO_WRITE, bytes, 0);
    if (io->trace)
        io_event(&c, IO_WRITE, way, (int64_t)bytes, IO_NO_PLACE, 0);
}

/* `at`: where the program keeps the offset, NULL for the file's position. */
static uint64_t place_of(const off64_t *at)
{
    return at ? (uint64_t)*at : IO_HERE;
}

static void count_copy(struct io_call *reader, int out, ssize_t moved, enum io_way way,
                       uint64_t from, uint64_t to)
{
    const int saved = errno;
    io_end(reader, IO_READ, way, moved, from);
    if (moved >= 0) {
        if (way == IO_WAY_SPLICE)
            io_add(&reader->row->side[IO_READ].uncounted, (uint64_t)moved,
                   reader->alone);
        count_writer(out, (uint64_t)moved, way, to);
    }
    errno = saved;
}

#define SENDFILE(name, off_type)                                                       \
    REAL_OF(name);                                                                     \
    EXPORTED ssize_t name(int out, int in, off_type *at, size_t n)                     \
    {                                                                                  \
        struct io_call c;                                                              \
        if (!io_begin(&c, in))                                                         \
            return REAL(name)(out, in, at, n);                                         \
        const uint64_t from = place_of(at);                                            \
        const ssize_t moved = REAL(name)(out, in, at, n);                              \
        count_copy(&c, out, moved, IO_WAY_SENDFILE, from, IO_HERE);                    \
        return moved;                                                                  \
    }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

#define COPY(name, way)                                                                \
    REAL_OF(name);                                                                     \
    EXPORTED ssize_t name(int in, off64_t *in_at, int out, off64_t *out_at, size_t n,  \
                          unsigned flags)                                              \
    {                                                                                  \
        struct io_call c;                                                              \
        if (!io_begin(&c, in))                                                         \
            return REAL(name)(in, in_at, out, out_at, n, flags);                       \
        const uint64_t from = place_of(in_at);                                         \
        const uint64_t to = place_of(out_at);                                          \
        const ssize_t moved = REAL(name)(in, in_at, out, out_at, n, flags);            \
        count_copy(&c, out, moved, way, from, to);                                     \
        return moved;                                                                  \
    }
COPY(copy_file_range, IO_WAY_SENDFILE)
COPY(splice, IO_WAY_SPLICE)

/* ---- Waiting for the disk ---------------------------------------------------------------- */

static void count_sync(struct io_call *c, int result)
{
    const uint64_t took = io_ticks() - c->start;
    io_add(&c->row->syncs, 1, false);
    io_add(&c->row->sync_ticks, took, false);
    (void)__atomic_fetch_or(&c->row->ways, 1u << IO_WAY_SYNC, __ATOMIC_RELAXED);
    if (io->trace)
        io_event(c, IO_WRITE, IO_WAY_SYNC, result < 0 ? -errno : 0, IO_NO_PLACE, took);
}

#define SYNC(name, declaration, arguments)                                             \
    REAL_OF(name);                                                                     \
    EXPORTED int name declaration                                                      \
    {                                                                                  \
        struct io_call c;                                                              \
        if (!io_begin(&c, fd))                                                         \
            return REAL(name) arguments;                                               \
        const int result = REAL(name) arguments;                                       \
        count_sync(&c, result);                                                        \
        return result;                                                                 \
    }
SYNC(fsync, (int fd), (fd))
SYNC(fdatasync, (int fd), (fd))
SYNC(syncfs, (int fd), (fd))
SYNC(sync_file_range, (int fd, off64_t at, off64_t n, unsigned flags),
     (fd, at, n, flags))
