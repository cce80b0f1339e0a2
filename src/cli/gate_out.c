/* gate_out.c: what a gate found, for people and for CI systems. */
#include "cli/gate_out.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/human.h"
#include "base/json.h"
#include "present/report/page.h"
#include "present/report/report.h"

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, size_t n)
{
    double *copy = calloc(n ? n : 1, sizeof *copy);
    if (!copy || n == 0) {
        free(copy);
        return NAN;
    }
    memcpy(copy, values, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, compare_doubles);
    const double m = (copy[(n - 1) / 2] + copy[n / 2]) / 2;
    free(copy);
    return m;
}

static bool is_seconds(const char *name)
{
    return strcmp(name, "wall") == 0 || strcmp(name, "cpu") == 0 ||
           strncmp(name, "time.", 5) == 0;
}

static void amount(char *text, size_t len, const char *name, double value)
{
    char human[HUMAN_LEN];
    if (isnan(value))
        (void)snprintf(text, len, "–");
    else if (is_seconds(name))
        (void)snprintf(text, len, "%s", human_duration(human, value * 1e9));
    else if (strcmp(name, "memory") == 0)
        (void)snprintf(text, len, "%s", human_bytes(human, value * 1048576));
    else if (strcmp(name, "allocated_bytes") == 0 || strcmp(name, "io_bytes") == 0)
        (void)snprintf(text, len, "%s", human_bytes(human, value));
    else
        (void)snprintf(text, len, "%.10g", value);
}

static void change_words(char *text, size_t len, const struct gate_result *r)
{
    if (isnan(r->ratio))
        (void)snprintf(text, len, "?");
    else if (r->exact)
        (void)snprintf(text, len, "%+.4g %% exactly", 100 * (r->ratio - 1));
    else
        (void)snprintf(text, len, "%+.1f %% [%+.1f, %+.1f]", 100 * (r->ratio - 1),
                       100 * (r->low - 1), 100 * (r->high - 1));
}

/* ---- Text --------------------------------------------------------------------------- */

static void put_head(struct page *p, const struct gate_report *g)
{
    static const char *const words[] = { "PASSED", "FAILED", "UNSURE" };
    static const enum page_color colors[] = { GREEN, RED, BOLD };
    char took[HUMAN_LEN];
    struct buf clean = BUF_INIT;
    clean_text(&clean, g->command, 60);
    page_printf(p, "sonde check · %s · %zu %s", clean.data, g->count,
                g->paired ? "pairs" : "runs");
    if (g->runs > g->count)
        page_printf(p, " (%zu runs of each)", g->runs);
    page_printf(p, " · %s\n\n", human_duration(took, g->elapsed_s * 1e9));
    buf_release(&clean);
    page_puts(p, PLAIN, " ");
    page_puts(p, colors[g->verdict], words[g->verdict]);
    page_fill(p, 3);
    clean_text(&clean, g->baseline, 100);
    page_printf(p, "against %s\n", clean.data);
    buf_release(&clean);
    if (g->weaker)
        page_paragraph(p, "WEAKER", PLAIN, g->weaker);
}

/* printf counts bytes; the dash of a missing number has three and one column. */
static int width(const char *text)
{
    return strcmp(text, "–") == 0 ? 12 : 10;
}

static void put_metric(struct page *p, const struct gate_metric *m,
                       const struct gate_result *r)
{
    char before[48], after[48], change[80], allowed[32];
    amount(before, sizeof before, m->name, median(m->baseline, m->baseline_count));
    amount(after, sizeof after, m->name, median(m->now, m->now_count));
    change_words(change, sizeof change, r);
    (void)snprintf(allowed, sizeof allowed, "%+.4g %%", 100 * m->threshold);
    page_label(p, "");
    page_printf(p, "%-16.16s %-*s → %-*s  %-30s %-8s  ", m->name, width(before), before,
                width(after), after, change, allowed);
    page_puts(p, r->verdict == GATE_FAIL ? RED : PLAIN, gate_words[r->verdict]);
    page_puts(p, PLAIN, "\n");
    if (r->why[0]) {
        page_label(p, "");
        page_printf(p, "                 %s\n", r->why);
    }
}

