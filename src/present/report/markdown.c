/* markdown.c: the report as Markdown, for pull requests, wikis and notebooks.
 *
 * Tables as GitHub writes them. Names are the program's: what Markdown or HTML would take
 * for its own is escaped, so that a table stays a table and nothing runs.
 */
#include "present/report/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/buf.h"
#include "base/human.h"
#include "present/report/filter.h"
#include "present/report/page.h"

enum { OPERATIONS = 15, FUNCTIONS = 10, SITES = 5, FILES = 10, FULL = 1000 };

struct markdown {
    const struct report *r;
    const struct report_style *style;
    struct buf out;
};

/* ---- Text --------------------------------------------------------------------------------- */

static void put_text(struct markdown *m, const char *text)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, 0);
    for (const char *p = clean.data; *p; p++) {
        if (*p == '<')
            buf_puts(&m->out, "&lt;");
        else if (*p == '&')
            buf_puts(&m->out, "&amp;");
        else {
            if (strchr("\\`*_[]|#~!>", *p))
                buf_putc(&m->out, '\\');
            buf_putc(&m->out, *p);
        }
    }
    if (clean.error && !m->out.error)
        m->out.error = clean.error;
    buf_release(&clean);
}

static void put_cell(struct markdown *m, const char *text)
{
    put_text(m, text);
    buf_puts(&m->out, " | ");
}

static void put_duration(struct markdown *m, double ns)
{
    char text[HUMAN_LEN];
    put_cell(m, isfinite(ns) ? human_duration(text, ns) : "–");
}

static void put_count(struct markdown *m, uint64_t count)
{
    char text[HUMAN_LEN];
    put_cell(m, human_count(text, count));
}

static void put_bytes(struct markdown *m, double bytes)
{
    char text[HUMAN_LEN];
    put_cell(m, isfinite(bytes) ? human_bytes(text, bytes) : "–");
}

static void put_share(struct markdown *m, double share)
{
    char text[HUMAN_LEN];
    put_cell(m, isfinite(share) ? human_percent(text, share) : "–");
}

/* "name, name", and how each is aligned: the first to the left. */
static void begin_table(struct markdown *m, const char *title, const char *const *heads,
                        unsigned count)
{
    buf_printf(&m->out, "\n## %s\n\n|", title);
    for (unsigned i = 0; i < count; i++)
        buf_printf(&m->out, " %s |", heads[i]);
    buf_puts(&m->out, "\n|");
    for (unsigned i = 0; i < count; i++)
        buf_puts(&m->out, i ? "---:|" : "---|");
    buf_putc(&m->out, '\n');
}

static void begin_row(struct markdown *m)
{
    buf_puts(&m->out, "| ");
}

/* A cell ends with a blank too many. */
static void end_row(struct markdown *m)
{
    buf_truncate(&m->out, m->out.len - 1);
    buf_putc(&m->out, '\n');
}

