/* filter_text.c: the filter language.
 *
 *   expression = all ("or" all)*          all  = part ("and" part)*
 *   part       = "not" part | "(" expression ")" | "exists" "(" name ")"
 *              | name ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
 *              | name "contains" value | name "~" value | name "!~" value
 *              | name ["not"] "in" "(" value ("," value)* ")"
 *              | name "is" ["not"] "missing"
 *   name       = letters, digits, _ . / - : @, or "in quotes" behind a dot
 *   value      = number [unit] | 'text' | "text" | true | false | word
 *
 * Units (10m, 512MB) are understood for seconds and megabytes.
 */
#include "search/filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/parse.h"
#include "store/jread.h"

enum token {
    T_END,
    T_WORD, /* name, keyword or bare text */
    T_NUMBER,
    T_TEXT,
    T_OPERATOR, /* = == != <> < <= > >= ~ !~ */
    T_OPEN,
    T_CLOSE,
    T_COMMA,
};

struct parser {
    const char *begin, *at;
    struct arena *arena;
    struct filter_error *error;
    enum token token;
    const char *text; /* of the token; texts without quotes and escapes */
    size_t len;
    const char *start; /* where the token begins */
    unsigned depth, nodes;
    int rc;
};

static struct filter *fail(struct parser *p, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static struct filter *fail(struct parser *p, const char *at, const char *fmt, ...)
{
    if (p->rc == 0) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(p->error->message, sizeof p->error->message, fmt, args);
        va_end(args);
        p->error->position = (size_t)(at - p->begin) + 1;
        p->rc = SONDE_E_FORMAT;
    }
    p->token = T_END;
    return NULL;
}

/* ---- Tokens ------------------------------------------------------------------------- */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_./-:@%+", c)) ||
           (unsigned char)c >= 0x80;
}

/* 'it''s', "say \"x\"": doubled quotes and backslashes. */
static void read_quoted(struct parser *p)
{
    const char quote = *p->at;
    const char *q = p->at + 1;
    char *out = arena_alloc(p->arena, strlen(q) + 1);
    size_t len = 0;
    if (!out) {
        p->rc = -ENOMEM;
        return;
    }
    for (;; q++) {
        if (*q == '\0') {
            (void)fail(p, p->at, "a text without its closing %c", quote);
            return;
        }
        if (*q == quote && q[1] != quote)
            break;
        if (*q == quote || (*q == '\\' && (q[1] == quote || q[1] == '\\')))
            q++;
        out[len++] = *q;
    }
    p->text = out;
    p->len = len;
    p->at = q + 1;
    p->token = T_TEXT;
}

/* params."my key" is one word without the quotes. */
static void read_word(struct parser *p)
{
    const char *q = p->at;
    while (in_word(*q))
        q++;
    p->text = p->at;
    p->len = (size_t)(q - p->at);
    p->token = isdigit((unsigned char)*p->at) || *p->at == '.' ||
                       ((*p->at == '-' || *p->at == '+') &&
                        (isdigit((unsigned char)p->at[1]) || p->at[1] == '.'))
                   ? T_NUMBER
                   : T_WORD;
    const char *head = p->text;
    const size_t head_len = p->len;
    p->at = q;
    if (p->token == T_WORD && *q == '"' && q[-1] == '.') {
        read_quoted(p);
        if (p->rc < 0)
            return;
        char *joined = arena_alloc(p->arena, head_len + p->len + 1);
        if (!joined) {
            p->rc = -ENOMEM;
            return;
        }
        memcpy(joined, head, head_len);
        memcpy(joined + head_len, p->text, p->len);
        p->text = joined;
        p->len += head_len;
        p->token = T_WORD;
    }
}

