/* adoptcrash.h: faults of a run that lost its supervisor. */
#ifndef SONDE_LAUNCH_ADOPTCRASH_H
#define SONDE_LAUNCH_ADOPTCRASH_H

#include <stdint.h>

#include "trace/runfile.h"

/* Adds what the program, or else one of its processes, left when it faulted to what
 * watchfile_judge() said. `pid` of the program; 0: unknown. */
void adopt_crash(const char *dir, int64_t pid, struct runfile_exit *exit,
                 struct runfile_death *death);

#endif
