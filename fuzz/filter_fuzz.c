/* filter_fuzz.c: a filter, in the language or as Chroma's JSON, applied to a segment. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const rows[] = {
    "{\"id\":\"a\",\"params\":{\"lr\":1,\"o\":\"adam\",\"t\":true},\"metrics\":{\"m\":0.5}}",
    "{\"id\":\"b\",\"params\":{\"lr\":1.5},\"metrics\":{\"m\":\"NaN\"},\"document\":\"x y\"}",
    "{\"id\":\"c\",\"tags\":{\"team\":\"x\"},\"duration_s\":3}",
};

static struct segment *make_segment(void)
{
    static struct segment segment;
    static int made;
    if (made)
        return &segment;
    struct segment_builder *b = segment_builder_new();
    struct arena arena = ARENA_INIT;
    struct buf bytes = BUF_INIT, message = BUF_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct experiment e;
        if (experiment_parse(rows[i], strlen(rows[i]), &arena, &e, &message) < 0)
            abort();
        e.seq = (int64_t)i + 1;
        if (segment_builder_add(b, &e) < 0)
            abort();
    }
    if (segment_builder_write(b, &bytes) < 0)
        abort();
    const size_t len = bytes.len;
    if (segment_attach(buf_steal(&bytes), len, false, &segment) < 0)
        abort();
    segment_builder_free(b);
    arena_release(&arena);
    buf_release(&message);
    made = 1;
    return &segment;
}

/* The first byte chooses the language. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct filter *f = NULL;
    struct filter_error error;
    uint64_t bits = 0;
    if (size < 1)
        return 0;
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    const int rc = data[0] == 'w'
                       ? filter_parse_where(text, size - 1, &arena, &f, &error)
                   : data[0] == 'd'
                       ? filter_parse_where_document(text, size - 1, &arena, &f, &error)
                       : filter_parse(text, &arena, &f, &error);
    if (rc == 0) {
        if (filter_apply(f, make_segment(), &bits) == 0 && bits >> 3)
            abort(); /* there are three rows */
        filter_release(f);
    } else if (!error.message[0]) {
        abort();
    }
    free(text);
    arena_release(&arena);
    return 0;
}
