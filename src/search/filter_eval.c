/* filter_eval.c: a filter applied to a segment.
 *
 * Each node gives two sets of rows: those for which it is true and those for which it
 * is false; the rest is unknown (Kleene's logic, as SQL has it). Leaves run over one
 * column. The common case, a number compared over a column that all rows have, is a
 * loop the compiler can keep in registers; texts are judged once per word of the
 * dictionary, not once per row.
 */
#include "search/filter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct sets {
    uint64_t *yes, *no;
};

struct eval {
    const struct segment *segment;
    uint32_t rows;
    size_t words;
    struct arena arena;
};

enum verdict { NO, YES, UNKNOWN };

static bool get_sets(struct eval *e, struct sets *ret)
{
    ret->yes = arena_alloc_array(&e->arena, e->words ? e->words : 1, sizeof(uint64_t));
    ret->no = arena_alloc_array(&e->arena, e->words ? e->words : 1, sizeof(uint64_t));
    return ret->yes && ret->no;
}

/* ---- One value ---------------------------------------------------------------------- */

static bool is_number(const struct value *v)
{
    return v->type == VALUE_INT || v->type == VALUE_FLOAT;
}

static bool comparable(const struct value *a, const struct value *b)
{
    return a->type == b->type || (is_number(a) && is_number(b));
}

static bool equal(const struct value *a, const struct value *b)
{
    if (!comparable(a, b))
        return false;
    if (a->type == VALUE_TEXT)
        return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
    if (a->type == VALUE_FLOAT || b->type == VALUE_FLOAT)
        return a->number == b->number;
    return a->integer == b->integer;
}

/* Below, at or above; false in *ret_known when neither (NaN, different kinds). */
static int order(const struct value *a, const struct value *b, bool *ret_known)
{
    *ret_known = comparable(a, b);
    if (!*ret_known)
        return 0;
    if (a->type == VALUE_TEXT) {
        const int o = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
        return o ? o : (a->len > b->len) - (a->len < b->len);
    }
    if (a->type == VALUE_FLOAT || b->type == VALUE_FLOAT) {
        *ret_known = !isnan(a->number) && !isnan(b->number);
        return (a->number > b->number) - (a->number < b->number);
    }
    return (a->integer > b->integer) - (a->integer < b->integer);
}

static enum verdict ordered(const struct filter *f, const struct value *v)
{
    bool known;
    const int o = order(v, &f->values[0], &known);
    if (!known)
        return f->chroma ? NO : UNKNOWN;
    switch (f->op) {
    case FILTER_LT:
        return o < 0 ? YES : NO;
    case FILTER_LE:
        return o <= 0 ? YES : NO;
    case FILTER_GT:
        return o > 0 ? YES : NO;
    default:
        return o >= 0 ? YES : NO;
    }
}

static bool among(const struct filter *f, const struct value *v)
{
    for (size_t i = 0; i < f->value_count; i++)
        if (equal(v, &f->values[i]))
            return true;
    return false;
}

static bool contains(const struct filter *f, const struct value *v)
{
    return !f->never && v->type == VALUE_TEXT &&
           memmem(v->text, v->len, f->values[0].text, f->values[0].len) != NULL;
}

static bool matches(const struct filter *f, const struct value *v)
{
    return v->type == VALUE_TEXT && filter_pattern_matches(f, v->text, v->len) > 0;
}

static enum verdict judge(const struct filter *f, const struct value *v)
{
    switch (f->op) {
    case FILTER_EQ:
    case FILTER_IN:
        return among(f, v) ? YES : NO;
    case FILTER_NE:
    case FILTER_NOT_IN:
        return among(f, v) ? NO : YES;
    case FILTER_CONTAINS:
        return contains(f, v) ? YES : NO;
    case FILTER_NOT_CONTAINS:
        return contains(f, v) ? NO : YES;
    case FILTER_MATCHES:
        return matches(f, v) ? YES : NO;
    case FILTER_NOT_MATCHES:
        return matches(f, v) ? NO : YES;
    case FILTER_EXISTS:
        return YES;
    case FILTER_MISSING:
        return NO;
    default:
        return ordered(f, v);
    }
}

