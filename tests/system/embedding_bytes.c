/* embedding_bytes.c: the checksum of the vectors of a fixed set of experiments. Built by
 * test_likeness.py with several compilers: all must print the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/embed.h"
#include "trace/crc32c.h"

static uint64_t state = 42;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int add(struct segment_builder *b, int i)
{
    static const char *const words[] = { "adam", "sgd", "lamb", "ä", "" };
    struct arena arena = ARENA_INIT;
    struct buf message = BUF_INIT;
    struct experiment e;
    char line[512];
    unsigned long long x[9];
    for (int k = 0; k < 9; k++) /* arguments have no order among themselves */
        x[k] = next();
    const int len = snprintf(
        line, sizeof line,
        "{\"params\":{\"lr\":%llue-%llu,\"wd\":0.%llu,\"opt\":\"%s\",\"amp\":%s,\"n\":%lld"
        "},\"metrics\":{\"loss\":%llu.%llu},\"duration_s\":%llu.25,\"started\":1000}",
        1 + x[0] % 99, x[1] % 9, x[2] % 1000, words[x[3] % 5],
        x[4] % 2 ? "true" : "false", (long long)(x[5] % 7) - 3, x[6] % 10,
        x[7] % 100000, x[8] % 3000);
    int rc = experiment_parse(line, (size_t)len, &arena, &e, &message);
    e.seq = i + 1;
    if (rc == 0)
        rc = segment_builder_add(b, &e);
    arena_release(&arena);
    buf_release(&message);
    return rc;
}

int main(void)
{
    enum { ROWS = 2000 };
    struct segment_builder *b = segment_builder_new();
    struct embed_learner *l = embed_learner_new();
    struct buf bytes = BUF_INIT;
    struct segment segment;
    struct embed_space space;
    int8_t *vectors = malloc((size_t)ROWS * EMBED_DIMS);
    int rc = b && l && vectors ? 0 : -1;
    for (int i = 0; rc == 0 && i < ROWS; i++)
        rc = add(b, i);
    if (rc < 0 || segment_builder_write(b, &bytes) < 0 ||
        segment_attach(bytes.data, bytes.len, false, &segment) < 0 ||
        embed_learn(l, &segment) < 0 || embed_learner_finish(l, &space) < 0)
        return 1;
    embed_segment(&space, &segment, vectors);
    printf("%d vectors %08x\n", ROWS, crc32c(0, vectors, (size_t)ROWS * EMBED_DIMS));
    embed_space_release(&space);
    embed_learner_free(l);
    segment_builder_free(b);
    buf_release(&bytes);
    free(vectors);
    return 0;
}
