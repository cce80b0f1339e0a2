/* compare.c: the rows of a comparison and its verdict. */
#include "analyse/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/flops.h"
#include "base/buf.h"
#include "base/strmap.h"
#include "num/student.h"

enum { OPERATIONS_SHOWN = 200, WARM_UP_PARTS = 20 };

/* A mean, and how well it is known. */
struct estimate {
    double mean;
    double variance; /* of the mean; NaN: one number */
    double df;
};

static const struct estimate unknown = { NAN, NAN, NAN };

static struct estimate certain(double value)
{
    return (struct estimate){ value, NAN, NAN };
}

/* ---- Means with their spread -------------------------------------------------------- */

/* Neighbouring steps resemble one another: n of them say as much as
 * n (1 − ρ) / (1 + ρ) independent ones (an AR(1) process). */
static double correlation(const double *x, size_t n, double mean)
{
    double here = 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        here += (x[i] - mean) * (x[i] - mean);
        if (i + 1 < n)
            next += (x[i] - mean) * (x[i + 1] - mean);
    }
    const double rho = here > 0 ? next / here : 0;
    return rho < 0 ? 0 : rho > 0.95 ? 0.95 : rho;
}

static struct estimate of_values(const double *x, size_t n)
{
    if (n == 0)
        return unknown;
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    if (n < 8)
        return certain(mean);
    const double rho = correlation(x, n, mean);
    const double worth = fmax((double)n * (1 - rho) / (1 + rho), 2);
    return (struct estimate){ mean, squares / (double)(n - 1) / worth, worth - 1 };
}

/* The first steps allocate, compile and fill caches: they are left out. */
static struct estimate of_steps(const struct report *r)
{
    const struct step_series *s = &r->series;
    double values[STEP_POINTS];
    const size_t skip = (s->count + WARM_UP_PARTS - 1) / WARM_UP_PARTS;
    size_t n = 0;
    for (size_t i = skip; i < s->count; i++)
        values[n++] = s->points[i].mean_ns;
    if (n == 0)
        return r->steps.durations.count ? certain(r->steps.durations.mean) : unknown;
    return of_values(values, n);
}

static struct estimate of_calls(const struct distribution *d)
{
    if (d->count == 0)
        return unknown;
    const double std = distribution_std(d);
    if (d->count < 8 || isnan(std))
        return certain(d->mean);
    return (struct estimate){ d->mean, std * std / (double)d->count,
                              (double)d->count - 1 };
}

/* ---- Cells -------------------------------------------------------------------------- */

/* The interval of a ratio of two positive means, by their logarithms (delta method,
 * degrees of freedom after Welch). */
static void ratio_interval(const struct estimate *a, const struct estimate *b,
                           struct compare_cell *cell)
{
    const double va = a->variance / (a->mean * a->mean);
    const double vb = b->variance / (b->mean * b->mean);
    const double v = va + vb;
    if (isnan(v) || a->mean <= 0 || b->mean <= 0)
        return;
    const double df = v > 0 ? v * v / (va * va / a->df + vb * vb / b->df) : 1e9;
    const double reach = student_quantile(0.975, df) * sqrt(v);
    cell->low = cell->ratio * exp(-reach);
    cell->high = cell->ratio * exp(reach);
}

static struct compare_row *add_row(struct comparison *c, enum compare_section section,
                                   const char *name, enum compare_unit unit,
                                   enum compare_better better)
{
    if (c->row_count == c->row_cap) {
        const size_t cap = c->row_cap ? c->row_cap * 2 : 64;
        struct compare_row *grown = realloc(c->rows, cap * sizeof *grown);
        if (!grown)
            return NULL;
        c->rows = grown;
        c->row_cap = cap;
    }
    char *copy = arena_strdup(&c->arena, name);
    if (!copy)
        return NULL;
    struct compare_row *row = &c->rows[c->row_count++];
    *row = (struct compare_row){
        .section = section, .name = copy, .unit = unit, .better = better, .per = ""
    };
    return row;
}

