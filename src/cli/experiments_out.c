/* experiments_out.c: a list of experiments as table, JSON or CSV.
 *
 * CSV has fixed columns first (A11) and then one for every parameter, metric and tag
 * that any of the experiments has: the list is read twice, so that however long it is,
 * one experiment is in memory at a time.
 */
#include "cli/experiments_out.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/human.h"
#include "base/strmap.h"
#include "present/report/page.h"
#include "present/report/report.h"
#include "trace/runfile.h"

typedef int (*row_fn)(void *arg, const struct experiments_row *row,
                      const struct experiment *e);

struct visit {
    const struct experiments_row *row;
    row_fn fn;
    void *arg;
};

static int visit_one(void *arg, const struct experiment *e)
{
    const struct visit *v = arg;
    return v->fn(v->arg, v->row, e);
}

static int each_row(const struct experiments_list *list, row_fn fn, void *arg)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        struct visit v = { &list->rows[i], fn, arg };
        rc = store_each(list->store, v.row->seq - 1, v.row->seq, visit_one, &v);
    }
    return rc;
}

/* ---- JSON --------------------------------------------------------------------------- */

struct json_out {
    FILE *out;
    size_t done;
    struct buf line;
};

static int put_json(void *arg, const struct experiments_row *row,
                    const struct experiment *e)
{
    struct json_out *j = arg;
    buf_clear(&j->line);
    experiment_write(&j->line, e);
    buf_truncate(&j->line, j->line.len - 1); /* its last bracket */
    if (isfinite(row->similarity))
        buf_printf(&j->line, ",\"similarity\":%.6f", row->similarity);
    if (row->why)
        buf_printf(&j->line, ",\"why\":%s", row->why);
    for (int i = 0; row->vector && i < 256; i++)
        buf_printf(&j->line, "%s%d", i ? "," : ",\"vector\":[", row->vector[i]);
    buf_puts(&j->line, row->vector ? "]}" : "}");
    if (j->line.error)
        return j->line.error;
    return fprintf(j->out, "%s\n    %s", j->done++ ? "," : "", j->line.data) < 0
               ? -errno
               : 0;
}

static int print_json(const struct experiments_list *list, FILE *out)
{
    struct json_out j = { .out = out, .line = BUF_INIT };
    (void)fprintf(out,
                  "{\n  \"schema\": \"sonde.experiments/1\",\n  \"total\": %llu,\n"
                  "  \"matched\": %llu,\n  \"experiments\": [",
                  (unsigned long long)list->total, (unsigned long long)list->matched);
    const int rc = each_row(list, put_json, &j);
    (void)fprintf(out, "%s]\n}\n", j.done ? "\n  " : "");
    buf_release(&j.line);
    return rc;
}

/* ---- CSV ---------------------------------------------------------------------------- */

struct csv_out {
    FILE *out;
    struct strmap names; /* "params.lr" → column */
    struct value *cells;
    struct arena arena;
    bool similarity;
};

struct one_kind {
    struct csv_out *csv;
    enum fact_kind kind;
    bool fill;
};

void csv_field(FILE *out, const char *text, size_t len)
{
    /* A field that a spreadsheet would run is made a text. */
    const bool formula = len && memchr("=+@", text[0], 3);
    const bool quoted = formula || memchr(text, ',', len) || memchr(text, '"', len) ||
                        memchr(text, '\n', len) || memchr(text, '\r', len);
    if (!quoted) {
        (void)fwrite(text, 1, len, out);
        return;
    }
    (void)fputs(formula ? "\"'" : "\"", out);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            (void)fputc('"', out);
        (void)fputc(text[i], out);
    }
    (void)fputc('"', out);
}

static int see_fact(void *arg, const char *key, size_t len, const struct value *value)
{
    const struct one_kind *k = arg;
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s.", fact_kind_names[k->kind]);
    buf_append(&name, key, len);
    bool added;
    struct strmap_entry *entry = strmap_enter(&k->csv->names, name.data, name.len,
                                              &added);
    buf_release(&name);
    if (!entry)
        return -ENOMEM;
    if (added)
        entry->value = k->csv->names.count - 1;
    if (k->fill) {
        k->csv->cells[entry->value] = *value;
        if (k->kind == FACT_METRIC)
            value_fix_metric(&k->csv->cells[entry->value]);
    }
    return 0;
}

static int see_facts(struct csv_out *csv, const struct experiment *e, bool fill)
{
    int rc = 0;
    for (int kind = 0; rc >= 0 && kind < FACT_KINDS; kind++) {
        struct one_kind k = { csv, (enum fact_kind)kind, fill };
        rc = facts_each(e->facts[kind], e->facts_len[kind], &csv->arena, see_fact, &k);
    }
    return rc == -ENOMEM ? rc : 0;
}

static int see_names(void *arg, const struct experiments_row *row,
                     const struct experiment *e)
{
    (void)row;
    return see_facts(arg, e, false);
}

