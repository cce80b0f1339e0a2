/* prometheus.c: the report's numbers in Prometheus' text form (exposition format 0.0.4):
 * for a textfile collector, a push gateway, or a look with promtool.
 *
 * Units are Prometheus' own: seconds, bytes, ratios. What is not known is not there.
 */
#include "present/export/export.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <sonde/sonde.h>

#include "analyse/report.h"
#include "base/buf.h"

struct prometheus {
    FILE *out;
    struct buf text;
    const struct run *run;
    uint64_t rows;
};

/* ---- Lines -------------------------------------------------------------------------------- */

static void describe(struct prometheus *p, const char *name, const char *type,
                     const char *help)
{
    buf_printf(&p->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(struct prometheus *p, const char *name, const char *value,
                      bool first)
{
    buf_printf(&p->text, "%s%s=\"", first ? "" : ",", name);
    for (const char *c = value; *c; c++) {
        if (*c == '\\' || *c == '"')
            buf_putc(&p->text, '\\');
        if (*c == '\n')
            buf_puts(&p->text, "\\n");
        else
            buf_putc(&p->text, (unsigned char)*c < ' ' ? ' ' : *c);
    }
    buf_putc(&p->text, '"');
}

/* Up to three labels besides the run's; a NULL name ends them. */
struct labels {
    const char *name[3], *value[3];
};

static void put_value(struct prometheus *p, const char *name,
                      const struct labels *labels, double value)
{
    if (!isfinite(value))
        return;
    buf_printf(&p->text, "%s{", name);
    put_label(p, "run", p->run->id, true);
    for (int i = 0; labels && i < 3 && labels->name[i]; i++)
        put_label(p, labels->name[i], labels->value[i], false);
    buf_printf(&p->text, "} %.17g\n", value);
    p->rows++;
}

static void put_gauge(struct prometheus *p, const char *name, const char *help,
                      double value)
{
    if (!isfinite(value))
        return;
    describe(p, name, "gauge", help);
    put_value(p, name, NULL, value);
}

static void put_counter(struct prometheus *p, const char *name, const char *help,
                        double value)
{
    describe(p, name, "counter", help);
    put_value(p, name, NULL, value);
}

/* ---- The run ------------------------------------------------------------------------------ */

static void put_run(struct prometheus *p, const struct report *r)
{
    const struct run_meta *m = &p->run->meta;
    const double mib = 1 << 20;
    describe(p, "sonde_run_info", "gauge", "The run.");
    put_value(p, "sonde_run_info",
              &(struct labels){ { "name", "cause", "version" },
                                { m->name, m->exit.cause, SONDE_VERSION } },
              1);
    put_gauge(p, "sonde_run_start_time_seconds", "When it began, since the epoch.",
              r->start_ns ? (double)r->start_ns / 1e9 : NAN);
    put_gauge(p, "sonde_run_duration_seconds", "How long it took.",
              report_duration_s(r));
    put_gauge(p, "sonde_run_exit_code", "Exit status of the program.",
              m->exit.known && m->exit.code >= 0 ? m->exit.code : NAN);
    put_gauge(p, "sonde_run_cpu_ratio", "CPU time over wall time, 1 is one core.",
              report_cpu_percent(r) / 100);
    put_gauge(p, "sonde_run_peak_rss_bytes", "Most memory held at a time.",
              report_peak_rss_mb(r) * mib);
    put_gauge(p, "sonde_run_gpu_busy_ratio", "Share of time the cards had work.",
              report_gpu_busy_share(r));
    put_gauge(p, "sonde_run_overhead_ratio", "What recording cost the main thread.",
              report_overhead_percent(r) / 100);
    put_counter(p, "sonde_events_total", "Records; a zone is two.", (double)r->events);
    put_counter(p, "sonde_events_lost_total", "Records that found no room.",
                (double)r->lost);
}

static void put_steps(struct prometheus *p, const struct report *r)
{
    static const struct {
        const char *name;
        double q;
    } quantiles[] = { { "0.5", 0.5 }, { "0.95", 0.95 }, { "0.99", 0.99 } };
    const struct distribution *d = &r->steps.durations;
    if (d->count == 0)
        return;
    describe(p, "sonde_step_seconds", "summary", "Time between steps.");
    for (size_t i = 0; i < 3; i++)
        put_value(p, "sonde_step_seconds",
                  &(struct labels){ { "quantile" }, { quantiles[i].name } },
                  distribution_quantile(d, quantiles[i].q) / 1e9);
    put_value(p, "sonde_step_seconds_sum", NULL, d->mean * (double)d->count / 1e9);
    put_value(p, "sonde_step_seconds_count", NULL, (double)d->count);
}

static void put_phases(struct prometheus *p, const struct report *r)
{
    describe(p, "sonde_phase_seconds_total", "counter",
             "Time of the main thread by phase.");
    for (int i = 0; i < SONDE_PHASE_COUNT; i++)
        if (r->phases.total_ns[i] > 0)
            put_value(p, "sonde_phase_seconds_total",
                      &(struct labels){ { "phase" }, { sonde_phase_name(i) } },
                      r->phases.total_ns[i] / 1e9);
}

/* ---- Operations ---------------------------------------------------------------------------- */

/* Outermost first, joined by '/'; names hold what they like. */
static void path_of(struct buf *out, const struct op_table *t, uint32_t index)
{
    uint32_t chain[256];
    size_t n = 0;
    for (uint32_t at = index; at && n < 256; at = t->ops[at].parent)
        chain[n++] = at;
    buf_clear(out);
    while (n > 0) {
        buf_puts(out, t->ops[chain[--n]].name);
        if (n > 0)
            buf_putc(out, '/');
    }
}

static void put_operations(struct prometheus *p, const struct op_table *t,
                           const char *name, const char *help, bool calls)
{
    struct buf path = BUF_INIT;
    describe(p, name, "counter", help);
    for (size_t i = 0; i < t->order_count; i++) {
        const struct op *op = &t->ops[t->order[i]];
        path_of(&path, t, t->order[i]);
        const char *kind = op->kind == OP_SPAN ? "span" : "zone";
        put_value(p, name,
                  &(struct labels){ { "operation", "path", "kind" },
                                    { op->name, path.data, kind } },
                  calls ? (double)op->durations.count : op->total_ns / 1e9);
    }
    buf_release(&path);
}

/* ---- Memory, I/O, monitors ------------------------------------------------------------------- */

static void put_memory(struct prometheus *p, const struct allocations *a)
{
    if (!a->known)
        return;
    put_counter(p, "sonde_allocations_total", "Calls of the malloc family.",
                (double)a->count);
    put_counter(p, "sonde_allocated_bytes_total", "Bytes asked for.", (double)a->bytes);
    put_gauge(p, "sonde_live_bytes", "Still allocated at the end.", a->live_bytes);
}

static void put_io(struct prometheus *p, const struct io_report *io)
{
    if (!io->captured)
        return;
    put_counter(p, "sonde_io_read_bytes_total", "Bytes read by the program.",
                (double)io->total[IO_READ].bytes);
    put_counter(p, "sonde_io_written_bytes_total", "Bytes written by it.",
                (double)io->total[IO_WRITE].bytes);
}

static void put_monitors(struct prometheus *p, const struct report_monitors *m)
{
    static const struct {
        const char *name, *help;
        size_t field;
    } kinds[] = {
        { "sonde_monitor_average", "Average over time, in the unit given.",
          offsetof(struct report_series, avg) },
        { "sonde_monitor_max", "Highest sample.", offsetof(struct report_series, max) },
        { "sonde_monitor_last", "Last sample.", offsetof(struct report_series, last) },
    };
    for (size_t k = 0; m->series_count && k < 3; k++) {
        describe(p, kinds[k].name, "gauge", kinds[k].help);
        for (size_t i = 0; i < m->series_count; i++) {
            const struct report_series *s = &m->series[i];
            double value;
            memcpy(&value, (const char *)s + kinds[k].field, sizeof value);
            /* Series of programs that watch themselves differ in their names alone. */
            put_value(p, kinds[k].name,
                      &(struct labels){ { "metric", "series", "unit" },
                                        { s->metric, s->name, s->unit } },
                      value);
        }
    }
}

int export_prometheus(const struct export_job *job, struct export_totals *ret_totals)
{
    struct prometheus p = { .out = job->out, .text = BUF_INIT, .run = job->run };
    struct report *r;
    int rc = report_build(job->run, &r);
    if (rc < 0)
        return rc;
    put_run(&p, r);
    put_steps(&p, r);
    put_phases(&p, r);
    put_operations(&p, &r->ops, "sonde_operation_seconds_total",
                   "Time inside an operation.", false);
    put_operations(&p, &r->ops, "sonde_operation_calls_total",
                   "How often it was called.", true);
    put_memory(&p, &r->allocations);
    put_io(&p, &r->io);
    put_monitors(&p, &r->monitors);
    rc = p.text.error ? p.text.error : export_put(p.out, p.text.data, p.text.len);
    if (rc == 0)
        *ret_totals = (struct export_totals){ .rows = p.rows };
    buf_release(&p.text);
    report_free(r);
    return rc;
}