/* False, and no row, when no run knows the thing. */
static bool fill(struct comparison *c, struct compare_row *row,
                 const struct estimate *of_runs)
{
    bool any = false;
    for (size_t i = 0; i < c->run_count; i++) {
        struct compare_cell cell = { of_runs[i].mean, NAN, NAN, NAN };
        any = any || !isnan(cell.value);
        if (i > 0 && of_runs[0].mean != 0) {
            cell.ratio = of_runs[i].mean / of_runs[0].mean;
            ratio_interval(&of_runs[0], &of_runs[i], &cell);
        }
        row->cells[i] = cell;
    }
    if (!any)
        c->row_count--;
    return any;
}

bool compare_cell_differs(const struct compare_cell *cell)
{
    return cell->low > 1 || cell->high < 1;
}

/* ---- Summary ------------------------------------------------------------------------ */

static double step_quantile(const struct report *r, double q)
{
    return r->steps.durations.count ? distribution_quantile(&r->steps.durations, q)
                                    : NAN;
}

static struct estimate step_mean(const struct report *r)
{
    return of_steps(r);
}
static struct estimate step_p95(const struct report *r)
{
    return certain(step_quantile(r, 0.95));
}
static struct estimate step_p99(const struct report *r)
{
    return certain(step_quantile(r, 0.99));
}
static struct estimate duration(const struct report *r)
{
    return certain(report_duration_s(r) * 1e9);
}
static struct estimate step_count(const struct report *r)
{
    return certain(r->steps.calls ? (double)r->steps.calls : NAN);
}
static struct estimate samples_rate(const struct report *r)
{
    return certain(step_samples_per_s(&r->steps));
}
static struct estimate cpu_use(const struct report *r)
{
    return certain(report_cpu_percent(r));
}
/* What a step asked of the processors: hardly moved by who else used them. */
static struct estimate cpu_per_step(const struct report *r)
{
    const double cpu_s = report_cpu_percent(r) / 100 * report_duration_s(r);
    return certain(r->steps.calls ? cpu_s * 1e9 / (double)r->steps.calls : NAN);
}
static struct estimate gpu_busy(const struct report *r)
{
    return certain(report_gpu_busy_share(r));
}
static struct estimate peak_memory(const struct report *r)
{
    return certain(report_peak_rss_mb(r) * 1048576);
}
static struct estimate heap_peak(const struct report *r)
{
    return certain(r->allocations.known ? (double)r->allocations.peak_bytes : NAN);
}
/* Counted in spells it is a number with a spread: some thousand stretches a minute. */
static struct estimate heap_count(const struct report *r)
{
    enum { STRETCHES = 1000 };
    const double count = r->allocations.known ? (double)r->allocations.count : NAN;
    return r->allocations.in_spells
               ? (struct estimate){ count, count * count / STRETCHES, STRETCHES - 1 }
               : certain(count);
}
static struct estimate bytes_read(const struct report *r)
{
    return certain(r->io.captured ? (double)r->io.total[0].bytes : NAN);
}
static struct estimate bytes_written(const struct report *r)
{
    return certain(r->io.captured ? (double)r->io.total[1].bytes : NAN);
}
static struct estimate energy(const struct report *r)
{
    return certain(r->energy.off ? NAN : r->energy.joules);
}

static struct estimate flops_per_step(const struct report *r)
{
    return certain(report_flops_per_step(r));
}
static struct estimate flops_rate(const struct report *r)
{
    return certain(report_flops_per_s(r));
}

static struct estimate system_calls(const struct report *r)
{
    return certain(r->syscalls.known ? (double)r->syscalls.count : NAN);
}

