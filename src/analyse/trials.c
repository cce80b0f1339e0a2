/* trials.c: see trials.h. */
#include "analyse/trials.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"
#include "store/ledger.h"
#include "store/list.h"

/* Fewer steps say little. */
enum { LEAST_STEPS = 8 };

static bool ends(const char *text, const char *with)
{
    const size_t len = strlen(text), tail = strlen(with);
    return len >= tail && strcmp(text + len - tail, with) == 0;
}

/* What the person calls the program: its script, its module, else the command itself. */
static const char *program_of(const struct run_meta *m)
{
    for (size_t i = 0; i < m->command_count; i++) {
        if (ends(m->command[i], ".py") || ends(m->command[i], ".sh"))
            return m->command[i];
        if (strcmp(m->command[i], "-m") == 0 && i + 1 < m->command_count)
            return m->command[i + 1];
    }
    return m->command_count ? m->command[0] : "";
}

static bool same_program(const struct run_meta *a, const struct run_meta *b)
{
    return program_of(a)[0] && strcmp(program_of(a), program_of(b)) == 0 &&
           strcmp(a->cwd, b->cwd) == 0 && strcmp(a->host, b->host) == 0;
}

/* The newest one of the same program that began before. */
static const struct run_row *run_before(const struct report *r,
                                        const struct run_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct run_row *row = &list->rows[i];
        if (row->top_level && !row->live && row->started_ns < r->start_ns &&
            strcmp(row->id, r->run->id) != 0 && same_program(&row->meta, &r->run->meta))
            return row;
    }
    return NULL;
}

static bool has_steps(const struct report *r)
{
    return r->account.known && r->account.steady >= LEAST_STEPS &&
           r->account.mean_ns > 0;
}

static void set_text(char ret_text[LEDGER_TEXT], const char *text)
{
    (void)snprintf(ret_text, LEDGER_TEXT, "%s", text);
}

static int tell(struct report *r, const struct finding *f, const struct ledger_entry *e,
                double before_ns)
{
    struct buf b = BUF_INIT;
    buf_printf(&b,
               "Since run %s %s is gone: a step takes %.3g ms instead of %.3g, %.0f %% "
               "less; predicted were %.0f %% (%.0f–%.0f).",
               e->before, f->id, r->account.mean_ns / 1e6, before_ns / 1e6,
               100 * e->measured, 100 * e->mid, 100 * e->low, 100 * e->high);
    const char *copy = b.error ? NULL : arena_strdup(&r->arena, b.data);
    buf_release(&b);
    if (!copy)
        return -ENOMEM;
    r->since = copy;
    return 0;
}

static int compare(struct report *now, const struct report *before, const char *dir)
{
    const struct finding *f = before->diagnosis.finding_count
                                  ? &before->diagnosis.findings[0]
                                  : NULL;
    if (!f || isnan(f->gain.mid) || !has_steps(now) || !has_steps(before) ||
        finding_by_id(&now->diagnosis, f->id))
        return 0;
    struct ledger_entry e = {
        .time_ns = now->end_ns,
        .low = f->gain.low,
        .mid = f->gain.mid,
        .high = f->gain.high,
        .measured = 1 - now->account.mean_ns / before->account.mean_ns,
    };
    set_text(e.kind, f->id);
    set_text(e.program, path_base(program_of(&now->run->meta)));
    set_text(e.before, before->run->id);
    set_text(e.after, now->run->id);
    if (!ledger_has(dir, e.before, e.after))
        (void)ledger_append(dir, &e);
    return tell(now, f, &e, before->account.mean_ns);
}

int trial_enter(struct report *r, const char *sonde_dir)
{
    struct run_list list;
    struct run *run = NULL;
    struct report *before = NULL;
    int rc = run_list_read(sonde_dir, &list);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    const struct run_row *row = run_before(r, &list);
    if (row && run_open(row->dir, &run) == 0 && report_build(run, &before) == 0)
        rc = compare(r, before, sonde_dir);
    report_free(before);
    run_free(run);
    run_list_release(&list);
    return rc == -ENOMEM ? rc : 0;
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
