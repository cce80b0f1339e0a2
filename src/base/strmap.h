/* strmap.h: a map from byte strings to 64-bit values or pointers.
 *
 * Keys are copied, may contain any bytes, and are kept with a final NUL. Entries
 * stay in the order of their insertion: loop over entries[0..count). There is no
 * removal. A map holds either numbers or pointers; which is the caller's affair.
 */
#ifndef SONDE_BASE_STRMAP_H
#define SONDE_BASE_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct strmap_entry {
    const char *key;
    size_t len;
    uint64_t hash;
    union {
        uint64_t value;
        void *ptr;
    };
};

struct strmap {
    struct strmap_entry *entries;
    size_t count;
    size_t entries_cap;
    uint32_t *index; /* entry number + 1, 0 is free; a power of two of them */
    size_t index_cap;
    struct arena keys;
};

/* clang-format off */
#define STRMAP_INIT { .entries = NULL }
/* clang-format on */

void strmap_init(struct strmap *m);
void strmap_release(struct strmap *m);

/* Adds the key or replaces its value. 0 or -ENOMEM. */
int strmap_put(struct strmap *m, const char *key, size_t len, uint64_t value);
int strmap_put_ptr(struct strmap *m, const char *key, size_t len, void *ptr);

/* False when absent; ret_value stays untouched then. */
bool strmap_get(const struct strmap *m, const char *key, size_t len,
                uint64_t *ret_value);

/* NULL when absent. */
void *strmap_get_ptr(const struct strmap *m, const char *key, size_t len);

/* Finds the entry or adds one with value 0. NULL when memory is out. The pointer
 * holds until the next insertion; ret_added may be NULL. */
struct strmap_entry *strmap_enter(struct strmap *m, const char *key, size_t len,
                                  bool *ret_added);

#endif
