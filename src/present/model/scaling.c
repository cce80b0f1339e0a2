/* scaling.c: see scaling.h; the picture is in chart.c. */
#include "present/model/scaling.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/human.h"
#include "model/run/growth.h"
#include "present/model/parts.h"
#include "present/model/words.h"

/* ---- Text ---------------------------------------------------------------------------- */

static void put_right(FILE *out, const char *text, int columns)
{
    (void)fputc(' ', out);
    words_right(out, text, columns);
}

static void put_time(FILE *out, double ms)
{
    char text[HUMAN_LEN];
    put_right(out, human_duration(text, ms * 1e6), 9);
}

/* Of the first column: sizes, or the names of encodings. */
static int label_columns(const struct scaling *s)
{
    return s->axis == AXIS_PE ? 14 : 8;
}

static const struct curve *step_curve(const struct scaling *s)
{
    return &s->curves[s->axis == AXIS_MATMUL ? 0 : PASS_STEP];
}

static void put_point(const struct scaling *s, size_t i, FILE *out)
{
    const struct scale_point *p = &s->points[i];
    char text[HUMAN_LEN];
    put_right(out, p->label, label_columns(s));
    if (!p->measured) {
        (void)fprintf(out, "  %s\n", p->note);
        return;
    }
    const struct summary *passes = p->m.passes;
    if (s->axis != AXIS_MATMUL) {
        put_time(out, passes[PASS_INFERENCE].mean);
        put_time(out, passes[PASS_BACKWARD].mean);
    }
    put_time(out, passes[PASS_STEP].mean);
    if (passes[PASS_STEP].n > 1)
        (void)fprintf(out, " ±%3.0f %%",
                      100 * passes[PASS_STEP].std / passes[PASS_STEP].mean);
    else
        put_right(out, "once", 6);
    put_right(out, words_si(text, p->step_flops / passes[PASS_STEP].mean * 1e3), 7);
    put_right(out, human_bytes(text, p->plan.total), 9);
    put_right(out, human_bytes(text, p->m.peak_bytes), 9);
    const struct exponent *e = &step_curve(s)->local[i];
    if (e->points > 0)
        (void)fprintf(out, " %5.2f", e->value);
    (void)fputc('\n', out);
}

/* The two largest of what the time is made of at size x; all of it, with its factors, is
 * in the JSON. */
static void put_mixture(const struct curve *c, double x, FILE *out)
{
    static const char *const powers[MIXTURE] = { "const", "N", "N²", "N³" };
    static const double LEAST = 0.05;
    const double whole = growth_at(c->mixture, x);
    double shares[MIXTURE];
    for (int i = 0; i < MIXTURE; i++)
        shares[i] = c->mixture[i] * pow(x, i) / whole;
    for (int i = 0, put = 0; i < MIXTURE; i++) {
        int larger = 0;
        for (int k = 0; k < MIXTURE; k++)
            larger += shares[k] > shares[i];
        if (shares[i] < LEAST || larger >= 2 || put == 2)
            continue;
        (void)fprintf(out, "%s%.0f %% %s", put++ ? " + " : "", 100 * shares[i],
                      powers[i]);
    }
}

static double last_size(const struct scaling *s)
{
    double last = 0;
    for (size_t i = 0; i < s->count; i++)
        last = s->points[i].measured ? (double)s->points[i].at.size : last;
    return last;
}

/* "1.02, 0.97 to 1.08", 21 columns; an end that the data do not bound is "?". */
static void put_interval(const struct exponent *e, FILE *out)
{
    char text[64], low[16] = "?", high[16] = "?";
    if (isfinite(e->low))
        (void)snprintf(low, sizeof low, "%.2f", e->low);
    if (isfinite(e->high))
        (void)snprintf(high, sizeof high, "%.2f", e->high);
    if (isfinite(e->low) || isfinite(e->high))
        (void)snprintf(text, sizeof text, "%5.2f %5s to %s", e->value, low, high);
    else
        (void)snprintf(text, sizeof text, "%5.2f", e->value);
    words_left(out, text, 21);
}

