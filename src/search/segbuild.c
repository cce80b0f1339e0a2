/* segbuild.c: experiments become a segment.
 *
 * Values are collected per column as they come; at the end a column that every row has
 * is written without row numbers, and one whose values are of one type without types.
 * Memory grows with the values there are, not with rows × names: campaigns invent
 * names freely.
 */
#include "search/segment.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strmap.h"

enum { NAME_MOST = 512 };

struct growing {
    const char *name;
    size_t name_len;
    uint32_t *rows;
    uint8_t *types;
    uint64_t *values;
    uint32_t count, cap;
    struct strmap texts;
    bool mixed;
};

struct segment_builder {
    struct strmap names; /* → index in columns */
    struct growing *columns;
    size_t count, cap;
    int64_t *seq;
    uint32_t rows;
    struct arena scratch;
    int error;
};

struct segment_builder *segment_builder_new(void)
{
    struct segment_builder *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->seq = calloc(SEGMENT_ROWS, sizeof *b->seq);
    if (!b->seq) {
        free(b);
        return NULL;
    }
    return b;
}

void segment_builder_free(struct segment_builder *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->count; i++) {
        free(b->columns[i].rows);
        free(b->columns[i].types);
        free(b->columns[i].values);
        strmap_release(&b->columns[i].texts);
    }
    free(b->columns);
    free(b->seq);
    strmap_release(&b->names);
    arena_release(&b->scratch);
    free(b);
}

uint32_t segment_builder_rows(const struct segment_builder *b)
{
    return b->rows;
}

/* ---- Adding ------------------------------------------------------------------------- */

static struct growing *enter_column(struct segment_builder *b, const char *name,
                                    size_t len)
{
    bool added;
    struct strmap_entry *entry = strmap_enter(&b->names, name, len, &added);
    if (!entry)
        return NULL;
    if (!added)
        return &b->columns[entry->value];
    if (b->count == b->cap) {
        const size_t cap = b->cap ? b->cap * 2 : 32;
        struct growing *columns = realloc(b->columns, cap * sizeof *columns);
        if (!columns)
            return NULL;
        b->columns = columns;
        b->cap = cap;
    }
    entry->value = b->count;
    b->columns[b->count] = (struct growing){ .name = entry->key, .name_len = len };
    return &b->columns[b->count++];
}

static int grow(struct growing *c)
{
    if (c->count < c->cap)
        return 0;
    const uint32_t cap = c->cap ? c->cap * 2 : 64;
    uint32_t *rows = realloc(c->rows, cap * sizeof *rows);
    if (rows)
        c->rows = rows;
    uint8_t *types = realloc(c->types, cap);
    if (types)
        c->types = types;
    uint64_t *values = realloc(c->values, cap * sizeof *values);
    if (values)
        c->values = values;
    if (!rows || !types || !values)
        return -ENOMEM;
    c->cap = cap;
    return 0;
}

static int encode(struct growing *c, const struct value *v, uint64_t *ret_word)
{
    bool added;
    struct strmap_entry *entry;
    switch (v->type) {
    case VALUE_FLOAT:
        memcpy(ret_word, &v->number, sizeof *ret_word);
        return 0;
    case VALUE_TEXT:
        entry = strmap_enter(&c->texts, v->text, v->len, &added);
        if (!entry)
            return -ENOMEM;
        if (added)
            entry->value = c->texts.count - 1;
        *ret_word = entry->value;
        return 0;
    default:
        *ret_word = (uint64_t)v->integer;
        return 0;
    }
}

static int add_value(struct segment_builder *b, const char *name, size_t len,
                     const struct value *v)
{
    struct growing *c = enter_column(b, name, len);
    if (!c)
        return -ENOMEM;
    /* The same name twice in one experiment: the last counts. */
    if (c->count && c->rows[c->count - 1] == b->rows)
        c->count--;
    if (grow(c) < 0)
        return -ENOMEM;
    c->rows[c->count] = b->rows;
    c->types[c->count] = (uint8_t)v->type;
    c->mixed |= c->types[0] != c->types[c->count];
    return encode(c, v, &c->values[c->count++]);
}

struct adding {
    struct segment_builder *b;
    enum fact_kind kind;
    char name[NAME_MOST];
    size_t prefix;
};

static int add_fact(void *arg, const char *key, size_t key_len,
                    const struct value *value)
{
    struct adding *a = arg;
    struct value v = *value;
    if (key_len == 0 || key_len >= sizeof a->name - a->prefix)
        return 0; /* nobody will ask for it */
    memcpy(a->name + a->prefix, key, key_len);
    if (a->kind == FACT_METRIC)
        value_fix_metric(&v);
    return add_value(a->b, a->name, a->prefix + key_len, &v);
}

static int add_text(struct segment_builder *b, const char *name, const char *text)
{
    if (!text)
        return 0;
    const struct value v = { .type = VALUE_TEXT, .text = text, .len = strlen(text) };
    return add_value(b, name, strlen(name), &v);
}

