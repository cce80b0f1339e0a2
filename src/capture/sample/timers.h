/* timers.h: counts what processes sample of themselves (trace/timer_ring.h).
 *
 * Where perf_event is forbidden libsonde-preload.so samples with timers inside the
 * program. This reads the rings of all processes of a run and counts their stacks in the
 * same tables as sample.h does.
 */
#ifndef SONDE_CAPTURE_SAMPLE_TIMERS_H
#define SONDE_CAPTURE_SAMPLE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/control.h"

struct timers_reader;

int timers_open(const char *dir, struct control *control, unsigned rate_hz,
                struct timers_reader **ret_reader);
/* Returns in how many nanoseconds to come again. */
uint64_t timers_tick(struct timers_reader *reader);
/* Samples are thrown away while paused. */
void timers_pause(struct timers_reader *reader, bool paused);
/* Processes that sampled only a part of their time, because they took the signal for
 * themselves or gave up system calls. */
unsigned timers_given_up(const struct timers_reader *reader);
/* The rest; removes the rings. */
void timers_close(struct timers_reader *reader);
/* Removes rings that nobody reads any more: the supervisor was killed. */
void timers_sweep(const char *dir);

#endif
