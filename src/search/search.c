/* search.c: filter first, then order what is left. */
#include "search/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "search/nearest.h"

/* Enough for any honest --limit with an --offset; more are sorted as a whole. */
enum { HEAP_MOST = 1 << 20 };

void search_result_release(struct search_result *result)
{
    free(result->hits);
    *result = (struct search_result){ .hits = NULL };
}

/* ---- Which rows --------------------------------------------------------------------- */

static int wanted_rows(const struct index_part *p, const struct filter *filter,
                       uint64_t *bits)
{
    const uint32_t rows = p->segment.head->rows;
    const size_t words = (rows + 63) / 64;
    int rc = 0;
    if (filter)
        rc = filter_apply(filter, &p->segment, bits);
    else
        for (size_t i = 0; i < words; i++)
            bits[i] = UINT64_MAX;
    if (!filter && rows % 64)
        bits[words - 1] = (UINT64_C(1) << rows % 64) - 1;
    for (size_t i = 0; p->removed && i < words; i++)
        bits[i] &= ~p->removed[i];
    return rc;
}

static void drop_seq(const struct index_part *p, int64_t seq, uint64_t *bits)
{
    const struct segment *s = &p->segment;
    const uint32_t rows = s->head->rows;
    if (!seq || !rows || seq < s->seq[0] || seq > s->seq[rows - 1])
        return;
    for (uint32_t i = 0; i < rows; i++)
        if (s->seq[i] == seq)
            bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static uint64_t count_bits(const uint64_t *bits, uint32_t rows)
{
    uint64_t n = 0;
    for (size_t i = 0; i < (rows + 63) / 64; i++)
        n += (uint64_t)__builtin_popcountll(bits[i]);
    return n;
}

/* ---- By a name ---------------------------------------------------------------------- */

struct ranked {
    struct value key;
    int64_t seq;
    uint32_t part, row;
};

struct ranking {
    struct ranked *rows;
    size_t count, cap, most; /* most 0: all */
    bool ascending;
    int error;
};

static int rank_of(enum value_type t)
{
    return t == VALUE_NONE ? 3 : t == VALUE_TEXT ? 2 : t == VALUE_BOOL ? 1 : 0;
}

static int compare_values(const struct value *a, const struct value *b)
{
    if (a->type == VALUE_TEXT) {
        const int o = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
        return o ? o : (a->len > b->len) - (a->len < b->len);
    }
    if (isnan(a->number) || isnan(b->number))
        return isnan(a->number) - isnan(b->number);
    return (a->number > b->number) - (a->number < b->number);
}

/* Negative: a comes first. What is missing comes last either way; equals newest
 * first. */
static int before(const struct ranking *r, const struct ranked *a,
                  const struct ranked *b)
{
    const int x = rank_of(a->key.type), y = rank_of(b->key.type);
    int o = x != y ? x - y : 0;
    if (o == 0 && x != 3) {
        o = compare_values(&a->key, &b->key);
        const bool nan = x == 0 && (isnan(a->key.number) || isnan(b->key.number));
        o = r->ascending || nan ? o : -o;
    }
    return o ? o : (a->seq < b->seq) - (a->seq > b->seq);
}

static void settle(struct ranking *r, size_t at)
{
    for (;;) {
        size_t last = at;
        for (size_t c = 2 * at + 1; c <= 2 * at + 2; c++)
            if (c < r->count && before(r, &r->rows[last], &r->rows[c]) < 0)
                last = c;
        if (last == at)
            return;
        const struct ranked t = r->rows[at];
        r->rows[at] = r->rows[last];
        r->rows[last] = t;
        at = last;
    }
}

static void rank(struct ranking *r, const struct ranked *row)
{
    if (r->most && r->count == r->most) {
        if (before(r, row, &r->rows[0]) < 0) {
            r->rows[0] = *row;
            settle(r, 0);
        }
        return;
    }
    if (r->count == r->cap) {
        const size_t cap = r->cap ? r->cap * 2 : 1024;
        struct ranked *rows = realloc(r->rows, cap * sizeof *rows);
        if (!rows) {
            r->error = -ENOMEM;
            return;
        }
        r->rows = rows;
        r->cap = cap;
    }
    r->rows[r->count++] = *row;
    if (r->most && r->count == r->most)
        for (size_t i = r->count / 2; i-- > 0;)
            settle(r, i);
}

static int by_rank(const void *a, const void *b, void *arg)
{
    return before(arg, a, b);
}

struct sort_columns {
    struct column columns[3];
    size_t count;
};

static void find_sort_columns(const struct segment *s, const char *sort,
                              struct sort_columns *ret)
{
    static const char *const prefixes[] = { "metrics.", "params.", "tags." };
    struct filter name = { .op = FILTER_ALL };
    ret->count = 0;
    if (!filter_set_name(&name, sort, strlen(sort)))
        return;
    if (!name.bare) {
        ret->count = segment_find(s, name.name, name.name_len, &ret->columns[0]);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        char full[512];
        const size_t n = strlen(prefixes[i]);
        memcpy(full, prefixes[i], n);
        memcpy(full + n, name.name, name.name_len);
        ret->count += segment_find(s, full, n + name.name_len,
                                   &ret->columns[ret->count]);
    }
}

static struct value sort_key(const struct sort_columns *c, uint32_t row)
{
    struct value v = { .type = VALUE_NONE };
    for (size_t i = 0; v.type == VALUE_NONE && i < c->count; i++)
        v = column_at(&c->columns[i], row);
    return v;
}

static void rank_part(struct ranking *r, const struct index_part *p, uint32_t part,
                      const uint64_t *bits, const char *sort)
{
    struct sort_columns columns;
    const uint32_t rows = p->segment.head->rows;
    find_sort_columns(&p->segment, sort, &columns);
    for (uint32_t word = 0; word < (rows + 63) / 64; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            const uint32_t row = word * 64 + (uint32_t)__builtin_ctzll(left);
            rank(r, &(struct ranked){ .key = sort_key(&columns, row),
                                      .seq = p->segment.seq[row],
                                      .part = part,
                                      .row = row });
        }
}

/* ---- Both ways ---------------------------------------------------------------------- */

static size_t keep_at_most(const struct search_query *q)
{
    return q->limit && q->limit < HEAP_MOST - q->offset ? q->limit + q->offset : 0;
}

static int take_ranked(struct ranking *r, const struct search_query *q,
                       struct search_result *result)
{
    if (r->count)
        qsort_r(r->rows, r->count, sizeof *r->rows, by_rank, r);
    const size_t first = q->offset < r->count ? q->offset : r->count;
    size_t count = r->count - first;
    if (q->limit && count > q->limit)
        count = q->limit;
    result->hits = calloc(count ? count : 1, sizeof *result->hits);
    if (!result->hits)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        result->hits[i] = (struct search_hit){ .seq = r->rows[first + i].seq,
                                               .part = r->rows[first + i].part,
                                               .row = r->rows[first + i].row,
                                               .similarity = NAN };
    result->count = count;
    return 0;
}

static int run_sorted(const struct index *x, const struct search_query *q,
                      struct search_result *result)
{
    struct ranking r = { .most = keep_at_most(q),
                         .ascending = q->sort ? q->ascending : false };
    uint64_t *bits = calloc(SEGMENT_ROWS / 64, sizeof *bits);
    int rc = bits ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < x->count; i++) {
        rc = wanted_rows(&x->parts[i], q->filter, bits);
        if (rc < 0)
            break;
        drop_seq(&x->parts[i], q->except_seq, bits);
        result->matched += count_bits(bits, x->parts[i].segment.head->rows);
        rank_part(&r, &x->parts[i], (uint32_t)i, bits, q->sort ? q->sort : "started");
        rc = r.error;
    }
    if (rc == 0)
        rc = take_ranked(&r, q, result);
    free(bits);
    free(r.rows);
    return rc;
}

