/* live.c: one screen of a run that goes on. */
#include "present/report/live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/human.h"
#include "present/report/sections.h"

enum {
    POINTS_MOST = 256,
    SPARK = 40,
    PHASES = 6,
    PROCESSES = 6,
    LEAST_LIST = 3,
    LABEL = 10,
};

static const struct report_series *series(const struct report *r, const char *metric,
                                          const char *subject)
{
    return monitors_find(&r->monitors, metric, subject);
}

/* ---- Steps and phases --------------------------------------------------------------- */

static void put_steps(struct page *page, const struct report *now,
                      const struct report *before, double elapsed_s)
{
    const struct distribution *d = &now->steps.durations;
    char text[HUMAN_LEN];
    struct flow flow;
    if (now->steps.calls == 0)
        return;
    flow_begin(&flow, page, "STEP");
    if (before && elapsed_s > 0 && now->steps.calls >= before->steps.calls)
        flow_put(
            &flow, "%s steps/s now",
            human_number(
                text, (double)(now->steps.calls - before->steps.calls) / elapsed_s, 3));
    flow_put(&flow, "%s on average",
             human_number(text, step_rate_per_s(&now->steps), 3));
    flow_put(&flow, "%s steps", human_count(text, now->steps.calls));
    if (d->count) {
        flow_put(&flow, "p50 %s", human_duration(text, distribution_quantile(d, 0.5)));
        flow_put(&flow, "p99 %s", human_duration(text, distribution_quantile(d, 0.99)));
    }
    flow_end(&flow);
}

static void put_phase(struct page *page, const char *name, double share)
{
    char text[HUMAN_LEN];
    page_fill(page, 3);
    page_left(page, name, 16);
    page_bar(page, share, SPARK);
    page_right(page, human_percent(text, share), 9);
    page_puts(page, PLAIN, "\n");
}

/* Of the time between the two reports; from the start while there is only one. */
static void put_phases(struct page *page, const struct report *now,
                       const struct report *before)
{
    double ns[SONDE_PHASE_COUNT] = { 0 }, sum = 0;
    bool shown[SONDE_PHASE_COUNT] = { false };
    if (now->main_process == SIZE_MAX || !(now->phases.wall_ns > 0))
        return;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++) {
        ns[p] = now->phases.total_ns[p] - (before ? before->phases.total_ns[p] : 0);
        ns[p] = fmax(ns[p], 0);
        sum += ns[p];
    }
    if (!(sum > 0))
        return;
    page_label(page, "PHASE");
    page_puts(page, DIM,
              before ? "main thread, since the last look\n"
                     : "main thread, since the start\n");
    for (unsigned n = 0; n < PHASES; n++) {
        int largest = 0;
        for (int p = 1; p < SONDE_PHASE_COUNT; p++)
            if (!shown[p] && ns[p] > 0 && (largest == 0 || ns[p] > ns[largest]))
                largest = p;
        if (largest == 0)
            break;
        shown[largest] = true;
        put_phase(page, sonde_phase_name(largest), ns[largest] / sum);
    }
}

/* ---- The machine -------------------------------------------------------------------- */

static void put_gauge(struct page *page, const char *label,
                      const struct report_series *s, double unit, const char *text)
{
    double values[POINTS_MOST];
    size_t count = 0;
    if (!s)
        return;
    const size_t skip = s->point_count > SPARK ? s->point_count - SPARK : 0;
    for (size_t i = skip; i < s->point_count && count < POINTS_MOST; i++)
        values[count++] = s->points[i].mean / unit;
    page_label(page, label);
    page_left(page, text, 34);
    page_puts(page, PLAIN, " ");
    page_sparkline(page, values, count, SPARK);
    page_puts(page, PLAIN, "\n");
}

static void put_cpu(struct page *page, const struct report *r)
{
    const struct report_series *s = series(r, "cpu", "");
    char text[80];
    if (!s)
        return;
    (void)snprintf(text, sizeof text, "%.2f of %d cores, peak %.2f", s->last / 100,
                   r->run->meta.cores, s->max / 100);
    put_gauge(page, "CPU", s, 100, text);
}

static void put_memory(struct page *page, const struct report *r)
{
    const struct report_series *s = series(r, "rss", "");
    const struct report_series *limit = series(r, "cgroup_memory_limit", "");
    const struct report_series *total = limit ? limit : series(r, "memory_total", "");
    char text[80];
    if (!s)
        return;
    const bool large = s->max >= 1024 * 10;
    const double unit = large ? 1024 : 1;
    int n = snprintf(text, sizeof text, "%.4g %s", s->last / unit,
                     large ? "GiB" : "MiB");
    if (total)
        n += snprintf(text + n, sizeof text - (size_t)n, " of %.3g GiB",
                      total->last / 1024);
    (void)snprintf(text + n, sizeof text - (size_t)n, ", peak %.4g", s->max / unit);
    put_gauge(page, "RAM", s, 1, text);
}