static int add_fields(struct segment_builder *b, const struct experiment *e)
{
    const struct {
        const char *name, *text;
    } texts[] = { { "id", e->id },           { "kind", e->kind },
                  { "name", e->name },       { "parent", e->parent },
                  { "command", e->command }, { "document", e->document },
                  { "cause", e->cause } };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof texts / sizeof *texts; i++)
        rc = add_text(b, texts[i].name, texts[i].text);
    for (int i = 0; rc == 0 && i < CORE_FIELDS; i++)
        if (isfinite(e->core[i]))
            rc = add_value(
                b, core_names[i], strlen(core_names[i]),
                &(struct value){ .type = VALUE_FLOAT, .number = e->core[i] });
    if (rc == 0 && e->started_ns)
        rc = add_value(b, "started", 7,
                       &(struct value){ .type = VALUE_FLOAT,
                                        .number = (double)e->started_ns / 1e9 });
    if (rc == 0 && e->exit_code >= 0)
        rc = add_value(b, "exit_code", 9,
                       &(struct value){ .type = VALUE_INT, .integer = e->exit_code });
    return rc;
}

int segment_builder_add(struct segment_builder *b, const struct experiment *e)
{
    if (b->rows == SEGMENT_ROWS)
        return SONDE_E_LIMIT;
    int rc = add_fields(b, e);
    for (int kind = 0; rc == 0 && kind < FACT_KINDS; kind++) {
        struct adding a = { .b = b, .kind = (enum fact_kind)kind };
        a.prefix = strlen(fact_kind_names[kind]) + 1;
        memcpy(a.name, fact_kind_names[kind], a.prefix - 1);
        a.name[a.prefix - 1] = '.';
        rc = facts_each(e->facts[kind], e->facts_len[kind], &b->scratch, add_fact, &a);
        if (rc == SONDE_E_FORMAT)
            rc = 0; /* somebody edited the row: what was readable of it is here */
    }
    if (b->scratch.total > 1 << 20) {
        arena_release(&b->scratch);
        arena_init(&b->scratch);
    }
    if (rc == 0)
        b->seq[b->rows++] = e->seq;
    return rc;
}

/* ---- Writing ------------------------------------------------------------------------ */

static uint64_t put_block(struct buf *out, size_t start, const void *bytes, size_t len)
{
    static const char zeros[8];
    buf_append(out, zeros, (8 - (out->len - start) % 8) % 8);
    const uint64_t at = out->len - start;
    buf_append(out, bytes, len);
    return at;
}

static int by_name(const void *a, const void *b)
{
    const struct growing *x = a, *y = b;
    const size_t len = x->name_len < y->name_len ? x->name_len : y->name_len;
    const int order = memcmp(x->name, y->name, len);
    return order ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

static uint64_t put_texts(struct buf *out, size_t start, const struct growing *c,
                          struct buf *text)
{
    struct buf table = BUF_INIT;
    for (size_t i = 0; i < c->texts.count; i++) {
        const struct segment_text t = { .at = text->len,
                                        .len = c->texts.entries[i].len };
        buf_append(text, c->texts.entries[i].key, t.len);
        buf_append(&table, &t, sizeof t);
    }
    const uint64_t at = put_block(out, start, table.data, table.len);
    if (table.error && !out->error)
        out->error = table.error;
    buf_release(&table);
    return at;
}

static void put_column(struct buf *out, size_t start, const struct growing *c,
                       uint32_t rows, struct buf *text, struct segment_column *ret)
{
    *ret = (struct segment_column){
        .name_at = text->len,
        .name_len = (uint32_t)c->name_len,
        .count = c->count,
        .uniform = c->mixed || c->count == 0 ? 0 : c->types[0],
        .dictionary = (uint32_t)c->texts.count,
    };
    buf_append(text, c->name, c->name_len);
    if (c->count < rows)
        ret->rows_at = put_block(out, start, c->rows, c->count * sizeof *c->rows);
    if (ret->uniform == 0)
        ret->types_at = put_block(out, start, c->types, c->count);
    ret->values_at = put_block(out, start, c->values, c->count * sizeof *c->values);
    ret->texts_at = put_texts(out, start, c, text);
}

int segment_builder_write(struct segment_builder *b, struct buf *out)
{
    const size_t start = out->len;
    struct buf text = BUF_INIT;
    struct segment_head head = { .magic = "SondeSeg",
                                 .version = SEGMENT_VERSION,
                                 .order = 0x01020304,
                                 .rows = b->rows,
                                 .columns = (uint32_t)b->count };
    struct segment_column *columns = calloc(b->count + 1, sizeof *columns);
    if (!columns)
        return -ENOMEM;
    if (b->count)
        qsort(b->columns, b->count, sizeof *b->columns, by_name);
    buf_append(out, &head, sizeof head);
    head.seq_at = put_block(out, start, b->seq, b->rows * sizeof *b->seq);
    for (size_t i = 0; i < b->count; i++)
        put_column(out, start, &b->columns[i], b->rows, &text, &columns[i]);
    head.columns_at = put_block(out, start, columns, b->count * sizeof *columns);
    head.text_at = put_block(out, start, text.data, text.len);
    head.text_len = text.len;
    head.size = out->len - start;
    const int rc = out->error ? out->error : text.error;
    if (rc == 0)
        memcpy(out->data + start, &head, sizeof head);
    free(columns);
    buf_release(&text);
    return rc;
}
