/* report_html.h: `sonde report --format html`: one page for one run or several. */
#ifndef SONDE_CLI_REPORT_HTML_H
#define SONDE_CLI_REPORT_HTML_H

#include <stdbool.h>

struct command;

enum { HTML_RUNS_MOST = 8 };

/* argv[1] … argv[argc − 1] are runs, @last without any; `output` may be NULL. The exit
 * status. */
int report_html(const struct command *command, int argc, char **argv,
                const char *output, bool hide);

#endif
