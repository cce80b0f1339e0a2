/* explain.c: why two experiments are alike, and where they are not. */
#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number within this share of the range reads as near. */
static const double NEAR = 0.1;

static struct value value_at(const struct index *x, size_t part, uint32_t row,
                             const struct embed_name *name)
{
    struct column column;
    if (!segment_find(&x->parts[part].segment, name->name, name->len, &column))
        return (struct value){ .type = VALUE_NONE };
    return column_at(&column, row);
}

static bool is_number(const struct value *v)
{
    return v->type == VALUE_INT || v->type == VALUE_FLOAT;
}

static bool same_value(const struct value *a, const struct value *b)
{
    if (is_number(a) && is_number(b))
        return a->number == b->number;
    if (a->type != b->type)
        return false;
    if (a->type == VALUE_TEXT)
        return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
    return a->integer == b->integer;
}

static void judge(const struct embed_name *name, struct likeness *l)
{
    if (l->a.type == VALUE_NONE || l->b.type == VALUE_NONE) {
        l->state = LIKE_MISSING;
        l->difference = NAN;
        return;
    }
    if (same_value(&l->a, &l->b)) {
        l->state = LIKE_SAME;
        l->difference = 0;
        return;
    }
    l->difference = 1;
    if (!name->is_text && is_number(&l->a) && is_number(&l->b)) {
        const double x = embed_place(name, l->a.number);
        const double y = embed_place(name, l->b.number);
        l->difference = fabs(x - y) / 65536;
    }
    l->state = l->difference <= NEAR ? LIKE_NEAR : LIKE_FAR;
}

static int largest_first(const void *a, const void *b)
{
    const struct likeness *x = a, *y = b;
    const double dx = isnan(x->difference) ? -1 : x->difference;
    const double dy = isnan(y->difference) ? -1 : y->difference;
    if (dx != dy)
        return dx < dy ? 1 : -1;
    const size_t len = x->name_len < y->name_len ? x->name_len : y->name_len;
    const int order = memcmp(x->name, y->name, len);
    return order ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

size_t search_explain(const struct index *index, int64_t a, int64_t b,
                      struct likeness *ret_likeness, size_t room)
{
    size_t part_a, part_b, count = 0;
    uint32_t row_a, row_b;
    if (!index_find_seq(index, a, &part_a, &row_a) ||
        !index_find_seq(index, b, &part_b, &row_b))
        return 0;
    for (size_t k = 0; k < index->space.count && count < room; k++) {
        const struct embed_name *name = &index->space.names[k];
        struct likeness l = { .name = name->name, .name_len = name->len };
        l.a = value_at(index, part_a, row_a, name);
        l.b = value_at(index, part_b, row_b, name);
        if (l.a.type == VALUE_NONE && l.b.type == VALUE_NONE)
            continue;
        judge(name, &l);
        ret_likeness[count++] = l;
    }
    if (count)
        qsort(ret_likeness, count, sizeof *ret_likeness, largest_first);
    return count;
}
