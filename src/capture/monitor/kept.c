/* kept.c: see kept.h. */
#include "capture/monitor/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
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
    return fd < 0 ? -errno : kept_own(fd);
}

/* ---- Whose descriptor it is ------------------------------------------------------ */

enum { NUMBERS = 16384 };

/* By descriptor: which file it was when we opened it; 0 none. One word, so that threads
 * need no lock: two files with one word are as good as none. */
static uint64_t opened[NUMBERS];

static uint64_t word_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return 0;
    return ((uint64_t)st.st_ino * 0x9E3779B97F4A7C15ULL ^ (uint64_t)st.st_dev) | 1;
}

int kept_own(int fd)
{
    if (fd >= 0 && fd < NUMBERS)
        __atomic_store_n(&opened[fd], word_of(fd), __ATOMIC_RELAXED);
    return fd;
}

bool kept_is_own(int fd)
{
    return fd >= 0 && (fd >= NUMBERS ||
                       __atomic_load_n(&opened[fd], __ATOMIC_RELAXED) == word_of(fd));
}

void kept_close(int *fd)
{
    if (kept_is_own(*fd))
        (void)close(*fd);
    *fd = -1;
}

bool kept_read(int fd, char *buffer, size_t size, struct scan *ret_text)
{
    if (!kept_is_own(fd))
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
