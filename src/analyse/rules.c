/* rules.c: the list of all rules, and the engine that asks them.
 *
 * Each rule is asked by itself. Then they are put in order: who is explained by another
 * finding stands behind it. Severity comes from what is at stake alone, so that a
 * symptom behind its cause may well be critical too.
 */
#include "analyse/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/whatif.h"

/* Every family there is. */
static const struct rule *const families[] = { rules_input, rules_files,  rules_workers,
                                               rules_host,  rules_memory, rules_step,
                                               rules_gpu,   rules_ranks,  NULL };

static const char *const family_names[] = {
    [RULES_INPUT] = "input", [RULES_HOST] = "host", [RULES_MEMORY] = "memory",
    [RULES_STEP] = "step",   [RULES_GPU] = "gpu",   [RULES_RANKS] = "ranks",
};

/* Who explains must have at least this part of what is at stake in the explained. */
static const double EXPLAINS = 0.4;
/* Room between the scores of a cause and what it explains. */
static const double BEHIND = 0.01;

const struct rule *rule_at(size_t index)
{
    for (size_t f = 0; families[f]; f++)
        for (const struct rule *r = families[f]; r->id; r++)
            if (index-- == 0)
                return r;
    return NULL;
}

size_t rule_total(void)
{
    size_t n = 0;
    while (rule_at(n))
        n++;
    return n;
}

const char *severity_name(enum severity severity)
{
    static const char *const names[] = { "low", "medium", "high", "critical" };
    return names[severity];
}

const struct finding *finding_by_id(const struct diagnosis *d, const char *id)
{
    for (size_t i = 0; i < d->finding_count; i++)
        if (strcmp(d->findings[i].id, id) == 0)
            return &d->findings[i];
    return NULL;
}

/* ---- Words ---------------------------------------------------------------------------- */

double rule_steady(const struct rule_case *c)
{
    const double steady = FACT_OF(c, STEADY_SHARE);
    return isnan(steady) ? 1 : steady;
}

/* Below its limit such a wait is none that anybody would cure. */
static double wait_share(double share, double limit)
{
    return share >= limit ? fmin(share, 1) : 0;
}

double rule_stretched(const struct rule_case *c)
{
    const double lock = wait_share(FACT_OF(c, GIL_WAIT_SHARE), c->t->gil_wait);
    const double quota = wait_share(FACT_OF(c, THROTTLED_SHARE), c->t->throttled);
    return 1 - (1 - lock) * (1 - quota);
}

const char *rule_loop_words(const struct rule_case *c)
{
    return FACT_OF(c, LOOP_S) > 0 ? "the time from the first step to the last"
                                  : "the run";
}

double rule_of_run(const struct rule_case *c, double step_share)
{
    return step_share * rule_steady(c) * (1 - rule_stretched(c));
}

double rule_in_pieces(const struct rule_case *c, double work)
{
    return work * fmin(1.2 / fmax(FACT_OF(c, CORES), 1), 1);
}

double rule_nearness(double value, double from, double limit)
{
    if (!(limit > from))
        return value >= limit ? 0.5 : 0;
    return fmin(0.1 + 0.4 * (value - from) / (limit - from), 1);
}

void put_place(struct buf *b, const char *before, const char *place)
{
    if (place[0])
        buf_printf(b, "%s%s", before, place);
}

void draft_time(const struct rule_case *c, struct draft *d, double share, double low,
                double mid, double high)
{
    d->stake = rule_of_run(c, share);
    d->gain = (struct gain){ share * low, share * mid, share * high };
}

/* ---- Asking one rule -------------------------------------------------------------------- */

struct engine {
    const struct rule_case *c;
    struct arena *arena;
    struct diagnosis *d;
    const struct rule **asked; /* of findings, at the same index */
    int rc;
};

static const char *keep(struct engine *e, const struct buf *b)
{
    const char *copy = b->len ? arena_strdup(e->arena, b->data) : "";
    if (b->error || !copy)
        e->rc = -ENOMEM;
    return copy ? copy : "";
}

static enum severity severity_of(const struct thresholds *t, double stake)
{
    if (stake >= t->critical)
        return SEVERITY_CRITICAL;
    if (stake >= t->high)
        return SEVERITY_HIGH;
    return stake >= t->medium ? SEVERITY_MEDIUM : SEVERITY_LOW;
}