static void advance(struct parser *p)
{
    if (p->rc < 0) {
        p->token = T_END;
        return;
    }
    while (isspace((unsigned char)*p->at))
        p->at++;
    p->start = p->at;
    const char c = *p->at;
    size_t len = 1;
    if (c == '\0') {
        p->token = T_END;
    } else if (c == '(' || c == ')' || c == ',') {
        p->token = c == '(' ? T_OPEN : c == ')' ? T_CLOSE : T_COMMA;
        p->at++;
    } else if (strchr("=<>!~", c)) {
        len += p->at[1] == '=' || (c == '<' && p->at[1] == '>') ||
               (c == '!' && p->at[1] == '~');
        p->text = p->at;
        p->len = len;
        p->at += len;
        p->token = T_OPERATOR;
    } else if (c == '\'' || c == '"') {
        read_quoted(p);
    } else if (in_word(c)) {
        read_word(p);
    } else {
        (void)fail(p, p->at, "'%c' does not belong here", c);
    }
}

static bool is_word(const struct parser *p, const char *word)
{
    return p->token == T_WORD && p->len == strlen(word) &&
           strncasecmp(p->text, word, p->len) == 0;
}

/* ---- Values ------------------------------------------------------------------------- */

static bool ends_with(const struct filter *f, const char *tail)
{
    const size_t n = strlen(tail);
    return f->name_len >= n && memcmp(f->name + f->name_len - n, tail, n) == 0;
}

/* 10m of duration_s is 600, 2GB of memory_peak_mb is 2048. */
static bool read_unit(struct parser *p, const struct filter *f, struct value *ret)
{
    char text[64];
    uint64_t number;
    if (p->len >= sizeof text)
        return false;
    memcpy(text, p->text, p->len);
    text[p->len] = '\0';
    if (ends_with(f, "_s") && parse_duration(text, &number) == 0)
        *ret = (struct value){ .type = VALUE_FLOAT, .number = (double)number / 1e9 };
    else if (ends_with(f, "_mb") && parse_size(text, &number) == 0)
        *ret = (struct value){ .type = VALUE_FLOAT,
                               .number = (double)number / 1048576 };
    else
        return false;
    return true;
}

static bool read_moment(const struct filter *f, struct value *v, struct arena *arena)
{
    int64_t ns;
    if (f->name_len != 7 || memcmp(f->name, "started", 7) != 0 || v->type != VALUE_TEXT)
        return true;
    const char *text = arena_strndup(arena, v->text, v->len);
    if (!text || !moment_parse(text, &ns))
        return false;
    *v = (struct value){ .type = VALUE_FLOAT, .number = (double)ns / 1e9 };
    return true;
}

static bool read_value(struct parser *p, const struct filter *f, struct value *ret)
{
    if (p->token == T_TEXT)
        *ret = (struct value){ .type = VALUE_TEXT, .text = p->text, .len = p->len };
    else if (p->token == T_WORD || p->token == T_NUMBER)
        *ret = value_from_text(p->text, p->len);
    else {
        (void)fail(p, p->start, "a value should stand here");
        return false;
    }
    if (p->token == T_NUMBER && ret->type == VALUE_TEXT && !read_unit(p, f, ret) &&
        !(f->name_len == 7 && memcmp(f->name, "started", 7) == 0) &&
        memchr("-+.", p->text[0], 3)) {
        (void)fail(p, p->start, "'%.*s' is no number", (int)(p->len < 60 ? p->len : 60),
                   p->text);
        return false;
    }
    if (!read_moment(f, ret, p->arena)) {
        (void)fail(p, p->start,
                   "'%.*s' is no time (2026-11-15 or 2026-11-15T16:54:06Z)",
                   (int)(p->len < 60 ? p->len : 60), p->text);
        return false;
    }
    advance(p);
    return p->rc == 0;
}

static bool set_one(struct parser *p, struct filter *f)
{
    f->values = arena_alloc(p->arena, sizeof *f->values);
    if (!f->values) {
        p->rc = -ENOMEM;
        return false;
    }
    f->value_count = 1;
    return read_value(p, f, f->values);
}

