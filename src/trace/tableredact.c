/* tableredact.c: takes secrets out of the texts of a file of tables.
 *
 * Captures inside a program keep paths as they are: what redacts needs memory and time
 * that a signal handler does not have. The supervisor does it when the program has
 * ended, before anybody else reads the run. A text stays where it is: the new one takes
 * the place of the old, cut where it would be longer; what is left over becomes zeros.
 *
 * Reads and writes whole blocks, maps nothing: the file may shrink under us.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/redact.h"
#include "trace/tables.h"

bool text_redact(void *arg, char *text, size_t len)
{
    (void)arg;
    struct buf clean = BUF_INIT;
    redact_text(&clean, text);
    const bool changed = clean.error || clean.len < len ||
                         memcmp(clean.data, text, len) != 0;
    if (changed) { /* without memory nothing of it is kept: in doubt the value goes */
        const size_t keep = clean.error ? 0 : clean.len < len ? clean.len : len;
        memset(text, 0, len);
        if (keep)
            memcpy(text, clean.data, keep);
    }
    buf_release(&clean);
    return changed;
}

/* Texts end with a zero; the last one of a block may not, yet. */
static int edit_block(char *block, size_t len, text_edit_fn *edit, void *arg)
{
    int changed = 0;
    for (size_t at = 0; at < len;) {
        const size_t n = strnlen(block + at, len - at);
        if (at + n == len)
            break;
        if (n)
            changed += edit(arg, block + at, n);
        at += n + 1;
    }
    return changed;
}

static int edit_at(int fd, off_t offset, text_edit_fn *edit, void *arg)
{
    char block[TABLES_BLOCK];
    const ssize_t n = fd_pread_full(fd, block, sizeof block, offset);
    if (n <= 0)
        return (int)n;
    const int changed = edit_block(block, (size_t)n, edit, arg);
    if (changed == 0)
        return 0;
    const int rc = fd_pwrite_full(fd, block, (size_t)n, offset);
    return rc < 0 ? rc : changed;
}

int tables_edit_texts(const char *path, text_edit_fn *edit, void *arg)
{
    struct tables_head head;
    uint32_t owner[TABLES_BLOCKS];
    int changed = 0, rc = 0;
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    const bool whole = fd_pread_full(fd, &head, sizeof head, 0) == sizeof head &&
                       head.magic == TABLES_MAGIC && head.block_size == TABLES_BLOCK &&
                       fd_pread_full(fd, owner, sizeof owner, TABLES_BLOCK) ==
                           sizeof owner;
    for (size_t i = 2; whole && rc >= 0 && i < TABLES_BLOCKS; i++) {
        if ((owner[i] & 0xff) != TABLES_TEXT + 1)
            continue;
        rc = edit_at(fd, (off_t)i * TABLES_BLOCK, edit, arg);
        changed += rc > 0 ? rc : 0;
    }
    (void)close(fd);
    return rc < 0 ? rc : changed;
}

int tables_redact(const char *path)
{
    return tables_edit_texts(path, text_redact, NULL);
}
