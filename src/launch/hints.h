/* hints.h: what somebody inside the program knew about its end.
 *
 * A line each in DIR/hints, appended with one write: "PID CAUSE TEXT". The Python layer
 * leaves one when CUDA is out of memory; whoever meets ENOSPC may say so too. Hostile
 * input: processes that are not of the run and causes that are none do not count.
 */
#ifndef SONDE_LAUNCH_HINTS_H
#define SONDE_LAUNCH_HINTS_H

#include "launch/judge.h"

#define HINTS_NAME "hints"

/* The last one that counts; untouched without any. */
void hints_read(const char *dir, const struct kin *kin, struct hint *ret_hint);

#endif