static void put_growth(const struct scaling *s, FILE *out)
{
    char size[HUMAN_LEN];
    (void)fprintf(out, "\n  %-15s %-20s %-20s at %s\n", "GROWTH", "exponent, 95 %",
                  "beyond the constant", human_count(size, (uint64_t)last_size(s)));
    for (size_t i = 0; i < s->curve_count; i++) {
        const struct curve *c = &s->curves[i];
        if (!c->has_exponent)
            continue;
        (void)fprintf(out, "  %-15s ", c->name);
        put_interval(&c->exponent, out);
        if (c->has_beyond)
            put_interval(&c->beyond.exponent, out);
        else
            words_left(out, "–", 21);
        if (c->has_mixture)
            put_mixture(c, last_size(s), out);
        (void)fputc('\n', out);
    }
}

/* Some of the points, as many as fit beside each other. */
static void put_some_parts(const struct scaling *s, size_t from, size_t to, int columns,
                           FILE *out)
{
    (void)fprintf(out, "\n  %-15s", "PARTS");
    for (size_t i = from; i < to; i++)
        put_right(out, s->points[i].label, columns);
    (void)fputc('\n', out);
    for (size_t i = PASS_COUNT; i < s->curve_count; i++) {
        (void)fprintf(out, "  %-15s", s->curves[i].name);
        for (size_t k = from; k < to; k++) {
            char text[HUMAN_LEN];
            put_right(out, human_duration(text, s->curves[i].ms[k] * 1e6), columns);
        }
        (void)fputc('\n', out);
    }
}

static void put_parts(const struct scaling *s, FILE *out)
{
    enum { WIDTH = 80, NAME = 17 };
    const int columns = s->axis == AXIS_PE ? 15 : 8;
    const size_t at_once = (WIDTH - NAME) / (size_t)(columns + 1);
    for (size_t i = 0; i < s->count; i += at_once)
        put_some_parts(s, i, i + at_once < s->count ? i + at_once : s->count, columns,
                       out);
}

void scaling_title(const struct scaling *s, FILE *out)
{
    (void)fprintf(out, "sonde scale %s", axis_name(s->axis));
    if (s->axis != AXIS_MATMUL) {
        (void)fprintf(out, " · %s · from ", family_name(s->points[0].config.family));
        sizes_text(&s->points[0].config, out);
    }
    (void)fputs("\n\n", out);
}

