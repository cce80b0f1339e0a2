/* verdict.c: one sentence about where the time went, or how the run ended.
 *
 * It says only what the trace shows. What limits the run, and what to do about it,
 * are findings, and those come from rules, not from here.
 */
#include "analyse/parts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyse/pylines.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/human.h"

/* A part of a phase smaller than this explains nothing. */
static const double WORTH_NAMING = 0.1;

static bool died(const struct report *r)
{
    return r->state == RUN_KILLED || r->state == RUN_FAILED || r->state == RUN_UNKNOWN;
}

/* The process it is about: the one that died first, else the main one. */
static size_t process_in_question(const struct report *r)
{
    const uint32_t pid = r->run->meta.death.pid;
    for (size_t i = 0; pid && i < r->process_count; i++)
        if (r->processes[i].pid == pid)
            return i;
    return r->main_process;
}

/* The thread a reader asks about first: the main one of that process. */
static const struct open_thread *first_thread(const struct report *r)
{
    const size_t process = process_in_question(r);
    const struct open_thread *best = NULL;
    for (size_t i = 0; i < r->thread_count; i++) {
        const struct open_thread *t = &r->threads[i];
        if (t->process == process && (t->is_main || !best))
            best = t;
        if (best == t && t->is_main)
            break;
    }
    return best;
}

/* The supervisor's own words; its first one in capitals, as all deaths. */
static void put_explanation(struct buf *b, const struct report *r)
{
    const char *text = r->run->meta.death.text;
    const size_t first = strcspn(text, " :,");
    char time[HUMAN_LEN], count[HUMAN_LEN];
    const struct open_thread *t = first_thread(r);
    for (size_t i = 0; i < first; i++)
        buf_putc(b, (char)toupper((unsigned char)text[i]));
    buf_puts(b, text + first);
    if (t)
        buf_printf(b, ", in zone %s", t->zones[t->zone_count - 1].name);
    if (r->last_step)
        buf_printf(b, "%s step %s", t ? " of" : ", after",
                   human_count(count, r->last_step));
    if (!isnan(report_duration_s(r)))
        buf_printf(b, ", after %s", human_duration(time, report_duration_s(r) * 1e9));
    buf_puts(b, ".");
}

static void put_death(struct buf *b, const struct report *r)
{
    char words[96];
    char time[HUMAN_LEN];
    const struct open_thread *t = first_thread(r);
    (void)report_state_words(r, words, sizeof(words));
    if (r->state == RUN_UNKNOWN)
        buf_puts(b, "ENDED UNSEEN. Nobody saw how the program ended");
    else if (r->state == RUN_KILLED)
        buf_printf(b, "KILLED by %s", words + sizeof("killed by ") - 1);
    else
        buf_printf(b, "FAILED with %s", words);
    if (!isnan(report_duration_s(r)))
        buf_printf(b, " after %s", human_duration(time, report_duration_s(r) * 1e9));
    if (t)
        buf_printf(b, ", in %s", t->zones[t->zone_count - 1].name);
    buf_puts(b, ".");
}

/* Time in no phase is the program's own: at which of its lines, if Python tells. Not where
 * a model, a loader or an import has the time, nor where the program's own code has more
 * of it than is outside of phases: then the line may well be in one. */
static void put_own_line(struct buf *b, struct report *r)
{
    struct py_lines lines;
    if (pylines_read(r, &lines) < 0 || !lines.present)
        return;
    const struct py_place *most = &lines.top[PY_PLAIN];
    const double share = most->ns / lines.main_ns;
    const double other = r->phases.share[SONDE_OTHER];
    if (!(share >= 0.2) || lines.used_ns[PY_PLAIN] > 1.1 * other * lines.main_ns)
        return;
    buf_printf(b, "; %.0f %% is at %s:%u, in %s", 100 * share, path_base(most->file),
               most->line, most->function);
}

static void put_phase(struct buf *b, struct report *r)
{
    const int phase = phase_largest(&r->phases);
    const double percent = r->phases.share[phase] * 100;
    if (phase == SONDE_OTHER) {
        buf_printf(b, "%.0f %% of the main thread's time is outside any phase",
                   percent);
        put_own_line(b, r);
        buf_putc(b, '.');
    } else
        buf_printf(b, "%.0f %% of the main thread's time is in %s.", percent,
                   sonde_phase_name(phase));
}

/* The line on which the main thread of a Python program spent most of its time. */
static void put_python(struct buf *b, const struct report *r)
{
    const struct py_profile *p = &r->python;
    const struct py_line *l = &p->lines[0];
    const double cpu = l->self.wall_ns > 0 ? l->self.cpu_ns / l->self.wall_ns : 0;
    buf_printf(b,
               "%.0f %% of the main thread's time is at %s:%u, in %s%s; no zones "
               "were recorded.",
               100 * l->self.wall_ns / p->wall_ns, path_base(l->file), l->line,
               l->function, cpu < 0.1 ? ", waiting" : "");
}

