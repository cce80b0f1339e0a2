/* runs.c: from the RUN a person names to a run that is open. */
#include "cli/runs.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"
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

int cli_report_build(const struct run *run, struct report **ret_report)
{
    struct progress progress;
    progress_begin(&progress, "analysing", false);
    const int rc = report_build(run, ret_report);
    progress_end(&progress);
    return rc;
}

bool cli_runs_add(struct cli_runs *runs, const char *ref)
{
    const size_t i = runs->count;
    if (i == CLI_RUNS_MOST || !cli_run_open(ref, &runs->runs[i]))
        return false;
    runs->count++;
    runs->reports[i] = NULL;
    const int rc = cli_report_build(runs->runs[i], &runs->reports[i]);
    if (rc < 0)
        cli_error("cannot analyse the run '%s': %s", runs->runs[i]->dir,
                  error_text(rc));
    return rc == 0;
}

bool cli_runs_add_all(struct cli_runs *runs, int argc, char **argv)
{
    bool good = argc > 1 || cli_runs_add(runs, NULL);
    for (int i = 1; good && i < argc; i++)
        good = cli_runs_add(runs, argv[i]);
    return good;
}

void cli_runs_release(struct cli_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        report_free(runs->reports[i]);
        run_free(runs->runs[i]);
    }
    runs->count = 0;
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
