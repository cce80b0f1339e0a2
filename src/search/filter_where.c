/* filter_where.c: Chroma's `where` and `where_document` JSON.
 *
 * What Chroma refuses is refused here too (a list of mixed types, $gt of a text, an
 * empty $contains), except that several keys in one object mean AND, $and and $or take
 * any number of parts, {} means everything, and $exists is known.
 */
#include "search/filter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/jread.h"

struct where {
    struct jread r;
    struct arena *arena;
    struct filter_error *error;
    bool document;
    unsigned depth, nodes;
    int rc;
};

static struct filter *fail(struct where *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static struct filter *fail(struct where *w, const char *fmt, ...)
{
    if (w->rc == 0) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(w->error->message, sizeof w->error->message, fmt, args);
        va_end(args);
        w->error->position = (size_t)(w->r.at - w->r.begin) + 1;
        w->rc = SONDE_E_FORMAT;
    }
    return NULL;
}

static struct filter *bad_json(struct where *w)
{
    return fail(w, "not JSON: %s", w->r.error ? w->r.error : "something else");
}

static struct filter *make(struct where *w, enum filter_op op)
{
    if (++w->nodes > FILTER_NODES)
        return fail(w, "too long");
    struct filter *f = filter_node(w->arena, op);
    if (!f) {
        w->rc = -ENOMEM;
        return NULL;
    }
    f->chroma = true;
    return f;
}

/* ---- Values ------------------------------------------------------------------------- */

/* The plain value just read. */
static bool take_value(struct where *w, struct value *ret)
{
    struct jread *r = &w->r;
    switch (r->token) {
    case JREAD_INT:
        *ret = (struct value){ VALUE_INT, r->integer, r->number, NULL, 0 };
        return true;
    case JREAD_FLOAT:
        *ret = (struct value){ VALUE_FLOAT, 0, r->number, NULL, 0 };
        return true;
    case JREAD_TRUE:
    case JREAD_FALSE:
        *ret = (struct value){ VALUE_BOOL, r->token == JREAD_TRUE,
                               r->token == JREAD_TRUE, NULL, 0 };
        return true;
    case JREAD_STRING:
        *ret = (struct value){ .type = VALUE_TEXT };
        ret->text = jread_text(r, w->arena, &ret->len);
        if (!ret->text)
            w->rc = -ENOMEM;
        return ret->text != NULL;
    default:
        (void)(r->token == JREAD_ERROR ? bad_json(w)
                                       : fail(w, "a text, number or truth should "
                                                 "stand here"));
        return false;
    }
}

static bool add_value(struct where *w, struct filter *f, size_t *cap)
{
    if (f->value_count == *cap) {
        const size_t more = *cap ? *cap * 2 : 4;
        struct value *values = arena_alloc_array(w->arena, more, sizeof *values);
        if (!values) {
            w->rc = -ENOMEM;
            return false;
        }
        if (*cap)
            memcpy(values, f->values, *cap * sizeof *values);
        f->values = values;
        *cap = more;
    }
    if (!take_value(w, &f->values[f->value_count]))
        return false;
    if (f->value_count && f->values[f->value_count].type != f->values[0].type) {
        (void)fail(w, "the values of a list must be of one type");
        return false;
    }
    f->value_count++;
    return true;
}

static struct filter *take_list(struct where *w, struct filter *f)
{
    size_t cap = 0;
    if (w->r.token != JREAD_ARRAY_BEGIN)
        return fail(w, "$in and $nin want a list");
    while (jread_next(&w->r) != JREAD_ARRAY_END)
        if (!add_value(w, f, &cap) || f->value_count > FILTER_NODES)
            return w->rc < 0 ? NULL : fail(w, "too long a list");
    return f->value_count ? f : fail(w, "an empty list");
}

/* ---- Operators ---------------------------------------------------------------------- */

