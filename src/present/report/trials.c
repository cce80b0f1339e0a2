/* trials.c: cures that were measured before they were written (tune/trial.h). */
#include <math.h>

#include "analyse/trial_model.h"
#include "base/human.h"
#include "present/report/jsonparts.h"
#include "present/report/sections.h"

/* The command is never cut: it is there to be pasted. */
void section_offer(struct page *page, const struct report *r,
                   const struct report_style *style)
{
    struct buf ref = BUF_INIT;
    if (!(r->trial_offered_s > 0) || !r->next[0] || r->diagnosis.finding_count == 0 ||
        report_trial_of(r, &r->diagnosis.findings[0]))
        return;
    quote_word(&ref, style->ref ? style->ref : r->run->id);
    page_label(page, "");
    page_printf(page,
                "or have it measured first (about %.0f s, its results are thrown "
                "away):\n",
                ceil(r->trial_offered_s));
    page_label(page, "");
    page_printf(page, "sonde report %s --measure\n", ref.data);
    buf_release(&ref);
}

static void put_measured(struct buf *b, const char *of, double now_ns, double ns,
                         double low_ns, double high_ns, const struct trial_entry *t)
{
    char now[HUMAN_LEN], then[HUMAN_LEN], low[HUMAN_LEN], high[HUMAN_LEN];
    char count[HUMAN_LEN];
    const double change = 1 - ns / now_ns;
    buf_printf(b, "%s %s measured (%s – %s, ", human_duration(then, ns), of,
               human_duration(low, low_ns), human_duration(high, high_ns));
    if (t->median_of > 1)
        buf_printf(b, "median of %llu trials of ", (unsigned long long)t->median_of);
    buf_printf(b, "%s steps) instead of %s, %.0f %% %s", human_count(count, t->steps),
               human_duration(now, now_ns), 100 * fabs(change),
               change >= 0 ? "less" : "more");
}

static void put_trial(struct buf *b, const struct report *r,
                      const struct trial_entry *t)
{
    char said[HUMAN_LEN];
    const bool loop = trial_is_of_loop(r, t);
    const double model = trial_modelled_ns(r, t, loop);
    clean_text(b, t->asked, 60);
    buf_puts(b, ": ");
    if (loop)
        put_measured(b, "from the first step to the last", account_loop_ns(&r->account),
                     t->loop_ns, t->loop_low_ns, t->loop_high_ns, t);
    else
        put_measured(b, "per step", r->account.mean_ns, t->step_ns, t->low_ns,
                     t->high_ns, t);
    if (model > 0)
        buf_printf(b, "; the model had said %s", human_duration(said, model));
    if (t->note[0]) {
        buf_puts(b, "; ");
        clean_text(b, t->note, 200);
    }
}

void section_trials(struct page *page, const struct report *r, bool full)
{
    enum { SHOWN = 3 };
    const size_t from = !full && r->trial_count > SHOWN ? r->trial_count - SHOWN : 0;
    for (size_t i = from; i < r->trial_count; i++) {
        struct buf text = BUF_INIT;
        put_trial(&text, r, &r->trials[i]);
        page_paragraph(page, i > from ? "" : "TRIAL", BOLD, text.data);
        buf_release(&text);
    }
    if (r->trial_count)
        page_puts(page, PLAIN, "\n");
}

void field_trial(struct json_writer *w, const char *key, const struct trial_entry *t)
{
    if (key)
        json_key(w, key);
    if (!t) {
        json_put_null(w);
        return;
    }
    json_object_begin(w);
    if (!key) {
        field_text(w, "asked", t->asked);
        field_text(w, "finding", t->finding);
    }
    field_ms(w, "step_ms", t->step_ns);
    field_ms(w, "low_ms", t->low_ns);
    field_ms(w, "high_ms", t->high_ns);
    field_seconds(w, "loop_s", t->loop_ns);
    field_seconds(w, "loop_low_s", t->loop_low_ns);
    field_seconds(w, "loop_high_s", t->loop_high_ns);
    field_uint(w, "steps", t->steps);
    field_uint(w, "median_of", t->median_of);
    field_text(w, "note", t->note);
    json_object_end(w);
}

void fields_of_trials(struct json_writer *w, const struct report *r)
{
    json_key(w, "trials");
    json_array_begin(w);
    for (size_t i = 0; i < r->trial_count; i++)
        field_trial(w, NULL, &r->trials[i]);
    json_array_end(w);
}