/* How much of the time the program ran at all. */
static void put_usage(struct buf *b, const struct report *r)
{
    const double cores = report_cpu_percent(r) / 100;
    char cpu[HUMAN_LEN], wall[HUMAN_LEN];
    const double seconds = report_duration_s(r);
    buf_printf(b, "The program used %s of CPU time in %s",
               human_duration(cpu, cores * seconds * 1e9),
               human_duration(wall, seconds * 1e9));
    if (cores < 0.5)
        buf_printf(b, ": it waited %.0f %% of the time", 100 * (1 - cores));
    buf_puts(b, "; no zones were recorded.");
}

/* Fewer say little about a program. */
enum { ENOUGH_SAMPLES = 20 };

/* Without zones there are still the samples. */
static void put_sampled(struct buf *b, const struct report *r)
{
    const struct hot_functions *h = &r->hot;
    const struct hot_function *f = &h->functions[0];
    char cpu[HUMAN_LEN];
    buf_printf(b, "%.0f %% of %s of CPU time is in %s", 100 * f->share,
               human_duration(cpu, h->cpu_ns), f->name);
    if (f->file[0] && f->line)
        buf_printf(b, ", %s:%u", path_base(f->file), f->line);
    buf_puts(b, "; no zones were recorded.");
}

static void put_nothing(struct buf *b, const struct report *r)
{
    const bool usage = isfinite(report_cpu_percent(r)) && report_duration_s(r) > 0;
    if (r->process_count == 0 && r->files_left_out)
        buf_puts(b, "No trace of this run can be read.");
    else if (r->python.line_count > 0 && r->python.wall_ns > 0)
        put_python(b, r);
    else if (r->hot.function_count > 0 && r->hot.samples >= ENOUGH_SAMPLES &&
             (!usage || report_cpu_percent(r) >= 50))
        put_sampled(b, r);
    else if (usage)
        put_usage(b, r);
    else if (r->process_count == 0)
        buf_puts(b, "Nothing was recorded: no process of this run used Sonde.");
    else
        buf_puts(b, "No zones were recorded.");
}

static bool has_zones(const struct report *r)
{
    return r->main_process != SIZE_MAX && r->phases.wall_ns > 0 &&
           r->ops.ops[0].total_ns > 0;
}

/* The phase an operation's own time counts for. */
static int phase_of(const struct report *r, uint32_t index)
{
    for (; index; index = r->ops.ops[index].parent)
        if (r->ops.ops[index].phase != SONDE_NO_PHASE)
            return r->ops.ops[index].phase;
    return SONDE_OTHER;
}

static uint32_t longest_in(const struct report *r, int phase)
{
    uint32_t best = 0;
    for (size_t i = 0; i < r->ops.order_count; i++) {
        const uint32_t at = r->ops.order[i];
        const struct op *op = &r->ops.ops[at];
        if (op->kind != OP_ZONE || phase_of(r, at) != phase)
            continue;
        if (op->main_self_ns > r->ops.ops[best].main_self_ns)
            best = at;
    }
    return best;
}

/* The operation with most self time in the largest phase, with its place. */
static void put_longest(struct buf *b, const struct report *r)
{
    const int phase = phase_largest(&r->phases);
    const uint32_t index = longest_in(r, phase);
    char self[HUMAN_LEN];
    char calls[HUMAN_LEN];
    const double share = r->ops.ops[index].main_self_ns / r->phases.total_ns[phase];
    if (!index || share < WORTH_NAMING)
        return;
    const struct op *op = &r->ops.ops[index];
    buf_printf(b, "%s%.0f %% of that is %s", b->len ? " " : "", share * 100, op->name);
    if (op->file[0])
        buf_printf(b, ", %s:%d", path_base(op->file), op->line);
    buf_printf(b, ": %s self time in %s call%s.",
               human_duration(self, op->main_self_ns),
               human_count(calls, op->main_count), op->main_count == 1 ? "" : "s");
}

int verdict_write(struct report *report)
{
    struct buf verdict = BUF_INIT;
    struct buf why = BUF_INIT;
    const bool zones = has_zones(report);

    if (died(report) && report->run->meta.death.text[0])
        put_explanation(&verdict, report);
    else if (died(report))
        put_death(&verdict, report);
    else if (zones)
        put_phase(&verdict, report);
    else
        put_nothing(&verdict, report);
    if (died(report) && zones)
        put_phase(&why, report);
    else if (died(report))
        put_nothing(&why, report);
    if (zones)
        put_longest(&why, report);

    int rc = verdict.error ? verdict.error : why.error;
    if (rc == 0) {
        report->verdict = arena_strdup(&report->arena, verdict.data);
        report->why = arena_strdup(&report->arena, why.data);
        if (!report->verdict || !report->why)
            rc = -ENOMEM;
    }
    buf_release(&verdict);
    buf_release(&why);
    return rc;
}
