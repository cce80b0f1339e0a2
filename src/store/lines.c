/* lines.c: see lines.h. */
#include "store/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int lines_append(const char *path, const char *line)
{
    struct buf text = BUF_INIT;
    int rc = 0;
    buf_printf(&text, "%s\n", line);
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                        0600);
    if (fd < 0)
        rc = -errno;
    else if (write(fd, text.data, text.len) != (ssize_t)text.len)
        rc = errno ? -errno : -EIO;
    if (fd >= 0)
        (void)close(fd);
    buf_release(&text);
    return rc;
}

int lines_read_newest(const char *path, size_t most, struct buf *text)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : SONDE_E_FORMAT;
    const off_t from = rc == 0 && st.st_size > (off_t)most ? st.st_size - (off_t)most
                                                           : 0;
    if (rc == 0)
        rc = buf_reserve(text, most);
    if (rc == 0) {
        const ssize_t n = pread(fd, text->data + text->len, most, from);
        if (n < 0)
            rc = -errno;
        else
            text->data[text->len += (size_t)n] = '\0';
    }
    (void)close(fd);
    return rc;
}

const char *lines_next(const struct buf *text, size_t *at, size_t *ret_len)
{
    if (*at >= text->len)
        return NULL;
    const char *line = text->data + *at;
    const char *stop = memchr(line, '\n', text->len - *at);
    *ret_len = stop ? (size_t)(stop - line) : text->len - *at;
    *at += *ret_len + 1;
    return line;
}