static bool set_list(struct parser *p, struct filter *f)
{
    size_t cap = 0;
    if (p->token != T_OPEN) {
        (void)fail(p, p->start, "a list in brackets should follow: in (1, 2)");
        return false;
    }
    do {
        advance(p);
        if (f->value_count == cap) {
            const size_t more = cap ? cap * 2 : 8;
            struct value *values = arena_alloc_array(p->arena, more, sizeof *values);
            if (!values || more > FILTER_NODES) {
                p->rc = values ? SONDE_E_LIMIT : -ENOMEM;
                return false;
            }
            if (cap)
                memcpy(values, f->values, cap * sizeof *values);
            f->values = values;
            cap = more;
        }
        if (!read_value(p, f, &f->values[f->value_count++]))
            return false;
    } while (p->token == T_COMMA);
    if (p->token != T_CLOSE) {
        (void)fail(p, p->start, "the list has no end");
        return false;
    }
    advance(p);
    return p->rc == 0;
}

/* ---- Expressions -------------------------------------------------------------------- */

static struct filter *parse_or(struct parser *p);

static struct filter *make(struct parser *p, enum filter_op op)
{
    if (++p->nodes > FILTER_NODES)
        return fail(p, p->at, "too long");
    struct filter *f = filter_node(p->arena, op);
    if (!f)
        p->rc = -ENOMEM;
    return f;
}

static enum filter_op operator_of(const struct parser *p)
{
    static const struct {
        const char *text;
        enum filter_op op;
    } operators[] = { { "=", FILTER_EQ },      { "==", FILTER_EQ },
                      { "!=", FILTER_NE },     { "<>", FILTER_NE },
                      { "<", FILTER_LT },      { "<=", FILTER_LE },
                      { ">", FILTER_GT },      { ">=", FILTER_GE },
                      { "~", FILTER_MATCHES }, { "!~", FILTER_NOT_MATCHES } };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strlen(operators[i].text) == p->len &&
            memcmp(operators[i].text, p->text, p->len) == 0)
            return operators[i].op;
    return FILTER_ALL;
}

static struct filter *as_text(struct parser *p, struct filter *f, const char *at)
{
    f->position = (size_t)(at - p->begin) + 1;
    if (f->values[0].type != VALUE_TEXT && !f->values[0].text)
        return fail(p, at, "a text in quotes should follow");
    f->values[0].type = VALUE_TEXT;
    return f;
}

static struct filter *parse_is(struct parser *p, struct filter *f)
{
    advance(p);
    const bool negated = is_word(p, "not");
    if (negated)
        advance(p);
    if (!is_word(p, "missing") && !is_word(p, "null"))
        return fail(p, p->start, "'is missing' or 'is not missing'");
    f->op = negated ? FILTER_EXISTS : FILTER_MISSING;
    advance(p);
    return f;
}

static struct filter *parse_comparison(struct parser *p)
{
    struct filter *f = make(p, FILTER_EQ);
    if (!f)
        return NULL;
    if (p->token != T_WORD)
        return fail(p, p->start, "a name should stand here (metrics.accuracy)");
    if (!filter_set_name(f, p->text, p->len))
        return fail(p, p->start, "too long a name");
    advance(p);
    const char *at = p->start;
    const bool negated = is_word(p, "not");
    if (negated)
        advance(p);
    if (is_word(p, "in")) {
        f->op = negated ? FILTER_NOT_IN : FILTER_IN;
        advance(p);
        return set_list(p, f) ? f : NULL;
    }
    if (is_word(p, "contains")) {
        f->op = negated ? FILTER_NOT_CONTAINS : FILTER_CONTAINS;
        advance(p);
        at = p->start;
        return set_one(p, f) ? as_text(p, f, at) : NULL;
    }
    if (negated)
        return fail(p, at, "'not in' or 'not contains'");
    if (is_word(p, "is"))
        return parse_is(p, f);
    f->op = p->token == T_OPERATOR ? operator_of(p) : FILTER_ALL;
    if (f->op == FILTER_ALL)
        return fail(p, p->start,
                    "a comparison should follow '%.*s' (= != < <= > >= in "
                    "contains ~)",
                    (int)(f->name_len < 60 ? f->name_len : 60), f->name);
    advance(p);
    at = p->start;
    if (!set_one(p, f))
        return NULL;
    const bool text = f->op == FILTER_MATCHES || f->op == FILTER_NOT_MATCHES;
    return text ? as_text(p, f, at) : f;
}

