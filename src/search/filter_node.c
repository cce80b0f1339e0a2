/* filter_node.c: the nodes of a filter; regular expressions. */
#include "search/filter.h"

#include <stdio.h>
#include <string.h>

#ifdef SONDE_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#include "base/error.h"

struct filter *filter_node(struct arena *arena, enum filter_op op)
{
    struct filter *f = arena_alloc(arena, sizeof *f);
    if (f)
        f->op = op;
    return f;
}

static bool begins(const char *name, size_t len, const char *prefix)
{
    const size_t n = strlen(prefix);
    return len > n && memcmp(name, prefix, n) == 0;
}

static bool is_field(const char *name, size_t len)
{
    static const char *const fields[] = { "id",      "kind",     "name",
                                          "parent",  "command",  "cause",
                                          "started", "document", "exit_code" };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i]) == len && memcmp(fields[i], name, len) == 0)
            return true;
    return false;
}

bool filter_set_name(struct filter *f, const char *name, size_t len)
{
    if (len == 0 || len > 400)
        return false;
    f->name = name;
    f->name_len = len;
    const int core = core_find(name, len);
    if (core >= 0) {
        f->name = core_names[core];
        f->name_len = strlen(f->name);
    }
    f->bare = core < 0 && !is_field(name, len) && !begins(name, len, "params.") &&
              !begins(name, len, "metrics.") && !begins(name, len, "tags.");
    return true;
}

struct filter *filter_and(struct arena *arena, struct filter *a, struct filter *b)
{
    if (!a || !b)
        return a ? a : b;
    struct filter *both = filter_node(arena, FILTER_AND);
    if (!both)
        return NULL;
    /* A copy each: a node has one list of siblings. */
    struct filter *x = filter_node(arena, FILTER_ALL);
    struct filter *y = filter_node(arena, FILTER_ALL);
    if (!x || !y)
        return NULL;
    *x = *a;
    *y = *b;
    a->pattern = b->pattern = NULL; /* they own theirs now */
    x->next = y;
    y->next = NULL;
    both->first = x;
    return both;
}

struct filter *filter_number(struct arena *arena, const char *name, enum filter_op op,
                             double number)
{
    struct filter *f = filter_node(arena, op);
    struct value *v = arena_alloc(arena, sizeof *v);
    if (!f || !v || !filter_set_name(f, name, strlen(name)))
        return NULL;
    *v = (struct value){ .type = VALUE_FLOAT, .number = number };
    f->values = v;
    f->value_count = 1;
    return f;
}

/* ---- Regular expressions ------------------------------------------------------------ */

#ifdef SONDE_HAVE_PCRE2

/* Letters are Unicode's and $ is the very end, as in Rust's expressions, which are
 * Chroma's. Limits: an expression that explodes is one that does not match. */
static int compile_pattern(struct filter *f, char *ret_message, size_t len)
{
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context)
        (void)pcre2_set_max_pattern_length(context, 10000);
    f->pattern = pcre2_compile((PCRE2_SPTR)f->values[0].text, f->values[0].len,
                               PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY |
                                   PCRE2_NEVER_BACKSLASH_C,
                               &code, &at, context);
    pcre2_compile_context_free(context);
    if (f->pattern)
        return 0;
    PCRE2_UCHAR why[120];
    if (pcre2_get_error_message(code, why, sizeof why) < 0)
        why[0] = '\0';
    (void)snprintf(ret_message, len, "not a regular expression: %s", (char *)why);
    return SONDE_E_FORMAT;
}

int filter_pattern_matches(const struct filter *f, const char *text, size_t len)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    int found = 0;
    if (data && context) {
        (void)pcre2_set_match_limit(context, 100000);
        (void)pcre2_set_depth_limit(context, 1000);
        found = pcre2_match(f->pattern, (PCRE2_SPTR)text, len, 0, 0, data, context) >=
                0;
    }
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    return found;
}

static void free_pattern(struct filter *f)
{
    if (f->pattern)
        pcre2_code_free(f->pattern);
}

#else

static int compile_pattern(struct filter *f, char *ret_message, size_t len)
{
    (void)f;
    (void)snprintf(ret_message, len,
                   "this sonde was built without regular expressions (PCRE2)");
    return SONDE_E_UNSUPPORTED;
}

int filter_pattern_matches(const struct filter *f, const char *text, size_t len)
{
    (void)f, (void)text, (void)len;
    return 0;
}

static void free_pattern(struct filter *f)
{
    (void)f;
}

#endif

void filter_release(struct filter *filter)
{
    if (!filter)
        return;
    for (struct filter *f = filter->first; f; f = f->next)
        filter_release(f);
    free_pattern(filter);
    filter->pattern = NULL;
}

static int compile_below(struct filter *f, struct filter_error *ret_error)
{
    int rc = 0;
    if (f->op == FILTER_MATCHES || f->op == FILTER_NOT_MATCHES) {
        rc = compile_pattern(f, ret_error->message, sizeof ret_error->message);
        ret_error->position = f->position;
    }
    for (struct filter *child = f->first; rc == 0 && child; child = child->next)
        rc = compile_below(child, ret_error);
    return rc;
}

int filter_compile(struct filter *f, struct filter_error *ret_error)
{
    const int rc = compile_below(f, ret_error);
    if (rc < 0)
        filter_release(f);
    return rc;
}
