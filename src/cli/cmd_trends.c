/* cmd_trends.c: `sonde trends`: what many experiments say together. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyse/trends.h"
#include "base/error.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/experiments_out.h"
#include "cli/keep.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/trends_run.h"
#include "cli/unknown_name.h"
#include "present/report/page.h"
#include "present/report/report.h"
#include "search/search.h"

enum { GOALS = 3, AGAINST_MOST = 32, NAME_MOST = 200 };

struct trends_options {
    const char *metric, *against, *where, *output, *run;
    uint64_t top;
    bool json, lower;
    int format;
};

static const char *const formats[] = { "text", "json", "csv", NULL };
enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

#define FIELD(name) offsetof(struct trends_options, name)

static const struct option options[] = {
    { "metric", 'm', OPTION_TEXT, FIELD(metric), .value = "NAME",
      .help = "what to look at (default metrics.accuracy)" },
    { "lower", 0, OPTION_FLAG, FIELD(lower), .help = "less of it is better (a loss)" },
    { "against", 0, OPTION_TEXT, FIELD(against), .value = "NAMES",
      .help = "correlate it with these, commas between (default duration_s, "
              "memory_peak_mb, energy_j)" },
    { "where", 'w', OPTION_TEXT, FIELD(where), .value = "FILTER",
      .help = "only these experiments (see sonde search)" },
    { "top", 0, OPTION_COUNT, FIELD(top), .value = "N",
      .help = "how many of the most efficient to show (default 5)" },
    { "run", 0, OPTION_TEXT, FIELD(run), .value = "RUN",
      .help = "the course of this run's own metrics instead (--metric: of one)" },
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "text; json; csv: all experiments as a table", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
    { "output", 'o', OPTION_TEXT, FIELD(output), .value = "FILE",
      .help = "write to FILE" },
};

static const struct command command = {
    .verb = "trends",
    .usage = "[options] [FILTER]",
    .summary = "what the experiments say together: correlations, best, course",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "Efficiency is accuracy / (seconds × MB of peak memory). The Pareto front\n"
            "holds the experiments that no other beats in the metric, time and memory\n"
            "at once. Changes over time are found by rank tests (p <= 0.001).\n",
};

struct trends {
    struct store *store;
    struct index *index;
    struct search_result all;
    size_t n;
    const char *metric;
    bool lower;
    double *values, *duration, *memory, *efficiency, *started;
    struct trends_pair pairs[AGAINST_MOST];
    char names[AGAINST_MOST][NAME_MOST];
    size_t pair_count;
    size_t *top;
    size_t top_count, known;
    bool *front;
    size_t front_count;
    struct trends_course course;
};

/* ---- Gathering ---------------------------------------------------------------------- */

static double *column(struct trends *t, const char *name)
{
    double *numbers = calloc(t->n ? t->n : 1, sizeof *numbers);
    if (numbers)
        search_numbers(t->index, &t->all, name, numbers);
    return numbers;
}

static int correlate(struct trends *t, const char *names)
{
    int rc = 0;
    while (rc == 0 && *names && t->pair_count < AGAINST_MOST) {
        const size_t len = strcspn(names, ",");
        char *name = t->names[t->pair_count];
        (void)snprintf(name, NAME_MOST, "%.*s", (int)(len < 190 ? len : 190), names);
        double *other = column(t, name);
        rc = other ? trends_correlate(t->values, other, t->n, name,
                                      &t->pairs[t->pair_count++])
                   : -ENOMEM;
        free(other);
        names += len + (names[len] == ',');
    }
    return rc;
}

static int find_front(struct trends *t)
{
    const bool bigger[GOALS] = { !t->lower, false, false };
    const double *const goals[GOALS] = { t->values, t->duration, t->memory };
    double *values = calloc(t->n ? t->n : 1, GOALS * sizeof *values);
    t->front = calloc(t->n ? t->n : 1, sizeof *t->front);
    if (!values || !t->front) {
        free(values);
        return -ENOMEM;
    }
    for (size_t g = 0; t->n && g < GOALS; g++)
        memcpy(values + g * t->n, goals[g], t->n * sizeof *values);
    const int rc = pareto_front(values, t->n, bigger, GOALS, t->front);
    for (size_t i = 0; rc == 0 && i < t->n; i++)
        t->front_count += t->front[i];
    free(values);
    return rc;
}

