/* cells.h: a fold's statistics in the file, whole at every instant.
 *
 * Publishing writes the copies that are not the truth, then makes them the truth by
 * one store to live.commit (invariants 4–6 of format.h). A kill before that store
 * leaves copies numbered above the commit, which nobody believes and the next
 * publisher erases; a kill after it leaves nothing undone. */
#ifndef SONDE_TRACE_CELLS_H
#define SONDE_TRACE_CELLS_H

#include "trace/file.h"
#include "trace/fold.h"

/* Where blocks come from: a mapped live file, or a reader's private image. NULL for
 * a block that is not there. */
struct blockview {
    const uint8_t *(*get)(void *arg, uint32_t block);
    void *arg;
};

/* Fills an empty fold from the cells as of `commit`. Everything is checked; cells
 * that cannot be right are left out. Returns how many were. */
unsigned cells_load(struct fold *fold, const struct trace_head *head,
                    const struct blockview *view, uint64_t commit);

/* Writes what is dirty and commits. The caller holds the fold lock. On failure
 * nothing has changed for readers, and the fold is ahead of the file: discard it. */
int cells_publish(struct fold *fold, struct tracefile *file, uint64_t token);

/* Erases copies above the commit that a killed publisher left. Holds the lock. */
void cells_repair(struct tracefile *file);

#endif
