/* sampler.c: see sampler.h. series.c keeps values, procrows.c processes. */
#include "capture/monitor/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/moment.h"
#include "capture/monitor/procrows.h"
#include "capture/monitor/series.h"

enum { MONITORS_MAX = 32 };
static const uint64_t EARLY_NS = 10000000;
enum { YOUNG_ROUNDS = 8 };

struct sampler {
    struct monitor_sink sink;  /* what monitors get; first: they give it back to us */
    struct monitor_sink inner; /* where values end up */
    struct monitor_sink
        *out; /* from the one to the other: who was attached, or inner */
    const struct sampler_hooks *hooks; /* never NULL */
    bool is_last; /* dear ones are read once more, however recent */
    struct tables tables;
    struct series_store series;
    struct procrows procrows;
    struct monitor_info_row *info; /* in the file, or `memory` */
    struct monitor_info_row memory;
    struct monitor_roots roots;
    uint64_t interval_ns;
    uint64_t joined_ticks; /* as of struct monitor_round */
    struct {
        const struct monitor_ops *ops;
        void *state;
        uint64_t last_ns; /* 0: not yet */
    } monitor[MONITORS_MAX];
    size_t monitor_count;
    /* Of the round that goes on: */
    struct monitor_round round;
    size_t next; /* monitor to sample */
    uint64_t at_ns;
    double weight_s;
};

/* ---- The sink -------------------------------------------------------------------------- */

static struct sampler *of_inner(struct monitor_sink *inner)
{
    return (struct sampler *)(void *)((char *)inner - offsetof(struct sampler, inner));
}

static void keep_value(struct monitor_sink *inner, const char *metric,
                       const char *subject, const char *unit, double value)
{
    struct sampler *s = of_inner(inner);
    series_set(&s->series, metric, subject, unit, value, s->at_ns, s->weight_s);
}

static void keep_gap(struct monitor_sink *inner, const char *metric, const char *why)
{
    struct sampler *s = of_inner(inner);
    struct series_store *store = &s->series;
    const struct tables *t = &s->tables;
    uint32_t index;
    for (uint32_t i = 0; t->base && i < tables_head(t)->table[MONITOR_TABLE_GAPS].count;
         i++) {
        const struct monitor_gap_row *row = tables_row(t, MONITOR_TABLE_GAPS, i);
        if (row && strcmp(tables_text_at(t, row->metric), metric) == 0)
            return;
    }
    struct monitor_gap_row *row = tables_append(&s->tables, MONITOR_TABLE_GAPS, &index);
    if (!row)
        return;
    const struct series_text *text = series_text(store, metric);
    row->metric = text ? text->place : 0;
    text = series_text(store, why);
    row->why = text ? text->place : 0;
    __atomic_store_n(&row->key, index + 1ull, __ATOMIC_RELEASE);
}

static void on_set(struct monitor_sink *sink, const char *metric, const char *subject,
                   const char *unit, double value)
{
    struct sampler *s = (struct sampler *)sink;
    s->out->set(s->out, metric, subject, unit, value);
}

static void on_unavailable(struct monitor_sink *sink, const char *metric,
                           const char *why)
{
    struct sampler *s = (struct sampler *)sink;
    s->out->unavailable(s->out, metric, why);
}

static void on_set_process(struct monitor_sink *sink, size_t process,
                           const char *metric, const char *unit, double value)
{
    struct sampler *s = (struct sampler *)sink;
    const char *subject = procrows_subject(&s->procrows, process);
    if (subject)
        on_set(sink, metric, subject, unit, value);
}

static void on_total(struct monitor_sink *sink, size_t process, enum monitor_total what,
                     double value)
{
    struct sampler *s = (struct sampler *)sink;
    procrows_total(&s->procrows, process, what, value);
}

/* ---- Making ---------------------------------------------------------------------------- */

static void open_monitors(struct sampler *s, const struct monitor_ops *const *list)
{
    for (; *list && s->monitor_count < MONITORS_MAX; list++) {
        const char *why = "";
        void *state = NULL;
        const int rc = (*list)->open(&s->roots, &state, &why);
        if (rc < 0)
            on_unavailable(&s->sink, (*list)->name, why[0] ? why : error_text(rc));
        else
            s->monitor[s->monitor_count++] = (__typeof__(s->monitor[0])){
                .ops = *list, .state = state
            };
    }
}

