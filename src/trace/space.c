/* space.c: fallocate with the two traps taken out. */
#include "trace/space.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* For file systems without fallocate: write zeros, but only past the end, where
 * they can overwrite nothing. A hole inside the file is filled page by page. */
static int write_zeros(int fd, uint64_t offset, uint64_t end)
{
    static const char zeros[4096];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    uint64_t at = offset > (uint64_t)st.st_size ? offset : (uint64_t)st.st_size;
    while (at < end) {
        uint64_t len = end - at < sizeof zeros ? end - at : sizeof zeros;
        ssize_t n = pwrite(fd, zeros, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        at += (uint64_t)n;
    }
    return 0;
}

int space_reserve(int fd, uint64_t offset, uint64_t len)
{
    if (len == 0)
        return 0; /* fallocate calls that invalid */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        offset + len > limit.rlim_cur)
        return -EFBIG;
    int rc;
    do {
        rc = fallocate(fd, 0, (off_t)offset, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
        return write_zeros(fd, offset, offset + len);
    return -errno;
}
