/* segment.c: reading a segment. */
#include "search/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static bool fits(uint64_t at, uint64_t count, uint64_t size, uint64_t len)
{
    return at % 8 == 0 && at <= len && count <= (len - at) / size;
}

static bool column_fits(const struct segment_head *h, const struct segment_column *c)
{
    return c->count <= h->rows && c->uniform <= VALUE_TEXT &&
           c->name_at <= h->text_len && c->name_len <= h->text_len - c->name_at &&
           (c->rows_at || c->count == h->rows) &&
           fits(c->rows_at, c->rows_at ? c->count : 0, 4, h->size) &&
           (c->uniform || c->types_at) &&
           fits(c->types_at, c->types_at ? c->count : 0, 1, h->size) &&
           fits(c->values_at, c->count, 8, h->size) &&
           fits(c->texts_at, c->dictionary, sizeof(struct segment_text), h->size);
}

int segment_attach(const void *base, size_t len, bool mapped, struct segment *ret)
{
    const struct segment_head *h = base;
    if (len < sizeof *h || memcmp(h->magic, "SondeSeg", 8) != 0)
        return SONDE_E_FORMAT;
    if (h->version != SEGMENT_VERSION || h->order != 0x01020304)
        return SONDE_E_VERSION;
    if (h->size != len || h->rows > SEGMENT_ROWS || !fits(h->seq_at, h->rows, 8, len) ||
        !fits(h->columns_at, h->columns, sizeof(struct segment_column), len) ||
        !fits(h->text_at, h->text_len, 1, len))
        return SONDE_E_FORMAT;
    const struct segment s = {
        .base = base,
        .len = len,
        .mapped = mapped,
        .head = h,
        .seq = (const void *)((const char *)base + h->seq_at),
        .columns = (const void *)((const char *)base + h->columns_at),
        .text = (const char *)base + h->text_at,
    };
    for (uint32_t i = 0; i < h->columns; i++)
        if (!column_fits(h, &s.columns[i]))
            return SONDE_E_FORMAT;
    *ret = s;
    return 0;
}

int segment_map(const char *path, struct segment *ret_segment)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0 ? -errno : st.st_size <= 0 ? SONDE_E_FORMAT : 0;
    void *base = rc < 0 ? MAP_FAILED
                        : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (rc == 0 && base == MAP_FAILED)
        rc = -errno;
    (void)close(fd);
    if (rc < 0)
        return rc;
    rc = segment_attach(base, (size_t)st.st_size, true, ret_segment);
    if (rc < 0)
        (void)munmap(base, (size_t)st.st_size);
    return rc;
}

void segment_release(struct segment *s)
{
    if (s->mapped)
        (void)munmap((void *)(uintptr_t)s->base, s->len);
    else
        free((void *)(uintptr_t)s->base);
    *s = (struct segment){ 0 };
}

/* ---- Columns ------------------------------------------------------------------------ */

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
    const int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

bool segment_column(const struct segment *s, uint32_t index, struct column *ret_column,
                    const char **ret_name, size_t *ret_len)
{
    if (index >= s->head->columns)
        return false;
    const struct segment_column *c = &s->columns[index];
    *ret_column = (struct column){
        .count = c->count,
        .uniform = c->uniform,
        .dictionary = c->dictionary,
        .rows = c->rows_at ? (const void *)(s->base + c->rows_at) : NULL,
        .types = c->uniform ? NULL : s->base + c->types_at,
        .values = (const void *)(s->base + c->values_at),
        .texts = (const void *)(s->base + c->texts_at),
        .text = s->text,
        .text_len = s->head->text_len,
    };
    *ret_name = s->text + c->name_at;
    *ret_len = c->name_len;
    return true;
}

bool segment_find(const struct segment *s, const char *name, size_t len,
                  struct column *ret_column)
{
    uint32_t low = 0, high = s->head->columns;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct segment_column *c = &s->columns[middle];
        const int order = compare_names(name, len, s->text + c->name_at, c->name_len);
        const char *found;
        size_t found_len;
        if (order == 0)
            return segment_column(s, middle, ret_column, &found, &found_len);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

const char *column_text(const struct column *c, uint64_t number, size_t *ret_len)
{
    *ret_len = 0;
    if (number >= c->dictionary)
        return "";
    const struct segment_text *t = &c->texts[number];
    if (t->at > c->text_len || t->len > c->text_len - t->at)
        return "";
    *ret_len = t->len;
    return c->text + t->at;
}

struct value column_value(const struct column *c, uint32_t i)
{
    struct value v = { .type = c->types ? (enum value_type)c->types[i]
                                        : (enum value_type)c->uniform };
    switch (v.type) {
    case VALUE_BOOL:
    case VALUE_INT:
        v.integer = (int64_t)c->values[i];
        v.number = (double)v.integer;
        break;
    case VALUE_FLOAT:
        memcpy(&v.number, &c->values[i], sizeof v.number);
        break;
    case VALUE_TEXT:
        v.text = column_text(c, c->values[i], &v.len);
        break;
    default:
        v.type = VALUE_NONE;
    }
    return v;
}

struct value column_at(const struct column *c, uint32_t row)
{
    if (!c->rows)
        return row < c->count ? column_value(c, row)
                              : (struct value){ .type = VALUE_NONE };
    uint32_t low = 0, high = c->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->rows[middle] == row)
            return column_value(c, middle);
        if (c->rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return (struct value){ .type = VALUE_NONE };
}
