/* rules_rows.h: a rule stated as a row: the facts around it, and the one that decides.
 *
 * check_row(): at its limit the rule fires, just beyond it is silent; without any of the
 * facts it needs it is silent too, and says that it was not asked.
 */
#ifndef SONDE_TESTS_RULES_ROWS_H
#define SONDE_TESTS_RULES_ROWS_H

#include "unit.h"

#include <math.h>
#include <string.h>

#include "analyse/facts.h"
#include "analyse/findings.h"
#include "analyse/rules.h"
#include "analyse/thresholds.h"

enum { ROW_FACTS = 14 };

struct fact_value {
    enum fact fact;
    double value;
};

struct rule_row {
    const char *id;
    struct fact_value around[ROW_FACTS]; /* ended by FACT_NONE */
    enum fact decides;
    double fires, silent;
};

static inline void row_facts(const struct rule_row *row, double value,
                             struct facts *ret_facts)
{
    facts_init(ret_facts);
    for (size_t i = 0; i < ROW_FACTS && row->around[i].fact != FACT_NONE; i++)
        ret_facts->v[row->around[i].fact] = row->around[i].value;
    ret_facts->v[row->decides] = value;
}

/* The finding of that id, or NULL; everything lives in the arena. */
static inline const struct finding *judge_facts(const struct facts *facts,
                                                const struct thresholds *t,
                                                const char *id, struct arena *arena)
{
    struct diagnosis *d = arena_alloc(arena, sizeof *d);
    assert_non_null(d);
    assert_int_equal(findings_make(facts, t, arena, d), 0);
    return finding_by_id(d, id);
}

/* Facts and thresholds to judge by, for what a row cannot say. */
struct trial {
    struct arena arena;
    struct thresholds t;
    struct facts f;
};

/* The standard thresholds; facts up to FACT_NONE. */
static inline struct trial trial_with(const struct fact_value *facts)
{
    struct trial c = { .arena = ARENA_INIT };
    thresholds_init(&c.t);
    facts_init(&c.f);
    for (; facts->fact != FACT_NONE; facts++)
        c.f.v[facts->fact] = facts->value;
    return c;
}
#define TRIAL(...)                                                                     \
    trial_with((const struct fact_value[]){ __VA_ARGS__, { FACT_NONE, 0 } })

static inline const struct finding *judged(struct trial *c, const char *id)
{
    return judge_facts(&c->f, &c->t, id, &c->arena);
}

static inline void trial_release(struct trial *c)
{
    arena_release(&c->arena);
}

static inline void check_finding(const struct finding *f)
{
    assert_true(f->score > 0 && f->score <= 1);
    assert_true(strlen(f->description) > 10);
    assert_true(strlen(f->recommendation) > 10);
    assert_null(strstr(f->description, "nan"));
    assert_null(strstr(f->recommendation, "nan"));
    assert_true(f->evidence_count > 0);
    for (size_t i = 0; i < f->evidence_count; i++) {
        assert_true(f->evidence[i].metric[0] && f->evidence[i].source[0]);
        assert_false(isnan(f->evidence[i].value));
    }
    if (!isnan(f->gain.mid)) {
        assert_true(f->gain.low >= 0 && f->gain.low <= f->gain.mid);
        assert_true(f->gain.mid <= f->gain.high && f->gain.high <= 1);
    }
}

static inline const struct rule *rule_by_id(const char *id)
{
    for (size_t i = 0; i < rule_total(); i++)
        if (strcmp(rule_at(i)->id, id) == 0)
            return rule_at(i);
    return NULL;
}

static inline void check_without_needs(const struct rule_row *row,
                                       const struct thresholds *t)
{
    const struct rule *rule = rule_by_id(row->id);
    assert_non_null(rule);
    for (size_t i = 0; i < RULE_FACTS && rule->needs[i] != FACT_NONE; i++) {
        struct arena arena = ARENA_INIT;
        struct facts f;
        row_facts(row, row->fires, &f);
        f.v[rule->needs[i]] = NAN;
        if (judge_facts(&f, t, row->id, &arena))
            fail_msg("%s fires without %s", row->id, fact_infos[rule->needs[i]].metric);
        arena_release(&arena);
    }
}

static inline void check_row(const struct rule_row *row, const struct thresholds *t)
{
    struct arena arena = ARENA_INIT;
    struct facts f;
    row_facts(row, row->fires, &f);
    const struct finding *found = judge_facts(&f, t, row->id, &arena);
    if (!found)
        fail_msg("%s is silent with %s at %g", row->id, fact_infos[row->decides].metric,
                 row->fires);
    check_finding(found);
    row_facts(row, row->silent, &f);
    if (judge_facts(&f, t, row->id, &arena))
        fail_msg("%s fires with %s at %g", row->id, fact_infos[row->decides].metric,
                 row->silent);
    arena_release(&arena);
    check_without_needs(row, t);
}

static inline void check_rows(const struct rule_row *rows, size_t count)
{
    struct thresholds t;
    thresholds_init(&t);
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i], &t);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

#endif