static int gather(struct trends *t, const struct trends_options *o)
{
    t->n = t->all.count;
    t->values = column(t, t->metric);
    t->duration = column(t, "duration_s");
    t->memory = column(t, "memory_peak_mb");
    t->efficiency = column(t, "efficiency");
    t->started = column(t, "started");
    t->top = calloc(o->top ? o->top : 1, sizeof *t->top);
    if (!t->values || !t->duration || !t->memory || !t->efficiency || !t->started ||
        !t->top)
        return -ENOMEM;
    for (size_t i = 0; i < t->n; i++)
        t->known += isfinite(t->values[i]);
    int rc = correlate(t,
                       o->against ? o->against : "duration_s,memory_peak_mb,energy_j");
    if (rc == 0)
        rc = find_front(t);
    if (rc == 0)
        rc = trends_course(t->started, t->values, t->n, &t->course);
    t->top_count = trends_top(t->efficiency, t->n, t->top, o->top);
    return rc;
}

static void release(struct trends *t)
{
    free(t->values);
    free(t->duration);
    free(t->memory);
    free(t->efficiency);
    free(t->started);
    free(t->top);
    free(t->front);
    search_result_release(&t->all);
    index_free(t->index);
}

/* ---- Words -------------------------------------------------------------------------- */

static struct value id_of(const struct trends *t, size_t i)
{
    struct column c;
    const struct search_hit *hit = &t->all.hits[i];
    if (!segment_find(&t->index->parts[hit->part].segment, "id", 2, &c))
        return (struct value){ .type = VALUE_TEXT, .text = "?", .len = 1 };
    return column_at(&c, hit->row);
}

static void date_words(double seconds, char *text, size_t len)
{
    const time_t t = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(text, len, "%Y-%m-%d %H:%M", &tm) == 0)
        (void)snprintf(text, len, "?");
}

static void put_correlations(struct page *p, const struct trends *t)
{
    page_label(p, "WITH");
    page_printf(p, "%-24s %8s   %-24s %-24s\n", t->metric, "n", "Pearson [95 %]",
                "Spearman [95 %]");
    for (size_t i = 0; i < t->pair_count; i++) {
        const struct trends_pair *c = &t->pairs[i];
        page_label(p, "");
        if (!c->known)
            page_printf(p, "%-24s %8zu   %s\n", c->name, c->n,
                        c->n < 2 ? "too few experiments have both"
                                 : "one of them does not vary");
        else
            page_printf(p,
                        "%-24s %8zu   %+.2f [%+.2f, %+.2f]     %+.2f [%+.2f, %+.2f]\n",
                        c->name, c->n, c->pearson.r, c->pearson.low, c->pearson.high,
                        c->spearman.r, c->spearman.low, c->spearman.high);
    }
}

static void put_one(struct page *p, const struct trends *t, size_t i)
{
    char took[HUMAN_LEN], size[HUMAN_LEN];
    const struct value id = id_of(t, i);
    struct buf raw = BUF_INIT, clean = BUF_INIT;
    buf_append(&raw, id.text, id.len);
    clean_text(&clean, raw.data, 24);
    char value[32] = "–           "; /* printf would count its bytes */
    if (!isnan(t->values[i]))
        (void)snprintf(value, sizeof value, "%-12.6g", t->values[i]);
    page_printf(p, "%-18s %s %-10s %-10s %.4g\n", clean.data, value,
                human_duration(took, t->duration[i] * 1e9),
                human_bytes(size, t->memory[i] * 1048576), t->efficiency[i]);
    buf_release(&raw);
    buf_release(&clean);
}

static void put_best(struct page *p, const struct trends *t)
{
    page_label(p, "BEST");
    if (t->top_count == 0)
        page_puts(p, PLAIN, "no experiment has accuracy, duration and memory\n");
    else
        page_printf(p, "%-18s %-12s %-10s %-10s %s\n", "by efficiency", "metric",
                    "took", "memory", "per second and MB");
    for (size_t i = 0; i < t->top_count; i++) {
        page_label(p, "");
        put_one(p, t, t->top[i]);
    }
    page_label(p, "PARETO");
    page_printf(p, "%zu no other beats in %s (%s), time and memory at once\n",
                t->front_count, t->metric, t->lower ? "less" : "more");
    size_t shown = 0;
    for (size_t i = 0; i < t->n && shown < 8; i++)
        if (t->front[i]) {
            page_label(p, "");
            put_one(p, t, i);
            shown++;
        }
}

static void put_course(struct page *p, const struct trends *t)
{
    const struct trends_course *c = &t->course;
    char date[32];
    page_label(p, "COURSE");
    if (c->n == 0) {
        page_puts(p, PLAIN, "no experiment has it\n");
        return;
    }
    page_sparkline(p, c->points, c->point_count, 60);
    if (c->per_point > 1)
        page_printf(p, "   medians of %zu", c->per_point);
    page_puts(p, PLAIN, "\n");
    const double span = c->point_count ? c->times[c->point_count - 1] - c->times[0] : 0;
    if (c->has_slope && span > 0) {
        char over[HUMAN_LEN];
        page_label(p, "");
        page_printf(
            p, "%+.3g [%+.3g, %+.3g] over %s%s\n", c->slope.slope * span,
            c->slope.low * span, c->slope.high * span, human_duration(over, span * 1e9),
            c->slope.low <= 0 && c->slope.high >= 0 ? ": no trend to be sure of" : "");
    }
    for (size_t i = 0; i < c->change_count; i++) {
        const struct value id = id_of(t, c->first[c->changes[i].at]);
        date_words(c->times[c->changes[i].at], date, sizeof date);
        page_label(p, "");
        page_printf(p, "changed with %.*s (%s): %.4g → %.4g (%+.0f %%)\n", (int)id.len,
                    id.text, date, c->changes[i].before, c->changes[i].after,
                    100 * (c->changes[i].after / c->changes[i].before - 1));
    }
    if (c->change_count == 0 && c->point_count >= 8) {
        page_label(p, "");
        page_puts(p, PLAIN, "no change to be sure of\n");
    }
}

