/* packtexts.c: see packtexts.h. */
#include "trace/packtexts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "trace/crc32c.h"
#include "trace/pack.h"

static int edit_all(char *texts, size_t len, text_edit_fn *edit, void *arg)
{
    int changed = 0;
    for (size_t at = 0; at < len;) {
        const size_t n = strnlen(texts + at, len - at);
        if (n)
            changed += edit(arg, texts + at, n);
        at += n + 1;
    }
    return changed;
}

/* The payload after the section's header at `at`; the NUL behind it is for strnlen's
 * like. */
static int edit_section(int fd, off_t at, struct pack_section *s, text_edit_fn *edit,
                        void *arg)
{
    const off_t payload = at + (off_t)sizeof *s;
    char *texts = malloc((size_t)s->len + 1);
    if (!texts)
        return -ENOMEM;
    int rc = fd_pread_full(fd, texts, (size_t)s->len, payload) == (ssize_t)s->len
                 ? 0
                 : SONDE_E_TRUNCATED;
    texts[s->len] = '\0';
    const int changed = rc == 0 ? edit_all(texts, (size_t)s->len, edit, arg) : 0;
    if (changed) {
        s->crc = crc32c(0, texts, (size_t)s->len);
        rc = fd_pwrite_full(fd, texts, (size_t)s->len, payload);
        if (rc == 0)
            rc = fd_pwrite_full(fd, s, sizeof *s, at);
    }
    free(texts);
    return rc < 0 ? rc : changed;
}

static int edit_file(int fd, text_edit_fn *edit, void *arg)
{
    struct pack_head head;
    struct pack_section s;
    struct stat st;
    off_t at = (off_t)sizeof head;
    int changed = 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (fd_pread_full(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        head.magic != PACK_MAGIC)
        return SONDE_E_FORMAT;
    for (uint32_t i = 0; i < head.sections; i++) {
        if (fd_pread_full(fd, &s, sizeof s, at) != (ssize_t)sizeof s ||
            s.len > (uint64_t)(st.st_size - at))
            return SONDE_E_TRUNCATED;
        const int rc = s.kind == PACK_STRINGS ? edit_section(fd, at, &s, edit, arg) : 0;
        if (rc < 0)
            return rc;
        changed += rc;
        at += (off_t)(sizeof s + (s.len + 7) / 8 * 8);
    }
    return changed;
}

int pack_edit_texts(const char *path, text_edit_fn *edit, void *arg)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    const int rc = edit_file(fd, edit, arg);
    (void)close(fd);
    return rc;
}