static enum verdict judge_missing(const struct filter *f)
{
    if (f->op == FILTER_EXISTS)
        return NO;
    if (f->op == FILTER_MISSING)
        return YES;
    if (!f->chroma)
        return UNKNOWN;
    return f->op == FILTER_NE || f->op == FILTER_NOT_IN ||
                   f->op == FILTER_NOT_CONTAINS || f->op == FILTER_NOT_MATCHES
               ? YES
               : NO;
}

/* ---- One column --------------------------------------------------------------------- */

#define COMPARE_LOOP(type, from, constant, test)                                       \
    for (uint32_t at = 0; at < rows; at += 64) {                                       \
        const uint32_t n = rows - at < 64 ? rows - at : 64;                            \
        uint64_t bits = 0;                                                             \
        for (uint32_t i = 0; i < n; i++) {                                             \
            const type x = (from)[at + i];                                             \
            bits |= (uint64_t)(x test constant) << i;                                  \
        }                                                                              \
        yes[at / 64] = bits;                                                           \
    }

#define COMPARE_ALL(type, from, constant)                                              \
    switch (op) {                                                                      \
    case FILTER_LT:                                                                    \
        COMPARE_LOOP(type, from, constant, <) break;                                   \
    case FILTER_LE:                                                                    \
        COMPARE_LOOP(type, from, constant, <=) break;                                  \
    case FILTER_GT:                                                                    \
        COMPARE_LOOP(type, from, constant, >) break;                                   \
    case FILTER_GE:                                                                    \
        COMPARE_LOOP(type, from, constant, >=) break;                                  \
    default:                                                                           \
        COMPARE_LOOP(type, from, constant, ==) break;                                  \
    }

static void compare_doubles(const double *from, uint32_t rows, enum filter_op op,
                            double constant, uint64_t *yes)
{
    COMPARE_ALL(double, from, constant)
}

static void compare_integers(const int64_t *from, uint32_t rows, enum filter_op op,
                             int64_t constant, uint64_t *yes)
{
    COMPARE_ALL(int64_t, from, constant)
}

static bool is_simple(enum filter_op op)
{
    return op == FILTER_LT || op == FILTER_LE || op == FILTER_GT || op == FILTER_GE ||
           op == FILTER_EQ;
}

/* Whether the column and the constant are numbers of one kind, and all rows have one. */
static bool fast_numbers(const struct filter *f, const struct column *c, uint32_t rows,
                         uint64_t *yes)
{
    if (c->rows || c->types || !is_simple(f->op) || f->value_count != 1)
        return false;
    const struct value *v = &f->values[0];
    if (c->uniform == VALUE_FLOAT && is_number(v))
        compare_doubles((const double *)(const void *)c->values, rows, f->op, v->number,
                        yes);
    else if (c->uniform == VALUE_INT && v->type == VALUE_INT)
        compare_integers((const int64_t *)(const void *)c->values, rows, f->op,
                         v->integer, yes);
    else
        return false;
    return true;
}

/* The verdict on every word of the dictionary; NULL without one. */
static const uint8_t *judge_words(struct eval *e, const struct filter *f,
                                  const struct column *c)
{
    uint8_t *verdicts = arena_alloc_array(&e->arena, (size_t)c->dictionary + 1, 1);
    if (!verdicts)
        return NULL;
    for (uint32_t i = 0; i < c->dictionary; i++) {
        struct value v = { .type = VALUE_TEXT };
        v.text = column_text(c, i, &v.len);
        verdicts[i] = (uint8_t)judge(f, &v);
    }
    return verdicts;
}

static enum verdict judge_at(const struct filter *f, const struct column *c, uint32_t i,
                             const uint8_t *words)
{
    const unsigned type = c->types ? c->types[i] : c->uniform;
    if (type == VALUE_TEXT)
        return c->values[i] < c->dictionary ? (enum verdict)words[c->values[i]]
                                            : UNKNOWN;
    const struct value v = column_value(c, i);
    return v.type == VALUE_NONE ? judge_missing(f) : judge(f, &v);
}

/* Enters the verdicts on the column's values among `left`, whose bits it clears. */
static int judge_column(struct eval *e, const struct filter *f, const struct column *c,
                        uint64_t *left, struct sets *s)
{
    const uint8_t *words = judge_words(e, f, c);
    if (!words)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->count; i++) {
        const uint32_t row = c->rows ? c->rows[i] : i;
        const uint64_t bit = UINT64_C(1) << row % 64;
        if (row >= e->rows || !(left[row / 64] & bit))
            continue;
        left[row / 64] &= ~bit;
        const enum verdict v = judge_at(f, c, i, words);
        if (v == YES)
            s->yes[row / 64] |= bit;
        else if (v == NO)
            s->no[row / 64] |= bit;
    }
    return 0;
}

