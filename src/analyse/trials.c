/* trials.c: see trials.h. */
#include "analyse/trials.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyse/trial_followed.h"
#include "base/buf.h"
#include "base/files.h"
#include "store/elsewhere.h"
#include "store/ledger.h"
#include "store/list.h"

/* Fewer steps say little. Runs that are opened to find one that worked. */
enum { LEAST_STEPS = 8, OPENED_MOST = 4 };

/* Of what was at stake: less is next to gone. */
static const double NEXT_TO_GONE = 1.0 / 3;

static bool worked(const struct report *r)
{
    return (r->state == RUN_GOOD || r->state == RUN_LEFT) && r->account.known &&
           r->account.steady >= LEAST_STEPS && r->account.mean_ns > 0;
}

/* ---- What is measured ------------------------------------------------------------------- */

/* Something that takes time, before and now; NaN: cannot be compared. */
struct measure {
    const char *what, *unit;
    double before, now;
};

/* A larger batch is for the same samples in fewer steps. */
static struct measure measure_sample(const struct report *before,
                                     const struct report *now)
{
    const struct loader *a = loaders_training(&before->loaders);
    const struct loader *b = loaders_training(&now->loaders);
    const bool known = a && b && a->batch_size > 0 && b->batch_size > 0;
    return (struct measure){
        "a sample of a step takes",
        "ms",
        known ? before->account.mean_ns / 1e6 / a->batch_size : NAN,
        known ? now->account.mean_ns / 1e6 / b->batch_size : NAN,
    };
}

static double loop_per_step_ms(const struct report *r)
{
    return account_loop_ns(&r->account) / 1e6 / (double)r->account.steps;
}

/* The quantity whose gain was predicted. */
static struct measure measure(const struct report *before, const struct report *now,
                              const struct finding *f)
{
    if (f->gain_of == GAIN_OF_LOOP)
        return (struct measure){ "with all that is between them a step takes", "ms",
                                 loop_per_step_ms(before), loop_per_step_ms(now) };
    if (f->gain_of == GAIN_OF_RUN) {
        const bool same = before->account.steps == now->account.steps;
        return (struct measure){ "the run takes", "s",
                                 same ? report_duration_s(before) : NAN,
                                 same ? report_duration_s(now) : NAN };
    }
    if (strcmp(f->id, "batch_too_small") == 0)
        return measure_sample(before, now);
    return (struct measure){ "a step takes", "ms", before->account.mean_ns / 1e6,
                             now->account.mean_ns / 1e6 };
}

/* ---- Which advice was tried -------------------------------------------------------------- */

struct tried {
    const struct finding *f, *left; /* left: what is there of it now; NULL gone */
    enum followed followed;
    struct measure m;
};

static bool is_over(const struct finding *before, const struct finding *left)
{
    return !left || (left->severity == SEVERITY_LOW &&
                     left->stake <= NEXT_TO_GONE * before->stake);
}

static bool was_tried(const struct report *before, const struct report *now,
                      const struct finding *f, struct tried *ret_tried)
{
    if (isnan(f->gain.mid) || f->symptom)
        return false;
    const struct tried t = { f, finding_by_id(&now->diagnosis, f->id),
                             trial_followed(before, now, f), measure(before, now, f) };
    if (t.followed == FOLLOWED_NOT || !(t.m.before > 0) || !(t.m.now > 0))
        return false;
    /* What is slower was no cure, unless it is sure that it was to be one. */
    const bool cured = is_over(f, t.left) && f->severity > SEVERITY_LOW &&
                       t.m.now < t.m.before;
    if (t.followed != FOLLOWED_SURELY && !cured)
        return false;
    *ret_tried = t;
    return true;
}

/* Two names for one illness, or one the reason for the other: a cure takes both. */
static bool go_together(const struct finding *a, const struct finding *b)
{
    for (size_t i = 0; i < b->because_count; i++)
        if (strcmp(b->because[i], a->id) == 0)
            return true;
    return a->gain_of == GAIN_OF_STEP && b->gain_of == GAIN_OF_STEP &&
           strcmp(a->bound_by, b->bound_by) == 0;
}

/* The first that surely was, else the first. False as well when several were that have
 * nothing to do with one another: what each brought cannot be told. */