static void put_text(struct csv_out *csv, const char *text)
{
    (void)fputc(',', csv->out);
    if (text)
        csv_field(csv->out, text, strlen(text));
}

static void put_number(struct csv_out *csv, double number)
{
    struct buf text = BUF_INIT;
    const struct value v = { .type = VALUE_FLOAT, .number = number };
    (void)fputc(',', csv->out);
    if (isfinite(number))
        value_write(&text, &v);
    (void)fputs(text.data, csv->out);
    buf_release(&text);
}

static void put_cell(struct csv_out *csv, const struct value *v)
{
    struct buf text = BUF_INIT;
    (void)fputc(',', csv->out);
    if (v->type == VALUE_TEXT)
        csv_field(csv->out, v->text, v->len);
    else if (v->type == VALUE_FLOAT && !isfinite(v->number))
        (void)fputs(isnan(v->number) ? "nan"
                    : v->number > 0  ? "inf"
                                     : "-inf",
                    csv->out);
    else if (v->type != VALUE_NONE)
        value_write(&text, v);
    (void)fputs(text.data, csv->out);
    buf_release(&text);
}

static int put_csv(void *arg, const struct experiments_row *row,
                   const struct experiment *e)
{
    struct csv_out *csv = arg;
    char time[ISO_TIME_LEN];
    for (size_t i = 0; i < csv->names.count; i++)
        csv->cells[i].type = VALUE_NONE;
    const int rc = see_facts(csv, e, true);
    if (rc < 0)
        return rc;
    csv_field(csv->out, e->id, strlen(e->id));
    put_text(csv, e->name);
    put_text(csv, e->kind);
    put_text(csv, e->started_ns ? iso_time(e->started_ns, time) : NULL);
    for (int i = 0; i < CORE_FIELDS; i++)
        put_number(csv, e->core[i]);
    const struct value accuracy = facts_get(e, FACT_METRIC, "accuracy", &csv->arena);
    put_cell(csv, &accuracy);
    put_text(csv, e->facts[FACT_PARAM]);
    put_text(csv, e->command);
    if (csv->similarity)
        put_number(csv, row->similarity);
    for (size_t i = 0; i < csv->names.count; i++)
        put_cell(csv, &csv->cells[i]);
    (void)fputs("\r\n", csv->out);
    if (csv->arena.total > 1 << 20) {
        arena_release(&csv->arena);
        arena_init(&csv->arena);
    }
    return ferror(csv->out) ? -EIO : 0;
}

static void put_titles(struct csv_out *csv)
{
    (void)fputs("experiment_id,name,kind,started", csv->out);
    for (int i = 0; i < CORE_FIELDS; i++)
        (void)fprintf(csv->out, ",%s",
                      i == CORE_DURATION_S ? "duration" : core_names[i]);
    (void)fputs(",accuracy,parameters,command", csv->out);
    if (csv->similarity)
        (void)fputs(",similarity", csv->out);
    for (size_t i = 0; i < csv->names.count; i++) {
        (void)fputc(',', csv->out);
        csv_field(csv->out, csv->names.entries[i].key, csv->names.entries[i].len);
    }
    (void)fputs("\r\n", csv->out);
}

static int print_csv(const struct experiments_list *list, FILE *out)
{
    struct csv_out csv = { .out = out };
    csv.similarity = list->count && isfinite(list->rows[0].similarity);
    int rc = each_row(list, see_names, &csv);
    if (rc == 0) {
        csv.cells = calloc(csv.names.count + 1, sizeof *csv.cells);
        rc = csv.cells ? 0 : -ENOMEM;
    }
    if (rc == 0) {
        put_titles(&csv);
        rc = each_row(list, put_csv, &csv);
    }
    free(csv.cells);
    strmap_release(&csv.names);
    arena_release(&csv.arena);
    return rc;
}

/* ---- Table -------------------------------------------------------------------------- */

enum { FACT_COLUMNS = 8, FACT_WIDTH = 12, ID_WIDTH = 17, NAME_WIDTH = 14 };

/* Facts get columns while they fit, metrics before parameters. */
struct table {
    struct page page;
    struct csv_out facts;
    size_t shown[FACT_COLUMNS];
    size_t shown_count;
    bool similarity, names;
};

static int see_row(void *arg, const struct experiments_row *row,
                   const struct experiment *e)
{
    struct table *t = arg;
    (void)row;
    t->names |= e->name != NULL;
    return see_facts(&t->facts, e, false);
}

static void choose_columns(struct table *t)
{
    static const char *const order[] = { "metrics.", "params.", "tags." };
    size_t used = ID_WIDTH + (t->names ? NAME_WIDTH : 0) + 9 + 10 +
                  (t->similarity ? 8 : 0);
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < t->facts.names.count; i++) {
            const char *name = t->facts.names.entries[i].key;
            if (strncmp(name, order[k], strlen(order[k])) != 0 ||
                t->shown_count == FACT_COLUMNS ||
                used + FACT_WIDTH > (size_t)t->page.width)
                continue;
            t->shown[t->shown_count++] = i;
            used += FACT_WIDTH;
        }
}

