/* kept.c: see kept.h. */
#include "capture/monitor/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int kept_open(const char *root, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    int n = snprintf(path, sizeof path, "%s/", root);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    va_start(args, format);
    const int m = vsnprintf(path + n, sizeof path - (size_t)n, format, args);
    va_end(args);
    if (m < 0 || (size_t)m >= sizeof path - (size_t)n)
        return -ENAMETOOLONG;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

void kept_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

bool kept_read(int fd, char *buffer, size_t size, struct scan *ret_text)
{
    if (fd < 0)
        return false;
    ssize_t n;
    do
        n = pread(fd, buffer, size - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    buffer[n] = '\0';
    *ret_text = (struct scan){ buffer, buffer + n };
    return true;
}

bool kept_number(int fd, double *ret_value)
{
    char buffer[64];
    struct scan s;
    int64_t value;
    if (!kept_read(fd, buffer, sizeof buffer, &s) || !scan_i64(&s, &value))
        return false;
    *ret_value = (double)value;
    return true;
}