/* The smallest effect that metric i would have shown; false: it has none to tell. */
static bool power_words(const struct gate_report *g, size_t i, char *text, size_t len)
{
    const struct gate_result *r = &g->results[i];
    const char *name = g->metrics[i].name;
    if (r->exact || isnan(r->smallest))
        return false;
    (void)snprintf(text, len, "%s: %s of %.1f %% or more (%.1f %% confidence)", name,
                   is_seconds(name) ? "a slowdown" : "a change for the worse",
                   100 * r->smallest, 100 * r->confidence);
    return true;
}

static void put_power(struct page *p, const struct gate_report *g)
{
    char words[160];
    for (size_t i = 0; i < g->metric_count; i++) {
        if (!power_words(g, i, words, sizeof words))
            continue;
        page_label(p, "COULD SEE");
        page_printf(p, "%s\n", words);
    }
}

static int print_text(const struct gate_report *g, FILE *out)
{
    struct report_style style = { 0 };
    struct page p;
    report_style_detect(&style, STDOUT_FILENO);
    page_init(&p, 110, style.color && isatty(STDOUT_FILENO), style.unicode);
    put_head(&p, g);
    page_label(&p, "");
    page_printf(&p, "%-16s %-10s   %-10s  %-30s %s\n", "metric", "before", "after",
                "worse by [interval]", "allowed");
    for (size_t i = 0; i < g->metric_count; i++)
        put_metric(&p, &g->metrics[i], &g->results[i]);
    put_power(&p, g);
    const int rc = page_flush(&p, out);
    page_release(&p);
    return rc;
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put_number(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_put_double(w, value);
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text && text[0] ? text : NULL);
}

static void put_values(struct json_writer *w, const char *key, const double *values,
                       size_t n)
{
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < n; i++)
        json_put_double(w, values[i]);
    json_array_end(w);
}

static int print_json(const struct gate_report *g, FILE *out)
{
    struct json_writer w;
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    put_text(&w, "schema", "sonde.check/1");
    put_text(&w, "verdict", gate_words[g->verdict]);
    put_text(&w, "command", g->command);
    put_text(&w, "baseline", g->baseline);
    put_text(&w, "weaker", g->weaker);
    json_key(&w, "paired");
    json_put_bool(&w, g->paired);
    json_key(&w, "count");
    json_put_uint(&w, g->count);
    json_key(&w, "runs");
    json_put_uint(&w, g->runs);
    put_number(&w, "elapsed_s", g->elapsed_s);
    json_key(&w, "metrics");
    json_array_begin(&w);
    for (size_t i = 0; i < g->metric_count; i++) {
        const struct gate_metric *m = &g->metrics[i];
        const struct gate_result *r = &g->results[i];
        json_object_begin(&w);
        put_text(&w, "name", m->name);
        put_text(&w, "verdict", gate_words[r->verdict]);
        put_text(&w, "why", r->why);
        json_key(&w, "exact");
        json_put_bool(&w, r->exact);
        put_number(&w, "threshold", m->threshold);
        put_number(&w, "ratio", r->ratio);
        put_number(&w, "low", r->low);
        put_number(&w, "high", r->high);
        put_number(&w, "confidence", r->confidence);
        put_number(&w, "p", r->p);
        put_number(&w, "smallest", r->smallest);
        put_values(&w, "baseline", m->baseline, m->baseline_count);
        put_values(&w, "now", m->now, m->now_count);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}

/* ---- JUnit -------------------------------------------------------------------------- */

static void put_xml(FILE *out, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '&')
            (void)fputs("&amp;", out);
        else if (c == '<')
            (void)fputs("&lt;", out);
        else if (c == '>')
            (void)fputs("&gt;", out);
        else if (c == '"')
            (void)fputs("&quot;", out);
        else if (c < 0x20 && c != '\t' && c != '\n')
            (void)fputc('?', out); /* XML 1.0 has no word for it */
        else
            (void)fputc(c, out);
    }
}

