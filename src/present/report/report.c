/* report.c: from a run directory to a stream, and what the terminal can show. */
#include "present/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyse/trials.h"
#include "base/parse.h"

/* ---- Style ------------------------------------------------------------------------ */

static int detect_width(int fd)
{
    uint64_t columns;
    struct winsize size;
    const char *text = getenv("COLUMNS");
    if (text && parse_uint(text, &columns) == 0 && columns > 0 && columns <= 10000)
        return (int)columns;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 0;
}

/* The first of the three that is set decides, as in setlocale(3). */
static bool detect_unicode(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

void report_style_detect(struct report_style *style, int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    style->width = detect_width(fd);
    style->unicode = detect_unicode();
    style->color = isatty(fd) && !(no_color && no_color[0]) &&
                   !(term && strcmp(term, "dumb") == 0);
}

/* ---- Printing ----------------------------------------------------------------------- */

int report_print(const struct report *report, const struct report_style *style,
                 FILE *out)
{
    switch (style->format) {
    case REPORT_TEXT:
        return report_text(report, style, out);
    case REPORT_JSON:
        return report_json(report, style, out);
    case REPORT_CSV:
        return report_csv(report, style, out);
    case REPORT_MARKDOWN:
        return report_markdown(report, style, out);
    case REPORT_HTML: /* present/html, by way of the command line */
        break;
    }
    return -EINVAL;
}

int report_judge(struct report *report, const struct report_style *style)
{
    int rc = style->thresholds ? report_diagnose(report, style->thresholds) : 0;
    if (rc == 0 && style->store) {
        rc = trial_enter(report, style->store);
        trials_recall(report, style->store);
    }
    return rc;
}

int report_run_to_stream(const char *run_dir, const struct report_style *style,
                         FILE *out)
{
    struct run *run = NULL;
    struct report *report = NULL;
    int rc = run_open(run_dir, &run);
    if (rc == 0)
        rc = report_build(run, &report);
    if (rc == 0)
        rc = report_judge(report, style);
    if (rc == 0)
        rc = report_print(report, style, out);
    report_free(report);
    run_free(run);
    return rc;
}
