/* runs.c: from the RUN a person names to a run that is open. */
#include "cli/runs.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "launch/adopt.h"
#include "store/list.h"

bool cli_run_open(const char *ref, struct run **ret_run)
{
    struct buf path = BUF_INIT;
    struct buf note = BUF_INIT;
    cli_adopt_orphans(0);
    int rc = run_resolve(store_directory(), ref, &path, &note);
    if (note.len)
        cli_error("%s", note.data);
    else if (rc < 0)
        cli_error("cannot find the run: %s", error_text(rc));
    if (rc == 0) {
        if (path_is_dir(path.data))
            (void)adopt_run(path.data); /* it may lie outside the store */
        rc = run_open(path.data, ret_run);
        if (rc < 0)
            cli_error("cannot open the run '%s': %s (sonde list shows what there is)",
                      path.data, error_text(rc));
    }
    buf_release(&path);
    buf_release(&note);
    return rc == 0;
}

bool cli_run_argument(const struct command *command, int argc, char **argv,
                      const char **ret_ref, int *ret_status)
{
    if (argc > 2) {
        *ret_status = options_fail(command, "one RUN at a time, got '%s' and '%s'",
                                   argv[1], argv[2]);
        return false;
    }
    *ret_ref = argc == 2 ? argv[1] : NULL;
    return true;
}