static int print_junit(const struct gate_report *g, FILE *out)
{
    size_t failures = 0, skipped = 0;
    for (size_t i = 0; i < g->metric_count; i++) {
        failures += g->results[i].verdict == GATE_FAIL;
        skipped += g->results[i].verdict == GATE_INCONCLUSIVE;
    }
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"sonde "
                  "check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" "
                  "time=\"%.3f\">\n",
                  g->metric_count, failures, skipped, g->elapsed_s);
    for (size_t i = 0; i < g->metric_count; i++) {
        const struct gate_result *r = &g->results[i];
        char change[80], message[600];
        change_words(change, sizeof change, r);
        (void)snprintf(
            message, sizeof message, "%s, allowed %+.4g %%, against %.150s%s%s", change,
            100 * g->metrics[i].threshold, g->baseline, r->why[0] ? ": " : "", r->why);
        (void)fputs("  <testcase classname=\"sonde.check\" name=\"", out);
        put_xml(out, g->metrics[i].name);
        (void)fprintf(out, "\" time=\"%.3f\">", g->elapsed_s / (double)g->metric_count);
        if (r->verdict != GATE_PASS) {
            (void)fprintf(out, "\n    <%s message=\"",
                          r->verdict == GATE_FAIL ? "failure" : "skipped");
            put_xml(out, message);
            (void)fputs("\"/>\n  ", out);
        }
        (void)fputs("</testcase>\n", out);
    }
    return fputs("</testsuite>\n", out) < 0 ? -EIO : 0;
}

/* ---- Markdown ----------------------------------------------------------------------- */

static void put_cell(FILE *out, const char *text)
{
    (void)fputs(" ", out);
    for (; *text; text++) {
        if (strchr("|\\`*_<", *text))
            (void)fputc('\\', out);
        (void)fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
    }
    (void)fputs(" |", out);
}

static int print_markdown(const struct gate_report *g, FILE *out)
{
    static const char *const marks[] = { "✅ passed", "❌ failed", "❔ inconclusive" };
    (void)fprintf(out, "### sonde check: %s\n\n|", marks[g->verdict]);
    put_cell(out, "against");
    put_cell(out, g->baseline);
    (void)fprintf(out, " %zu %s, %.0f s |\n|---|---|---|\n\n", g->count,
                  g->paired ? "pairs" : "runs", g->elapsed_s);
    (void)fputs("| metric | before | after | worse by [interval] | allowed | |\n"
                "|---|---|---|---|---|---|\n",
                out);
    for (size_t i = 0; i < g->metric_count; i++) {
        const struct gate_metric *m = &g->metrics[i];
        const struct gate_result *r = &g->results[i];
        char text[80];
        (void)fputs("|", out);
        put_cell(out, m->name);
        amount(text, sizeof text, m->name, median(m->baseline, m->baseline_count));
        put_cell(out, text);
        amount(text, sizeof text, m->name, median(m->now, m->now_count));
        put_cell(out, text);
        change_words(text, sizeof text, r);
        put_cell(out, text);
        (void)snprintf(text, sizeof text, "%+.4g %%", 100 * m->threshold);
        put_cell(out, text);
        put_cell(out, r->why[0] ? r->why : gate_words[r->verdict]);
        (void)fputs("\n", out);
    }
    char power[160];
    for (size_t i = 0; i < g->metric_count; i++)
        if (power_words(g, i, power, sizeof power))
            (void)fprintf(out, "%sCould see %s\n", i ? "" : "\n", power);
    if (g->weaker)
        (void)fprintf(out, "\nWeaker than it could be: %s.\n", g->weaker);
    return ferror(out) ? -EIO : 0;
}

int gate_print(const struct gate_report *report, enum gate_format format, FILE *out)
{
    switch (format) {
    case GATE_JSON:
        return print_json(report, out);
    case GATE_JUNIT:
        return print_junit(report, out);
    case GATE_MARKDOWN:
        return print_markdown(report, out);
    default:
        return print_text(report, out);
    }
}
