/* capture_redact.c: when the program has ended, takes secrets out of what captures
 * inside it have kept (paths). Not with --no-redact.
 */
#include <dirent.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/files.h"
#include "launch/capture_list.h"
#include "trace/io_rows.h"
#include "trace/tables.h"

static int prepare(const struct capture_context *c, void **ret_state)
{
    *ret_state = (void *)c;
    return 0;
}

static void finish(void *state, int status)
{
    const struct capture_context *c = state;
    DIR *dir = c->file->redact ? opendir(c->dir) : NULL;
    (void)status;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct buf path = BUF_INIT;
        if (!tablefile_is_name(e->d_name, IO_KIND))
            continue;
        path_join(&path, c->dir, e->d_name);
        const int rc = path.error ? path.error : tables_redact(path.data);
        if (rc < 0)
            runfile_note(c->file,
                         "%s may hold secrets in paths: it could not be redacted",
                         e->d_name);
        buf_release(&path);
    }
    if (dir)
        (void)closedir(dir);
}

const struct capture_ops capture_redact = {
    .name = "redaction",
    .prepare = prepare,
    .finish = finish,
};
