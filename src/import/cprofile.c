/* cprofile.c: what Python's cProfile and pstats dump.
 *
 * The file is one object in Python's marshal format:
 *
 *     { (file, line, function): (primitive calls, calls, own s, cumulative s, callers) }
 *
 * Own times add up to the profile; cumulative ones overlap, so they are kept as a value
 * beside each function. Of marshal only the types that stand in such a file are read; any
 * other one is an error that names it.
 */
#include "import/sums.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/packwriter.h"

enum { FILE_MAX = 256 << 20, NEST_MAX = 32, REFS_MAX = 1 << 22, TEXT_MAX = 1000 };

struct value {
    enum { V_OTHER, V_TEXT, V_NUMBER, V_END } type;
    const char *text;
    size_t len;
    double number;
};

struct marshal {
    const uint8_t *data;
    size_t at, len;
    struct value *refs; /* objects that are pointed back to */
    size_t ref_count, ref_cap;
    int bad; /* type byte that is not known */
};

struct function {
    struct value file, name;
    double line, calls, own_s, cumulative_s;
};

struct profile {
    struct function *list;
    size_t count, cap;
};

static bool take(struct marshal *m, void *to, size_t n)
{
    if (m->len - m->at < n)
        return false;
    memcpy(to, m->data + m->at, n);
    m->at += n;
    return true;
}

/* Marshal is little-endian, as are we (docs/trace-format.md). */
static bool take_size(struct marshal *m, bool is_byte, size_t *ret)
{
    uint8_t small;
    uint32_t large;
    if (is_byte ? !take(m, &small, 1) : !take(m, &large, 4))
        return false;
    *ret = is_byte ? small : large;
    return true;
}

static bool remember(struct marshal *m, size_t *ret_index)
{
    if (m->ref_count == m->ref_cap) {
        const size_t cap = m->ref_cap ? m->ref_cap * 2 : 256;
        struct value *grown = cap <= REFS_MAX ? realloc(m->refs, cap * sizeof *grown)
                                              : NULL;
        if (!grown)
            return false;
        m->refs = grown;
        m->ref_cap = cap;
    }
    *ret_index = m->ref_count;
    m->refs[m->ref_count++] = (struct value){ V_OTHER, "", 0, NAN };
    return true;
}

static bool take_text(struct marshal *m, bool is_short, struct value *v)
{
    size_t len;
    if (!take_size(m, is_short, &len) || m->len - m->at < len)
        return false;
    *v = (struct value){ V_TEXT, (const char *)m->data + m->at, len, NAN };
    m->at += len;
    return true;
}

/* Python's long: digits of 15 bits, a negative count for negative numbers. */
static bool take_long(struct marshal *m, struct value *v)
{
    int32_t count;
    if (!take(m, &count, 4) || count == INT32_MIN)
        return false;
    double value = 0, scale = 1;
    for (int32_t i = 0; i < abs(count); i++, scale *= 32768) {
        uint16_t digit;
        if (!take(m, &digit, 2))
            return false;
        value += scale * digit;
    }
    *v = (struct value){ V_NUMBER, "", 0, count < 0 ? -value : value };
    return true;
}

static bool take_value(struct marshal *m, unsigned nest, struct value *v,
                       struct value *items, size_t most, size_t *ret_count);

static bool take_items(struct marshal *m, size_t count, unsigned nest,
                       struct value *items, size_t most, size_t *ret_count)
{
    for (size_t i = 0; i < count; i++) {
        struct value item;
        if (!take_value(m, nest + 1, &item, NULL, 0, NULL))
            return false;
        if (i < most)
            items[i] = item;
    }
    if (ret_count)
        *ret_count = count;
    return true;
}

/* A dict nobody looks into: callers. */
static bool pass_dict(struct marshal *m, unsigned nest)
{
    for (;;) {
        struct value key, item;
        if (!take_value(m, nest + 1, &key, NULL, 0, NULL))
            return false;
        if (key.type == V_END)
            return true;
        if (!take_value(m, nest + 1, &item, NULL, 0, NULL) || item.type == V_END)
            return false;
    }
}

/* Simple types; −1: not one of them. */
static int take_simple(struct marshal *m, int type, struct value *v)
{
    int32_t number;
    double real;
    uint32_t ref;
    switch (type) {
    case '0':
        v->type = V_END;
        return 1;
    case 'N':
    case 'T':
    case 'F':
        return 1;
    case 'i':
        if (!take(m, &number, 4))
            return 0;
        *v = (struct value){ V_NUMBER, "", 0, number };
        return 1;
    case 'g':
        if (!take(m, &real, 8))
            return 0;
        *v = (struct value){ V_NUMBER, "", 0, real };
        return 1;
    case 'l':
        return take_long(m, v);
    case 'u':
    case 't':
    case 'a':
    case 'A':
    case 's':
        return take_text(m, false, v);
    case 'z':
    case 'Z':
        return take_text(m, true, v);
    case 'r':
        if (!take(m, &ref, 4) || ref >= m->ref_count)
            return 0;
        *v = m->refs[ref];
        return 1;
    default:
        return -1;
    }
}

