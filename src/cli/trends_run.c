/* trends_run.c: see trends_run.h. */
#include "cli/trends_run.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "analyse/trends.h"
#include "base/error.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "present/report/page.h"
#include "present/report/report.h"
#include "store/series.h"

struct bounds {
    size_t numbers, least, most, first, last; /* places; only set with numbers */
};

static struct bounds bounds_of(const struct series_view *s)
{
    struct bounds b = { 0 };
    for (size_t i = 0; i < s->count; i++) {
        if (!isfinite(s->values[i]))
            continue;
        if (b.numbers++ == 0)
            b.first = b.least = b.most = i;
        b.last = i;
        b.least = s->values[i] < s->values[b.least] ? i : b.least;
        b.most = s->values[i] > s->values[b.most] ? i : b.most;
    }
    return b;
}

/* ---- Text --------------------------------------------------------------------------- */

static int put_summary(void *arg, const struct series_view *s)
{
    struct buf *out = arg;
    char points[HUMAN_LEN];
    const struct bounds b = bounds_of(s);
    struct buf name = BUF_INIT;
    clean_text(&name, s->name, 40);
    buf_printf(out, "%s: %s point%s", name.data, human_count(points, s->count),
               s->count == 1 ? "" : "s");
    if (b.numbers == 1)
        buf_printf(out, ", step %.0f: %.6g", s->steps[b.first], s->values[b.first]);
    else if (b.numbers)
        buf_printf(out, ", step %.0f to %.0f: %.6g → %.6g, least %.6g, most %.6g",
                   s->steps[b.first], s->steps[b.last], s->values[b.first],
                   s->values[b.last], s->values[b.least], s->values[b.most]);
    buf_putc(out, '\n');
    buf_release(&name);
    return 0;
}

void series_summary(struct buf *out, const char *json, size_t len)
{
    if (series_each(json, len, put_summary, out) < 0)
        buf_puts(out, "cannot be read\n");
}

struct printing {
    const char *metric;
    struct page *page;
    struct json_writer *json;
    size_t shown;
};

static void put_changes(struct page *p, const struct trends_course *c)
{
    for (size_t i = 0; i < c->change_count; i++) {
        page_label(p, "");
        page_printf(p, "changed at step %.0f: %.4g → %.4g\n",
                    c->times[c->changes[i].at], c->changes[i].before,
                    c->changes[i].after);
    }
}

static void put_text(struct page *p, const struct series_view *s,
                     const struct trends_course *c)
{
    const struct bounds b = bounds_of(s);
    struct buf line = BUF_INIT;
    (void)put_summary(&line, s);
    page_label(p, "series");
    page_puts(p, PLAIN, line.data);
    buf_release(&line);
    if (b.numbers < 2)
        return;
    page_label(p, "");
    page_sparkline(p, c->points, c->point_count, 60);
    if (c->per_point > 1)
        page_printf(p, "   medians of %zu points", c->per_point);
    page_printf(p, "\n");
    page_label(p, "");
    page_printf(p, "least at step %.0f, most at step %.0f", s->steps[b.least],
                s->steps[b.most]);
    if (c->has_slope)
        page_printf(p, "; %+.3g [%+.3g, %+.3g] per 1000 steps", 1000 * c->slope.slope,
                    1000 * c->slope.low, 1000 * c->slope.high);
    if (s->count > b.numbers)
        page_printf(p, "; %zu are no numbers", s->count - b.numbers);
    page_puts(p, PLAIN, "\n");
    put_changes(p, c);
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_put_double(w, value);
}

