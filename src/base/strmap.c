/* strmap.c: open addressing over an index of insertion-ordered entries.
 *
 * The index holds 4-byte entry numbers and is at most half full, so that linear
 * probing stays short. Growing rebuilds the index alone.
 *
 * The hash is not proof against chosen keys: who reads hostile files bounds the
 * number of keys it inserts.
 *
 * Invariants: (1) index_cap is 0 or a power of two  (2) 2 * count <= index_cap
 */
#include "base/strmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_INDEX = 16 };

void strmap_init(struct strmap *m)
{
    *m = (struct strmap)STRMAP_INIT;
}

void strmap_release(struct strmap *m)
{
    free(m->entries);
    free(m->index);
    arena_release(&m->keys);
    strmap_init(m);
}

/* FNV-1a; the last step spreads its weak low bits, which choose the slot. */
static uint64_t hash_bytes(const char *key, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static bool entry_is(const struct strmap_entry *e, const char *key, size_t len,
                     uint64_t hash)
{
    return e->hash == hash && e->len == len && (len == 0 || !memcmp(e->key, key, len));
}

/* The place of the key in the index, or the free place where it belongs. */
static uint32_t *find_slot(const struct strmap *m, const char *key, size_t len,
                           uint64_t hash)
{
    const size_t mask = m->index_cap - 1;
    size_t i = hash & mask;
    while (m->index[i] > 0 && !entry_is(&m->entries[m->index[i] - 1], key, len, hash))
        i = (i + 1) & mask;
    return &m->index[i];
}

static const struct strmap_entry *find(const struct strmap *m, const char *key,
                                       size_t len)
{
    if (m->count == 0)
        return NULL;
    const uint32_t *slot = find_slot(m, key, len, hash_bytes(key, len));
    return *slot > 0 ? &m->entries[*slot - 1] : NULL;
}

static int grow_index(struct strmap *m)
{
    if ((m->count + 1) * 2 <= m->index_cap)
        return 0;
    const size_t cap = m->index_cap > 0 ? m->index_cap * 2 : FIRST_INDEX;
    uint32_t *index = calloc(cap, sizeof(*index));
    if (!index || m->count >= UINT32_MAX - 1) {
        free(index);
        return -ENOMEM;
    }
    for (size_t e = 0; e < m->count; e++) {
        size_t i = m->entries[e].hash & (cap - 1);
        while (index[i] > 0)
            i = (i + 1) & (cap - 1);
        index[i] = (uint32_t)(e + 1);
    }
    free(m->index);
    m->index = index;
    m->index_cap = cap;
    return 0;
}

static int grow_entries(struct strmap *m)
{
    if (m->count < m->entries_cap)
        return 0;
    const size_t cap = m->entries_cap > 0 ? m->entries_cap * 2 : FIRST_INDEX / 2;
    struct strmap_entry *entries = realloc(m->entries, cap * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    m->entries = entries;
    m->entries_cap = cap;
    return 0;
}

struct strmap_entry *strmap_enter(struct strmap *m, const char *key, size_t len,
                                  bool *ret_added)
{
    if (grow_index(m) < 0 || grow_entries(m) < 0)
        return NULL;
    const uint64_t hash = hash_bytes(key, len);
    uint32_t *slot = find_slot(m, key, len, hash);
    const bool added = *slot == 0;
    if (added) {
        const char *copy = arena_strndup(&m->keys, key, len);
        if (!copy)
            return NULL;
        m->entries[m->count++] = (struct strmap_entry){ .key = copy,
                                                        .len = len,
                                                        .hash = hash };
        *slot = (uint32_t)m->count;
    }
    if (ret_added)
        *ret_added = added;
    return &m->entries[*slot - 1];
}

int strmap_put(struct strmap *m, const char *key, size_t len, uint64_t value)
{
    struct strmap_entry *e = strmap_enter(m, key, len, NULL);
    if (!e)
        return -ENOMEM;
    e->value = value;
    return 0;
}

int strmap_put_ptr(struct strmap *m, const char *key, size_t len, void *ptr)
{
    struct strmap_entry *e = strmap_enter(m, key, len, NULL);
    if (!e)
        return -ENOMEM;
    e->ptr = ptr;
    return 0;
}

bool strmap_get(const struct strmap *m, const char *key, size_t len,
                uint64_t *ret_value)
{
    const struct strmap_entry *e = find(m, key, len);
    if (e)
        *ret_value = e->value;
    return e != NULL;
}

void *strmap_get_ptr(const struct strmap *m, const char *key, size_t len)
{
    const struct strmap_entry *e = find(m, key, len);
    return e ? e->ptr : NULL;
}