/* Points are as fine as the early rounds; doubling their width leads to the interval. */
static uint64_t base_of(uint64_t interval_ns)
{
    while (interval_ns / 2 >= EARLY_NS)
        interval_ns = (interval_ns + 1) / 2;
    return interval_ns;
}

static void make_info(struct sampler *s, const struct sampler_options *o)
{
    uint32_t index;
    struct monitor_info_row *row = tables_append(&s->tables, MONITOR_TABLE_INFO,
                                                 &index);
    s->info = row ? row : &s->memory;
    s->info->start_ns = moment_ns(CLOCK_MONOTONIC);
    s->info->start_real_ns = (int64_t)moment_ns(CLOCK_REALTIME);
    s->info->interval_ns = s->interval_ns;
    s->info->base_ns = base_of(s->interval_ns);
    s->info->pid = o->pid;
    s->info->inside = o->inside;
    __atomic_store_n(&s->info->key, 1, __ATOMIC_RELEASE);
}

static int make_file(struct sampler *s, const struct sampler_options *o)
{
    static const struct tables_spec specs[] = {
        { "info", sizeof(struct monitor_info_row), 1 },
        { "series", sizeof(struct monitor_series_row), SAMPLER_SERIES_MAX },
        { "points", sizeof(struct monitor_points_row), SAMPLER_SERIES_MAX },
        { "processes", sizeof(struct monitor_process_row), SAMPLER_PROCESSES_MAX },
        { "gaps", sizeof(struct monitor_gap_row), 256 },
    };
    s->tables.fd = -1;
    return o->dir ? tables_create(o->dir, MONITOR_KIND, o->control, specs,
                                  sizeof specs / sizeof *specs, &s->tables)
                  : 0;
}

static uint64_t interval_of(uint64_t wanted)
{
    if (wanted == 0)
        return SAMPLER_INTERVAL_DEFAULT_NS;
    if (wanted < SAMPLER_INTERVAL_MIN_NS)
        return SAMPLER_INTERVAL_MIN_NS;
    return wanted > SAMPLER_INTERVAL_MAX_NS ? SAMPLER_INTERVAL_MAX_NS : wanted;
}

/* Now, as /proc/PID/stat counts. */
static uint64_t boot_ticks(void)
{
    const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    return moment_ns(CLOCK_BOOTTIME) / tick_ns;
}

int sampler_new(const struct sampler_options *o, struct sampler **ret_sampler)
{
    struct sampler *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->sink = (struct monitor_sink){ on_set, on_unavailable, on_set_process, on_total };
    s->inner = (struct monitor_sink){ .set = keep_value, .unavailable = keep_gap };
    static const struct sampler_hooks none = { 0 };
    s->hooks = o->hooks ? o->hooks : &none;
    s->out = s->hooks->attach ? s->hooks->attach(s->hooks->arg, &s->inner) : &s->inner;
    s->roots = o->roots;
    if (!s->roots.run_dir)
        s->roots.run_dir = o->dir;
    s->interval_ns = interval_of(o->interval_ns);
    s->joined_ticks = o->joined ? boot_ticks() : 0;
    const int rc = make_file(s, o);
    if (rc < 0) {
        free(s);
        return rc;
    }
    make_info(s, o);
    series_init(&s->series, &s->tables, s->info->base_ns);
    procrows_init(&s->procrows, &s->tables, &s->roots, o->keep_secrets);
    open_monitors(s, o->list ? o->list : monitor_list);
    *ret_sampler = s;
    return 0;
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->monitor_count; i++)
        if (s->monitor[i].ops->close)
            s->monitor[i].ops->close(s->monitor[i].state);
    procrows_release(&s->procrows);
    series_release(&s->series);
    tables_close(&s->tables);
    free(s);
}

/* ---- Rounds ---------------------------------------------------------------------------- */

static void sample_one(struct sampler *s, size_t i, struct monitor_round *round)
{
    const struct monitor_ops *ops = s->monitor[i].ops;
    const uint64_t last = s->monitor[i].last_ns;
    /* A hundredth early is in time: rounds are never exactly punctual. */
    if (last && ops->slowest_ns && !s->is_last &&
        round->now_ns - last < ops->slowest_ns - ops->slowest_ns / 100)
        return;
    round->elapsed_ns = last ? round->now_ns - last : 0;
    s->weight_s = (double)round->elapsed_ns / 1e9;
    ops->sample(s->monitor[i].state, round, &s->sink);
    s->monitor[i].last_ns = round->now_ns;
}