static void put_json(struct json_writer *w, const struct series_view *s,
                     const struct trends_course *c)
{
    const struct bounds b = bounds_of(s);
    json_object_begin(w);
    json_key(w, "name");
    json_put_string(w, s->name);
    json_key(w, "points");
    json_put_uint(w, s->count);
    put_number(w, "first", b.numbers ? s->values[b.first] : NAN);
    put_number(w, "last", b.numbers ? s->values[b.last] : NAN);
    put_number(w, "min", b.numbers ? s->values[b.least] : NAN);
    put_number(w, "min_step", b.numbers ? s->steps[b.least] : NAN);
    put_number(w, "max", b.numbers ? s->values[b.most] : NAN);
    put_number(w, "max_step", b.numbers ? s->steps[b.most] : NAN);
    put_number(w, "slope_per_step", c->has_slope ? c->slope.slope : NAN);
    put_number(w, "slope_low", c->has_slope ? c->slope.low : NAN);
    put_number(w, "slope_high", c->has_slope ? c->slope.high : NAN);
    json_key(w, "changes");
    json_array_begin(w);
    for (size_t i = 0; i < c->change_count; i++) {
        json_object_begin(w);
        put_number(w, "step", c->times[c->changes[i].at]);
        put_number(w, "before", c->changes[i].before);
        put_number(w, "after", c->changes[i].after);
        put_number(w, "p", c->changes[i].p);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

/* ---- All ---------------------------------------------------------------------------- */

/* "metrics.loss" is what search and trends call it. */
static bool is_wanted(const char *metric, const char *name)
{
    return !metric || strcmp(metric, name) == 0 ||
           (strncmp(metric, "metrics.", 8) == 0 && strcmp(metric + 8, name) == 0);
}

static int print_one(void *arg, const struct series_view *s)
{
    struct printing *p = arg;
    struct trends_course course;
    if (!is_wanted(p->metric, s->name))
        return 0;
    const int rc = trends_course(s->steps, s->values, s->count, &course);
    if (rc < 0)
        return rc;
    /* A curve that falls all along is no row of jumps, as their test would have it. */
    if (course.has_slope && (course.slope.low > 0 || course.slope.high < 0))
        course.change_count = 0;
    p->shown++;
    if (p->json)
        put_json(p->json, s, &course);
    else
        put_text(p->page, s, &course);
    return 0;
}

static int each_series(struct printing *p, const struct experiment *e)
{
    return e->series ? series_each(e->series, e->series_len, print_one, p) : 0;
}

static int print_json(const char *metric, const struct experiment *e, FILE *out,
                      size_t *ret_shown)
{
    struct json_writer w;
    struct printing p = { .metric = metric, .json = &w };
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    json_key(&w, "schema");
    json_put_string(&w, "sonde.trends.run/1");
    json_key(&w, "run");
    json_put_string(&w, e->id);
    json_key(&w, "series");
    json_array_begin(&w);
    const int rc = each_series(&p, e);
    json_array_end(&w);
    json_object_end(&w);
    json_newline(&w);
    const int ended = json_finish(&w);
    *ret_shown = p.shown;
    return rc < 0 ? rc : ended;
}

static int print_text(const char *metric, const struct experiment *e, FILE *out,
                      size_t *ret_shown)
{
    struct report_style style = { 0 };
    struct page page;
    struct printing p = { .metric = metric, .page = &page };
    report_style_detect(&style, STDOUT_FILENO);
    page_init(&page, 120, false, style.unicode);
    page_label(&page, "run");
    page_printf(&page, "%s\n", e->id);
    int rc = each_series(&p, e);
    if (rc == 0 && p.shown)
        rc = page_flush(&page, out);
    page_release(&page);
    *ret_shown = p.shown;
    return rc;
}

int trends_of_run(const struct experiment *e, const char *metric, bool json, FILE *out)
{
    size_t shown = 0;
    const int rc = json ? print_json(metric, e, out, &shown)
                        : print_text(metric, e, out, &shown);
    if (rc < 0) {
        cli_error("cannot read the series of %s: %s", e->id, error_text(rc));
        return CLI_FAILED;
    }
    if (shown == 0 && metric && e->series)
        cli_error("run %s has no series '%s'", e->id, metric);
    else if (shown == 0)
        cli_error("run %s has no series (sonde_metric, sonde.metric, sonde log)",
                  e->id);
    return shown ? CLI_GOOD : CLI_NO;
}