static const struct {
    const char *name;
    enum compare_unit unit;
    enum compare_better better;
    struct estimate (*of)(const struct report *r);
} summary_rows[] = {
    { "step time", UNIT_NS, BETTER_LOWER, step_mean },
    { "step time p95", UNIT_NS, BETTER_LOWER, step_p95 },
    { "step time p99", UNIT_NS, BETTER_LOWER, step_p99 },
    { "samples per second", UNIT_RATE, BETTER_HIGHER, samples_rate },
    { "duration", UNIT_NS, BETTER_LOWER, duration },
    { "steps", UNIT_COUNT, BETTER_NEITHER, step_count },
    { "CPU time per step", UNIT_NS, BETTER_LOWER, cpu_per_step },
    { "CPU", UNIT_PERCENT, BETTER_NEITHER, cpu_use },
    { "GPU busy", UNIT_SHARE, BETTER_HIGHER, gpu_busy },
    { "peak memory", UNIT_BYTES, BETTER_LOWER, peak_memory },
    { "peak heap", UNIT_BYTES, BETTER_LOWER, heap_peak },
    { "allocations", UNIT_COUNT, BETTER_LOWER, heap_count },
    { "bytes read", UNIT_BYTES, BETTER_NEITHER, bytes_read },
    { "bytes written", UNIT_BYTES, BETTER_NEITHER, bytes_written },
    { "system calls", UNIT_COUNT, BETTER_LOWER, system_calls },
    { "FLOPs per step", UNIT_FLOPS, BETTER_NEITHER, flops_per_step },
    { "FLOPs per second", UNIT_FLOPS, BETTER_HIGHER, flops_rate },
    { "energy", UNIT_JOULES, BETTER_LOWER, energy },
};

static int add_summary(struct comparison *c)
{
    for (size_t k = 0; k < sizeof summary_rows / sizeof *summary_rows; k++) {
        struct estimate of_runs[COMPARE_RUNS] = { 0 };
        struct compare_row *row = add_row(c, COMPARE_SUMMARY, summary_rows[k].name,
                                          summary_rows[k].unit, summary_rows[k].better);
        if (!row)
            return -ENOMEM;
        for (size_t i = 0; i < c->run_count; i++)
            of_runs[i] = summary_rows[k].of(c->runs[i]);
        (void)fill(c, row, of_runs);
    }
    return 0;
}

/* ---- Phases ------------------------------------------------------------------------- */

static bool all_have_steps(const struct comparison *c)
{
    for (size_t i = 0; i < c->run_count; i++)
        if (c->runs[i]->steps.calls < 2)
            return false;
    return true;
}

static bool all_have_phases(const struct comparison *c)
{
    for (size_t i = 0; i < c->run_count; i++)
        if (!c->runs[i]->phases.has_main)
            return false;
    return true;
}

/* Per step where all have steps: runs of different length compare then. */
static int add_phases(struct comparison *c)
{
    const bool steps = all_have_steps(c);
    if (!all_have_phases(c))
        return 0;
    for (int phase = 1; phase < SONDE_PHASE_COUNT; phase++) {
        struct estimate of_runs[COMPARE_RUNS] = { 0 };
        double sum = 0;
        for (size_t i = 0; i < c->run_count; i++) {
            const struct report *r = c->runs[i];
            sum += r->phases.total_ns[phase];
            of_runs[i] = certain(r->phases.total_ns[phase] /
                                 (steps ? (double)r->steps.calls : 1));
        }
        struct compare_row *row = sum > 0 ? add_row(c, COMPARE_PHASES,
                                                    sonde_phase_name(phase), UNIT_NS,
                                                    BETTER_LOWER)
                                          : NULL;
        if (sum > 0 && !row)
            return -ENOMEM;
        if (row && fill(c, row, of_runs))
            row->per = steps ? "step" : "";
    }
    return 0;
}

/* ---- Operations --------------------------------------------------------------------- */

struct operation {
    const char *path;
    double most_moved;
    const struct op *ops[COMPARE_RUNS]; /* NULL: not in that run */
};

