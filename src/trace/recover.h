/* recover.h: bring a run directory into its final form after any kind of death.
 *
 * Folds what nobody folded, ends zones that were open, clears half-done recycling,
 * and optionally compacts. Safe to run at any time and any number of times, also
 * beside a live drain; files of living processes are folded but never sealed.
 */
#ifndef SONDE_TRACE_RECOVER_H
#define SONDE_TRACE_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

struct recover_result {
    unsigned files, alive, folded_blocks, compacted, damaged;
    uint64_t bytes_before, bytes_after; /* allocated on disk */
    char first_problem[256];
};
int recover_run(const char *dir, bool compact, struct recover_result *ret_result);

/* Rewrites one dead process's file in compact form (at most 7 bytes a zone),
 * atomically. −EBUSY when the process is alive or somebody folds it. */
int compact_file(const char *path, uint64_t *ret_before, uint64_t *ret_after);

#endif
