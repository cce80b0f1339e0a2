/* arena.c: bump allocation out of chunks.
 *
 * Chunks double from 4 KiB to 1 MiB, so that a small arena stays small and a
 * large one asks malloc rarely. A piece that does not fit the newest chunk
 * opens a new one; what was left over is lost, at most a quarter of a chunk,
 * because larger pieces get a chunk of their own behind the newest.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t size;
    alignas(ALIGNMENT) char bytes[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena)ARENA_INIT;
}

void arena_release(struct arena *a)
{
    struct arena_chunk *chunk = a->chunks;
    while (chunk) {
        struct arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    arena_init(a);
}

static struct arena_chunk *chunk_new(struct arena *a, size_t size)
{
    struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + size);
    if (!chunk)
        return NULL;
    chunk->size = size;
    a->total += sizeof(*chunk) + size;
    return chunk;
}

static size_t next_chunk_size(const struct arena *a)
{
    if (!a->chunks)
        return FIRST_CHUNK;
    const size_t doubled = a->chunks->size * 2;
    return doubled < LARGEST_CHUNK ? doubled : LARGEST_CHUNK;
}

/* A piece too large to share: linked behind the newest chunk, which stays open. */
static void *alloc_alone(struct arena *a, size_t size)
{
    struct arena_chunk *chunk = chunk_new(a, size);
    if (!chunk)
        return NULL;
    chunk->used = size;
    chunk->next = a->chunks->next;
    a->chunks->next = chunk;
    return chunk->bytes;
}

static int open_chunk(struct arena *a)
{
    struct arena_chunk *chunk = chunk_new(a, next_chunk_size(a));
    if (!chunk)
        return -1;
    chunk->next = a->chunks;
    a->chunks = chunk;
    return 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

    if (!a->chunks && open_chunk(a) < 0)
        return NULL;
    if (size > a->chunks->size - a->chunks->used) {
        if (size > a->chunks->size / 4)
            return alloc_alone(a, size);
        if (open_chunk(a) < 0)
            return NULL;
    }
    void *piece = a->chunks->bytes + a->chunks->used;
    a->chunks->used += size;
    return piece;
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return arena_alloc(a, bytes);
}

char *arena_strdup(struct arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    if (len == SIZE_MAX)
        return NULL;
    char *copy = arena_alloc(a, len + 1);
    if (copy && len > 0)
        memcpy(copy, text, len);
    return copy;
}
