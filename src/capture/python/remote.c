/* remote.c: process_vm_readv. */
#include "capture/python/remote.h"

#include <errno.h>
#include <sys/uio.h>

int remote_read(pid_t pid, const struct remote_piece *pieces, size_t count)
{
    struct iovec here[REMOTE_PIECES], there[REMOTE_PIECES];
    size_t want = 0;
    if (count > REMOTE_PIECES)
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        here[i] = (struct iovec){ pieces[i].to, pieces[i].len };
        there[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].address,
                                   pieces[i].len };
        want += pieces[i].len;
    }
    const ssize_t n = process_vm_readv(pid, here, count, there, count, 0);
    if (n < 0)
        return -errno;
    return (size_t)n == want ? 0 : -EFAULT;
}

int remote_get(pid_t pid, uint64_t address, void *to, size_t len)
{
    const struct remote_piece piece = { address, to, len };
    return remote_read(pid, &piece, 1);
}

/* A transfer stops between pieces, not inside one: cut at pages. */
ssize_t remote_some(pid_t pid, uint64_t address, void *to, size_t len)
{
    enum { PAGE = 4096 };
    struct iovec here = { to, len }, there[REMOTE_PIECES];
    size_t count = 0;
    for (uint64_t at = address; at < address + len && count < REMOTE_PIECES; count++) {
        uint64_t end = (at / PAGE + 1) * PAGE;
        if (end > address + len)
            end = address + len;
        there[count] = (struct iovec){ (void *)(uintptr_t)at, end - at };
        at = end;
    }
    const ssize_t n = process_vm_readv(pid, &here, 1, there, count, 0);
    return n < 0 ? -errno : n;
}