/* What is measured of everything, and says nothing where there is next to none of it. */
static bool is_noise(enum fact fact, double value)
{
    static const struct {
        enum fact fact;
        double least;
    } quiet[] = {
        { FACT_OPENS_PER_STEP, 0.5 },     { FACT_LOOKS_PER_STEP, 0.5 },
        { FACT_COLD_SHARE, 0.005 },       { FACT_PREPROCESSING_SHARE, 0.005 },
        { FACT_COLLATE_SHARE, 0.005 },    { FACT_IO_PRESSURE, 0.005 },
        { FACT_MEMORY_PRESSURE, 0.005 },  { FACT_WRITE_SHARE, 0.005 },
        { FACT_SYNC_IO_SHARE, 0.005 },    { FACT_HUGE_BLOCKS_SHARE, 0.005 },
        { FACT_QUEUE_WAIT_SHARE, 0.005 },
    };
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        if (quiet[i].fact == fact)
            return value < quiet[i].least;
    return false;
}

static void add_evidence(const struct facts *f, const enum fact *list, bool needed,
                         struct finding *n)
{
    for (size_t i = 0; i < RULE_FACTS && list[i] != FACT_NONE; i++) {
        const struct fact_info *info = &fact_infos[list[i]];
        if (n->evidence_count == EVIDENCE_MAX || !isfinite(f->v[list[i]]) ||
            (!needed && is_noise(list[i], f->v[list[i]])))
            continue;
        n->evidence[n->evidence_count++] = (struct finding_evidence){
            info->metric, info->unit,
            f->source[list[i]] ? f->source[list[i]] : info->source, f->v[list[i]]
        };
    }
}

/* The low end of a range is said as a part of the illness that stays. Where nearly all of
 * a step would go, that is far too much: what stays is seldom more than four times what
 * was predicted to, and a twentieth of the step that nobody foresaw. */
static struct gain bounded(struct gain g)
{
    const double stays = 1 - g.mid;
    const double least = 1 - 4 * stays - 0.05;
    if (isnan(g.mid))
        return g;
    if (least > g.low && least < g.mid)
        g.low = least;
    const double unsure = forecast_unsure(g.mid);
    g.low = fmin(g.low, fmax(1 - unsure * stays, 0));
    g.high = fmax(g.high, 1 - stays / unsure);
    /* Cures of 24 programs that no formula was made with left up to so much less than was
     * predicted (all but one): the more goes, the less is known of what stays. */
    g.high = fmax(g.high, 1 - stays * (1 - 0.45 * sqrt(fmax(g.mid, 0))));
    return g;
}

/* With others on the machine, steps before and after a change also differ by what those
 * do: the range says so. */
static struct gain widened(const struct facts *f, struct gain g)
{
    const double others = f->v[FACT_FOREIGN_CORES] / f->v[FACT_CORES];
    if (!(others > 0) || isnan(g.mid))
        return g;
    const double by = 0.25 * fmin(others, 1);
    g.low = fmax(g.low - by * (1 - g.low), fmin(g.low, 0));
    g.high = 1 - (1 - g.high) * (1 - by);
    return g;
}

/* Nothing saves more than there is, whatever measured parts add up to. */
static struct gain within_all(struct gain g)
{
    if (isnan(g.mid))
        return g;
    return (struct gain){ fmin(g.low, 0.999), fmin(g.mid, 0.999), fmin(g.high, 0.999) };
}

static void add_finding(struct engine *e, const struct rule *rule,
                        const struct draft *draft)
{
    struct finding n = {
        .id = rule->id,
        .title = rule->title,
        .bound_by = family_names[rule->family],
        .symptom = rule->symptom,
        .stake = fmin(fmax(draft->stake, 0), 1),
        .description = keep(e, &draft->text),
        .recommendation = keep(e, &draft->advice),
        .place = draft->place,
        .gain_of = rule->gain_of,
        .gain = widened(e->c->f, bounded(within_all(draft->gain))),
        .past_error = NAN,
    };
    n.score = n.stake;
    n.severity = severity_of(e->c->t, n.stake);
    if (draft->because.len)
        n.because[n.because_count++] = keep(e, &draft->because);
    add_evidence(e->c->f, rule->needs, true, &n);
    add_evidence(e->c->f, rule->shows, false, &n);
    e->asked[e->d->finding_count] = rule;
    e->d->findings[e->d->finding_count++] = n;
}

