/* sections.c: the parts of the text report but the table of operations. */
#include "present/report/sections.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/human.h"

enum {
    SPARK_MAX = 60,
    END_NAME = 22,
};

static void blank_line(struct page *page)
{
    page_puts(page, PLAIN, "\n");
}

/* ---- Head --------------------------------------------------------------------------- */

/* As one would type it; good enough to recognise, not meant to be pasted: where there is
 * no room, files without their folders. */
static void put_command(struct buf *out, const struct run_meta *m, size_t max_columns)
{
    struct buf line = BUF_INIT;
    for (size_t i = 0; i < m->command_count; i++)
        buf_printf(&line, "%s%s", i ? " " : "", m->command[i]);
    if (line.len > max_columns) {
        buf_clear(&line);
        for (size_t i = 0; i < m->command_count; i++) {
            const char *name = path_base(m->command[i]);
            buf_printf(&line, "%s%s", i ? " " : "", name[0] ? name : m->command[i]);
        }
    }
    clean_text(out, line.data, max_columns);
    buf_release(&line);
}

static void put_machine(struct flow *flow, const struct run_meta *m)
{
    if (m->gpus > 0 && m->cores > 0)
        flow_put(flow, "%d GPU%s, %d cores", m->gpus, m->gpus == 1 ? "" : "s",
                 m->cores);
    else if (m->cores > 0)
        flow_put(flow, "%d core%s", m->cores, m->cores == 1 ? "" : "s");
}

void section_head(struct page *page, const struct report *r)
{
    const struct run_meta *m = &r->run->meta;
    char words[96];
    char time[HUMAN_LEN];
    struct buf text = BUF_INIT;
    struct flow flow;
    flow_begin(&flow, page, NULL);
    flow_put(&flow, "sonde");
    put_command(&text, m, (size_t)page->width / 2);
    if (text.len)
        flow_put(&flow, "%s", text.data);
    buf_clear(&text);
    clean_text(&text, r->run->id, 32);
    flow_put(&flow, "run %s", text.data);
    if (m->name[0]) {
        buf_clear(&text);
        clean_text(&text, m->name, 32);
        flow_put(&flow, "%s", text.data);
    }
    buf_clear(&text);
    clean_text(&text, report_state_words(r, words, sizeof(words)), 0);
    flow_put(&flow, "%s", text.data);
    if (!isnan(report_duration_s(r)))
        flow_put(&flow, "%s", human_duration(time, report_duration_s(r) * 1e9));
    put_machine(&flow, m);
    flow_end(&flow);
    blank_line(page);
    buf_release(&text);
}

/* ---- Verdict ------------------------------------------------------------------------- */

static void put_paragraph(struct page *page, const char *label, enum page_color color,
                          const char *text)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, 0);
    page_paragraph(page, label, color, clean.data);
    buf_release(&clean);
}

static bool is_bad(const struct report *r)
{
    return r->state == RUN_KILLED || r->state == RUN_FAILED || r->state == RUN_UNKNOWN;
}

/* The innermost frames of the process that died, on a line or two. */
static void put_stack(struct page *page, const struct run_death *d)
{
    enum { SHOWN = 6 };
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < d->stack_count && i < SHOWN; i++)
        buf_printf(&text, "%s%s", i ? " ← " : "", d->stack[i]);
    if (d->stack_count > SHOWN)
        buf_puts(&text, " ← …");
    if (text.len)
        put_paragraph(page, "STACK", BOLD, text.data);
    buf_release(&text);
}

void section_verdict(struct page *page, const struct report *r,
                     const struct report_style *style)
{
    put_paragraph(page, "VERDICT", is_bad(r) ? RED : BOLD, r->verdict);
    if (r->why[0])
        put_paragraph(page, "WHY", BOLD, r->why);
    put_stack(page, &r->run->meta.death);
    section_next(page, r);
    section_offer(page, r, style);
    blank_line(page);
}

/* ---- Steps ----------------------------------------------------------------------------- */

static void put_series(struct page *page, const struct step_series *s)
{
    double values[STEP_POINTS];
    char top[HUMAN_LEN];
    char count[HUMAN_LEN];
    double highest = 0;
    for (size_t i = 0; i < s->count; i++) {
        values[i] = s->points[i].mean_ns;
        highest = fmax(highest, values[i]);
    }
    if (s->count < 2 || !(highest > 0))
        return;
    const size_t room = (size_t)page->width - 40;
    page_fill(page, 10);
    page_sparkline(page, values, s->count, room < SPARK_MAX ? room : SPARK_MAX);
    page_printf(page, "   0 – %s over the run", human_duration(top, highest));
    if (s->partial)
        page_printf(page, ", newest %s", human_count(count, s->steps));
    page_puts(page, PLAIN, "\n");
}

