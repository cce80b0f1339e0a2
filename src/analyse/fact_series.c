/* fact_series.c: see fact_series.h. */
#include "analyse/fact_series.h"

#include <assert.h>
#include <math.h>

#include "analyse/report.h"
#include "num/trend.h"

/* Of four points in a row every one must be above the one before to be sure of a slope. */
enum { LEAST_POINTS = TREND_LEAST_N, FEW_POINTS = 6, POINTS_MAX = 256 };

/* Without steps nobody says where the work begins; programs set up first. */
double steady_from_s(const struct report *r)
{
    const struct step_account *a = &r->account;
    const double all = report_duration_s(r);
    if (a->known)
        return a->partial ? 0 : (a->startup_ns + a->warmup_ns) / 1e9;
    return all > 0 ? 0.4 * all : 0;
}

/* What comes behind the last step is no steady part either. */
static double steady_to_s(const struct report *r)
{
    const struct step_account *a = &r->account;
    return a->known && !a->partial ? (a->wall_ns - a->end_ns) / 1e9 + 0.05 : INFINITY;
}

bool steady_has(const struct report *r, double t_s)
{
    return t_s >= steady_from_s(r) && t_s <= steady_to_s(r);
}

/* Looks at a young run are closer together: each counts for the time since the last. */
static double time_of(const struct report_series *s, size_t i)
{
    const size_t from = i ? i - 1 : 0;
    const double gap = from + 1 < s->point_count
                           ? s->points[from + 1].t_s - s->points[from].t_s
                           : 1;
    return gap > 0 ? gap : 0;
}

static double mean_of_points(const struct report *r, const struct report_series *s,
                             size_t *ret_count)
{
    double sum = 0, all = 0;
    size_t n = 0;
    for (size_t i = 0; i < s->point_count; i++)
        if (steady_has(r, s->points[i].t_s)) {
            sum += s->points[i].mean * time_of(s, i);
            all += time_of(s, i);
            n++;
        }
    *ret_count = n;
    return all > 0 ? sum / all : NAN;
}

double steady_mean(const struct report *r, const char *metric, const char *subject)
{
    const struct report_series *s = monitors_find(&r->monitors, metric, subject);
    size_t n = 0;
    const double mean = s ? mean_of_points(r, s, &n) : NAN;
    return s && n < 3 ? s->avg : mean;
}

double steady_points_mean(const struct report *r, const char *metric,
                          const char *subject)
{
    const struct report_series *s = monitors_find(&r->monitors, metric, subject);
    size_t n;
    return s ? mean_of_points(r, s, &n) : NAN;
}

double steady_cores_busy(const struct report *r)
{
    const double allowed = steady_mean(r, "cpu_allowed", "");
    return (isnan(allowed) ? steady_mean(r, "cpu_system", "") : allowed) / 100;
}

/* Medians of quarters: one odd sample must not decide. */
static double quarter(const double *y, size_t n, size_t number)
{
    double part[POINTS_MAX];
    size_t count = 0;
    for (size_t i = number * n / 4; i < (number + 1) * n / 4; i++)
        part[count++] = y[i];
    return median_of(part, count);
}

/* By how much something moved in the first half and in the second. Few points have no
 * quarters: there the halves' ends are compared. */
struct halves {
    double early, late;
};

static struct halves moved(const double *y, size_t n)
{
    const size_t half = (n - 1) / 2;
    if (n < FEW_POINTS)
        return (struct halves){ y[half] - y[0], y[n - 1] - y[n - 1 - half] };
    return (struct halves){ quarter(y, n, 1) - quarter(y, n, 0),
                            quarter(y, n, 3) - quarter(y, n, 2) };
}

/* Steps that were done by then; NaN where nobody knows. */
static double steps_until(const struct report *r, double t_s)
{
    const struct step_series *s = &r->series;
    const double at = t_s * 1e9 + (double)r->start_ns;
    size_t i = 0;
    if (s->count < 2 || s->partial)
        return NAN;
    while (i + 2 < s->count && (double)s->points[i + 1].time_ns <= at)
        i++;
    const double from = (double)s->points[i].time_ns;
    const double span = (double)s->points[i + 1].time_ns - from;
    const double part = span > 0 ? fmin(fmax((at - from) / span, 0), 1) : 0;
    return ((double)i + part) * (double)s->per_point;
}

