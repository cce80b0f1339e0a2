/* bundle.c: see bundle.h. */
#include "store/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/error.h"
#include "base/files.h"

struct unpack {
    gzFile gz;
    int dir;       /* the folder */
    uint64_t left; /* bytes that may still be written */
    unsigned files;
};

/* ---- Names and headers ---------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

bool bundle_is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    const size_t len = strlen(name);
    if (len == 0 || len > 99 || name[0] == '.' || name[0] == '-' ||
        strspn(name, letters) != len)
        return false;
    return strcmp(name, "run.json") == 0 || strcmp(name, BUNDLE_FIRST) == 0 ||
           ends_with(name, ".sonde") || ends_with(name, ".tables") ||
           ends_with(name, ".txt");
}

unsigned bundle_checksum(const struct bundle_header *header)
{
    struct bundle_header h = *header;
    const unsigned char *p = (const unsigned char *)&h;
    unsigned sum = 0;
    memset(h.checksum, ' ', sizeof h.checksum);
    for (size_t i = 0; i < sizeof h; i++)
        sum += p[i];
    return sum;
}

/* Octal digits, ended by a blank or a zero. */
static bool read_octal(const char *field, size_t len, uint64_t *ret_value)
{
    uint64_t value = 0;
    size_t i = 0;
    while (i < len && field[i] == ' ')
        i++;
    const size_t first = i;
    for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    if (i == first || (i < len && field[i] != '\0' && field[i] != ' '))
        return false;
    *ret_value = value;
    return true;
}

static bool is_end(const struct bundle_header *h)
{
    const char *p = (const char *)h;
    return p[0] == '\0' && memcmp(p, p + 1, sizeof *h - 1) == 0;
}

/* A plain file of a plain name, and its size. */
static int check_header(const struct bundle_header *h, uint64_t *ret_size)
{
    uint64_t sum;
    if (!read_octal(h->checksum, sizeof h->checksum, &sum) ||
        sum != bundle_checksum(h) || memcmp(h->magic, "ustar", 5) != 0 ||
        !read_octal(h->size, sizeof h->size, ret_size))
        return SONDE_E_FORMAT;
    if ((h->type != '0' && h->type != '\0') || h->prefix[0] || h->link[0] ||
        !memchr(h->name, '\0', sizeof h->name) || !bundle_is_name(h->name))
        return SONDE_E_FORMAT;
    return 0;
}

/* ---- Reading ---------------------------------------------------------------------------- */

/* The whole of it, or why not. */
static int read_full(gzFile gz, void *bytes, unsigned len)
{
    const int n = gzread(gz, bytes, len);
    int error = Z_OK;
    if (n == (int)len)
        return 0;
    (void)gzerror(gz, &error);
    return error == Z_DATA_ERROR  ? SONDE_E_FORMAT
           : error == Z_ERRNO     ? -EIO
           : error == Z_MEM_ERROR ? -ENOMEM
                                  : SONDE_E_TRUNCATED;
}

static gzFile open_gz(const char *path, uint64_t *ret_size)
{
    struct stat st;
    unsigned char magic[2];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && pread(fd, magic, 2, 0) == 2 &&
        magic[0] == 0x1f && magic[1] == 0x8b) {
        gzFile gz = gzdopen(fd, "rb");
        *ret_size = (uint64_t)st.st_size;
        if (gz)
            return gz;
    }
    (void)close(fd);
    return NULL;
}

bool bundle_is(const char *path)
{
    struct bundle_header h;
    uint64_t size;
    gzFile gz = open_gz(path, &size);
    if (!gz)
        return false;
    const bool is = read_full(gz, &h, sizeof h) == 0 && check_header(&h, &size) == 0 &&
                    strcmp(h.name, BUNDLE_FIRST) == 0;
    (void)gzclose(gz);
    return is;
}

/* ---- Writing ---------------------------------------------------------------------------- */

static int copy(struct unpack *u, int fd, uint64_t size)
{
    char bytes[64 * BUNDLE_BLOCK];
    int rc = 0;
    while (rc == 0 && size) {
        const uint64_t padded = (size + BUNDLE_BLOCK - 1) / BUNDLE_BLOCK * BUNDLE_BLOCK;
        const size_t len = padded < sizeof bytes ? (size_t)padded : sizeof bytes;
        const size_t used = size < len ? (size_t)size : len;
        rc = read_full(u->gz, bytes, (unsigned)len);
        if (rc == 0)
            rc = fd_write_full(fd, bytes, used);
        size -= used;
    }
    return rc;
}

static int unpack_file(struct unpack *u, const struct bundle_header *h)
{
    uint64_t size;
    int rc = check_header(h, &size);
    if (rc == 0 && u->files == 0 && strcmp(h->name, BUNDLE_FIRST) != 0)
        rc = SONDE_E_FORMAT;
    if (rc == 0 && (++u->files > BUNDLE_FILES || size > u->left))
        rc = SONDE_E_LIMIT;
    if (rc < 0)
        return rc;
    u->left -= size;
    /* O_EXCL: a name twice is no bundle of ours. */
    const int fd = openat(u->dir, h->name,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno == EEXIST ? SONDE_E_FORMAT : -errno;
    rc = copy(u, fd, size);
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

static int unpack_all(struct unpack *u)
{
    struct bundle_header h;
    for (;;) {
        int rc = read_full(u->gz, &h, sizeof h);
        if (rc < 0)
            return rc;
        if (is_end(&h))
            break;
        rc = unpack_file(u, &h);
        if (rc < 0)
            return rc;
    }
    /* The second block of zeros, and then the end with its checksum: a bundle that was
     * cut there is not whole. */
    int rc = read_full(u->gz, &h, sizeof h);
    char more;
    if (rc == 0 && gzread(u->gz, &more, 1) > 0)
        rc = SONDE_E_FORMAT;
    int error = Z_OK;
    if (rc == 0 && (gzerror(u->gz, &error), error != Z_OK))
        rc = error == Z_DATA_ERROR ? SONDE_E_FORMAT : SONDE_E_TRUNCATED;
    return rc < 0 ? rc : u->files ? 0 : SONDE_E_FORMAT;
}

static uint64_t allowed(uint64_t size)
{
    const uint64_t by_ratio = size < BUNDLE_MOST / BUNDLE_RATIO ? size * BUNDLE_RATIO
                                                                : BUNDLE_MOST;
    return by_ratio > BUNDLE_FREE ? by_ratio : BUNDLE_FREE;
}

int bundle_unpack(const char *path, struct buf *ret_dir)
{
    const char *place = getenv("TMPDIR");
    struct unpack u = { .dir = -1 };
    uint64_t size = 0;
    struct buf dir = BUF_INIT;
    path_join(&dir, place && place[0] ? place : "/tmp", "sonde-bundle-XXXXXX");
    int rc = dir.error ? dir.error : mkdtemp(dir.data) ? 0 : -errno;
    if (rc < 0) {
        buf_release(&dir);
        return rc;
    }
    u.dir = open(dir.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    u.gz = u.dir < 0 ? NULL : open_gz(path, &size);
    u.left = allowed(size);
    rc = u.dir < 0 ? -errno : u.gz ? unpack_all(&u) : SONDE_E_FORMAT;
    if (u.gz)
        (void)gzclose(u.gz);
    if (u.dir >= 0)
        (void)close(u.dir);
    if (rc < 0)
        (void)file_remove_tree(dir.data);
    else
        buf_puts(ret_dir, dir.data);
    buf_release(&dir);
    return rc < 0 ? rc : ret_dir->error;
}
