/* files.c: whole-file reading and writing, directories, paths. */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* Each level of a removed tree holds one descriptor. */
enum { READ_CHUNK = 64 * 1024, MAX_TREE_DEPTH = 200 };

ssize_t fd_read_full(int fd, void *ret_data, size_t len)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t n = read(fd, (char *)ret_data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

ssize_t fd_pread_full(int fd, void *ret_data, size_t len, off_t offset)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t n = pread(fd, (char *)ret_data + done, len - done,
                                offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int fd_write_full(int fd, const void *data, size_t len)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t n = write(fd, (const char *)data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return 0;
}

int fd_pwrite_full(int fd, const void *data, size_t len, off_t offset)
{
    size_t done = 0;
    while (done < len) {
        const ssize_t n = pwrite(fd, (const char *)data + done, len - done,
                                 offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return 0;
}

/* One byte more than the limit is asked for: its arrival is the news that the
 * file is too long. */
static int read_to_end(int fd, size_t max_bytes, struct buf *out)
{
    size_t left = max_bytes;
    for (;;) {
        const size_t want = left < READ_CHUNK ? left + 1 : READ_CHUNK;
        int rc = buf_reserve(out, want);
        if (rc < 0)
            return rc;
        const ssize_t n = fd_read_full(fd, out->data + out->len, want);
        if (n < 0)
            return (int)n;
        if ((size_t)n > left)
            return SONDE_E_LIMIT;
        out->len += (size_t)n;
        left -= (size_t)n;
        if ((size_t)n < want)
            return 0;
    }
}

int file_read_all(const char *path, size_t max_bytes, struct buf *ret_text)
{
    if (ret_text->error < 0)
        return ret_text->error;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;

    const size_t old_len = ret_text->len;
    const int rc = read_to_end(fd, max_bytes, ret_text);
    if (rc < 0) {
        ret_text->len = old_len;
        ret_text->error = 0;
    }
    if (ret_text->cap > 0) /* reads went past the terminator */
        ret_text->data[ret_text->len] = '\0';
    (void)close(fd);
    return rc;
}

/* A rename is durable only once its directory is. Some file systems refuse to
 * sync a directory; the rename itself has happened then, so that is no failure. */
static void sync_parent(const char *path)
{
    struct buf dir = BUF_INIT;
    path_parent(&dir, path);
    const int fd = open(dir.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    buf_release(&dir);
}

static int write_new(int fd, const void *data, size_t len, mode_t mode, bool sync)
{
    int rc = fd_write_full(fd, data, len);
    if (rc == 0 && fchmod(fd, mode) < 0)
        rc = -errno;
    if (rc == 0 && sync && fsync(fd) < 0)
        rc = -errno;
    return rc;
}

static int replace(const char *path, const void *data, size_t len, mode_t mode,
                   bool sync)
{
    struct buf tmp = BUF_INIT;
    int rc;
    int fd = -1;

    buf_printf(&tmp, "%s.tmp-XXXXXX", path);
    if (tmp.error < 0) {
        rc = tmp.error;
        goto done;
    }
    fd = mkostemp(tmp.data, O_CLOEXEC);
    if (fd < 0) {
        rc = -errno;
        goto done;
    }
    rc = write_new(fd, data, len, mode, sync);
    if (close(fd) < 0 && rc == 0) /* NFS reports a full disk here */
        rc = -errno;
    if (rc == 0 && rename(tmp.data, path) < 0)
        rc = -errno;
    if (rc < 0)
        (void)unlink(tmp.data);
    else if (sync)
        sync_parent(path);
done:
    buf_release(&tmp);
    return rc;
}

int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode)
{
    return replace(path, data, len, mode, true);
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode)
{
    return replace(path, data, len, mode, false);
}

static int make_one(const char *path, mode_t mode)
{
    if (mkdir(path, mode) == 0)
        return 0;
    const int err = errno;
    /* Also for EEXIST-like answers of read-only and automounted file systems. */
    if (path_is_dir(path))
        return 0;
    return err == EEXIST ? -ENOTDIR : -err;
}

int dir_make(const char *path, mode_t mode)
{
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;

    int rc = 0;
    for (char *p = copy + 1; *copy && *p && rc == 0; p++) {
        if (*p != '/' || p[-1] == '/')
            continue;
        *p = '\0';
        rc = make_one(copy, mode);
        *p = '/';
    }
    if (rc == 0)
        rc = make_one(path, mode);
    free(copy);
    return rc;
}

static int remove_entry(int dir_fd, const char *name, int depth);

static int remove_content(DIR *dir, int depth)
{
    int first_error = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return first_error < 0 ? first_error : -errno;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const int rc = remove_entry(dirfd(dir), entry->d_name, depth + 1);
        if (rc < 0 && first_error == 0)
            first_error = rc;
    }
}

static int remove_dir(int dir_fd, const char *name, int depth)
{
    if (depth >= MAX_TREE_DEPTH)
        return SONDE_E_LIMIT;
    const int fd = openat(dir_fd, name,
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        const int rc = -errno;
        (void)close(fd);
        return rc;
    }
    int rc = remove_content(dir, depth);
    (void)closedir(dir);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT && rc == 0)
        rc = -errno;
    return rc;
}

/* Unlinking first and asking later leaves no moment in which a directory could be
 * exchanged for a link. Linux answers EISDIR for directories, POSIX allows EPERM. */
static int remove_entry(int dir_fd, const char *name, int depth)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    const int unlink_error = -errno;
    const int rc = remove_dir(dir_fd, name, depth);
    return rc == -ENOTDIR || rc == -ELOOP ? unlink_error : rc;
}

int file_remove_tree(const char *path)
{
    return remove_entry(AT_FDCWD, path, 0);
}

void path_join(struct buf *out, const char *a, const char *b)
{
    if (b[0] != '/' && a[0] != '\0') {
        buf_puts(out, a);
        if (a[strlen(a) - 1] != '/')
            buf_putc(out, '/');
    }
    buf_puts(out, b);
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void path_parent(struct buf *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        buf_puts(out, ".");
    else
        buf_append(out, path, slash == path ? 1 : (size_t)(slash - path));
}

bool path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