static struct filter *parse_exists(struct parser *p)
{
    struct filter *f = make(p, FILTER_EXISTS);
    advance(p);
    if (!f || p->token != T_OPEN)
        return fail(p, p->start, "exists wants a name in brackets");
    advance(p);
    if ((p->token != T_WORD && p->token != T_TEXT) ||
        !filter_set_name(f, p->text, p->len))
        return fail(p, p->start, "exists wants a name in brackets");
    advance(p);
    if (p->token != T_CLOSE)
        return fail(p, p->start, "a bracket is missing");
    advance(p);
    return f;
}

static bool next_is_open(const struct parser *p)
{
    const char *q = p->at;
    while (isspace((unsigned char)*q))
        q++;
    return *q == '(';
}

static struct filter *parse_part(struct parser *p)
{
    struct filter *f;
    if (++p->depth > FILTER_DEPTH)
        return fail(p, p->start, "nested too deeply");
    if (is_word(p, "not")) {
        advance(p);
        f = make(p, FILTER_NOT);
        if (f && !(f->first = parse_part(p)))
            f = NULL;
    } else if (p->token == T_OPEN) {
        advance(p);
        f = parse_or(p);
        if (f && p->token != T_CLOSE)
            f = fail(p, p->start, "a bracket is missing");
        else if (f)
            advance(p);
    } else if (is_word(p, "exists") && next_is_open(p)) {
        f = parse_exists(p);
    } else {
        f = parse_comparison(p);
    }
    p->depth--;
    return p->rc < 0 ? NULL : f;
}

/* One level of "and" or "or"; a single part stays itself. */
static struct filter *parse_level(struct parser *p, enum filter_op op)
{
    const char *word = op == FILTER_OR ? "or" : "and";
    struct filter *(*below)(struct parser *) = parse_part;
    struct filter *first = op == FILTER_OR ? parse_level(p, FILTER_AND) : below(p);
    if (!first || !is_word(p, word))
        return first;
    struct filter *f = make(p, op);
    if (!f)
        return NULL;
    struct filter *last = f->first = first;
    while (is_word(p, word)) {
        advance(p);
        last->next = op == FILTER_OR ? parse_level(p, FILTER_AND) : below(p);
        if (!last->next)
            return NULL;
        last = last->next;
    }
    return f;
}

static struct filter *parse_or(struct parser *p)
{
    return parse_level(p, FILTER_OR);
}

int filter_parse(const char *text, struct arena *arena, struct filter **ret_filter,
                 struct filter_error *ret_error)
{
    struct parser p = { .begin = text ? text : "",
                        .at = text ? text : "",
                        .arena = arena,
                        .error = ret_error };
    *ret_error = (struct filter_error){ .position = 0 };
    advance(&p);
    if (p.token == T_END && p.rc == 0) {
        *ret_filter = filter_node(arena, FILTER_ALL);
        return *ret_filter ? 0 : -ENOMEM;
    }
    struct filter *f = parse_or(&p);
    if (f && p.token != T_END)
        f = fail(&p, p.start, "'and' or 'or' should stand here");
    if (p.rc < 0) {
        if (!ret_error->message[0])
            (void)snprintf(ret_error->message, sizeof ret_error->message, "%s",
                           error_text(p.rc));
        return p.rc;
    }
    const int rc = filter_compile(f, ret_error);
    if (rc == 0)
        *ret_filter = f;
    return rc;
}