static void put_io(struct page *page, const struct report *r)
{
    const struct report_series *in = series(r, "read", ""),
                               *out = series(r, "write", "");
    char text[80];
    if (!in && !out)
        return;
    (void)snprintf(text, sizeof text, "read %.3g, written %.3g MiB/s",
                   in ? in->last : 0, out ? out->last : 0);
    put_gauge(page, "I/O", in ? in : out, 1, text);
}

static void put_gpus(struct page *page, const struct report *r)
{
    for (size_t i = 0; i < r->monitors.series_count; i++) {
        const struct report_series *s = &r->monitors.series[i];
        if (strcmp(s->metric, "gpu") != 0)
            continue;
        const struct report_series *memory = series(r, "gpu_memory", s->subject);
        const struct report_series *power = series(r, "gpu_power", s->subject);
        const struct report_series *heat = series(r, "gpu_temp", s->subject);
        char text[96], label[16] = "";
        int n = snprintf(text, sizeof text, "%.0f %%", s->last);
        if (memory)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %.3g GiB",
                          memory->last / 1024);
        if (power)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %.0f W", power->last);
        if (heat)
            (void)snprintf(text + n, sizeof text - (size_t)n, ", %.0f C", heat->last);
        for (size_t c = 0; c < 8 && s->subject[c]; c++)
            label[c] = (char)(s->subject[c] >= 'a' && s->subject[c] <= 'z'
                                  ? s->subject[c] - 32
                                  : s->subject[c]);
        put_gauge(page, label, s, 1, text);
    }
}

/* ---- Processes ---------------------------------------------------------------------- */

struct process_row {
    const struct watched_process *p;
    double cpu, rss;
};

static double last_of(const struct report *r, const char *metric, uint32_t pid)
{
    char subject[16];
    (void)snprintf(subject, sizeof subject, "%u", pid);
    const struct report_series *s = series(r, metric, subject);
    return s ? s->last : NAN;
}

static int by_cpu(const void *a, const void *b)
{
    const struct process_row *x = a, *y = b;
    return (y->cpu > x->cpu) - (y->cpu < x->cpu);
}

static int by_memory(const void *a, const void *b)
{
    const struct process_row *x = a, *y = b;
    return (y->rss > x->rss) - (y->rss < x->rss);
}

static int by_pid(const void *a, const void *b)
{
    const struct process_row *x = a, *y = b;
    return (x->p->pid > y->p->pid) - (x->p->pid < y->p->pid);
}

static void put_process(struct page *page, const struct process_row *row)
{
    struct buf text = BUF_INIT;
    const size_t room = page->width > 60 ? (size_t)page->width - 46 : 14;
    buf_printf(&text, "%8u %7.0f %% %10.1f %9.1f  ", row->p->pid, row->cpu, row->rss,
               row->p->cpu_s);
    clean_text(&text, row->p->command[0] ? row->p->command : row->p->exe, room);
    page_printf(page, "   %s\n", text.error ? "" : text.data);
    buf_release(&text);
}

static void put_processes(struct page *page, const struct report *r,
                          enum live_sort sort)
{
    static int (*const orders[])(const void *, const void *) = { by_cpu, by_memory,
                                                                 by_pid };
    static const char *const names[] = { "by CPU", "by memory", "by number" };
    const struct report_monitors *m = &r->monitors;
    struct process_row *rows = calloc(m->process_count + 1, sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; rows && i < m->process_count; i++) {
        const struct watched_process *p = &m->processes[i];
        if (!p->end_known)
            rows[count++] = (struct process_row){ p, last_of(r, "cpu", p->pid),
                                                  last_of(r, "rss", p->pid) };
    }
    if (count > 0) {
        qsort(rows, count, sizeof *rows, orders[sort]);
        page_puts(page, PLAIN, " ");
        page_puts(page, BOLD, "PROCESSES");
        page_printf(page, " %zu, %s\n", count, names[sort]);
        page_puts(page, DIM, "        pid       CPU        MiB     CPU s  command\n");
    }
    for (size_t i = 0; i < count && i < PROCESSES; i++)
        put_process(page, &rows[i]);
    free(rows);
}

/* ---- The list at the bottom --------------------------------------------------------- */

struct list_row {
    const char *name, *file;
    uint32_t line;
    double ns, share;
};

static int by_ns(const void *a, const void *b)
{
    const struct list_row *x = a, *y = b;
    return (y->ns > x->ns) - (y->ns < x->ns);
}

