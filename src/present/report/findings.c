/* findings.c: what is wrong and what to do about it, as text and as JSON. */
#include <math.h>
#include <string.h>

#include "base/human.h"
#include "present/report/jsonparts.h"
#include "present/report/sections.h"

enum { LABEL = 10, RANK = 2, SEVERITY = 10, ID = 22 };

/* ---- Text --------------------------------------------------------------------------- */

static void put_clean(struct page *page, const char *label, enum page_color color,
                      const char *text)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, 0);
    page_paragraph(page, label, color, clean.data);
    buf_release(&clean);
}

static enum page_color severity_color(enum severity severity)
{
    return severity >= SEVERITY_HIGH ? RED : severity == SEVERITY_MEDIUM ? BOLD : DIM;
}

/* "1 critical  data_loading_bound    74 % of every step …", further lines under it. */
static void put_finding(struct page *page, const struct finding *f, size_t rank)
{
    struct buf text = BUF_INIT;
    struct buf clean = BUF_INIT;
    buf_puts(&text, f->description);
    for (size_t i = 0; i < f->because_count; i++)
        buf_printf(&text, "%s%s%s", i ? ", " : " Because of ", f->because[i],
                   i + 1 == f->because_count ? "." : "");
    clean_text(&clean, text.data, 0);
    page_printf(page, "%zu ", rank);
    page_puts(page, severity_color(f->severity), severity_name(f->severity));
    page_fill(page, SEVERITY - strlen(severity_name(f->severity)));
    page_left(page, f->id, ID);
    const size_t indent = LABEL + RANK + SEVERITY + ID;
    page_wrapped(page, indent, clean.data);
    buf_release(&text);
    buf_release(&clean);
}

static void put_advice(struct page *page, const struct finding *f)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, f->recommendation, 0);
    const size_t indent = LABEL + RANK + SEVERITY;
    page_fill(page, indent);
    page_puts(page, CYAN, "→ ");
    page_wrapped(page, indent + 2, clean.data);
    buf_release(&clean);
}

static const char *const gain_words[] = {
    [GAIN_OF_STEP] = "step time",
    [GAIN_OF_LOOP] = "the time from the first step to the last",
    [GAIN_OF_RUN] = "the run",
};

static void put_evidence(struct page *page, const struct finding *f)
{
    for (size_t i = 0; i < f->evidence_count; i++) {
        const struct finding_evidence *e = &f->evidence[i];
        page_fill(page, LABEL + RANK + SEVERITY + 2);
        char value[HUMAN_LEN];
        page_left(page, e->metric, 32);
        if (strcmp(e->unit, "share") == 0)
            page_printf(page, "%6.1f %%", 100 * e->value);
        else
            page_printf(page, "%8s %s", human_number(value, e->value, 4),
                        strcmp(e->unit, "1") == 0 ? "" : e->unit);
        page_printf(page, "   %s\n", e->source);
    }
    if (f->gain.mid >= 0) {
        page_fill(page, LABEL + RANK + SEVERITY + 2);
        page_left(page, "predicted gain", 32);
        page_printf(page, "%6.1f %%   (%.0f – %.0f %% of %s)\n", 100 * f->gain.mid,
                    100 * f->gain.low, 100 * f->gain.high, gain_words[f->gain_of]);
    }
}

static void put_quiet(struct page *page, const struct diagnosis *d, bool full)
{
    struct flow flow;
    flow_begin(&flow, page, d->finding_count ? "" : "FINDINGS");
    if (!d->finding_count)
        flow_put(&flow, "none");
    flow_put(&flow, "%zu rules quiet", d->quiet);
    if (d->unchecked_count)
        flow_put(&flow, "%zu not checkable here%s", d->unchecked_count,
                 full ? "" : " (sonde report --full names them)");
    if (d->off)
        flow_put(&flow, "%zu switched off", d->off);
    if (d->reference)
        flow_put(&flow, "judged by the set reference");
    flow_end(&flow);
    if (!full || !d->unchecked_count)
        return;
    flow_begin(&flow, page, "");
    for (size_t i = 0; i < d->unchecked_count; i++)
        flow_put(&flow, "%s (no %s)", d->unchecked[i].id, d->unchecked[i].missing);
    flow_end(&flow);
}

/* Their names alone. */
static void put_more(struct page *page, const struct diagnosis *d, size_t shown)
{
    struct flow flow;
    flow_begin(&flow, page, shown ? "" : "FINDINGS");
    for (size_t i = shown; i < d->finding_count; i++)
        flow_put(&flow, "%s %s", severity_name(d->findings[i].severity),
                 d->findings[i].id);
    flow_end(&flow);
}