static void join_path(struct buf *out, const struct op_table *t, size_t index)
{
    enum { DEEP = 64 };
    size_t chain[DEEP], n = 0;
    for (size_t at = index; at && n < DEEP; at = t->ops[at].parent)
        chain[n++] = at;
    while (n > 0) {
        buf_puts(out, t->ops[chain[--n]].name);
        if (n > 0)
            buf_puts(out, " › ");
    }
}

static int by_movement(const void *a, const void *b)
{
    const struct operation *x = a, *y = b;
    return (x->most_moved < y->most_moved) - (x->most_moved > y->most_moved);
}

/* How much of a second per step the operation moved, at most. */
static double movement(const struct comparison *c, const struct operation *o)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < c->run_count; i++) {
        const double steps = fmax((double)c->runs[i]->steps.calls, 1);
        const double ns = o->ops[i] ? o->ops[i]->self_ns / steps : 0;
        low = fmin(low, ns);
        high = fmax(high, ns);
    }
    return high - low;
}

struct operations {
    struct strmap index;
    struct operation *list;
    size_t count, cap;
};

static struct operation *operation_of(struct comparison *c, struct operations *all,
                                      const struct buf *path)
{
    bool added = false;
    struct strmap_entry *e = strmap_enter(&all->index, path->data, path->len, &added);
    if (!e)
        return NULL;
    if (!added)
        return &all->list[e->value];
    if (all->count == all->cap) {
        const size_t cap = all->cap ? all->cap * 2 : 256;
        struct operation *grown = realloc(all->list, cap * sizeof *grown);
        if (!grown)
            return NULL;
        all->list = grown;
        all->cap = cap;
    }
    e->value = all->count;
    char *copy = arena_strdup(&c->arena, path->data);
    if (!copy)
        return NULL;
    all->list[all->count] = (struct operation){ .path = copy };
    return &all->list[all->count++];
}

static int collect_operations(struct comparison *c, struct operations *all)
{
    struct buf path = BUF_INIT;
    int rc = 0;
    for (size_t run = 0; rc == 0 && run < c->run_count; run++) {
        const struct op_table *t = &c->runs[run]->ops;
        for (size_t i = 1; rc == 0 && i < t->count; i++) {
            if (t->ops[i].kind != OP_ZONE && t->ops[i].kind != OP_SPAN)
                continue;
            buf_clear(&path);
            join_path(&path, t, i);
            struct operation *o = operation_of(c, all, &path);
            if (!o)
                rc = -ENOMEM;
            else if (!o->ops[run]) /* one path at two places: the longer one */
                o->ops[run] = &t->ops[i];
        }
    }
    buf_release(&path);
    return rc;
}

static int add_operations(struct comparison *c)
{
    struct operations all = { .index = STRMAP_INIT };
    int rc = collect_operations(c, &all);
    for (size_t i = 0; i < all.count; i++)
        all.list[i].most_moved = movement(c, &all.list[i]);
    if (all.count)
        qsort(all.list, all.count, sizeof *all.list, by_movement);
    for (size_t k = 0; rc == 0 && k < all.count && k < OPERATIONS_SHOWN; k++) {
        struct estimate of_runs[COMPARE_RUNS] = { 0 };
        struct compare_row *row = add_row(c, COMPARE_OPERATIONS, all.list[k].path,
                                          UNIT_NS, BETTER_LOWER);
        if (!row) {
            rc = -ENOMEM;
            break;
        }
        for (size_t i = 0; i < c->run_count; i++)
            of_runs[i] = all.list[k].ops[i] ? of_calls(&all.list[k].ops[i]->durations)
                                            : unknown;
        if (fill(c, row, of_runs))
            row->per = "call";
    }
    free(all.list);
    strmap_release(&all.index);
    return rc;
}

/* ---- Metrics ------------------------------------------------------------------------ */

static double metric_of(const struct report *r, const char *name)
{
    for (const struct op_value *m = r->metrics; m; m = m->next)
        if (strcmp(m->name, name) == 0)
            return m->last;
    return NAN;
}