static size_t collect_operations(const struct report *r, struct list_row *rows)
{
    size_t count = 0;
    double sum = 0;
    for (size_t i = 0; i < r->ops.order_count; i++) {
        const struct op *op = &r->ops.ops[r->ops.order[i]];
        rows[count++] = (struct list_row){ op->name, op->file, (uint32_t)op->line,
                                           op->self_ns, 0 };
        sum += op->self_ns;
    }
    for (size_t i = 0; i < count; i++)
        rows[i].share = sum > 0 ? rows[i].ns / sum : 0;
    return count;
}

static size_t collect_lines(const struct report *r, struct list_row *rows)
{
    const struct py_profile *p = &r->python;
    for (size_t i = 0; i < p->line_count; i++)
        rows[i] = (struct list_row){ p->lines[i].function, p->lines[i].file,
                                     p->lines[i].line, p->lines[i].self.wall_ns,
                                     p->wall_ns > 0
                                         ? p->lines[i].self.wall_ns / p->wall_ns
                                         : 0 };
    return p->line_count;
}

static size_t collect_functions(const struct report *r, struct list_row *rows)
{
    const struct py_profile *p = &r->python;
    for (size_t i = 0; i < p->function_count; i++)
        rows[i] = (struct list_row){ p->functions[i].name, p->functions[i].file,
                                     p->functions[i].line, p->functions[i].self.cpu_ns,
                                     p->cpu_ns > 0
                                         ? p->functions[i].self.cpu_ns / p->cpu_ns
                                         : 0 };
    return p->function_count;
}

static const struct {
    const char *title, *what;
    size_t (*collect)(const struct report *r, struct list_row *rows);
} lists[LIVE_LIST_COUNT] = {
    { "OPERATIONS", "time of their own, all threads", collect_operations },
    { "PYTHON LINES", "wall time of the main thread", collect_lines },
    { "FUNCTIONS", "CPU time of their own, all threads", collect_functions },
};

static void put_list_row(struct page *page, const struct list_row *row)
{
    struct buf name = BUF_INIT, place = BUF_INIT, clean = BUF_INIT;
    char text[HUMAN_LEN];
    const size_t room = (size_t)page->width - 3 - 20 - 30;
    clean_text(&name, row->name, room);
    if (row->file[0])
        buf_printf(&place, "%s:%u", path_base(row->file), row->line);
    if (place.data)
        clean_text(&clean, place.data, 28);
    page_fill(page, 3);
    page_left(page, name.error || !name.data ? "" : name.data, room);
    page_puts(page, PLAIN, " ");
    page_left(page, clean.error || !clean.data ? "" : clean.data, 29);
    page_right(page, human_duration(text, row->ns), 10);
    page_right(page, human_percent(text, row->share), 9);
    page_puts(page, PLAIN, "\n");
    buf_release(&name);
    buf_release(&place);
    buf_release(&clean);
}

static size_t most_rows(const struct report *r)
{
    size_t most = r->ops.order_count;
    most = r->python.line_count > most ? r->python.line_count : most;
    return r->python.function_count > most ? r->python.function_count : most;
}

static void put_list(struct page *page, const struct report *r,
                     const struct live_style *style, size_t lines)
{
    struct list_row *rows = calloc(most_rows(r) + 1, sizeof *rows);
    size_t count = 0;
    unsigned list = style->list;
    for (unsigned tries = 0; rows && count == 0 && tries < LIVE_LIST_COUNT; tries++) {
        list = (style->list + tries) % LIVE_LIST_COUNT;
        count = lists[list].collect(r, rows);
    }
    if (count > 0 && lines >= 2) {
        const size_t shown = lines - 2;
        size_t first = style->scroll < count ? style->scroll : count - 1;
        qsort(rows, count, sizeof *rows, by_ns);
        page_puts(page, PLAIN, " ");
        page_puts(page, BOLD, lists[list].title);
        page_printf(page, " %s\n", lists[list].what);
        for (size_t i = first; i < count && i - first < shown; i++)
            if (rows[i].ns > 0)
                put_list_row(page, &rows[i]);
    }
    free(rows);
}

/* ---- All ---------------------------------------------------------------------------- */

int report_live(const struct report *now, const struct report *before,
                const struct live_style *style, struct buf *out)
{
    struct page page;
    const int width = style->width ? style->width : 100;
    page_init(&page,
              width < 60    ? 60
              : width > 200 ? 200
                            : width,
              style->color, style->unicode);
    section_head(&page, now);
    put_steps(&page, now, before, style->elapsed_s);
    put_phases(&page, now, before);
    put_cpu(&page, now);
    put_memory(&page, now);
    put_io(&page, now);
    put_gpus(&page, now);
    put_processes(&page, now, style->sort);
    const size_t used = page_lines(&page);
    const size_t height = style->height ? (size_t)style->height : used + 14;
    put_list(&page, now, style,
             height > used + LEAST_LIST ? height - used : LEAST_LIST);
    const int rc = page_encode(&page, out);
    page_release(&page);
    return rc;
}
