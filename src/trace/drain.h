/* drain.h: keep a run's process files folded while the run goes on.
 *
 * A drain looks after one run directory: it finds process files as they appear,
 * folds their sealed blocks, keeps zeroed blocks ready for the recording threads,
 * appends to the clock table, and, when a process is gone, folds what it left and
 * shrinks its file. The supervisor owns one, or, without a supervisor, a thread of
 * the process that started the session. Any number may run at once: the fold lock
 * of each file decides. A drain that is killed at any instant has lost nothing.
 */
#ifndef SONDE_TRACE_DRAIN_H
#define SONDE_TRACE_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/control.h"

struct drain;

/* `dir` is copied; `control` is borrowed for the life of the drain. */
int drain_new(const char *dir, struct control *control, struct drain **ret_drain);
void drain_free(struct drain *drain);

struct drain_status {
    unsigned files, alive;
    uint64_t blocks_folded; /* by this drain, so far */
    uint64_t events_folded;
    unsigned damaged;  /* files that had to be left alone */
    double busy_share; /* of the lane blocks seen: how hard producers push */
};
/* One pass over all files. Returns the number of blocks folded (0 = nothing to do)
 * or a negative error. Call it again at once while it returns much, else sleep:
 * drain_pause_us() says how long (0.2 ms … 0.1 s). */
int drain_pass(struct drain *drain);
unsigned drain_pause_us(const struct drain *drain);
void drain_status(const struct drain *drain, struct drain_status *ret_status);
/* Opens or closes the gate of every process of the run, present and future. */
void drain_set_gate(struct drain *drain, bool on);
/* Highest number of steps seen in any process (for windows and progress). */
uint64_t drain_steps(const struct drain *drain);
/* Final pass: everything of dead processes is folded, `compact` rewrites their
 * files in compact form when they are smaller than `compact_below` bytes. */
int drain_finish(struct drain *drain, uint64_t compact_below);

#endif