static void set_all(const struct eval *e, uint64_t *bits)
{
    for (size_t i = 0; i < e->words; i++)
        bits[i] = UINT64_MAX;
    if (e->rows % 64)
        bits[e->words - 1] = (UINT64_C(1) << e->rows % 64) - 1;
}

static int judge_left(const struct filter *f, const struct eval *e,
                      const uint64_t *left, struct sets *s)
{
    const enum verdict v = judge_missing(f);
    uint64_t *into = v == YES ? s->yes : v == NO ? s->no : NULL;
    for (size_t i = 0; into && i < e->words; i++)
        into[i] |= left[i];
    return 0;
}

/* NaN is neither below nor above: unknown, not false. */
static void drop_nan(const double *values, uint32_t rows, uint64_t *left)
{
    for (uint32_t i = 0; i < rows; i++)
        left[i / 64] &= ~((uint64_t)(values[i] != values[i]) << i % 64);
}

static int eval_leaf(struct eval *e, const struct filter *f, struct sets *s)
{
    static const char *const prefixes[] = { "metrics.", "params.", "tags." };
    char name[512];
    struct column c;
    uint64_t *left = arena_alloc_array(&e->arena, e->words ? e->words : 1,
                                       sizeof *left);
    if (!left)
        return -ENOMEM;
    set_all(e, left);
    if (!f->bare && segment_find(e->segment, f->name, f->name_len, &c)) {
        if (fast_numbers(f, &c, e->rows, s->yes)) {
            if (!f->chroma && f->op != FILTER_EQ && c.uniform == VALUE_FLOAT)
                drop_nan((const double *)(const void *)c.values, e->rows, left);
            for (size_t i = 0; i < e->words; i++)
                s->no[i] = left[i] & ~s->yes[i];
            return 0;
        }
        const int rc = judge_column(e, f, &c, left, s);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; f->bare && i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t n = strlen(prefixes[i]);
        memcpy(name, prefixes[i], n);
        memcpy(name + n, f->name, f->name_len);
        if (!segment_find(e->segment, name, n + f->name_len, &c))
            continue;
        const int rc = judge_column(e, f, &c, left, s);
        if (rc < 0)
            return rc;
    }
    return judge_left(f, e, left, s);
}

/* ---- Trees -------------------------------------------------------------------------- */

static int eval(struct eval *e, const struct filter *f, struct sets *s);

/* AND: true where all are, false where any is. OR: the other way round. */
static int eval_list(struct eval *e, const struct filter *f, struct sets *s)
{
    const bool all_of = f->op == FILTER_AND;
    uint64_t *every = all_of ? s->yes : s->no;
    uint64_t *any = all_of ? s->no : s->yes;
    set_all(e, every);
    for (const struct filter *child = f->first; child; child = child->next) {
        struct sets one;
        if (!get_sets(e, &one))
            return -ENOMEM;
        const int rc = eval(e, child, &one);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < e->words; i++) {
            every[i] &= all_of ? one.yes[i] : one.no[i];
            any[i] |= all_of ? one.no[i] : one.yes[i];
        }
    }
    return 0;
}

static int eval(struct eval *e, const struct filter *f, struct sets *s)
{
    switch (f->op) {
    case FILTER_ALL:
        set_all(e, s->yes);
        return 0;
    case FILTER_AND:
    case FILTER_OR:
        return eval_list(e, f, s);
    case FILTER_NOT: {
        struct sets swapped = { .yes = s->no, .no = s->yes };
        return eval(e, f->first, &swapped);
    }
    default:
        return eval_leaf(e, f, s);
    }
}

int filter_apply(const struct filter *filter, const struct segment *segment,
                 uint64_t *ret_bits)
{
    struct eval e = { .segment = segment, .rows = segment->head->rows };
    struct sets s;
    e.words = (e.rows + 63) / 64;
    int rc = get_sets(&e, &s) ? eval(&e, filter, &s) : -ENOMEM;
    if (rc == 0 && e.words)
        memcpy(ret_bits, s.yes, e.words * sizeof *ret_bits);
    arena_release(&e.arena);
    return rc;
}