/* The nearest ones in an order that was asked for. */
static int sort_hits(const struct index *x, const struct search_query *q,
                     struct search_result *result)
{
    struct ranking r = { .ascending = q->ascending };
    struct search_hit *sorted = calloc(result->count ? result->count : 1,
                                       sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < result->count; i++) {
        struct sort_columns columns;
        const struct search_hit *hit = &result->hits[i];
        find_sort_columns(&x->parts[hit->part].segment, q->sort, &columns);
        rank(&r, &(struct ranked){ .key = sort_key(&columns, hit->row),
                                   .seq = hit->seq,
                                   .part = (uint32_t)i });
    }
    const int rc = r.error;
    if (rc == 0 && r.count)
        qsort_r(r.rows, r.count, sizeof *r.rows, by_rank, &r);
    for (size_t i = 0; rc == 0 && i < r.count; i++)
        sorted[i] = result->hits[r.rows[i].part];
    free(r.rows);
    free(rc == 0 ? result->hits : sorted);
    if (rc == 0)
        result->hits = sorted;
    return rc;
}

static int take_nearest(const struct index *x, struct nearest *n,
                        const struct search_query *q, struct search_result *result)
{
    const double scale = embed_scale(&x->space);
    nearest_sort(n);
    const size_t first = q->offset < n->count ? q->offset : n->count;
    const size_t count = n->count - first;
    result->hits = calloc(count ? count : 1, sizeof *result->hits);
    if (!result->hits)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct neighbour *b = &n->heap[first + i];
        const double similarity = scale > 0 ? 1 - b->distance / scale : 1;
        result->hits[i] = (struct search_hit){ .seq = b->seq,
                                               .part = b->segment,
                                               .row = b->row,
                                               .distance = b->distance,
                                               .similarity = similarity };
    }
    result->count = count;
    return q->sort ? sort_hits(x, q, result) : 0;
}

