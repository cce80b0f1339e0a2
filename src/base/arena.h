/* arena.h: memory that is freed all at once.
 *
 * For what lives as long as one request: parse results, names, tables. There
 * is no way to free one piece. Pieces are aligned to 16 bytes and never move.
 */
#ifndef SONDE_BASE_ARENA_H
#define SONDE_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t total;               /* bytes asked from malloc */
};

/* clang-format off */
#define ARENA_INIT { .chunks = NULL }
/* clang-format on */

void arena_init(struct arena *a);
void arena_release(struct arena *a);

/* NULL when memory is out. The bytes are zero. */
void *arena_alloc(struct arena *a, size_t size);

/* The same for count * size bytes, NULL too when the product overflows. */
void *arena_alloc_array(struct arena *a, size_t count, size_t size);

/* Copies that end with a NUL. */
char *arena_strdup(struct arena *a, const char *text);
char *arena_strndup(struct arena *a, const char *text, size_t len);

#endif