static const struct operator
{
    const char *word;
    enum filter_op op;
}
operators[] = {
    { "$eq", FILTER_EQ },
    { "$ne", FILTER_NE },
    { "$gt", FILTER_GT },
    { "$gte", FILTER_GE },
    { "$lt", FILTER_LT },
    { "$lte", FILTER_LE },
    { "$in", FILTER_IN },
    { "$nin", FILTER_NOT_IN },
    { "$contains", FILTER_CONTAINS },
    { "$not_contains", FILTER_NOT_CONTAINS },
    { "$regex", FILTER_MATCHES },
    { "$not_regex", FILTER_NOT_MATCHES },
    { "$exists", FILTER_EXISTS },
};

static bool find_operator(const struct jread *r, enum filter_op *ret_op)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (jread_is(r, operators[i].word)) {
            *ret_op = operators[i].op;
            return true;
        }
    return false;
}

static bool is_number(const struct value *v)
{
    return v->type == VALUE_INT || v->type == VALUE_FLOAT;
}

/* What the operator may stand before. */
static struct filter *check_operand(struct where *w, struct filter *f)
{
    const struct value *v = &f->values[0];
    switch (f->op) {
    case FILTER_LT:
    case FILTER_LE:
    case FILTER_GT:
    case FILTER_GE:
        return is_number(v) ? f : fail(w, "$gt, $gte, $lt and $lte want a number");
    case FILTER_MATCHES:
    case FILTER_NOT_MATCHES:
    case FILTER_CONTAINS:
    case FILTER_NOT_CONTAINS:
        if (!w->document) { /* of lists, which plain values are not */
            f->never = true;
            return f;
        }
        return v->type == VALUE_TEXT && v->len ? f : fail(w, "an empty text, or none");
    case FILTER_EXISTS:
        if (v->type != VALUE_BOOL)
            return fail(w, "$exists wants true or false");
        f->op = v->integer ? FILTER_EXISTS : FILTER_MISSING;
        return f;
    default:
        return f;
    }
}

/* {"$gte": 1}, the value behind the operator coming next. */
static struct filter *take_operator(struct where *w, const char *name, size_t len)
{
    enum filter_op op;
    size_t cap = 0;
    if (!find_operator(&w->r, &op))
        return fail(w, "unknown operator \"%.*s\"",
                    (int)(w->r.len < 40 ? w->r.len : 40), w->r.text);
    const bool text = op == FILTER_CONTAINS || op == FILTER_NOT_CONTAINS ||
                      op == FILTER_MATCHES || op == FILTER_NOT_MATCHES;
    if (w->document ? !text : op == FILTER_MATCHES || op == FILTER_NOT_MATCHES)
        return fail(w, "\"%.*s\" is not known here", (int)w->r.len, w->r.text);
    struct filter *f = make(w, op);
    if (!f || !filter_set_name(f, name, len))
        return w->rc < 0 ? NULL : fail(w, "an empty name, or too long a one");
    (void)jread_next(&w->r);
    f->position = (size_t)(w->r.at - w->r.begin);
    if (op == FILTER_IN || op == FILTER_NOT_IN)
        return take_list(w, f);
    return add_value(w, f, &cap) ? check_operand(w, f) : NULL;
}

/* ---- Structure ---------------------------------------------------------------------- */

static struct filter *take_object(struct where *w);

static struct filter *take_parts(struct where *w, enum filter_op op)
{
    struct filter *f = make(w, op);
    struct filter *last = NULL;
    if (!f || jread_next(&w->r) != JREAD_ARRAY_BEGIN)
        return w->rc < 0 ? NULL : fail(w, "$and and $or want a list");
    while (jread_next(&w->r) == JREAD_OBJECT_BEGIN) {
        struct filter *part = take_object(w);
        if (!part)
            return NULL;
        if (last)
            last->next = part;
        else
            f->first = part;
        last = part;
    }
    if (w->r.token != JREAD_ARRAY_END)
        return w->r.token == JREAD_ERROR
                   ? bad_json(w)
                   : fail(w, "$and and $or want a list of objects");
    return last ? f : fail(w, "an empty list");
}