/* How much of the growth came late: the second half's over the first's, each for as many
 * steps, since others on the machine may slow a program that goes on as before. By time
 * where nobody made steps. */
static double late_over_early(const struct report *r, const double *x, const double *y,
                              size_t n)
{
    double work[POINTS_MAX];
    assert(n >= LEAST_POINTS);
    for (size_t i = 0; i < n; i++)
        work[i] = steps_until(r, x[i]);
    const struct halves grown = moved(y, n), by_steps = moved(work, n);
    const bool steps = by_steps.early >= 1 && by_steps.late >= 1;
    const struct halves done = steps ? by_steps : moved(x, n);
    const double first = grown.early / done.early, second = grown.late / done.late;
    return first > 0 ? second / first : second > 0 ? INFINITY : NAN;
}

/* The same by the slopes of both halves of what was done, which rest on every point: the
 * medians of few points move too much. NaN: too few, or steps of a stair, whose usual
 * slope is none. */
static double late_by_slopes(const double *work, const double *y, size_t n)
{
    const double middle = (work[0] + work[n - 1]) / 2;
    struct trend early, late;
    size_t half = 0;
    while (half < n && work[half] < middle)
        half++;
    if (trend_fit(work, y, half, 0.95, &early) < 0 ||
        trend_fit(work + half, y + half, n - half, 0.95, &late) < 0)
        return NAN;
    return early.slope > 0 && late.slope > 0 ? late.slope / early.slope : NAN;
}

/* What was done by each moment, and in all: steps, where there were enough to tell looks
 * apart, since others on the machine may slow a program that goes on as before; else time
 * passed. */
static double work_of(const struct report *r, const double *x, size_t n,
                      double *ret_work)
{
    bool steps = true;
    for (size_t i = 0; i < n; i++) {
        ret_work[i] = steps_until(r, x[i]);
        steps &= i == 0 ? !isnan(ret_work[0]) : ret_work[i] - ret_work[i - 1] >= 0.1;
    }
    for (size_t i = 0; !steps && i < n; i++)
        ret_work[i] = x[i];
    return ret_work[n - 1] - ret_work[0];
}

static size_t points_from(const struct report *r, const struct report_series *s,
                          double from_s, double *ret_x, double *ret_y)
{
    const double to_s = steady_to_s(r);
    size_t n = 0;
    for (size_t i = 0; s && i < s->point_count && n < POINTS_MAX; i++)
        if (s->points[i].t_s >= from_s && s->points[i].t_s <= to_s) {
            ret_x[n] = s->points[i].t_s;
            ret_y[n++] = s->points[i].mean;
        }
    return n;
}

struct growth series_growth(const struct report *r, const struct report_series *s)
{
    struct growth g = { NAN, NAN, NAN, NAN, 0, false };
    double x[POINTS_MAX], y[POINTS_MAX];
    struct trend t;
    size_t n = points_from(r, s, steady_from_s(r), x, y);
    /* Where first steps took most of the loop they are all that was looked at. What they
     * set up is growth of the first half, and a cache rather than a leak. */
    if (n < LEAST_POINTS && r->account.known && !r->account.partial)
        n = points_from(r, s, r->account.startup_ns / 1e9, x, y);
    if (n < LEAST_POINTS)
        return g;
    double work[POINTS_MAX];
    const double span_s = x[n - 1] - x[0], span = work_of(r, x, n, work);
    if (trend_fit(work, y, n, 0.95, &t) < 0)
        return g;
    g.per_s = t.slope * span / span_s;
    g.low_per_s = t.low * span / span_s;
    g.total = t.slope * span;
    const double slopes = late_by_slopes(work, y, n);
    g.late = isnan(slopes) ? late_over_early(r, x, y, n) : slopes;
    g.points = n;
    g.few = n < FEW_POINTS;
    return g;
}
