/* experiment_of.c: a run as the store remembers it.
 *
 * Parameters are those the run was given (--param, sonde_param) and, where the command
 * line names more of them (--lr 1e-3, --batch-size=32), those: most programs say their
 * configuration there and nowhere else. What was given explicitly wins.
 */
#include "analyse/experiment_of.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/metric_series.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/redact.h"
#include "base/strmap.h"

enum { DOCUMENT_MOST = 4096 };

/* ---- Facts -------------------------------------------------------------------------- */

static int finish_facts(struct buf *json, struct arena *arena, struct experiment *e,
                        enum fact_kind kind)
{
    buf_putc(json, '}');
    if (json->error == 0 && json->len > 2) {
        e->facts[kind] = arena_strndup(arena, json->data, json->len);
        e->facts_len[kind] = json->len;
    }
    const int rc = json->error                        ? json->error
                   : json->len > 2 && !e->facts[kind] ? -ENOMEM
                                                      : 0;
    buf_release(json);
    return rc;
}

static void put_param(struct buf *json, struct strmap *seen, const char *key,
                      const char *text)
{
    struct buf shown = BUF_INIT;
    bool added = false;
    if (key[0] && strmap_enter(seen, key, strlen(key), &added) && added) {
        redact_env(&shown, key, text);
        const struct value v = value_from_text(shown.data, shown.len);
        fact_write(json, key, &v);
    }
    buf_release(&shown);
}

/* "--batch-size" → "batch_size"; false for what is no long option. */
static bool option_name(const char *word, char ret_name[64], const char **ret_value)
{
    if (word[0] != '-' || word[1] != '-' || !isalpha((unsigned char)word[2]))
        return false;
    const size_t len = strcspn(word + 2, "=");
    if (len >= 64)
        return false;
    for (size_t i = 0; i < len; i++)
        ret_name[i] = word[2 + i] == '-' ? '_' : word[2 + i];
    ret_name[len] = '\0';
    *ret_value = word[2 + len] == '=' ? word + 3 + len : NULL;
    return true;
}

/* An argument behind an option is its value unless it is an option; numbers may be
 * negative. */
static bool is_value(const char *word)
{
    return word[0] != '-' || isdigit((unsigned char)word[1]) || word[1] == '.';
}

static void put_arguments(struct buf *json, struct strmap *seen,
                          const struct run_meta *m)
{
    char name[64];
    const char *value;
    for (size_t i = 1; i < m->command_count; i++) {
        if (!option_name(m->command[i], name, &value))
            continue;
        if (!value && i + 1 < m->command_count && is_value(m->command[i + 1]))
            value = m->command[++i];
        put_param(json, seen, name, value ? value : "true");
    }
}

static int put_params(const struct run_pair *pairs, size_t count,
                      const struct run_meta *m, struct arena *arena,
                      struct experiment *e)
{
    struct buf json = BUF_INIT;
    struct strmap seen = STRMAP_INIT;
    buf_putc(&json, '{');
    for (size_t i = 0; i < count; i++)
        put_param(&json, &seen, pairs[i].key, pairs[i].value);
    put_arguments(&json, &seen, m);
    strmap_release(&seen);
    return finish_facts(&json, arena, e, FACT_PARAM);
}

static int put_tags(const struct run_pair *pairs, size_t count, struct arena *arena,
                    struct experiment *e)
{
    struct buf json = BUF_INIT;
    buf_putc(&json, '{');
    for (size_t i = 0; i < count; i++) {
        struct buf shown = BUF_INIT;
        redact_env(&shown, pairs[i].key, pairs[i].value);
        fact_write(&json, pairs[i].key,
                   &(struct value){
                       .type = VALUE_TEXT, .text = shown.data, .len = shown.len });
        buf_release(&shown);
    }
    return finish_facts(&json, arena, e, FACT_TAG);
}

static int put_metrics(const struct op_value *list, struct arena *arena,
                       struct experiment *e)
{
    struct buf json = BUF_INIT;
    buf_putc(&json, '{');
    for (const struct op_value *v = list; v; v = v->next)
        fact_write(&json, v->name,
                   &(struct value){ .type = VALUE_FLOAT, .number = v->last });
    return finish_facts(&json, arena, e, FACT_METRIC);
}

static int put_series(const struct report *r, struct arena *arena, struct experiment *e)
{
    struct metric_list *list = calloc(1, sizeof *list);
    struct buf json = BUF_INIT;
    int rc = list ? metric_list_read(r, list) : -ENOMEM;
    if (rc == 0)
        rc = metric_list_write(list, &json);
    if (rc == 0 && json.len > 2) { /* more than {} */
        e->series = arena_strndup(arena, json.data, json.len);
        e->series_len = json.len;
        rc = e->series ? 0 : -ENOMEM;
    }
    if (list)
        metric_list_release(list);
    free(list);
    buf_release(&json);
    return rc;
}

/* ---- Numbers ------------------------------------------------------------------------ */