int scaling_text(const struct scaling *s, FILE *out)
{
    char text[HUMAN_LEN];
    put_right(out, s->axis == AXIS_PE ? "encoding" : axis_name(s->axis),
              label_columns(s));
    if (s->axis != AXIS_MATMUL)
        (void)fprintf(out, " %9s %9s", "inference", "backward");
    (void)fprintf(out, " %16s %7s %9s %9s%s\n",
                  s->axis == AXIS_MATMUL ? "product" : "training step", "FLOP/s",
                  "predicted", "peak", s->axis == AXIS_PE ? "" : " power");
    for (size_t i = 0; i < s->count; i++)
        put_point(s, i, out);
    if (s->axis != AXIS_PE)
        put_growth(s, out);
    if (s->curve_count > PASS_COUNT)
        put_parts(s, out);
    if (s->has_crossing)
        (void)fprintf(out,
                      "\n  attention overtakes message passing at about %.0f %s%s\n",
                      s->crossing, axis_unit(s->axis),
                      s->crossing_beyond ? " (extrapolated)" : "");
    if (s->has_largest)
        (void)fprintf(out, "\n  up to %s %s fit in the %s that are free (predicted)\n",
                      human_count(text, s->largest), axis_unit(s->axis),
                      human_bytes((char[HUMAN_LEN]){ 0 }, s->available));
    return ferror(out) ? -EIO : 0;
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void put_exponent(struct json_writer *w, const char *key,
                         const struct exponent *e)
{
    json_key(w, key);
    json_object_begin(w);
    put_number(w, "value", e->value);
    put_number(w, "low", e->low);
    put_number(w, "high", e->high);
    json_object_end(w);
}

static void put_curve(struct json_writer *w, const struct scaling *s,
                      const struct curve *c)
{
    json_object_begin(w);
    put_text(w, "name", c->name);
    json_key(w, "ms");
    json_array_begin(w);
    for (size_t i = 0; i < s->count; i++)
        json_put_double(w, c->ms[i]);
    json_array_end(w);
    if (c->has_exponent)
        put_exponent(w, "exponent", &c->exponent);
    if (c->has_beyond) {
        put_exponent(w, "exponent_beyond_constant", &c->beyond.exponent);
        put_number(w, "constant_ms", c->beyond.constant);
    }
    json_key(w, "local_exponents");
    json_array_begin(w);
    for (size_t i = 1; i < s->count; i++) {
        if (c->local[i].points == 0)
            continue;
        json_object_begin(w);
        put_number(w, "from", (double)s->points[i - 1].at.size);
        put_number(w, "to", (double)s->points[i].at.size);
        put_number(w, "value", c->local[i].value);
        put_number(w, "low", c->local[i].low);
        put_number(w, "high", c->local[i].high);
        json_object_end(w);
    }
    json_array_end(w);
    if (c->has_mixture) {
        json_key(w, "mixture_ms");
        json_array_begin(w);
        for (int i = 0; i < MIXTURE; i++)
            json_put_double(w, c->mixture[i]);
        json_array_end(w);
    }
    json_object_end(w);
}

static void put_json_point(struct json_writer *w, const struct scale_point *p)
{
    static const char *const names[PASS_COUNT] = { "inference", "forward", "backward",
                                                   "training_step" };
    json_object_begin(w);
    put_text(w, "label", p->label);
    put_number(w, "value", (double)p->at.size);
    json_key(w, "measured");
    json_put_bool(w, p->measured);
    put_text(w, "note", p->note[0] ? p->note : NULL);
    put_number(w, "step_flops", p->step_flops);
    put_number(w, "forward_flops", p->forward_flops);
    put_mb(w, "predicted_mb", p->plan.total);
    if (p->measured) {
        put_mb(w, "peak_mb", p->m.peak_bytes);
        for (int i = 0; i < PASS_COUNT; i++) {
            const struct summary *s = &p->m.passes[i];
            json_key(w, names[i]);
            json_object_begin(w);
            put_number(w, "mean", s->mean);
            put_number(w, "std", s->std);
            put_number(w, "min", s->min);
            put_number(w, "max", s->max);
            put_number(w, "num_runs", (double)s->n);
            put_text(w, "unit", "ms");
            json_object_end(w);
        }
    }
    json_object_end(w);
}

void scaling_json(const struct scaling *s, struct json_writer *w)
{
    json_object_begin(w);
    put_text(w, "axis", axis_name(s->axis));
    json_key(w, "parameter_values");
    json_array_begin(w);
    for (size_t i = 0; i < s->count; i++)
        if (s->axis == AXIS_PE)
            json_put_string(w, s->points[i].label);
        else
            json_put_uint(w, s->points[i].at.size);
    json_array_end(w);
    json_key(w, "points");
    json_array_begin(w);
    for (size_t i = 0; i < s->count; i++)
        put_json_point(w, &s->points[i]);
    json_array_end(w);
    json_key(w, "curves");
    json_array_begin(w);
    for (size_t i = 0; i < s->curve_count; i++)
        put_curve(w, s, &s->curves[i]);
    json_array_end(w);
    put_number(w, "attention_overtakes_message_passing",
               s->has_crossing ? s->crossing : NAN);
    if (s->best_batch) {
        put_number(w, "best_batch_size", (double)s->points[s->best_batch - 1].at.size);
        put_number(w, "best_samples_per_s", s->best_throughput);
    }
    put_number(w, "largest_that_fits", s->has_largest ? (double)s->largest : NAN);
    put_mb(w, "available_mb", s->available);
    put_number(w, "took_s", s->took_s);
    json_object_end(w);
}

int scaling_document(const struct scaling *s, FILE *out)
{
    struct json_writer w;
    json_init_file(&w, out, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    put_text(&w, "schema", "sonde.scaling/1");
    head_json(&w);
    if (s->axis != AXIS_MATMUL) {
        json_key(&w, "model_info");
        json_object_begin(&w);
        put_text(&w, "name", family_name(s->points[0].config.family));
        sizes_json(&w, &s->points[0].config); /* at the first point */
        json_object_end(&w);
    }
    json_key(&w, "scaling");
    scaling_json(s, &w);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}
