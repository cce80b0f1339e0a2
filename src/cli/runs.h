/* runs.h: from the RUN a person names to a run that is open. */
#ifndef SONDE_CLI_RUNS_H
#define SONDE_CLI_RUNS_H

#include "store/run.h"

/* Finishes runs whose supervisor died, resolves `ref` (NULL: @last) and opens the
 * run. Says on stderr what is worth saying; true when there is a run. */
bool cli_run_open(const char *ref, struct run **ret_run);

/* The words behind the verb are at most one RUN; NULL without. False, and the usage
 * error printed, when there are more. */
struct command;
bool cli_run_argument(const struct command *command, int argc, char **argv,
                      const char **ret_ref, int *ret_status);

#endif