/* "name": value   "name": {"$op": value, …} */
static struct filter *take_condition(struct where *w)
{
    size_t len;
    const char *name = jread_text(&w->r, w->arena, &len);
    if (!name) {
        w->rc = -ENOMEM;
        return NULL;
    }
    const enum jread_token token = jread_next(&w->r);
    if (token != JREAD_OBJECT_BEGIN) {
        size_t cap = 0;
        struct filter *f = make(w, FILTER_EQ);
        if (!f || !filter_set_name(f, name, len))
            return w->rc < 0 ? NULL : fail(w, "an empty name, or too long a one");
        return add_value(w, f, &cap) ? f : NULL;
    }
    struct filter *all = NULL;
    while (jread_next(&w->r) == JREAD_KEY) {
        struct filter *one = take_operator(w, name, len);
        if (!one || !(all = filter_and(w->arena, all, one)))
            return NULL;
    }
    if (w->r.token == JREAD_ERROR)
        return bad_json(w);
    return all ? all
               : fail(w, "no operator for \"%.*s\"", (int)(len < 60 ? len : 60), name);
}

static struct filter *take_member(struct where *w)
{
    if (jread_is(&w->r, "$and"))
        return take_parts(w, FILTER_AND);
    if (jread_is(&w->r, "$or"))
        return take_parts(w, FILTER_OR);
    if (w->document)
        return take_operator(w, "document", 8);
    if (w->r.len && w->r.text[0] == '$')
        return fail(w, "unknown operator \"%.*s\"",
                    (int)(w->r.len < 40 ? w->r.len : 40), w->r.text);
    return take_condition(w);
}

/* After its opening bracket. */
static struct filter *take_object(struct where *w)
{
    struct filter *all = NULL;
    if (++w->depth > FILTER_DEPTH)
        return fail(w, "nested too deeply");
    while (jread_next(&w->r) == JREAD_KEY) {
        struct filter *one = take_member(w);
        if (!one || !(all = filter_and(w->arena, all, one)))
            return NULL;
    }
    w->depth--;
    if (w->r.token == JREAD_ERROR)
        return bad_json(w);
    return all ? all : make(w, FILTER_ALL);
}

static int parse(const char *json, size_t len, bool document, struct arena *arena,
                 struct filter **ret_filter, struct filter_error *ret_error)
{
    struct where w = { .arena = arena, .error = ret_error, .document = document };
    *ret_error = (struct filter_error){ .position = 0 };
    jread_init(&w.r, json, len);
    struct filter *f = NULL;
    if (jread_next(&w.r) != JREAD_OBJECT_BEGIN)
        (void)(w.r.token == JREAD_ERROR ? bad_json(&w) : fail(&w, "not an object"));
    else
        f = take_object(&w);
    if (f && jread_next(&w.r) != JREAD_END)
        f = bad_json(&w);
    if (!f) {
        if (!ret_error->message[0])
            (void)snprintf(ret_error->message, sizeof ret_error->message, "%s",
                           error_text(w.rc ? w.rc : -ENOMEM));
        return w.rc ? w.rc : -ENOMEM;
    }
    const int rc = filter_compile(f, ret_error);
    if (rc == 0)
        *ret_filter = f;
    return rc;
}

int filter_parse_where(const char *json, size_t len, struct arena *arena,
                       struct filter **ret_filter, struct filter_error *ret_error)
{
    return parse(json, len, false, arena, ret_filter, ret_error);
}

int filter_parse_where_document(const char *json, size_t len, struct arena *arena,
                                struct filter **ret_filter,
                                struct filter_error *ret_error)
{
    return parse(json, len, true, arena, ret_filter, ret_error);
}
