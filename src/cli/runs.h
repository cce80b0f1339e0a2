/* runs.h: from the RUN a person names to a run that is open. */
#ifndef SONDE_CLI_RUNS_H
#define SONDE_CLI_RUNS_H

#include "analyse/report.h"
#include "store/run.h"

/* Finishes runs whose supervisor died, resolves `ref` (NULL: @last) and opens the
 * run. Says on stderr what is worth saying; true when there is a run. */
bool cli_run_open(const char *ref, struct run **ret_run);

/* report_build(), with a line of life where it takes long. */
int cli_report_build(const struct run *run, struct report **ret_report);

/* Several runs with their reports, for verbs that set them side by side. */
enum { CLI_RUNS_MOST = 16 };
struct cli_runs {
    struct run *runs[CLI_RUNS_MOST];
    struct report *reports[CLI_RUNS_MOST];
    size_t count;
};

/* Opens one more (NULL: @last) and analyses it; at most CLI_RUNS_MOST. False, and the
 * reason on stderr, when that is not possible. */
bool cli_runs_add(struct cli_runs *runs, const char *ref);
/* All that are named behind the verb; @last when none is. */
bool cli_runs_add_all(struct cli_runs *runs, int argc, char **argv);
void cli_runs_release(struct cli_runs *runs);

/* The words behind the verb are at most one RUN; NULL without. False, and the usage
 * error printed, when there are more. */
struct command;
bool cli_run_argument(const struct command *command, int argc, char **argv,
                      const char **ret_ref, int *ret_status);

#endif