static bool has_row(const struct comparison *c, enum compare_section section,
                    const char *name)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].section == section && strcmp(c->rows[i].name, name) == 0)
            return true;
    return false;
}

static int add_metric(struct comparison *c, const char *name)
{
    struct estimate of_runs[COMPARE_RUNS] = { 0 };
    struct compare_row *row = add_row(c, COMPARE_METRICS, name, UNIT_PLAIN,
                                      BETTER_NEITHER);
    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < c->run_count; i++)
        of_runs[i] = certain(metric_of(c->runs[i], name));
    (void)fill(c, row, of_runs);
    return 0;
}

static const char *find_quality(const struct comparison *c, const char *asked)
{
    static const char *const usual[] = { "accuracy", "acc", "val_accuracy", "val_acc",
                                         "test_accuracy" };
    if (asked)
        return asked;
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        for (size_t i = 0; i < c->run_count; i++)
            if (!isnan(metric_of(c->runs[i], usual[k])))
                return usual[k];
    return NULL;
}

/* What a second of the run bought (C7). */
static int add_quality(struct comparison *c, const char *name)
{
    struct estimate of_runs[COMPARE_RUNS] = { 0 };
    struct buf label = BUF_INIT;
    buf_printf(&label, "%s per second", name);
    struct compare_row *row = add_row(c, COMPARE_METRICS, label.data, UNIT_PLAIN,
                                      BETTER_HIGHER);
    buf_release(&label);
    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < c->run_count; i++)
        of_runs[i] = certain(metric_of(c->runs[i], name) /
                             report_duration_s(c->runs[i]));
    (void)fill(c, row, of_runs);
    return 0;
}

static int add_metrics(struct comparison *c, const char *quality)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->run_count; i++)
        for (const struct op_value *m = c->runs[i]->metrics; rc == 0 && m; m = m->next)
            if (!has_row(c, COMPARE_METRICS, m->name))
                rc = add_metric(c, m->name);
    const char *name = find_quality(c, quality);
    if (rc == 0 && name)
        rc = add_quality(c, name);
    return rc;
}

/* ---- In words ----------------------------------------------------------------------- */

static char *keep(struct comparison *c, struct buf *text)
{
    char *copy = arena_strdup(&c->arena, text->data ? text->data : "");
    buf_release(text);
    return copy;
}

static const struct compare_row *speed_row(const struct comparison *c)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (strcmp(c->rows[i].name, "step time") == 0)
            return &c->rows[i];
    return NULL;
}

static void put_change(struct buf *out, const struct compare_cell *cell)
{
    const bool slower = cell->ratio > 1;
    buf_printf(out, "%.1f %% %s", fabs(cell->ratio - 1) * 100,
               slower ? "slower" : "faster");
    if (!isnan(cell->low))
        buf_printf(out, " (%+.1f to %+.1f %% step time)", (cell->low - 1) * 100,
                   (cell->high - 1) * 100);
}

static void put_speed(struct buf *out, const struct comparison *c,
                      const struct compare_row *row, size_t run)
{
    const struct compare_cell *cell = &row->cells[run];
    if (isnan(cell->ratio))
        return;
    if (out->len)
        buf_puts(out, " ");
    buf_printf(out, "%s: ", c->labels[run]);
    if (isnan(cell->low)) {
        put_change(out, cell);
        buf_puts(out, ", from too few steps to tell how sure that is.");
    } else if (compare_cell_differs(cell)) {
        put_change(out, cell);
        buf_puts(out, ".");
    } else {
        buf_printf(out, "no difference in step time seen (%+.1f to %+.1f %%).",
                   (cell->low - 1) * 100, (cell->high - 1) * 100);
    }
}

