/* fact_series.h: questions to a monitored series about the steady part of the run.
 * Private to analyse/. */
#ifndef SONDE_ANALYSE_FACT_SERIES_H
#define SONDE_ANALYSE_FACT_SERIES_H

#include <stdbool.h>
#include <stddef.h>

struct report;
struct report_series;

/* Where the first step was, after the start; 0 without steps. */
double steady_from_s(const struct report *report);
/* Whether a moment belongs to the steady steps. */
bool steady_has(const struct report *report, double t_s);
/* Mean of the points in the steady part alone; NaN when there is none. */
double steady_points_mean(const struct report *report, const char *metric,
                          const char *subject);
/* Mean of the points behind the first step, of all when there are fewer than three; NaN
 * when there is no such series. */
double steady_mean(const struct report *report, const char *metric,
                   const char *subject);

/* Cores that anybody used, of those that the run may use: of all where it is not
 * confined. NaN: unknown. */
double steady_cores_busy(const struct report *report);

/* How a series moved from the first step on. */
struct growth {
    double total;     /* over that time, by the robust slope; NaN unknown */
    double per_s;     /* slope */
    double low_per_s; /* lower end of its 95 % interval */
    double late;      /* growth of the second half over that of the first; NaN */
    size_t points;    /* looks that this rests on */
    bool few;         /* … so few that something else should agree */
};
struct growth series_growth(const struct report *report,
                            const struct report_series *series);

#endif