static bool find_tried(const struct report *before, const struct report *now,
                       struct tried *ret_tried)
{
    const struct diagnosis *d = &before->diagnosis;
    struct tried best = { 0 }, one;
    bool several = false;
    for (size_t i = 0; i < d->finding_count; i++) {
        if (!was_tried(before, now, &d->findings[i], &one))
            continue;
        if (!best.f || one.followed > best.followed) {
            best = one;
            several = false;
        } else if (one.followed == best.followed && !go_together(best.f, one.f)) {
            several = true;
        }
    }
    if (!best.f || several)
        return false;
    *ret_tried = best;
    return true;
}

/* ---- What came of it --------------------------------------------------------------------- */

static void set_text(char ret_text[LEDGER_TEXT], const char *text)
{
    (void)snprintf(ret_text, LEDGER_TEXT, "%s", text);
}

static int tell(struct report *r, const struct tried *t, const struct ledger_entry *e)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "Since run %s %s is ", e->before, t->f->id);
    if (!t->left)
        buf_puts(&b, "gone");
    else if (t->left->severity != t->f->severity)
        buf_printf(&b, "%s instead of %s", severity_name(t->left->severity),
                   severity_name(t->f->severity));
    else
        buf_puts(&b, "still there, though its advice was followed");
    buf_printf(&b,
               ": %s %.3g %s instead of %.3g, %.0f %% %s; predicted were %.0f %% less "
               "(%.0f–%.0f).",
               t->m.what, t->m.now, t->m.unit, t->m.before, 100 * fabs(e->measured),
               e->measured < 0 ? "more" : "less", 100 * e->mid, 100 * e->low,
               100 * e->high);
    const char *copy = b.error ? NULL : arena_strdup(&r->arena, b.data);
    buf_release(&b);
    if (!copy)
        return -ENOMEM;
    r->since = copy;
    return 0;
}

int trial_between(const struct report *before, struct report *now, const char *dir)
{
    struct tried t;
    if (!worked(before) || !worked(now) || before->start_ns >= now->start_ns ||
        !trial_same_program(&before->run->meta, &now->run->meta) ||
        !find_tried(before, now, &t))
        return 0;
    struct ledger_entry e = {
        .time_ns = now->end_ns,
        .low = t.f->gain.low,
        .mid = t.f->gain.mid,
        .high = t.f->gain.high,
        .measured = 1 - t.m.now / t.m.before,
    };
    set_text(e.kind, t.f->id);
    set_text(e.program, path_base(trial_program(&now->run->meta)));
    set_text(e.before, before->run->id);
    set_text(e.after, now->run->id);
    if (!ledger_has(dir, e.before, e.after))
        (void)ledger_append(dir, &e);
    return tell(now, &t, &e);
}

/* ---- The run before ------------------------------------------------------------------------ */

static bool may_be_before(const struct run_row *row, const struct report *r)
{
    const struct run_exit *e = &row->meta.exit;
    return row->top_level && !row->live && row->started_ns < r->start_ns &&
           !(e->known && (e->signal || e->code > 0)) &&
           strcmp(row->id, r->run->id) != 0 &&
           trial_same_program(&row->meta, &r->run->meta);
}

/* 1: it worked and was compared. */
static int try_row(const struct run_row *row, struct report *r, const char *sonde_dir)
{
    struct run *run = NULL;
    struct report *before = NULL;
    int rc = run_open(row->dir, &run);
    if (rc == 0)
        rc = report_build(run, &before);
    if (rc == 0 && worked(before)) {
        rc = trial_between(before, r, sonde_dir);
        rc = rc < 0 ? rc : 1;
    }
    report_free(before);
    run_free(run);
    return rc == -ENOMEM || rc == 1 ? rc : 0;
}

int trial_enter(struct report *r, const char *sonde_dir)
{
    struct run_list list;
    if (!worked(r))
        return 0;
    int rc = run_list_read(sonde_dir, &list);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    if (elsewhere_add(sonde_dir, &list) == -ENOMEM)
        rc = -ENOMEM;
    int opened = 0;
    for (size_t i = 0; i < list.count && rc == 0 && opened < OPENED_MOST; i++)
        if (may_be_before(&list.rows[i], r)) {
            rc = try_row(&list.rows[i], r, sonde_dir);
            opened++;
        }
    run_list_release(&list);
    return rc < 0 ? rc : 0;
}

void trials_recall(struct report *r, const char *sonde_dir)
{
    for (size_t i = 0; i < r->diagnosis.finding_count; i++) {
        struct finding *f = &r->diagnosis.findings[i];
        struct ledger_record record;
        if (ledger_read(sonde_dir, f->id, &record) == 0 && record.tries) {
            f->tries = record.tries;
            f->past_error = record.median_error;
        }
    }
}