static int run_nearest(const struct index *x, const struct search_query *q,
                       struct search_result *result)
{
    struct nearest n;
    uint64_t *bits = calloc(SEGMENT_ROWS / 64, sizeof *bits);
    const size_t most = q->limit && q->limit < x->rows ? q->limit + q->offset : x->rows;
    int rc = bits ? nearest_init(&n, most) : -ENOMEM;
    if (rc < 0) {
        free(bits);
        return rc;
    }
    for (size_t i = 0; rc == 0 && i < x->count; i++) {
        const struct index_part *p = &x->parts[i];
        const uint32_t rows = p->segment.head->rows;
        rc = wanted_rows(p, q->filter, bits);
        if (rc < 0)
            break;
        drop_seq(p, q->except_seq, bits);
        result->matched += count_bits(bits, rows);
        nearest_scan(&n, q->like, p->vectors, rows, bits, (uint32_t)i, p->segment.seq);
    }
    if (rc == 0)
        rc = take_nearest(x, &n, q, result);
    nearest_release(&n);
    free(bits);
    return rc;
}

int search_run(const struct index *index, const struct search_query *query,
               struct search_result *ret_result)
{
    struct search_result result = { .total = index->rows };
    for (size_t i = 0; i < index->count; i++)
        result.total -= index->parts[i].removed_count;
    const int rc = query->like ? run_nearest(index, query, &result)
                               : run_sorted(index, query, &result);
    if (rc < 0) {
        search_result_release(&result);
        return rc;
    }
    *ret_result = result;
    return 0;
}

int search_vector_of(const struct index *index, int64_t seq,
                     int8_t ret_vector[EMBED_DIMS])
{
    size_t part;
    uint32_t row;
    if (!index_find_seq(index, seq, &part, &row))
        return SONDE_E_NOTFOUND;
    const struct index_part *p = &index->parts[part];
    const size_t rows = p->segment.head->rows;
    for (size_t i = 0; i < EMBED_PLANES; i++)
        memcpy(ret_vector + i * EMBED_PLANE,
               p->vectors + (i * rows + row) * EMBED_PLANE, EMBED_PLANE);
    return 0;
}

int search_vector_for(const struct index *index, const struct experiment *e,
                      int8_t ret_vector[EMBED_DIMS])
{
    struct buf bytes = BUF_INIT;
    struct segment segment;
    struct segment_builder *b = segment_builder_new();
    int rc = b ? segment_builder_add(b, e) : -ENOMEM;
    if (rc == 0)
        rc = segment_builder_write(b, &bytes);
    if (rc == 0)
        rc = segment_attach(bytes.data, bytes.len, false, &segment);
    if (rc == 0)
        embed_row(&index->space, &segment, 0, ret_vector);
    segment_builder_free(b);
    buf_release(&bytes);
    return rc;
}

/* Hits of one part lie together more often than not: its columns are kept. */
void search_numbers(const struct index *index, const struct search_result *result,
                    const char *name, double *ret_numbers)
{
    struct sort_columns columns = { .count = 0 };
    size_t part = SIZE_MAX;
    for (size_t i = 0; i < result->count; i++) {
        const struct search_hit *hit = &result->hits[i];
        if (hit->part != part) {
            part = hit->part;
            find_sort_columns(&index->parts[part].segment, name, &columns);
        }
        const struct value v = sort_key(&columns, hit->row);
        ret_numbers[i] = v.type == VALUE_INT || v.type == VALUE_FLOAT ? v.number : NAN;
    }
}