static const char *verdict_of(struct comparison *c)
{
    struct buf text = BUF_INIT;
    const struct compare_row *row = speed_row(c);
    if (!c->same_hardware) {
        buf_puts(&text, "No verdict on speed: the runs had different hardware.");
    } else if (!row) {
        buf_puts(&text,
                 "No verdict on speed: no run has steps (sonde bench times whole "
                 "programs).");
    } else {
        for (size_t i = 1; i < c->run_count; i++)
            put_speed(&text, c, row, i);
        if (!text.len)
            buf_puts(&text, "No verdict on speed: not all runs have steps.");
        else if (c->disturbed)
            buf_puts(&text,
                     " But others used the processors meanwhile: compare CPU time "
                     "per step, or repeat both on a quiet machine (sonde check).");
    }
    return keep(c, &text);
}

static double batch_of(const struct report *r)
{
    static const char *const names[] = { "batch", "batch_size", "batch-size", "bs" };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (size_t i = 0; i < r->param_count; i++)
            if (strcmp(r->params[i].key, names[k]) == 0) {
                const double value = strtod(r->params[i].value, NULL);
                return value > 0 ? value : NAN;
            }
    if (r->steps.samples == 0 || r->steps.calls == 0)
        return NAN;
    return round((double)r->steps.samples / (double)r->steps.calls);
}

/* The batch size with the highest throughput, when they differ (C4). */
static const char *best_batch(struct comparison *c)
{
    double best_rate = 0, best = NAN, low = INFINITY, high = 0;
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < c->run_count; i++) {
        const double batch = batch_of(c->runs[i]);
        const double rate = step_samples_per_s(&c->runs[i]->steps);
        if (isnan(batch) || isnan(rate))
            return "";
        low = fmin(low, batch);
        high = fmax(high, batch);
        if (rate > best_rate) {
            best_rate = rate;
            best = batch;
        }
    }
    if (low >= high || !c->same_hardware)
        return "";
    buf_printf(&text, "%.0f gives the most samples per second: %.4g", best, best_rate);
    if (best == high)
        buf_puts(&text, "; it is the largest tried: a larger one may give more");
    return keep(c, &text);
}

static bool label_taken(const struct comparison *c, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(c->labels[i], label) == 0)
            return true;
    return false;
}

static bool make_labels(struct comparison *c)
{
    for (size_t i = 0; i < c->run_count; i++) {
        const struct run *run = c->runs[i]->run;
        const char *name = run->meta.name[0] ? run->meta.name : run->id;
        struct buf text = BUF_INIT;
        buf_puts(&text, label_taken(c, i, name) ? run->id : name);
        if (label_taken(c, i, text.data))
            buf_printf(&text, " #%zu", i + 1);
        c->labels[i] = keep(c, &text);
        if (!c->labels[i])
            return false;
    }
    return true;
}

int compare_runs(const struct report *const *runs, size_t count, const char *quality,
                 struct comparison **ret_comparison)
{
    if (count < 2 || count > COMPARE_RUNS)
        return -EINVAL;
    struct comparison *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    arena_init(&c->arena);
    for (size_t i = 0; i < count; i++)
        c->runs[i] = runs[i];
    c->run_count = count;
    int rc = make_labels(c) ? compare_setups(c) : -ENOMEM;
    if (rc == 0)
        rc = add_summary(c);
    if (rc == 0)
        rc = add_phases(c);
    if (rc == 0)
        rc = add_operations(c);
    if (rc == 0)
        rc = add_metrics(c, quality);
    if (rc == 0) {
        c->verdict = verdict_of(c);
        c->batch = best_batch(c);
        c->since = c->run_count == 2 ? c->runs[1]->since : "";
        rc = c->verdict && c->batch ? 0 : -ENOMEM;
    }
    if (rc < 0) {
        comparison_free(c);
        return rc;
    }
    *ret_comparison = c;
    return 0;
}

void comparison_free(struct comparison *c)
{
    if (!c)
        return;
    free(c->rows);
    arena_release(&c->arena);
    free(c);
}