static const char *missing_fact(const struct facts *f, const struct rule *rule)
{
    for (size_t i = 0; i < RULE_FACTS && rule->needs[i] != FACT_NONE; i++)
        if (!fact_known(f, rule->needs[i]))
            return fact_infos[rule->needs[i]].metric;
    return NULL;
}

enum { ALONE_LOW = 1, NEEDS_CAUSE = 2, ALWAYS_LOW = 4, OF_OTHERS = 8 };

static void ask(struct engine *e, const struct rule *rule, unsigned *ret_flags)
{
    struct diagnosis *d = e->d;
    if (thresholds_is_off(e->c->t, rule->id)) {
        d->off++;
        return;
    }
    const char *missing = missing_fact(e->c->f, rule);
    if (missing) {
        d->unchecked[d->unchecked_count++] = (struct unchecked){ rule->id, missing };
        return;
    }
    struct draft draft = { .gain = { NAN, NAN, NAN },
                           .text = BUF_INIT,
                           .advice = BUF_INIT,
                           .because = BUF_INIT,
                           .place = "" };
    if (rule->judge(e->c, &draft) && draft.stake > 0) {
        ret_flags[d->finding_count] = (draft.alone_is_low ? ALONE_LOW : 0) |
                                      (draft.needs_cause ? NEEDS_CAUSE : 0) |
                                      (draft.always_low ? ALWAYS_LOW : 0) |
                                      (draft.of_others ? OF_OTHERS : 0);
        add_finding(e, rule, &draft);
    } else {
        d->quiet++;
    }
    buf_release(&draft.text);
    buf_release(&draft.advice);
    buf_release(&draft.because);
}

/* ---- Who explains whom -------------------------------------------------------------------- */

static bool yields(const struct rule *rule, const char *id)
{
    for (size_t i = 0; i < RULE_YIELDS && rule->yields_to[i]; i++)
        if (strcmp(rule->yields_to[i], id) == 0)
            return true;
    return false;
}

static void explain(struct engine *e, size_t index, const struct finding *all)
{
    struct finding *n = &e->d->findings[index];
    for (size_t i = 0; i < e->d->finding_count; i++) {
        const struct finding *cause = &all[i];
        if (i == index || !yields(e->asked[index], cause->id) ||
            (!n->symptom && cause->stake < EXPLAINS * n->stake))
            continue;
        if (n->because_count < BECAUSE_MAX)
            n->because[n->because_count++] = cause->id;
    }
}

static struct finding *find(struct diagnosis *d, const char *id)
{
    for (size_t i = 0; i < d->finding_count; i++)
        if (d->findings[i].id == id)
            return &d->findings[i];
    return NULL;
}

/* Of the causes the one with most at stake; NULL without. */
static struct finding *highest_cause(struct diagnosis *d, const struct finding *n)
{
    struct finding *best = NULL;
    for (size_t k = 0; k < n->because_count; k++) {
        struct finding *cause = find(d, n->because[k]);
        if (cause && (!best || cause->stake > best->stake))
            best = cause;
    }
    return best;
}

static void stand_behind(struct diagnosis *d, struct finding *n)
{
    struct finding *best = highest_cause(d, n);
    if (best && !n->symptom)
        best->score = fmax(best->score, fmin(n->stake, 1));
    for (size_t k = 0; k < n->because_count; k++) {
        const struct finding *cause = find(d, n->because[k]);
        if (cause)
            n->score = fmin(n->score, cause->score - BEHIND);
    }
}

/* Behind the causes, and theirs: so many rounds that any chain has settled. The highest
 * cause takes what is at stake in what it explains: curing it cures that. The others do
 * not, or two causes of one thing could not be told apart. */
static void rank(struct diagnosis *d)
{
    for (size_t round = 0; round < 4; round++)
        for (size_t i = 0; i < d->finding_count; i++)
            stand_behind(d, &d->findings[i]);
}

static int by_score(const void *a, const void *b)
{
    const struct finding *x = a;
    const struct finding *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return strcmp(x->id, y->id);
}