enum { SPREAD_WIDTH = 96 };

/* How steps spread, from the shortest to the longest on a logarithmic axis. */
static void put_spread(struct page *page, const struct distribution *d)
{
    enum { COLUMNS_MOST = 40, STEPS_LEAST = 20 };
    double counts[COLUMNS_MOST] = { 0 };
    char low[HUMAN_LEN], high[HUMAN_LEN];
    const size_t room = (size_t)page->width - 40;
    const size_t columns = room < COLUMNS_MOST ? room : COLUMNS_MOST;
    const double octaves = log2(d->max / d->min);
    if (d->count < STEPS_LEAST || !(d->min > 0) || !(octaves > 0.02))
        return;
    for (size_t i = 0; i < d->bucket_count; i++) {
        const double at = log2(fmax(distribution_middle(d, i), d->min) / d->min);
        const double place = at / octaves * (double)columns;
        counts[place < (double)columns ? (size_t)place : columns - 1] +=
            (double)d->buckets[i].count;
    }
    page_fill(page, 10);
    page_histogram(page, counts, columns);
    page_printf(page, "   %s – %s, how many", human_duration(low, d->min),
                human_duration(high, d->max));
    page_puts(page, PLAIN, "\n");
}

/* Numbers beside each other read best in one unit: that of the mean. */
struct unit {
    double ns;
    const char *name;
};

static struct unit unit_for(double ns)
{
    static const struct unit units[] = {
        { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "µs" }, { 1, "ns" }
    };
    size_t i = 0;
    while (i < 3 && ns < units[i].ns)
        i++;
    return units[i];
}

