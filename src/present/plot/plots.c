/* plots.c: the pictures there are, and the frame around each. */
#include "present/plot/plot.h"

#include <errno.h>
#include <string.h>

#include "present/plot/svg.h"

const struct plot plots[] = {
    { "times", "how long steps and operations took", plot_times, 1 },
    { "memory", "memory over the run", plot_memory, 1 },
    { "calls", "how often operations ran", plot_calls, 1 },
    { "bottlenecks", "what is wrong, how bad, and how much time is at stake",
      plot_bottlenecks, 1 },
    { "compare", "phases of several runs side by side", plot_compare, PLOT_RUNS_MOST },
};
const size_t plot_count = sizeof(plots) / sizeof(plots[0]);

const struct plot *plot_find(const char *name)
{
    for (size_t i = 0; i < plot_count; i++)
        if (strcmp(plots[i].name, name) == 0)
            return &plots[i];
    return NULL;
}

static int put_page(const struct svg *svg, FILE *out)
{
    const double height = svg->height + SVG_MARGIN;
    errno = 0;
    const int n = fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
        "viewBox=\"0 0 %d %.0f\" font-family=\"system-ui, DejaVu Sans, Helvetica, "
        "Arial, sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
        "%s</svg>\n",
        SVG_WIDTH, height, SVG_WIDTH, height, svg->body.data);
    if (n >= 0)
        return 0;
    return errno > 0 ? -errno : -EIO;
}

int plot_write(const struct plot *plot, const struct report *const *reports,
               size_t count, FILE *out)
{
    struct svg svg = { .body = BUF_INIT };
    int rc = plot->draw(&svg, reports, count);
    if (rc == 0)
        rc = svg.body.error;
    if (rc == 0)
        rc = put_page(&svg, out);
    buf_release(&svg.body);
    return rc;
}
