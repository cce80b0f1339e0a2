/* retain.h: how many run directories are kept.
 *
 * Traces are large, records are not: when there are more runs than the limits allow,
 * the oldest lose their directory and keep their row in the store. A run with a name,
 * one that still runs, and those a caller protects (baselines) are never touched.
 */
#ifndef SONDE_STORE_RETAIN_H
#define SONDE_STORE_RETAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct retain_limits {
    uint64_t runs;  /* unnamed ones that stay at most */
    uint64_t bytes; /* of all of them together */
};

/* 50 runs, 20 GiB; SONDE_KEEP_RUNS and SONDE_KEEP_SIZE override (0: no limit). */
void retain_defaults(struct retain_limits *ret_limits);

struct retain_result {
    uint64_t kept, removed, protected_runs;
    uint64_t kept_bytes, removed_bytes;
};

/* `store` may be NULL. dry: only counts. `each` (may be NULL) hears of every run that
 * goes, before it does. */
int retain_apply(const char *sonde_dir, const struct retain_limits *limits,
                 struct store *store, bool dry,
                 void (*each)(void *arg, const char *id, uint64_t bytes), void *arg,
                 struct retain_result *ret_result);

/* Bytes that a directory's files take on disk. */
uint64_t directory_bytes(const char *dir);

#endif
