/* comparejson.c: a comparison as JSON (sonde.comparison/1) and as CSV. */
#include "present/report/compare.h"

#include <errno.h>
#include <math.h>

#include "present/report/csvcell.h"
#include "present/report/jsonparts.h"

const char *compare_section_name(enum compare_section section)
{
    static const char *const names[COMPARE_SECTIONS] = {
        [COMPARE_SUMMARY] = "summary",
        [COMPARE_PHASES] = "phases",
        [COMPARE_OPERATIONS] = "operations",
        [COMPARE_METRICS] = "metrics",
    };
    return names[section];
}

/* The unit of the document and the factor to it from the one kept. */
static const struct {
    const char *name;
    double scale;
} units[] = {
    [UNIT_NS] = { "ms", 1e-6 },    [UNIT_BYTES] = { "mb", 1 / 1048576.0 },
    [UNIT_COUNT] = { "", 1 },      [UNIT_RATE] = { "1/s", 1 },
    [UNIT_SHARE] = { "share", 1 }, [UNIT_PERCENT] = { "percent", 1 },
    [UNIT_JOULES] = { "J", 1 },    [UNIT_PLAIN] = { "", 1 },
    [UNIT_FLOPS] = { "flop", 1 },
};

static void put_runs(struct json_writer *w, const struct comparison *c)
{
    json_key(w, "runs");
    json_array_begin(w);
    for (size_t i = 0; i < c->run_count; i++) {
        json_object_begin(w);
        field_text(w, "id", c->runs[i]->run->id);
        field_text(w, "name", c->runs[i]->run->meta.name);
        field_text(w, "label", c->labels[i]);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_differences(struct json_writer *w, const struct comparison *c)
{
    json_key(w, "differences");
    json_array_begin(w);
    for (size_t i = 0; i < c->difference_count; i++) {
        const struct compare_difference *d = &c->differences[i];
        json_object_begin(w);
        field_text(w, "group", d->group);
        field_text(w, "name", d->name);
        json_key(w, "values");
        json_array_begin(w);
        for (size_t run = 0; run < c->run_count; run++)
            json_put_string(w, d->values[run][0] ? d->values[run] : NULL);
        json_array_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_row(struct json_writer *w, const struct comparison *c,
                    const struct compare_row *row)
{
    static const char *const better[] = { [BETTER_NEITHER] = "neither",
                                          [BETTER_LOWER] = "lower",
                                          [BETTER_HIGHER] = "higher" };
    json_object_begin(w);
    field_text(w, "section", compare_section_name(row->section));
    field_text(w, "name", row->name);
    field_text(w, "unit", units[row->unit].name);
    field_text(w, "per", row->per);
    field_text(w, "better", better[row->better]);
    json_key(w, "runs");
    json_array_begin(w);
    for (size_t i = 0; i < c->run_count; i++) {
        json_object_begin(w);
        json_key(w, "value");
        json_put_double(w, row->cells[i].value * units[row->unit].scale);
        field_number(w, "ratio", row->cells[i].ratio, 6);
        field_number(w, "low", row->cells[i].low, 6);
        field_number(w, "high", row->cells[i].high, 6);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

int compare_json(const struct comparison *c, FILE *out)
{
    struct json_writer w;
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    field_text(&w, "schema", "sonde.comparison/1");
    put_runs(&w, c);
    field_text(&w, "verdict", c->verdict);
    field_text(&w, "since", c->since);
    json_key(&w, "same_hardware");
    json_put_bool(&w, c->same_hardware);
    field_text(&w, "best_batch", c->batch);
    put_differences(&w, c);
    json_key(&w, "rows");
    json_array_begin(&w);
    for (size_t i = 0; i < c->row_count; i++)
        put_row(&w, c, &c->rows[i]);
    json_array_end(&w);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}

int compare_csv(const struct comparison *c, FILE *out)
{
    struct buf text = BUF_INIT;
    buf_puts(&text, "section,name,unit,per");
    for (size_t i = 0; i < c->run_count; i++) {
        buf_putc(&text, ',');
        csv_put_text(&text, c->labels[i]);
        if (i)
            buf_puts(&text, ",ratio,low,high");
    }
    buf_puts(&text, "\r\n");
    for (size_t k = 0; k < c->row_count; k++) {
        const struct compare_row *row = &c->rows[k];
        csv_put_text(&text, compare_section_name(row->section));
        buf_putc(&text, ',');
        csv_put_text(&text, row->name);
        buf_putc(&text, ',');
        csv_put_text(&text, units[row->unit].name);
        buf_putc(&text, ',');
        csv_put_text(&text, row->per);
        for (size_t i = 0; i < c->run_count; i++) {
            csv_put_number(&text, row->cells[i].value, units[row->unit].scale);
            if (i) {
                csv_put_number(&text, row->cells[i].ratio, 1);
                csv_put_number(&text, row->cells[i].low, 1);
                csv_put_number(&text, row->cells[i].high, 1);
            }
        }
        buf_puts(&text, "\r\n");
    }
    int rc = text.error;
    if (rc == 0 && fwrite(text.data, 1, text.len, out) != text.len)
        rc = -EIO;
    buf_release(&text);
    return rc;
}
