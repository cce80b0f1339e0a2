/* report_html.c: `sonde report --format html`: one page for one run or several. */
#include "cli/report_html.h"

#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "present/html/html.h"
#include "present/report/report.h"

/* Beyond, operations are summed up: a page has no use for more. */
enum { OPERATIONS_MOST = 600, DEPTH_MOST = 48 };

_Static_assert((int)HTML_RUNS_MOST <= (int)CLI_RUNS_MOST, "all of them are opened");

static int put_report(const struct report *report, struct json_writer *w)
{
    const struct report_style style = { .format = REPORT_JSON,
                                        .depth = DEPTH_MOST,
                                        .limit = OPERATIONS_MOST };
    return report_json_value(report, &style, w);
}

int report_html(const struct command *command, int argc, char **argv,
                const char *output, bool hide)
{
    static char buffer[1 << 18];
    const struct html_options options = { .put_report = put_report, .hide = hide };
    struct cli_runs r = { .count = 0 };
    struct output out;
    int status = CLI_FAILED;
    if (argc - 1 > HTML_RUNS_MOST)
        return options_fail(command, "at most %d runs on one page, got %d",
                            HTML_RUNS_MOST, argc - 1);
    if (!output && isatty(STDOUT_FILENO))
        return options_fail(command, "a page is for a browser: give -o FILE.html");
    if (cli_runs_add_all(&r, argc, argv) && output_open(&out, output)) {
        (void)setvbuf(out.file, buffer, _IOFBF, sizeof buffer);
        const int rc = html_write((const struct report *const *)r.reports, r.count,
                                  &options, out.file);
        if (output_close(&out, rc, "the report"))
            status = CLI_GOOD;
    }
    cli_runs_release(&r);
    return status;
}
