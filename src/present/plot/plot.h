/* plot.h: pictures of runs as SVG, for papers, pull requests and slides.
 *
 *     plot_find("times")->draw(reports, count, out)
 *
 * A picture stands alone: white ground, its own title and units, no script, no font to
 * load. A new kind is a function in its own file and a line in plots.c.
 */
#ifndef SONDE_PRESENT_PLOT_PLOT_H
#define SONDE_PRESENT_PLOT_PLOT_H

#include <stddef.h>
#include <stdio.h>

#include "analyse/report.h"

enum { PLOT_RUNS_MOST = 12 };

struct svg;
/* Draws into the picture; `height` is settled by the time it returns. */
typedef int plot_fn(struct svg *svg, const struct report *const *reports, size_t count);

struct plot {
    const char *name;
    const char *help;
    plot_fn *draw;
    size_t most_runs; /* 1 for pictures of one run */
};

extern const struct plot plots[];
extern const size_t plot_count;

/* NULL when there is none of that name. */
const struct plot *plot_find(const char *name);

/* Writes the whole picture. SONDE_E_NOTFOUND: the run has nothing of the kind. */
int plot_write(const struct plot *plot, const struct report *const *reports,
               size_t count, FILE *out);

plot_fn plot_times, plot_memory, plot_calls, plot_bottlenecks, plot_compare;

#endif