/* Over the cards: the highest peak and the mean of averages; NaN without. */
static void over_cards(const struct report *r, const char *metric, double *ret_peak,
                       double *ret_mean)
{
    double sum = 0;
    size_t cards = 0;
    for (size_t i = 0; i < r->monitors.series_count; i++) {
        const struct report_series *s = &r->monitors.series[i];
        if (strcmp(s->metric, metric) != 0 || strncmp(s->subject, "gpu", 3) != 0)
            continue;
        *ret_peak = fmax(*ret_peak, s->max); /* fmax prefers a number to NaN */
        sum += s->avg;
        cards++;
    }
    if (cards)
        *ret_mean = sum / (double)cards;
}

static double phase_s(const struct report *r, int phase)
{
    return r->phases.has_main && r->phases.count[phase]
               ? r->phases.total_ns[phase] / 1e9
               : NAN;
}

static double training_s(const struct report *r)
{
    static const int parts[] = { SONDE_FORWARD, SONDE_BACKWARD, SONDE_GRADIENT,
                                 SONDE_OPTIMIZER };
    double sum = NAN;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const double s = phase_s(r, parts[i]);
        if (isfinite(s))
            sum = isnan(sum) ? s : sum + s;
    }
    return sum;
}

static void put_core(const struct report *r, struct experiment *e)
{
    double *core = e->core;
    const struct report_series *rss = monitors_find(&r->monitors, "rss", "");
    core[CORE_DURATION_S] = report_duration_s(r);
    core[CORE_MEMORY_PEAK_MB] = report_peak_rss_mb(r);
    core[CORE_MEMORY_AVG_MB] = rss ? rss->avg : NAN;
    core[CORE_CPU_PERCENT_AVG] = report_cpu_percent(r);
    over_cards(r, "gpu_memory", &core[CORE_GPU_MEMORY_PEAK_MB],
               &core[CORE_GPU_MEMORY_AVG_MB]);
    over_cards(r, "gpu", &core[CORE_GPU_PERCENT_PEAK], &core[CORE_GPU_PERCENT_AVG]);
    core[CORE_ENERGY_J] = r->energy.joules;
    if (r->steps.durations.count)
        core[CORE_STEP_MS] = r->steps.total_ns / (double)r->steps.durations.count / 1e6;
    core[CORE_SAMPLES_PER_S] = step_samples_per_s(&r->steps);
    core[CORE_DATA_LOADING_S] = phase_s(r, SONDE_DATA_LOADING);
    core[CORE_MODEL_CREATION_S] = phase_s(r, SONDE_MODEL_CREATION);
    core[CORE_TRAINING_S] = training_s(r);
}

/* ---- Identity ----------------------------------------------------------------------- */

static const char *or_null(const char *text)
{
    return text && text[0] ? text : NULL;
}

static char *joined_command(const struct run_meta *m, struct arena *arena)
{
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < m->command_count && line.len < DOCUMENT_MOST; i++)
        buf_printf(&line, "%s%s", i ? " " : "", m->command[i]);
    char *copy = line.error || !line.len ? NULL
                                         : arena_strndup(arena, line.data, line.len);
    buf_release(&line);
    return copy;
}

static char *absolute(const char *dir, struct arena *arena)
{
    char *real = realpath(dir, NULL);
    char *copy = arena_strdup(arena, real ? real : dir);
    free(real);
    return copy;
}

static void put_identity(const char *id, const char *dir, const struct run_meta *m,
                         struct arena *arena, struct experiment *e)
{
    e->id = id;
    e->kind = m->parent_run[0] ? "trial" : "run";
    e->name = or_null(m->name);
    e->parent = or_null(m->parent_run);
    e->command = joined_command(m, arena);
    e->directory = absolute(dir, arena);
    e->started_ns = m->started_ns;
    e->exit_code = m->exit.code;
    e->cause = or_null(m->exit.cause);
}

int experiment_of_meta(const char *id, const char *dir, const struct run_meta *meta,
                       struct arena *arena, struct experiment *ret_experiment)
{
    struct experiment e;
    experiment_init(&e);
    put_identity(id, dir, meta, arena, &e);
    e.partial = true;
    if (meta->started_ns && meta->ended_ns)
        e.core[CORE_DURATION_S] = (double)(meta->ended_ns - meta->started_ns) / 1e9;
    e.core[CORE_MEMORY_PEAK_MB] = meta->max_rss_mb;
    int rc = put_params(meta->params, meta->param_count, meta, arena, &e);
    if (rc == 0)
        rc = put_tags(meta->tags, meta->tag_count, arena, &e);
    if (rc == 0)
        *ret_experiment = e;
    return rc;
}

int experiment_of(const struct report *report, struct arena *arena,
                  struct experiment *ret_experiment)
{
    struct experiment e;
    const struct run *run = report->run;
    experiment_init(&e);
    put_identity(run->id, run->dir, &run->meta, arena, &e);
    e.started_ns = report->start_ns ? report->start_ns : run->meta.started_ns;
    e.document = or_null(report->verdict);
    put_core(report, &e);
    int rc = put_params(report->params, report->param_count, &run->meta, arena, &e);
    if (rc == 0)
        rc = put_tags(report->tags, report->tag_count, arena, &e);
    if (rc == 0)
        rc = put_metrics(report->metrics, arena, &e);
    if (rc == 0 && (report->metrics || report->counters)) /* else no trace has any */
        rc = put_series(report, arena, &e);
    if (rc < 0)
        return rc;
    experiment_derive(&e);
    *ret_experiment = e;
    return 0;
}
