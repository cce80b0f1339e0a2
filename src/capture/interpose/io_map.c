/* io_map.c: files that are mapped.
 *
 * Nobody calls anything to read a mapped file. What was read is modelled: when the
 * mapping ends (munmap, exit), the pages of it that this process has in its page table
 * (/proc/self/pagemap, bit "present") are taken as read. Two errors: the kernel maps up
 * to 16 pages around each fault when they are cached, so sparse reads of a cached file
 * seem denser than they were; pages the kernel has taken back seem unread. Of mappings
 * above 64 MiB evenly spread windows are looked at. Nothing is claimed about writes.
 *
 * maps.c stands in front of mmap and munmap and tells us; what ld.so and libc map for
 * themselves does not come by there.
 */
#include "capture/interpose/io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    WINDOW = 128,      /* entries of pagemap read at once */
    ALL_WINDOWS = 128, /* as many as are read of one mapping: 64 MiB in full */
};
#define PRESENT (1ULL << 63)

/* Pages present among the entries of one window; −1 when it cannot be read. */
static long present_in(int pagemap, uint64_t first_page, size_t pages)
{
    uint64_t entry[WINDOW];
    const long n = syscall(SYS_pread64, pagemap, entry, pages * sizeof *entry,
                           first_page * sizeof *entry);
    long present = 0;
    if (n < 0)
        return -1;
    io_add(&io->own[IO_READ], (uint64_t)n, false);
    for (size_t i = 0; i < (size_t)n / sizeof *entry; i++)
        present += entry[i] & PRESENT ? 1 : 0;
    return present;
}

static uint64_t touched(uintptr_t start, size_t len)
{
    const uint64_t first = start / PAGE;
    const uint64_t pages = (len + PAGE - 1) / PAGE;
    const uint64_t windows = (pages + WINDOW - 1) / WINDOW;
    const uint64_t step = windows > ALL_WINDOWS ? windows / ALL_WINDOWS : 1;
    uint64_t looked = 0, present = 0;
    const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap",
                            O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    for (uint64_t w = 0; w < windows; w += step) {
        const uint64_t left = pages - w * WINDOW;
        const size_t some = left < WINDOW ? (size_t)left : WINDOW;
        const long n = present_in((int)fd, first + w * WINDOW, some);
        if (n < 0)
            break;
        looked += some;
        present += (uint64_t)n;
    }
    (void)syscall(SYS_close, fd);
    const double share = looked ? (double)present / (double)looked : 0;
    const uint64_t bytes = (uint64_t)(share * (double)pages * PAGE + 0.5);
    return bytes < len ? bytes : len;
}

void io_mapped(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    struct io_call c;
    (void)flags;
    if (!io_begin(&c, fd))
        return;
    struct io_state *s = io;
    io_add(&c.row->mapped, 1, c.alone);
    io_add(&c.row->mapped_bytes, len, c.alone);
    (void)__atomic_fetch_or(&c.row->ways, 1u << IO_WAY_MAP, __ATOMIC_RELAXED);
    if (s->trace)
        io_event(&c, IO_READ, IO_WAY_MAP, (int64_t)len, (uint64_t)offset, 0);
    if (!(prot & PROT_READ) || (c.fd->io_class == IO_CLASS_OTHER && c.row != s->other))
        return; /* memory that goes by a descriptor is no file that is read */
    inside_busy++;
    io_lock(s);
    for (unsigned i = 0; i < IO_MAPS; i++)
        if (!s->map[i].start) {
            s->map[i] = (struct io_map){ (uintptr_t)at, len, (uint64_t)offset, c.row };
            if (i >= s->map_top)
                __atomic_store_n(&s->map_top, i + 1, __ATOMIC_RELEASE);
            break;
        }
    io_unlock(s);
    inside_busy--;
}

static void end_map(struct io_map *m, size_t len)
{
    const uint64_t bytes = touched(m->start, len < m->len ? len : m->len);
    io_add(&m->row->touched_bytes, bytes, false);
}

/* A loader's batches come and go in mappings that are no files: they are not to look
 * through a table of nothing. */
static uint32_t maps_used(const struct io_state *s)
{
    return __atomic_load_n(&s->map_top, __ATOMIC_ACQUIRE);
}

/* Before the pages go. A part cut from the end or the middle ends the mapping for us. */
void io_unmapping(void *at, size_t len)
{
    struct io_state *s = io;
    if (inside_busy || !s || !s->on)
        return;
    const int saved = errno;
    const uintptr_t start = (uintptr_t)at;
    inside_busy++;
    for (unsigned i = 0; i < maps_used(s); i++) {
        struct io_map m = s->map[i];
        if (!m.start || start > m.start || m.start >= start + len)
            continue;
        s->map[i].start = 0;
        end_map(&m, m.len);
    }
    inside_busy--;
    errno = saved;
}

void io_maps_finish(void)
{
    for (unsigned i = 0; i < maps_used(io); i++) {
        struct io_map m = io->map[i];
        if (!m.start)
            continue;
        io->map[i].start = 0;
        end_map(&m, m.len);
    }
}

/* ---- msync ------------------------------------------------------------------------------- */

REAL_OF(msync);
EXPORTED int msync(void *at, size_t len, int flags)
{
    const uint64_t start = io_ticks();
    const int result = REAL(msync)(at, len, flags);
    struct io_state *s = io;
    if (inside_busy || !s || !s->on)
        return result;
    for (unsigned i = 0; i < maps_used(s); i++) {
        const struct io_map m = s->map[i];
        if (!m.start || (uintptr_t)at < m.start || (uintptr_t)at >= m.start + m.len)
            continue;
        io_add(&m.row->syncs, 1, false);
        io_add(&m.row->sync_ticks, io_ticks() - start, false);
        break;
    }
    return result;
}