static int print_text(const struct trends *t, FILE *out)
{
    struct report_style style = { 0 };
    struct page p;
    char n[HUMAN_LEN], known[HUMAN_LEN];
    report_style_detect(&style, STDOUT_FILENO);
    page_init(&p, 120, false, style.unicode);
    page_label(&p, "FROM");
    page_printf(&p, "%s experiments, %s with %s\n", human_count(n, t->n),
                human_count(known, t->known), t->metric);
    put_correlations(&p, t);
    put_best(&p, t);
    put_course(&p, t);
    const int rc = page_flush(&p, out);
    page_release(&p);
    return rc;
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put_correlation(struct json_writer *w, const char *key,
                            const struct correlation *c)
{
    json_key(w, key);
    json_object_begin(w);
    json_key(w, "r");
    json_put_double(w, c->r);
    json_key(w, "low");
    json_put_double(w, c->low);
    json_key(w, "high");
    json_put_double(w, c->high);
    json_key(w, "p");
    json_put_double(w, c->p);
    json_object_end(w);
}

static void put_experiment(struct json_writer *w, const struct trends *t, size_t i)
{
    const struct value id = id_of(t, i);
    json_object_begin(w);
    json_key(w, "id");
    json_put_stringn(w, id.text, id.len);
    json_key(w, "value");
    json_put_double(w, t->values[i]);
    json_key(w, "duration_s");
    json_put_double(w, t->duration[i]);
    json_key(w, "memory_peak_mb");
    json_put_double(w, t->memory[i]);
    json_key(w, "efficiency");
    json_put_double(w, t->efficiency[i]);
    json_object_end(w);
}

static void put_json_course(struct json_writer *w, const struct trends *t)
{
    const struct trends_course *c = &t->course;
    json_key(w, "course");
    json_object_begin(w);
    json_key(w, "slope_per_day");
    json_put_double(w, c->has_slope ? c->slope.slope * 86400 : NAN);
    json_key(w, "slope_low");
    json_put_double(w, c->has_slope ? c->slope.low * 86400 : NAN);
    json_key(w, "slope_high");
    json_put_double(w, c->has_slope ? c->slope.high * 86400 : NAN);
    json_key(w, "points");
    json_array_begin(w);
    for (size_t i = 0; i < c->point_count; i++) {
        json_array_begin(w);
        json_put_double(w, c->times[i]);
        json_put_double(w, c->points[i]);
        json_array_end(w);
    }
    json_array_end(w);
    json_key(w, "changes");
    json_array_begin(w);
    for (size_t i = 0; i < c->change_count; i++) {
        const struct value id = id_of(t, c->first[c->changes[i].at]);
        json_object_begin(w);
        json_key(w, "experiment");
        json_put_stringn(w, id.text, id.len);
        json_key(w, "time_s");
        json_put_double(w, c->times[c->changes[i].at]);
        json_key(w, "before");
        json_put_double(w, c->changes[i].before);
        json_key(w, "after");
        json_put_double(w, c->changes[i].after);
        json_key(w, "p");
        json_put_double(w, c->changes[i].p);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

static int print_json(const struct trends *t, FILE *out)
{
    struct json_writer w;
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    json_key(&w, "schema");
    json_put_string(&w, "sonde.trends/1");
    json_key(&w, "experiments");
    json_put_uint(&w, t->n);
    json_key(&w, "metric");
    json_put_string(&w, t->metric);
    json_key(&w, "with_metric");
    json_put_uint(&w, t->known);
    json_key(&w, "correlations");
    json_array_begin(&w);
    for (size_t i = 0; i < t->pair_count; i++) {
        const struct trends_pair *c = &t->pairs[i];
        json_object_begin(&w);
        json_key(&w, "name");
        json_put_string(&w, c->name);
        json_key(&w, "n");
        json_put_uint(&w, c->n);
        if (c->known) {
            put_correlation(&w, "pearson", &c->pearson);
            put_correlation(&w, "spearman", &c->spearman);
        }
        json_object_end(&w);
    }
    json_array_end(&w);
    json_key(&w, "most_efficient");
    json_array_begin(&w);
    for (size_t i = 0; i < t->top_count; i++)
        put_experiment(&w, t, t->top[i]);
    json_array_end(&w);
    json_key(&w, "pareto");
    json_array_begin(&w);
    for (size_t i = 0; i < t->n; i++)
        if (t->front[i])
            put_experiment(&w, t, i);
    json_array_end(&w);
    put_json_course(&w, t);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}

static int print_csv(const struct trends *t, FILE *out)
{
    struct experiments_row *rows = calloc(t->n ? t->n : 1, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < t->n; i++)
        rows[i] = (struct experiments_row){ .seq = t->all.hits[i].seq,
                                            .similarity = NAN };
    const struct experiments_list list = { .store = t->store,
                                           .rows = rows,
                                           .count = t->n,
                                           .matched = t->n,
                                           .total = t->all.total };
    const int rc = experiments_print(&list, EXPERIMENTS_CSV, out);
    free(rows);
    return rc;
}

/* ---- The verb ----------------------------------------------------------------------- */

static int report(struct trends *t, const struct trends_options *o)
{
    struct output out;
    if (!output_open(&out, o->output))
        return CLI_FAILED;
    const int rc = o->json || o->format == FORMAT_JSON ? print_json(t, out.file)
                   : o->format == FORMAT_CSV           ? print_csv(t, out.file)
                                                       : print_text(t, out.file);
    return output_close(&out, rc, "the trends") ? CLI_GOOD : CLI_FAILED;
}

static int run(struct trends *t, const struct filter *filter,
               const struct trends_options *o)
{
    const struct search_query query = { .filter = filter,
                                        .sort = "started",
                                        .ascending = true };
    int rc = index_open(t->store, &t->index);
    if (rc == 0)
        rc = search_run(t->index, &query, &t->all);
    if (rc == 0)
        rc = gather(t, o);
    if (rc < 0) {
        cli_error("cannot look at the experiments: %s", error_text(rc));
        return CLI_FAILED;
    }
    if (t->n == 0) {
        cli_error("no experiment fits");
        cli_tell_unknown_names(t->index, filter);
        return CLI_NO;
    }
    if (t->known == 0)
        (void)cli_name_is_unknown(t->index, t->metric, strlen(t->metric));
    for (size_t i = 0; i < t->pair_count; i++)
        (void)cli_name_is_unknown(t->index, t->names[i], strlen(t->names[i]));
    return report(t, o);
}

static bool parse_filter(const char *text, struct arena *arena,
                         struct filter **ret_filter)
{
    struct filter_error error;
    const char *first = text + strspn(text, " \t\n");
    const int rc = *first == '{' ? filter_parse_where(text, strlen(text), arena,
                                                      ret_filter, &error)
                                 : filter_parse(text, arena, ret_filter, &error);
    if (rc < 0)
        cli_error("where: %s (at character %zu of '%s')", error.message, error.position,
                  text);
    return rc == 0;
}

static int course_of_run(const struct trends_options *o)
{
    struct store *store;
    struct output out;
    struct arena arena = ARENA_INIT;
    struct experiment e;
    int status = CLI_FAILED;
    if (!cli_store_ready(&store))
        return CLI_FAILED;
    if (cli_find_experiment(store, o->run, &arena, &e) &&
        output_open(&out, o->output)) {
        status = trends_of_run(&e, o->metric, o->json || o->format == FORMAT_JSON,
                               out.file);
        if (!output_close(&out, 0, "the trends"))
            status = CLI_FAILED;
    }
    store_close(store);
    arena_release(&arena);
    return status;
}

int cmd_trends(int argc, char **argv)
{
    struct trends_options o = { .top = 5 };
    struct arena arena = ARENA_INIT;
    struct filter *filter = NULL;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc > 2 || (argc == 2 && o.where))
        return options_fail(&command, "one FILTER, in quotes");
    if (o.run && (argc == 2 || o.where || o.against || o.format == FORMAT_CSV))
        return options_fail(&command, "--run goes with --metric and --json alone "
                                      "(all points: sonde store sql)");
    if (o.run)
        return course_of_run(&o);
    if (o.top > 10000)
        return options_fail(&command, "--top wants at most 10000");
    struct trends *t = calloc(1, sizeof *t);
    if (!t)
        return CLI_FAILED;
    t->metric = o.metric ? o.metric : "metrics.accuracy";
    t->lower = o.lower;
    const char *where = argc == 2 ? argv[1] : o.where ? o.where : "";
    status = CLI_FAILED;
    if (parse_filter(where, &arena, &filter) && cli_store_ready(&t->store))
        status = run(t, filter, &o);
    release(t);
    store_close(t->store);
    free(t);
    filter_release(filter);
    arena_release(&arena);
    return status;
}