void section_next(struct page *page, const struct report *r)
{
    if (r->next[0])
        put_clean(page, "NEXT", BOLD, r->next);
    if (r->since[0])
        put_clean(page, "SINCE", BOLD, r->since);
}

void section_findings(struct page *page, const struct report *r,
                      const struct limits *limits, bool full)
{
    const struct diagnosis *d = &r->diagnosis;
    if (!d->made)
        return;
    for (size_t i = 0; i < d->finding_count && i < limits->findings; i++) {
        if (i == 0)
            page_label(page, "FINDINGS");
        else
            page_fill(page, LABEL);
        put_finding(page, &d->findings[i], i + 1);
        /* The first one's advice is NEXT. */
        if (i > 0 || full)
            put_advice(page, &d->findings[i]);
        if (full)
            put_evidence(page, &d->findings[i]);
    }
    if (d->finding_count > limits->findings)
        put_more(page, d, limits->findings);
    put_quiet(page, d, full);
    page_puts(page, PLAIN, "\n");
}

/* ---- JSON ---------------------------------------------------------------------------- */

static void put_evidence_json(struct json_writer *w, const struct finding *f)
{
    json_key(w, "evidence");
    json_array_begin(w);
    for (size_t i = 0; i < f->evidence_count; i++) {
        const struct finding_evidence *e = &f->evidence[i];
        json_object_begin(w);
        field_text(w, "metric", e->metric);
        field_number(w, "value", e->value, 6);
        field_text(w, "unit", e->unit);
        field_text(w, "source", e->source);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_gain(struct json_writer *w, const struct finding *f)
{
    const struct gain *g = &f->gain;
    if (isnan(g->mid)) {
        field_null(w, "predicted_gain");
        return;
    }
    json_key(w, "predicted_gain");
    json_object_begin(w);
    field_number(w, "low", g->low, 4);
    field_number(w, "mid", g->mid, 4);
    field_number(w, "high", g->high, 4);
    field_text(w, "of", f->gain_of == GAIN_OF_STEP ? "step" : "run");
    json_object_end(w);
}

static void put_texts(struct json_writer *w, const char *key, const char *const *texts,
                      size_t count)
{
    json_key(w, key);
    json_array_begin(w);
    for (size_t i = 0; i < count; i++)
        json_put_string(w, texts[i]);
    json_array_end(w);
}

static void put_bottleneck(struct json_writer *w, const struct report *r,
                           const struct finding *f)
{
    json_object_begin(w);
    field_text(w, "id", f->id);
    field_text(w, "severity", severity_name(f->severity));
    field_number(w, "score", f->score, 4);
    field_number(w, "stake", f->stake, 4);
    field_text(w, "description", f->description);
    put_texts(w, "because", f->because, f->because_count);
    put_evidence_json(w, f);
    field_text(w, "recommendation", f->recommendation);
    put_gain(w, f);
    field_trial(w, "trial", report_trial_of(r, f));
    json_key(w, "symptom");
    json_put_bool(w, f->symptom);
    field_text(w, "bound_by", f->bound_by);
    field_text(w, "place", f->place);
    field_number(w, "past_error", f->past_error, 4);
    field_uint(w, "past_tries", f->tries);
    json_object_end(w);
}

static void put_rules(struct json_writer *w, const struct diagnosis *d)
{
    json_key(w, "rules");
    json_object_begin(w);
    field_text(w, "set", d->reference ? "reference" : "default");
    field_uint(w, "asked", d->rules - d->off - d->unchecked_count);
    field_uint(w, "quiet", d->quiet);
    field_uint(w, "off", d->off);
    json_key(w, "unchecked");
    json_array_begin(w);
    for (size_t i = 0; i < d->unchecked_count; i++) {
        json_object_begin(w);
        field_text(w, "id", d->unchecked[i].id);
        field_text(w, "missing", d->unchecked[i].missing);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

void fields_of_findings(struct json_writer *w, const struct report *r)
{
    const struct diagnosis *d = &r->diagnosis;
    json_key(w, "bottlenecks");
    json_array_begin(w);
    for (size_t i = 0; i < d->finding_count; i++)
        put_bottleneck(w, r, &d->findings[i]);
    json_array_end(w);
    json_key(w, "recommendations");
    json_array_begin(w);
    for (size_t i = 0; i < d->finding_count; i++)
        if (d->findings[i].recommendation[0])
            json_put_string(w, d->findings[i].recommendation);
    json_array_end(w);
    put_rules(w, d);
}

/* ---- The account ------------------------------------------------------------------------ */

static void put_account_phases(struct json_writer *w, const struct phase_split *s)
{
    json_key(w, "phases");
    json_array_begin(w);
    for (int p = 1; p < SONDE_PHASE_COUNT; p++) {
        if (!(s->total_ns[p] > 0))
            continue;
        json_object_begin(w);
        field_text(w, "phase", sonde_phase_name(p));
        field_seconds(w, "total_s", s->total_ns[p]);
        field_number(w, "share", s->share[p], 6);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_changes(struct json_writer *w, const struct report *r)
{
    const struct step_account *a = &r->account;
    json_key(w, "changes");
    json_array_begin(w);
    for (size_t i = 0; i < a->change_count; i++) {
        const struct change *c = &a->changes[i];
        json_object_begin(w);
        field_uint(w, "step", c->at * r->series.per_point);
        field_ms(w, "before_ms", c->before);
        field_ms(w, "after_ms", c->after);
        json_object_end(w);
    }
    json_array_end(w);
}

void fields_of_account(struct json_writer *w, const struct report *r)
{
    const struct step_account *a = &r->account;
    if (!a->known) {
        field_null(w, "account");
        return;
    }
    json_key(w, "account");
    json_object_begin(w);
    field_uint(w, "steps", a->steps);
    field_uint(w, "warmup_steps", a->warmup);
    field_uint(w, "steady_steps", a->steady);
    field_uint(w, "epoch_changes", a->epochs);
    json_key(w, "partial");
    json_put_bool(w, a->partial);
    field_seconds(w, "wall_s", a->wall_ns);
    field_seconds(w, "startup_s", a->startup_ns);
    field_seconds(w, "warmup_s", a->warmup_ns);
    field_seconds(w, "steady_s", a->steady_ns);
    field_seconds(w, "checkpoint_s", a->checkpoint_ns);
    field_seconds(w, "evaluation_s", a->evaluation_ns);
    field_seconds(w, "epoch_change_s", a->epoch_ns);
    field_seconds(w, "between_steps_s", a->between_ns);
    field_seconds(w, "end_s", a->end_ns);
    field_ms(w, "p50_ms", a->median_ns);
    field_ms(w, "mean_ms", a->mean_ns);
    field_ms(w, "p95_ms", a->p95_ns);
    field_ms(w, "p99_ms", a->p99_ns);
    field_number(w, "drift_share", a->drift, 6);
    field_number(w, "drift_low", a->drift_low, 6);
    field_number(w, "drift_high", a->drift_high, 6);
    put_changes(w, r);
    put_account_phases(w, &a->phases);
    json_object_end(w);
}

/* "start 8.7 s · warm-up 0.4 s · steps 104.8 s · checkpoints 2.9 s · epoch changes 1.6 s" */
void section_account(struct page *page, const struct report *r)
{
    const struct step_account *a = &r->account;
    const struct {
        const char *name;
        double ns;
    } parts[] = {
        { "start", a->startup_ns },         { "warm-up", a->warmup_ns },
        { "steps", a->steady_ns },          { "checkpoints", a->checkpoint_ns },
        { "evaluation", a->evaluation_ns }, { "epoch changes", a->epoch_ns },
        { "between steps", a->between_ns }, { "end", a->end_ns },
    };
    char text[HUMAN_LEN];
    struct flow flow;
    if (!a->known)
        return;
    flow_begin(&flow, page, "WHOLE RUN");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].ns >= 0.001 * a->wall_ns)
            flow_put(&flow, "%s %s", parts[i].name, human_duration(text, parts[i].ns));
    flow_end(&flow);
    page_puts(page, PLAIN, "\n");
}

/* Certain, and worth a line. */
static bool has_drift(const struct step_account *a)
{
    const bool certain = a->drift_low > 0 || a->drift_high < 0;
    return a->drift_known && certain && fabs(a->drift) >= 0.05;
}

/* "at the end 38 % slower than at the beginning (14–67 %)" */
static void put_drift(struct flow *flow, const struct step_account *a)
{
    const bool slower = a->drift > 0;
    const double low = fabs(slower ? a->drift_low : a->drift_high);
    const double high = fabs(slower ? a->drift_high : a->drift_low);
    flow_put(flow, "at the end %.0f %% of a step %s than at the beginning (%.0f–%.0f)",
             100 * fabs(a->drift), slower ? "slower" : "faster", 100 * low, 100 * high);
}

void section_trend(struct page *page, const struct report *r)
{
    const struct step_account *a = &r->account;
    char before[HUMAN_LEN], after[HUMAN_LEN];
    struct flow flow;
    if (!has_drift(a) && a->change_count == 0)
        return;
    flow_begin(&flow, page, "DRIFT");
    if (has_drift(a))
        put_drift(&flow, a);
    for (size_t i = 0; i < a->change_count; i++)
        flow_put(&flow, "from step %llu on %s instead of %s",
                 (unsigned long long)(a->changes[i].at * r->series.per_point),
                 human_duration(after, a->changes[i].after),
                 human_duration(before, a->changes[i].before));
    flow_end(&flow);
    page_puts(page, PLAIN, "\n");
}

/* ---- What if ----------------------------------------------------------------------------- */

static void put_change(struct page *page, const char *of, double now_ns, double then_ns,
                       double low_ns, double high_ns)
{
    char now[HUMAN_LEN], then[HUMAN_LEN], low[HUMAN_LEN], high[HUMAN_LEN];
    const double change = 1 - then_ns / now_ns;
    page_printf(page, "%s %s (%s – %s) instead of %s, %.0f %% %s",
                human_duration(then, then_ns), of, human_duration(low, low_ns),
                human_duration(high, high_ns), human_duration(now, now_ns),
                100 * fabs(change), change >= 0 ? "less" : "more");
}

void section_forecasts(struct page *page, const struct report *r)
{
    struct buf clean = BUF_INIT;
    for (const struct report_forecast *f = r->forecasts; f; f = f->next) {
        buf_clear(&clean);
        clean_text(&clean, f->text, 60);
        page_label(page, f == r->forecasts ? "WHAT IF" : "");
        page_printf(page, "%s: ", clean.data);
        put_change(page, "per step", f->now_ns, f->forecast.step_ns, f->forecast.low_ns,
                   f->forecast.high_ns);
        if (habits_asked(&f->settings)) {
            page_puts(page, PLAIN, "; ");
            put_change(page, "from the first step to the last", f->loop_now_ns,
                       f->loop.loop_ns, f->loop.loop_low_ns, f->loop.loop_high_ns);
        } else {
            page_printf(page, "; limited by %s",
                        forecast_limit_name(f->forecast.limit));
        }
        page_puts(page, PLAIN, "\n");
    }
    if (r->forecasts)
        page_puts(page, PLAIN, "\n");
    buf_release(&clean);
}

/* Not asked for: as often, or as large, as it is. */
static void put_times(struct json_writer *w, const char *key, double times)
{
    field_number(w, key, times > 0 ? times : 1, 6);
}

static void put_loader_settings(struct json_writer *w, const struct report_forecast *f)
{
    if (f->loader_known) {
        field_uint(w, "workers", (uint64_t)f->settings.workers);
        field_uint(w, "prefetch", (uint64_t)f->settings.prefetch);
        field_number(w, "transform", f->settings.transform_speed, 6);
        put_times(w, "collate", f->settings.collate_speed);
    } else {
        field_null(w, "workers");
        field_null(w, "prefetch");
        field_null(w, "transform");
        field_null(w, "collate");
    }
}

static void put_forecast(struct json_writer *w, const struct report *r,
                         const struct report_forecast *f)
{
    json_object_begin(w);
    field_text(w, "asked", f->text);
    put_loader_settings(w, f);
    put_times(w, "evaluation", f->settings.evaluation);
    put_times(w, "checkpoint", f->settings.checkpoint);
    put_times(w, "logging", f->settings.logging);
    put_times(w, "gc", f->settings.gc);
    put_times(w, "exchange", f->settings.exchange);
    put_times(w, "optimizer", f->settings.optimizer);
    put_times(w, "batch", f->settings.batch);
    json_key(w, "data_free");
    json_put_bool(w, f->settings.data_free);
    if (f->settings.threads > 0)
        field_uint(w, "threads", (uint64_t)f->settings.threads);
    else
        field_null(w, "threads");
    field_ms(w, "now_ms", f->now_ns);
    field_ms(w, "step_ms", f->forecast.step_ns);
    field_ms(w, "low_ms", f->forecast.low_ns);
    field_ms(w, "high_ms", f->forecast.high_ns);
    field_number(w, "gain", 1 - f->forecast.step_ns / f->now_ns, 6);
    field_ms(w, "mean_step_now_ms", f->step_mean_ns);
    field_seconds(w, "loop_now_s", f->loop_now_ns);
    field_seconds(w, "loop_s", f->loop.loop_ns);
    field_seconds(w, "loop_low_s", f->loop.loop_low_ns);
    field_seconds(w, "loop_high_s", f->loop.loop_high_ns);
    field_text(w, "limited_by", forecast_limit_name(f->forecast.limit));
    field_trial(w, "trial", report_trial_asked(r, f->text));
    json_object_end(w);
}

void fields_of_forecasts(struct json_writer *w, const struct report *r)
{
    json_key(w, "what_if");
    json_array_begin(w);
    for (const struct report_forecast *f = r->forecasts; f; f = f->next)
        put_forecast(w, r, f);
    json_array_end(w);
}