/* items: where the first `most` elements of a tuple go. */
static bool take_value(struct marshal *m, unsigned nest, struct value *v,
                       struct value *items, size_t most, size_t *ret_count)
{
    uint8_t byte;
    size_t count = 0, index = SIZE_MAX;
    *v = (struct value){ V_OTHER, "", 0, NAN };
    if (nest > NEST_MAX || !take(m, &byte, 1))
        return false;
    const int type = byte & 0x7f;
    if (byte & 0x80 && !remember(m, &index))
        return false;
    const int simple = take_simple(m, type, v);
    bool good = simple == 1;
    if (simple < 0) {
        if (type == '(' || type == ')')
            good = take_size(m, type == ')', &count) &&
                   take_items(m, count, nest, items, most, ret_count);
        else if (type == '{')
            good = pass_dict(m, nest);
        else
            m->bad = type;
    }
    if (good && index != SIZE_MAX)
        m->refs[index] = *v;
    return good;
}

/* ---- The profile -------------------------------------------------------------------- */

static struct function *add_function(struct profile *p)
{
    if (p->count == p->cap) {
        const size_t cap = p->cap ? p->cap * 2 : 256;
        struct function *grown = realloc(p->list, cap * sizeof *grown);
        if (!grown)
            return NULL;
        p->list = grown;
        p->cap = cap;
    }
    return &p->list[p->count++];
}

/* One entry of the outer dict; 1: it has ended. */
static int take_entry(struct marshal *m, struct profile *p)
{
    struct value key, value, where[3], numbers[4];
    size_t have = 0;
    if (!take_value(m, 1, &key, where, 3, &have))
        return SONDE_E_FORMAT;
    if (key.type == V_END)
        return 1;
    if (have != 3 || where[0].type != V_TEXT || where[2].type != V_TEXT)
        return SONDE_E_FORMAT;
    if (!take_value(m, 1, &value, numbers, 4, &have) || have < 4)
        return SONDE_E_FORMAT;
    struct function *f = add_function(p);
    if (!f)
        return -ENOMEM;
    *f = (struct function){ where[0],          where[2],          where[1].number,
                            numbers[1].number, numbers[2].number, numbers[3].number };
    return 0;
}

static int by_own_time(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    return (x->own_s < y->own_s) - (x->own_s > y->own_s);
}

static bool is_sound(const struct function *f)
{
    return f->calls >= 0 && f->calls < 1e18 && f->own_s > -1 && f->own_s < 1e9;
}

static void write_function(struct packwriter *w, const struct function *f,
                           unsigned cumulative, struct built *built)
{
    char name[TEXT_MAX], file[TEXT_MAX];
    (void)snprintf(name, sizeof name, "%.*s",
                   (int)(f->name.len < TEXT_MAX ? f->name.len : TEXT_MAX - 1),
                   f->name.text);
    (void)snprintf(file, sizeof file, "%.*s",
                   (int)(f->file.len < TEXT_MAX ? f->file.len : TEXT_MAX - 1),
                   f->file.text);
    const bool built_in = strcmp(file, "~") == 0; /* how cProfile writes "no file" */
    const struct packwriter_site site = {
        .name = name,
        .file = built_in ? "" : file,
        .line = f->line > 0 && f->line < 1e9 && !built_in ? (int)f->line : 0,
        .category = "python"
    };
    /* Rounding leaves some own times a little below zero. */
    const uint64_t own_ns = f->own_s > 0 ? (uint64_t)(f->own_s * 1e9) : 0;
    const unsigned node = packwriter_sum(w, 0, packwriter_site(w, &site),
                                         (uint64_t)f->calls, own_ns);
    if (node && isfinite(f->cumulative_s))
        packwriter_sum_value(w, node, cumulative, f->cumulative_s);
    built->end_ns += (int64_t)own_ns;
}

static int write_profile(struct profile *p, const char *dir, struct built *ret_built,
                         struct import_result *result)
{
    struct packwriter *w;
    int rc = sums_open(dir, "python", &w, ret_built);
    if (rc < 0)
        return rc;
    qsort(p->list, p->count, sizeof *p->list, by_own_time);
    const unsigned cumulative = packwriter_site(
        w, &(struct packwriter_site){ .name = "cumulative_s" });
    for (size_t i = 0; i < p->count; i++) {
        if (is_sound(&p->list[i]))
            write_function(w, &p->list[i], cumulative, ret_built);
        else
            result->left_out++;
    }
    result->events = p->count;
    return packwriter_finish(w);
}

int cprofile_import(struct import_source *source, const char *dir,
                    struct built *ret_built, struct import_result *result)
{
    char *data;
    size_t len;
    int rc = source_slurp(source, FILE_MAX, &data, &len);
    if (rc < 0)
        return rc;
    struct marshal m = { .data = (const uint8_t *)data, .len = len };
    struct profile p = { 0 };
    uint8_t first = 0;
    size_t index;
    rc = take(&m, &first, 1) && (first & 0x7f) == '{' ? 0 : SONDE_E_FORMAT;
    if (rc == 0 && first & 0x80 && !remember(&m, &index))
        rc = -ENOMEM;
    while (rc == 0)
        rc = take_entry(&m, &p);
    if (rc == 1 && p.count == 0)
        rc = SONDE_E_FORMAT;
    if (rc == 1)
        rc = write_profile(&p, dir, ret_built, result);
    else if (m.bad)
        (void)snprintf(result->problem, sizeof result->problem,
                       "byte %zu: objects of type '%c' do not stand in a cProfile dump",
                       m.at, m.bad >= 32 && m.bad < 127 ? m.bad : '?');
    else
        (void)snprintf(result->problem, sizeof result->problem,
                       "no cProfile dump, or cut short at byte %zu", m.at);
    free(m.refs);
    free(p.list);
    free(data);
    return rc;
}