/* Findings explain it, and all of them are low. */
static bool has_low_causes(const struct diagnosis *d, const unsigned *flags,
                           const struct finding *n)
{
    bool any = false;
    for (size_t i = 0; i < d->finding_count; i++)
        for (size_t k = 0; k < n->because_count; k++) {
            if (d->findings[i].id != n->because[k])
                continue;
            any = true;
            if (d->findings[i].severity > SEVERITY_LOW && !(flags[i] & ALWAYS_LOW))
                return false;
        }
    return any;
}

/* What means little, or nothing, without a cause means little with causes that do. */
static void follow_causes(const struct diagnosis *d, unsigned *flags)
{
    for (size_t i = 0; i < d->finding_count; i++)
        if (flags[i] & (ALONE_LOW | NEEDS_CAUSE) &&
            has_low_causes(d, flags, &d->findings[i]))
            flags[i] |= ALWAYS_LOW;
}

/* Symptoms that mean little, or nothing, when no cause was found. */
static void judge_symptoms(struct diagnosis *d, const struct thresholds *t,
                           const unsigned *flags)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->finding_count; i++) {
        struct finding n = d->findings[i];
        const bool alone = n.because_count == 0 && !t->reference;
        if (alone && flags[i] & NEEDS_CAUSE) {
            d->quiet++;
            continue;
        }
        if ((alone && flags[i] & ALONE_LOW) || flags[i] & ALWAYS_LOW) {
            n.severity = SEVERITY_LOW;
            n.score = fmin(n.score, t->medium / 2);
        }
        n.score = fmax(n.score, 0.001);
        d->findings[kept++] = n;
    }
    d->finding_count = kept;
}

/* Who stands before what it explains, by what is at stake in that, is as severe. */
static void raise_causes(struct diagnosis *d)
{
    for (size_t i = 0; i < d->finding_count; i++) {
        const struct finding *n = &d->findings[i];
        struct finding *best = n->symptom ? NULL : highest_cause(d, n);
        if (best && best->score > n->score && best->severity < n->severity)
            best->severity = n->severity;
    }
}

/* The verdict is of the first finding: nothing that matters less may hide it. But a
 * symptom stays behind what explains it, however bad it is. */
static void let_the_severest_lead(struct diagnosis *d)
{
    struct finding *worst = NULL;
    for (size_t i = 0; i < d->finding_count; i++) {
        struct finding *n = &d->findings[i];
        if (n->symptom && n->because_count > 0)
            continue;
        if (!worst || n->severity > worst->severity ||
            (n->severity == worst->severity && n->score > worst->score))
            worst = n;
    }
    for (size_t i = 0; worst && i < d->finding_count; i++)
        if (d->findings[i].severity < worst->severity &&
            d->findings[i].score >= worst->score)
            worst->score = fmax(worst->score, worst->stake);
}

int findings_make(const struct facts *facts, const struct thresholds *thresholds,
                  struct arena *arena, struct diagnosis *ret_diagnosis)
{
    const struct rule_case c = { facts, thresholds };
    const size_t total = rule_total();
    struct diagnosis d = { .made = true,
                           .rules = total,
                           .reference = thresholds->reference };
    d.findings = arena_alloc_array(arena, total, sizeof *d.findings);
    d.unchecked = arena_alloc_array(arena, total, sizeof *d.unchecked);
    const struct rule **asked = arena_alloc_array(arena, total, sizeof(void *));
    struct finding *before = arena_alloc_array(arena, total, sizeof *before);
    unsigned *flags = arena_alloc_array(arena, total, sizeof *flags);
    if (!d.findings || !d.unchecked || !asked || !before || !flags)
        return -ENOMEM;
    struct engine e = { &c, arena, &d, asked, 0 };
    for (size_t i = 0; i < total; i++)
        ask(&e, rule_at(i), flags);
    memcpy(before, d.findings, d.finding_count * sizeof *before);
    for (size_t i = 0; i < d.finding_count; i++)
        if (!(flags[i] & OF_OTHERS))
            explain(&e, i, before);
    rank(&d);
    if (!thresholds->reference)
        follow_causes(&d, flags);
    judge_symptoms(&d, thresholds, flags);
    raise_causes(&d);
    let_the_severest_lead(&d);
    qsort(d.findings, d.finding_count, sizeof *d.findings, by_score);
    if (e.rc == 0)
        *ret_diagnosis = d;
    return e.rc;
}