static uint64_t after_start(const struct sampler *s, uint64_t now_ns)
{
    return now_ns > s->info->start_ns ? now_ns - s->info->start_ns : 1;
}

void sampler_last_round(struct sampler *s)
{
    s->is_last = true;
}

void sampler_begin(struct sampler *s, uint64_t now_ns,
                   const struct monitor_process *processes, size_t count)
{
    struct monitor_info_row *info = s->info;
    const uint64_t began = moment_ns(CLOCK_MONOTONIC);
    s->round = (struct monitor_round){ .interval_ns = s->interval_ns,
                                       .processes = processes,
                                       .process_count = count,
                                       .joined_ticks = s->joined_ticks };
    s->at_ns = after_start(s, now_ns);
    s->next = 0;
    s->round.now_ns = s->at_ns + info->start_ns;
    s->round.elapsed_ns = info->rounds ? s->at_ns - info->last_ns : 0;
    procrows_follow(&s->procrows, &s->round, s->at_ns);
    if (s->hooks->round_begins)
        s->hooks->round_begins(s->hooks->arg, &s->round);
    info->rounds++;
    info->last_ns = s->at_ns;
    info->cost_ns += moment_ns(CLOCK_MONOTONIC) - began;
}

bool sampler_step(struct sampler *s, uint64_t now_ns)
{
    struct monitor_info_row *info = s->info;
    if (s->next >= s->monitor_count)
        return false;
    const uint64_t began = moment_ns(CLOCK_MONOTONIC);
    s->at_ns = after_start(s, now_ns);
    s->round.now_ns = s->at_ns + info->start_ns;
    sample_one(s, s->next++, &s->round);
    info->series_lost = s->series.lost;
    info->processes_lost = s->procrows.lost;
    info->cost_ns += moment_ns(CLOCK_MONOTONIC) - began;
    if (s->next < s->monitor_count)
        return true;
    if (s->hooks->round_ended)
        s->hooks->round_ended(s->hooks->arg);
    return false;
}

void sampler_round(struct sampler *s, uint64_t now_ns,
                   const struct monitor_process *processes, size_t count)
{
    sampler_begin(s, now_ns, processes, count);
    while (sampler_step(s, now_ns))
        ;
}

uint64_t sampler_next_ns(const struct sampler *s)
{
    const struct monitor_info_row *info = s->info;
    if (info->rounds == 0)
        return info->start_ns;
    const uint64_t passed = info->last_ns;
    const uint64_t early = 2 * passed + EARLY_NS; /* 10, 30, 70 … ms */
    if (early < s->interval_ns)
        return info->start_ns + early;
    /* An eighth of its age: whether memory grows takes several looks at a short run too. */
    if (passed / YOUNG_ROUNDS < s->interval_ns)
        return info->start_ns + passed +
               (passed < s->interval_ns ? s->interval_ns : passed) / YOUNG_ROUNDS;
    return info->start_ns + (passed / s->interval_ns + 1) * s->interval_ns;
}

void sampler_ended(struct sampler *s, const struct monitor_process *process, int status)
{
    procrows_ended(&s->procrows, process, status);
}

/* ---- Questions --------------------------------------------------------------------------- */

bool sampler_stats(const struct sampler *s, const char *metric, const char *subject,
                   struct monitor_stats *ret_stats)
{
    const struct series *one = series_find(&s->series, metric, subject ? subject : "");
    if (!one)
        return false;
    *ret_stats = one->stats;
    return true;
}

bool sampler_current(const struct sampler *s, const char *metric, const char *subject,
                     double *ret_value)
{
    struct monitor_stats stats;
    if (!sampler_stats(s, metric, subject, &stats))
        return false;
    *ret_value = stats.last;
    return true;
}

bool sampler_series(const struct sampler *s, size_t index,
                    struct sampler_series *ret_series)
{
    if (index >= s->series.count)
        return false;
    const struct series *one = &s->series.list[index];
    *ret_series = (struct sampler_series){ one->metric, one->subject, one->unit,
                                           one->stats };
    return true;
}