static void put_left(struct page *page, const char *text, size_t len, size_t columns)
{
    struct buf copy = BUF_INIT, clean = BUF_INIT;
    buf_append(&copy, text, len);
    clean_text(&clean, copy.data, columns - 1);
    page_left(page, clean.data, columns);
    buf_release(&copy);
    buf_release(&clean);
}

static void put_value(struct page *page, const struct value *v)
{
    char number[32];
    if (v->type == VALUE_TEXT)
        put_left(page, v->text, v->len, FACT_WIDTH);
    else {
        if (v->type == VALUE_NONE)
            (void)snprintf(number, sizeof number, "–");
        else if (v->type == VALUE_BOOL)
            (void)snprintf(number, sizeof number, "%s", v->integer ? "true" : "false");
        else
            (void)snprintf(number, sizeof number, "%.6g",
                           v->type == VALUE_INT ? (double)v->integer : v->number);
        page_left(page, number, FACT_WIDTH);
    }
}

static int put_row(void *arg, const struct experiments_row *row,
                   const struct experiment *e)
{
    struct table *t = arg;
    char text[HUMAN_LEN];
    for (size_t i = 0; i < t->facts.names.count; i++)
        t->facts.cells[i].type = VALUE_NONE;
    const int rc = see_facts(&t->facts, e, true);
    if (rc < 0)
        return rc;
    put_left(&t->page, e->id, strlen(e->id), ID_WIDTH);
    if (t->names)
        put_left(&t->page, e->name ? e->name : "–", strlen(e->name ? e->name : "–"),
                 NAME_WIDTH);
    if (t->similarity) {
        (void)snprintf(text, sizeof text, "%.3f", row->similarity);
        page_left(&t->page, text, 8);
    }
    page_left(&t->page, human_duration(text, e->core[CORE_DURATION_S] * 1e9), 9);
    page_left(&t->page, human_bytes(text, e->core[CORE_MEMORY_PEAK_MB] * 1048576), 10);
    for (size_t i = 0; i < t->shown_count; i++)
        put_value(&t->page, &t->facts.cells[t->shown[i]]);
    page_puts(&t->page, PLAIN, "\n");
    if (row->words) {
        page_fill(&t->page, 4);
        put_left(&t->page, row->words, strlen(row->words), (size_t)t->page.width - 4);
        page_puts(&t->page, PLAIN, "\n");
    }
    return 0;
}

static void put_table_titles(struct table *t)
{
    page_left(&t->page, "ID", ID_WIDTH);
    if (t->names)
        page_left(&t->page, "NAME", NAME_WIDTH);
    if (t->similarity)
        page_left(&t->page, "ALIKE", 8);
    page_left(&t->page, "TOOK", 9);
    page_left(&t->page, "MEMORY", 10);
    for (size_t i = 0; i < t->shown_count; i++) {
        const char *name = t->facts.names.entries[t->shown[i]].key;
        const char *dot = strchr(name, '.');
        put_left(&t->page, dot ? dot + 1 : name, strlen(dot ? dot + 1 : name),
                 FACT_WIDTH);
    }
    page_puts(&t->page, PLAIN, "\n");
}

static int print_table(const struct experiments_list *list, FILE *out)
{
    struct report_style style = { 0 };
    struct table t = { .shown_count = 0 };
    report_style_detect(&style, STDOUT_FILENO);
    const int width = isatty(STDOUT_FILENO) ? style.width ? style.width : 100 : 160;
    page_init(&t.page, width, false, style.unicode);
    t.similarity = list->count && isfinite(list->rows[0].similarity);
    int rc = each_row(list, see_row, &t);
    t.facts.cells = calloc(t.facts.names.count + 1, sizeof *t.facts.cells);
    if (rc == 0 && !t.facts.cells)
        rc = -ENOMEM;
    if (rc == 0 && list->count) {
        choose_columns(&t);
        put_table_titles(&t);
        rc = each_row(list, put_row, &t);
    }
    if (rc == 0)
        rc = page_flush(&t.page, out);
    char matched[HUMAN_LEN], total[HUMAN_LEN];
    if (rc == 0)
        (void)fprintf(
            out, "%s(%s of %s match%s)\n", list->count ? "" : "nothing found ",
            human_count(matched, list->matched), human_count(total, list->total),
            list->matched > list->count ? "; --limit shows more" : "");
    page_release(&t.page);
    free(t.facts.cells);
    strmap_release(&t.facts.names);
    arena_release(&t.facts.arena);
    return rc;
}

int experiments_print(const struct experiments_list *list,
                      enum experiments_format format, FILE *out)
{
    switch (format) {
    case EXPERIMENTS_JSON:
        return print_json(list, out);
    case EXPERIMENTS_CSV:
        return print_csv(list, out);
    default:
        return print_table(list, out);
    }
}
