/* control.h: the file all processes of a run share: budget, window, clock table.
 *
 * Created by `sonde run` or by a session without a supervisor; mapped by every
 * recording process and by the drainer. The budget is one atomic counter of blocks;
 * the gate tells processes that start later whether the window is open.
 */
#ifndef SONDE_TRACE_CONTROL_H
#define SONDE_TRACE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/clock.h"
#include "trace/format.h"

struct control_options {
    const char *run_id;
    unsigned level;
    uint64_t max_trace; /* bytes; 0 = 1 GiB */
    uint64_t min_zone_ns;
    uint64_t first_step, last_step; /* 0 = no window of steps */
    bool gate_off;                  /* processes start with recording off */
    bool lossy, supervised;
};

/* Creates DIR/control.sonde (0600, O_EXCL), reserves its space and maps it. */
int control_create(const char *dir, const struct control_options *options,
                   struct control **ret_control);
/* Maps an existing one, read-write or read-only. */
int control_map(const char *dir, bool writable, struct control **ret_control);
void control_unmap(struct control *control);
/* The same where threads may still look at it: they see zeroes, the file goes. */
void control_retire(struct control *control);

/* Takes `blocks` from the run's budget: true when they fit. */
bool control_take(struct control *control, uint64_t blocks);
void control_give(struct control *control, uint64_t blocks);
/* Brings a process's gate in line with what it follows from: the run's gate, the window
 * of steps, the program's own pause. Whoever changed one of these calls it afterwards;
 * the supervisor and threads of the program may do so at once. Async-signal-safe. */
void control_settle_gate(const struct control *control, struct trace_live *live);
/* Appends a clock reading when the last is older than the interval. */
void control_tick_clock(struct control *control);
/* Appends one now. */
void control_append_clock(struct control *control);
/* Says that nobody records any more: readings to come add nothing to the table. */
void control_finish_clock(struct control *control);
/* The clock table of DIR for readers; hostile input. */
int control_read_clock(const char *dir, struct clock_table *ret_table);

#endif
