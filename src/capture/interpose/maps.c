/* maps.c: mmap, munmap, mremap, brk, sbrk: memory a program takes from the kernel itself.
 *
 * Allocators of their own (arenas of Python, Java, Go, image libraries) live on these.
 * What libc's malloc takes for itself does not come by here: it calls the kernel
 * directly. Counted apart from malloc: heap_mapped() and heap_unmapped() for anonymous
 * memory, io_mapped() and io_unmapped() for files.
 */
#include "capture/interpose/inside.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/interpose/heap.h"

/* mmap is mmap64 here; both names are called. */
EXPORTED void *mmap64(void *at, size_t len, int prot, int flags, int fd,
                      off64_t offset);

static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_munmap)(void *, size_t);
static void *(*real_mremap)(void *, size_t, size_t, int, ...);
static int (*real_brk)(void *);
static void *(*real_sbrk)(intptr_t);

static bool captured(void)
{
    return !inside_busy && !inside_resolving && inside_ready();
}

static void *map(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    INSIDE_REAL(real_mmap, "mmap");
    void *p = real_mmap(at, len, prot, flags, fd, offset);
    if (p == MAP_FAILED || !captured())
        return p;
    const int error = errno;
    if ((flags & MAP_ANONYMOUS) && prot != PROT_NONE)
        heap_mapped(len);
    else if (!(flags & MAP_ANONYMOUS) && io_mapped)
        io_mapped(p, len, prot, flags, fd, offset);
    errno = error;
    return p;
}

EXPORTED void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    return map(at, len, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
    return map(at, len, prot, flags, fd, offset);
}

EXPORTED int munmap(void *at, size_t len)
{
    INSIDE_REAL(real_munmap, "munmap");
    if (io_unmapping && captured())
        io_unmapping(at, len);
    const int rc = real_munmap(at, len);
    if (rc != 0 || !captured())
        return rc;
    const int error = errno;
    heap_unmapped(len);
    if (io_unmapped)
        io_unmapped(at, len);
    errno = error;
    return rc;
}

EXPORTED void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *want = flags & (MREMAP_FIXED | 4 /* MREMAP_DONTUNMAP */)
                     ? va_arg(more, void *)
                     : NULL;
    va_end(more);
    INSIDE_REAL(real_mremap, "mremap");
    void *p = real_mremap(old, old_len, new_len, flags, want);
    if (p == MAP_FAILED || !captured())
        return p;
    const int error = errno;
    if (new_len > old_len)
        heap_mapped(new_len - old_len);
    else if (old_len > new_len)
        heap_unmapped(old_len - new_len);
    errno = error;
    return p;
}

static void moved_break(intptr_t by)
{
    const int error = errno;
    if (by > 0)
        heap_mapped((size_t)by);
    else if (by < 0)
        heap_unmapped((size_t)-by);
    errno = error;
}

EXPORTED void *sbrk(intptr_t by)
{
    INSIDE_REAL(real_sbrk, "sbrk");
    void *before = real_sbrk(by);
    if (by != 0 && before != (void *)-1 && captured())
        moved_break(by);
    return before;
}

EXPORTED int brk(void *end)
{
    INSIDE_REAL(real_brk, "brk");
    INSIDE_REAL(real_sbrk, "sbrk");
    const char *before = real_sbrk(0);
    const int rc = real_brk(end);
    if (rc == 0 && captured())
        moved_break((const char *)end - before);
    return rc;
}
