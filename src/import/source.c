/* source.c: zlib reads both: what is not gzip it passes through. */
#include "import/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/error.h"

/* A gzip file of 1 MB may unpack to 1 GB of blanks. */
#define SOURCE_MAX ((uint64_t)64 << 30)

int import_source_open(const char *path, const struct import_options *options,
                       struct import_source *ret_source)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = -EINVAL;
    gzFile gz = rc == 0 ? gzdopen(fd, "rb") : NULL;
    if (rc == 0 && !gz)
        rc = -ENOMEM;
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    (void)gzbuffer(gz, 1 << 17);
    *ret_source = (struct import_source){ .gz = gz,
                                          .size = (uint64_t)st.st_size,
                                          .options = options };
    return 0;
}

void import_source_close(struct import_source *source)
{
    if (source->gz)
        (void)gzclose_r(source->gz);
    source->gz = NULL;
}

static void tell_progress(const struct import_source *s)
{
    const struct import_options *o = s->options;
    if (o->progress && s->size)
        o->progress(o->progress_arg, (double)gzoffset(s->gz) / (double)s->size);
}

long import_source_read(void *arg, void *into, size_t len)
{
    struct import_source *s = arg;
    const int got = gzread(s->gz, into, len > 1u << 30 ? 1u << 30 : (unsigned)len);
    if (got < 0)
        return SONDE_E_FORMAT;
    if (got == 0) {
        int err = Z_OK;
        (void)gzerror(s->gz, &err);
        return err == Z_BUF_ERROR ? SONDE_E_FORMAT : 0; /* cut short */
    }
    s->produced += (uint64_t)got;
    if (s->produced > SOURCE_MAX)
        return SONDE_E_LIMIT;
    tell_progress(s);
    return got;
}

int import_source_rewind(struct import_source *source)
{
    source->produced = 0;
    return gzrewind(source->gz) == 0 ? 0 : -EIO;
}
