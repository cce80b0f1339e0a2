/* drainer.h: the drain thread of a session without a supervisor. */
#ifndef SONDE_RECORD_DRAINER_H
#define SONDE_RECORD_DRAINER_H

#include <stdint.h>

#include "trace/control.h"

/* Starts the thread; all its signals are blocked. after/duration: the window of time
 * in which the gate is open, 0 none. */
int drainer_start(const char *dir, struct control *control, uint64_t after_ns,
                  uint64_t duration_ns);
/* Folds what is left and ends the thread. No effect without one (forked child). */
void drainer_stop(void);

#endif