#define TABLE(m, title, ...)                                                           \
    begin_table(m, title, (const char *const[]){ __VA_ARGS__ },                        \
                sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* ---- Parts -------------------------------------------------------------------------------- */

static void put_head(struct markdown *m)
{
    const struct report *r = m->r;
    char text[128], duration[HUMAN_LEN];
    buf_puts(&m->out, "# ");
    put_text(m, r->run->meta.name[0] ? r->run->meta.name : r->run->id);
    buf_puts(&m->out, "\n\n");
    for (size_t i = 0; i < r->run->meta.command_count; i++) {
        buf_puts(&m->out, i ? " " : "");
        put_text(m, r->run->meta.command[i]);
    }
    buf_printf(&m->out, "%srun %s · %s", r->run->meta.command_count ? " · " : "",
               r->run->id, report_state_words(r, text, sizeof text));
    if (isfinite(report_duration_s(r)))
        buf_printf(&m->out, " · %s",
                   human_duration(duration, report_duration_s(r) * 1e9));
    buf_puts(&m->out, "\n\n**");
    put_text(m, r->verdict);
    buf_puts(&m->out, "**");
    if (r->why[0]) {
        buf_putc(&m->out, ' ');
        put_text(m, r->why);
    }
    buf_putc(&m->out, '\n');
}

static void put_steps(struct markdown *m)
{
    const struct distribution *d = &m->r->steps.durations;
    if (d->count == 0)
        return;
    TABLE(m, "Steps", "steps", "mean", "p50", "p95", "p99", "min", "max");
    begin_row(m);
    put_count(m, d->count);
    put_duration(m, d->mean);
    put_duration(m, distribution_quantile(d, 0.50));
    put_duration(m, distribution_quantile(d, 0.95));
    put_duration(m, distribution_quantile(d, 0.99));
    put_duration(m, d->min);
    put_duration(m, d->max);
    end_row(m);
}

static void put_phases(struct markdown *m)
{
    const struct phase_split *p = &m->r->phases;
    if (!p->has_main)
        return;
    TABLE(m, "Phases of the main thread", "phase", "time", "share", "entered");
    for (int i = 0; i < SONDE_PHASE_COUNT; i++) {
        if (!(p->total_ns[i] > 0))
            continue;
        begin_row(m);
        put_cell(m, sonde_phase_name(i));
        put_duration(m, p->total_ns[i]);
        put_share(m, p->share[i]);
        put_count(m, p->count[i]);
        end_row(m);
    }
}

static size_t limit(const struct markdown *m, size_t usual)
{
    return m->style->full ? FULL : usual;
}

static void put_operation(struct markdown *m, const struct op *op)
{
    begin_row(m);
    for (unsigned i = 1; i < op->depth && i < 16; i++)
        buf_puts(&m->out, "&nbsp;&nbsp;");
    put_cell(m, op->name);
    put_count(m, op->durations.count);
    put_duration(m, op->total_ns);
    put_duration(m, op->self_ns);
    put_duration(m, op->durations.count ? op->durations.mean : NAN);
    put_duration(m, distribution_quantile(&op->durations, 0.99));
    end_row(m);
}

static int put_operations(struct markdown *m)
{
    const struct op_table *t = &m->r->ops;
    struct op_filter filter;
    size_t left = 0, shown = 0;
    const int rc = op_filter_init(&filter, t, m->style, limit(m, OPERATIONS));
    if (rc < 0)
        return rc;
    if (t->order_count)
        TABLE(m, "Operations", "operation", "calls", "total", "self", "mean", "p99");
    for (size_t i = 0; i < t->order_count; i++) {
        if (!filter.shown[t->order[i]]) {
            left++;
            continue;
        }
        shown++;
        put_operation(m, &t->ops[t->order[i]]);
    }
    if (left && shown)
        buf_printf(&m->out, "\n%zu smaller paths are not shown.\n", left);
    op_filter_release(&filter);
    return 0;
}

static void put_functions(struct markdown *m)
{
    const struct hot_functions *h = &m->r->hot;
    if (h->function_count == 0)
        return;
    TABLE(m, "Functions, sampled CPU time", "function", "self", "share");
    for (size_t i = 0; i < h->function_count && i < limit(m, FUNCTIONS); i++) {
        begin_row(m);
        put_cell(m, h->functions[i].name);
        put_duration(m, h->functions[i].self_ns);
        put_share(m, h->functions[i].share);
        end_row(m);
    }
}

static void put_python(struct markdown *m)
{
    const struct py_profile *p = &m->r->python;
    struct buf place = BUF_INIT;
    if (p->line_count == 0)
        return;
    TABLE(m, "Python lines of the main thread", "line", "wall", "share", "CPU");
    for (size_t i = 0; i < p->line_count && i < limit(m, FUNCTIONS); i++) {
        buf_clear(&place);
        buf_printf(&place, "%s:%u %s", p->lines[i].file, p->lines[i].line,
                   p->lines[i].function);
        begin_row(m);
        put_cell(m, place.data);
        put_duration(m, p->lines[i].self.wall_ns);
        put_share(m, p->wall_ns > 0 ? p->lines[i].self.wall_ns / p->wall_ns : NAN);
        put_duration(m, p->lines[i].self.cpu_ns);
        end_row(m);
    }
    buf_release(&place);
}

static void put_site(struct markdown *m, const struct alloc_site *s)
{
    struct buf place = BUF_INIT;
    buf_puts(&place, s->at.function[0] ? s->at.function
                     : s->at.module[0] ? s->at.module
                                       : "(unknown)");
    if (s->at.line)
        buf_printf(&place, " %s:%u", s->at.file, s->at.line);
    begin_row(m);
    put_cell(m, place.data);
    put_count(m, s->count > 0 ? (uint64_t)llround(s->count) : 0);
    put_bytes(m, s->bytes);
    put_bytes(m, s->live_bytes);
    put_cell(m, s->leak ? "leak" : "");
    end_row(m);
    buf_release(&place);
}

static void put_memory(struct markdown *m)
{
    const struct allocations *a = &m->r->allocations;
    char count[HUMAN_LEN], bytes[HUMAN_LEN];
    if (!a->known)
        return;
    if (a->site_count) {
        TABLE(m, "Allocations", "site (estimated)", "count", "bytes", "live", "");
        for (size_t i = 0; i < a->site_count && i < limit(m, SITES); i++)
            put_site(m, &a->sites[i]);
    } else {
        buf_puts(&m->out, "\n## Allocations\n");
    }
    buf_printf(&m->out, "\n%s allocations, %s in all.\n", human_count(count, a->count),
               human_bytes(bytes, (double)a->bytes));
}

static void put_io(struct markdown *m)
{
    const struct io_report *io = &m->r->io;
    if (!io->captured || io->path_count == 0)
        return;
    TABLE(m, "Files and sockets", "path", "reads", "read", "writes", "written", "time");
    for (size_t i = 0; i < io->path_count && i < limit(m, FILES); i++) {
        const struct io_path *p = &io->paths[i];
        begin_row(m);
        put_cell(m, p->path);
        put_count(m, p->side[IO_READ].calls);
        put_bytes(m, (double)p->side[IO_READ].bytes);
        put_count(m, p->side[IO_WRITE].calls);
        put_bytes(m, (double)p->side[IO_WRITE].bytes);
        put_duration(m, p->side[IO_READ].ns + p->side[IO_WRITE].ns + p->sync_ns);
        end_row(m);
    }
}

/* Those of the run and the machine; of every process with --full. */
static void put_monitors(struct markdown *m)
{
    const struct report_monitors *mon = &m->r->monitors;
    char number[32];
    if (mon->series_count == 0)
        return;
    TABLE(m, "Monitors", "series", "average", "max", "last", "unit");
    for (size_t i = 0; i < mon->series_count; i++) {
        const struct report_series *s = &mon->series[i];
        if (s->subject[0] && !m->style->full)
            continue;
        const double values[] = { s->avg, s->max, s->last };
        begin_row(m);
        put_cell(m, s->name);
        for (int k = 0; k < 3; k++) {
            (void)snprintf(number, sizeof number, "%.5g", values[k]);
            put_cell(m, number);
        }
        put_cell(m, s->unit);
        end_row(m);
    }
}

static void put_trust(struct markdown *m)
{
    const struct report *r = m->r;
    char events[HUMAN_LEN], lost[HUMAN_LEN];
    buf_printf(&m->out, "\n%s events, %s lost", human_count(events, r->events),
               human_count(lost, r->lost));
    const double overhead = report_overhead_percent(r);
    if (isfinite(overhead))
        buf_printf(&m->out, ", overhead %.2g %%", overhead);
    buf_printf(&m->out, ". Written by sonde %s.\n", SONDE_VERSION);
}

int report_markdown(const struct report *report, const struct report_style *style,
                    FILE *out)
{
    struct markdown m = { .r = report, .style = style, .out = BUF_INIT };
    put_head(&m);
    put_steps(&m);
    put_phases(&m);
    int rc = put_operations(&m);
    put_python(&m);
    put_functions(&m);
    put_memory(&m);
    put_io(&m);
    put_monitors(&m);
    put_trust(&m);
    if (rc == 0)
        rc = m.out.error;
    errno = 0;
    if (rc == 0 && fwrite(m.out.data, 1, m.out.len, out) != m.out.len)
        rc = errno > 0 ? -errno : -EIO;
    buf_release(&m.out);
    return rc;
}
