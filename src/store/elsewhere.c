/* elsewhere.c: see elsewhere.h. */
#include "store/elsewhere.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "store/run.h"

enum { READ_MOST = ELSEWHERE_MOST * PATH_MAX };

static int read_file(const char *sonde_dir, struct buf *ret_path, struct buf *ret_text)
{
    path_join(ret_path, sonde_dir, "elsewhere");
    if (ret_path->error)
        return ret_path->error;
    const int rc = file_read_all(ret_path->data, READ_MOST, ret_text);
    return rc == -ENOENT ? 0 : rc;
}

/* The lines of a text that are not `left_out`, without the oldest when they are many. */
static void put_lines(struct buf *out, const char *text, const char *left_out)
{
    size_t lines = 0;
    for (const char *p = text; p && (p = strchr(p, '\n')); p++)
        lines++;
    for (const char *p = text; p && *p;) {
        const size_t len = strcspn(p, "\n");
        const bool same = strlen(left_out) == len && strncmp(p, left_out, len) == 0;
        if (len > 0 && !same && lines < ELSEWHERE_MOST)
            buf_printf(out, "%.*s\n", (int)len, p);
        lines -= lines > 0;
        p += len + (p[len] == '\n');
    }
}

int elsewhere_note(const char *sonde_dir, const char *run_dir)
{
    struct buf path = BUF_INIT, old = BUF_INIT, text = BUF_INIT;
    char *full = realpath(run_dir, NULL);
    struct stat st;
    int rc = full ? 0 : -errno;
    if (rc == 0 && (stat(sonde_dir, &st) < 0 || !S_ISDIR(st.st_mode)))
        rc = -ENOENT;
    if (rc == 0 && strchr(full, '\n'))
        rc = -EINVAL;
    if (rc == 0)
        rc = read_file(sonde_dir, &path, &old);
    if (rc == 0) {
        put_lines(&text, old.len ? old.data : "", full);
        buf_printf(&text, "%s\n", full);
        rc = text.error ? text.error
                        : file_replace(path.data, text.data, text.len, 0600);
    }
    buf_release(&text);
    buf_release(&old);
    buf_release(&path);
    free(full);
    return rc;
}

int elsewhere_add(const char *sonde_dir, struct run_list *list)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    int rc = read_file(sonde_dir, &path, &text);
    for (char *p = rc == 0 && text.len ? text.data : NULL, *end; rc == 0 && p && *p;
         p = end) {
        end = p + strcspn(p, "\n");
        if (*end)
            *end++ = '\0';
        if (*p && run_is_directory(p))
            rc = run_list_add_directory(list, p);
    }
    if (rc == 0)
        run_list_sort(list);
    buf_release(&text);
    buf_release(&path);
    return rc;
}