static int decimals_of(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

static void put_in_unit(struct flow *flow, const char *before, double ns,
                        const struct unit *unit, const char *after)
{
    const double value = ns / unit->ns;
    flow_put(flow, "%s%.*f%s", before, decimals_of(value), value, after);
}

/* The mean of all steps has evaluations, checkpoints and epoch changes in it; where that is
 * much, what a usual step takes stands beside it. */
static void put_steady(struct flow *flow, const struct report *r)
{
    char text[HUMAN_LEN];
    const double all = r->steps.durations.mean, steady = r->account.mean_ns;
    if (r->account.known && fabs(all - steady) >= 0.05 * all)
        flow_put(flow, "steady ones %s mean", human_duration(text, steady));
}

void section_steps(struct page *page, const struct report *r)
{
    const struct distribution *d = &r->steps.durations;
    char count[HUMAN_LEN];
    struct flow flow;
    if (d->count == 0)
        return;
    const struct unit unit = unit_for(d->mean);
    char rate[HUMAN_LEN];
    flow_begin(&flow, page, "STEP");
    flow_put(&flow, "%.*f %s mean", decimals_of(d->mean / unit.ns), d->mean / unit.ns,
             unit.name);
    put_in_unit(&flow, "p50 ", distribution_quantile(d, 0.50), &unit, "");
    put_in_unit(&flow, "p95 ", distribution_quantile(d, 0.95), &unit, "");
    put_in_unit(&flow, "p99 ", distribution_quantile(d, 0.99), &unit, "");
    put_steady(&flow, r);
    flow_put(&flow, "%s steps", human_count(count, d->count));
    flow_put(&flow, "%s steps/s", human_number(rate, step_rate_per_s(&r->steps), 3));
    if (!isnan(step_samples_per_s(&r->steps)))
        flow_put(&flow, "%s samples/s",
                 human_count(count, (uint64_t)(step_samples_per_s(&r->steps) + 0.5)));
    flow_end(&flow);
    put_series(page, &r->series);
    if (page->width >= SPREAD_WIDTH &&
        !page->terse) /* a narrow page is a short one, too */
        put_spread(page, d);
    blank_line(page);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Joined with arrows; cut at the outer end, for the inner one tells more. */
static void put_zone_path(struct page *page, const struct open_thread *t,
                          size_t columns)
{
    struct buf path = BUF_INIT;
    struct buf name = BUF_INIT;
    unsigned first = t->zone_count;
    size_t wide = 0;
    while (first > 0) {
        buf_clear(&name);
        clean_text(&name, t->zones[first - 1].name, 40);
        const size_t more = text_columns(name.data) + 3;
        if (wide + more + (first > 1 ? 4 : 0) > columns + 3 && wide > 0)
            break;
        wide += more;
        first--;
    }
    if (first > 0)
        buf_puts(&path, "… › ");
    for (unsigned i = first; i < t->zone_count; i++) {
        clean_text(&path, t->zones[i].name, 40);
        buf_puts(&path, i + 1 < t->zone_count ? " › " : "");
    }
    page_left(page, path.data, columns);
    buf_release(&path);
    buf_release(&name);
}

static void put_thread(struct page *page, const struct report *r,
                       const struct open_thread *t)
{
    const struct report_process *p = &r->processes[t->process];
    const size_t tail = page->width >= 80 ? 34 : 16;
    char text[HUMAN_LEN];
    struct buf name = BUF_INIT;

    clean_text(&name, p->role, 12);
    buf_printf(&name, " %u", p->pid);
    if (!t->is_main && t->name[0]) {
        buf_putc(&name, ' ');
        clean_text(&name, t->name, 15);
    } else if (!t->is_main) {
        buf_printf(&name, "/%u", t->tid);
    }
    page_fill(page, 3);
    page_left(page, name.data, END_NAME);
    page_puts(page, PLAIN, " ");
    put_zone_path(page, t, (size_t)page->width - 3 - END_NAME - 1 - tail);
    buf_clear(&name);
    const int64_t open = p->end_ns - t->zones[t->zone_count - 1].begin_ns;
    buf_printf(&name, "open %s", human_duration(text, (double)open));
    if (page->width >= 80)
        buf_printf(&name, ", silent %s", human_duration(text, report_silent_ns(r, t)));
    page_right(page, name.data, tail);
    page_puts(page, PLAIN, "\n");
    buf_release(&name);
}

static int64_t last_event(const struct report *r)
{
    int64_t last = 0;
    for (size_t i = 0; i < r->process_count; i++)
        if (r->processes[i].last_ns > last)
            last = r->processes[i].last_ns;
    return last;
}

static void put_end_line(struct page *page, const struct report *r)
{
    char words[96];
    char text[HUMAN_LEN];
    struct buf clean = BUF_INIT;
    struct flow flow;
    flow_begin(&flow, page, r->state == RUN_LIVE ? "NOW" : "DEATH");
    clean_text(&clean, report_state_words(r, words, sizeof(words)), 0);
    flow_put(&flow, "%s", clean.data);
    if (r->last_step)
        flow_put(&flow, "last step %s", human_count(text, r->last_step));
    else
        flow_put(&flow, "no steps");
    if (r->state != RUN_LIVE && last_event(r) && r->end_ns >= last_event(r))
        flow_put(&flow, "last event %s before the end",
                 human_duration(text, (double)(r->end_ns - last_event(r))));
    if (r->truncated)
        flow_put(&flow, "%s zone%s cut off", human_count(text, r->truncated),
                 r->truncated == 1 ? "" : "s");
    flow_end(&flow);
    buf_release(&clean);
}

static bool is_first(const struct report *r, const struct open_thread *t)
{
    return t->is_main && t->process == r->main_process;
}

void section_end(struct page *page, const struct report *r, const struct limits *limits)
{
    size_t shown = 0;
    if (report_ended_well(r) || r->process_count == 0 ||
        (r->state == RUN_LEFT && r->thread_count == 0))
        return;
    put_end_line(page, r);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->thread_count && shown < limits->threads; i++) {
            if (is_first(r, &r->threads[i]) != (pass == 0))
                continue;
            put_thread(page, r, &r->threads[i]);
            shown++;
        }
    if (r->thread_count > shown)
        page_printf(page, "   and %zu more threads with open zones\n",
                    r->thread_count - shown);
    else if (shown == 0)
        page_puts(page, PLAIN, "   no zone was open\n");
    blank_line(page);
}

/* ---- Metrics, notes, trust -------------------------------------------------------------------- */

void section_metrics(struct page *page, const struct report *r,
                     const struct limits *limits)
{
    struct buf name = BUF_INIT;
    struct flow flow;
    size_t shown = 0;
    if (!r->metrics || limits->metrics == 0)
        return;
    flow_begin(&flow, page, "METRICS");
    for (const struct op_value *v = r->metrics; v; v = v->next) {
        if (shown++ == limits->metrics) {
            flow_put(&flow, "…");
            break;
        }
        buf_clear(&name);
        clean_text(&name, v->name, 40);
        flow_put(&flow, "%s %.5g", name.data, v->last);
    }
    flow_end(&flow);
    blank_line(page);
    buf_release(&name);
}

void section_notes(struct page *page, const struct report *r,
                   const struct limits *limits)
{
    const size_t limit = limits->notes;
    for (size_t i = 0; i < r->note_count && i < limit; i++)
        put_paragraph(page, i ? "" : "NOTE", BOLD, r->notes[i]);
    if (r->note_count > limit)
        page_printf(page, "          and %zu more (--full)\n", r->note_count - limit);
    if (r->note_count)
        blank_line(page);
}

static void put_overhead(struct flow *flow, const struct report *r)
{
    char text[HUMAN_LEN];
    const double percent = report_overhead_percent(r);
    const double supervisor_s = r->run->meta.supervisor_cpu_s;
    if (isfinite(percent))
        flow_put(flow,
                 percent < 0.01 ? "overhead in the program below 0.01 %%"
                                : "overhead in the program %.2g %%",
                 percent);
    else
        flow_put(flow, "overhead not measured");
    if (isfinite(supervisor_s) && report_duration_s(r) > 0)
        flow_put(flow, "supervisor %s CPU, %.2g %% of a core",
                 human_duration(text, supervisor_s * 1e9),
                 100 * supervisor_s / report_duration_s(r));
    else if (isfinite(supervisor_s))
        flow_put(flow, "supervisor %s CPU", human_duration(text, supervisor_s * 1e9));
}

static void put_doubts(struct flow *flow, const struct report *r)
{
    char text[HUMAN_LEN];
    if (r->files_left_out)
        flow_put(flow, "%zu trace%s unreadable", r->files_left_out,
                 r->files_left_out == 1 ? "" : "s");
    if (report_ended_well(r) && r->truncated)
        flow_put(flow, "%s zones cut off by the end of their process",
                 human_count(text, r->truncated));
    if (r->unbalanced)
        flow_put(flow, "%s unbalanced zones (no end of their own)",
                 human_count(text, r->unbalanced));
    if (r->orphan_ends)
        flow_put(flow, "%s ends without a begin", human_count(text, r->orphan_ends));
    if (r->deep_zones)
        flow_put(flow, "%s zones too deep to time", human_count(text, r->deep_zones));
    if (r->filtered)
        flow_put(flow, "%s short zones only counted", human_count(text, r->filtered));
}

/* As a shell would want it. */
void quote_word(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_@%+=:,./-";
    struct buf clean = BUF_INIT;
    clean_text(&clean, word, 0);
    if (clean.len && strspn(clean.data, plain) == clean.len) {
        buf_puts(out, clean.data);
    } else {
        buf_putc(out, '\'');
        for (const char *p = clean.data; *p; p++)
            buf_puts(out, *p == '\'' ? "'\\''" : (char[]){ *p, '\0' });
        buf_putc(out, '\'');
    }
    buf_release(&clean);
}

/* Commands are never cut, however narrow the terminal: they are there to be pasted. */
static void put_more(struct page *page, const struct report *r,
                     const struct report_style *style)
{
    struct buf ref = BUF_INIT;
    struct buf text = BUF_INIT;
    quote_word(&ref, style->ref ? style->ref : r->run->id);
    if (!style->full)
        buf_printf(&text, "sonde report %s --full", ref.data);
    const size_t two = text_columns(text.data) + text_columns(ref.data) + 40;
    if (text.len)
        buf_puts(&text, two < (size_t)page->width ? " · " : "\n          ");
    buf_printf(&text, "sonde export %s -o trace.json", ref.data);
    page_label(page, "MORE");
    page_puts(page, PLAIN, text.data);
    page_puts(page, PLAIN, "\n");
    buf_release(&ref);
    buf_release(&text);
}

void section_trust(struct page *page, const struct report *r,
                   const struct report_style *style)
{
    char text[HUMAN_LEN];
    struct flow flow;
    flow_begin(&flow, page, "TRUST");
    flow_put(&flow, "%s events", human_count(text, r->events));
    flow_put(&flow, "%s lost", human_count(text, r->lost));
    if (isfinite(r->clock_error_ns))
        flow_put(&flow, "clock ±%s", human_duration(text, r->clock_error_ns));
    put_overhead(&flow, r);
    if (r->diagnosis.finding_count && r->diagnosis.findings[0].tries)
        flow_put(&flow, "this kind of advice: median error %.0f %%, %zu tr%s",
                 100 * r->diagnosis.findings[0].past_error,
                 r->diagnosis.findings[0].tries,
                 r->diagnosis.findings[0].tries == 1 ? "y" : "ies");
    put_doubts(&flow, r);
    flow_end(&flow);

    put_more(page, r, style);
}
