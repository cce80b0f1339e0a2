/* hangfile.h: what every process of a run is doing, written down.
 *
 * One text file per hang, hang-N.txt, mode 0600: for each process its command line and
 * open zones, for each thread its state, where in the kernel it waits, the system call
 * with its arguments, its kernel stack where we may see it, and where in which module
 * the call was made. Nothing is stopped for it.
 */
#ifndef SONDE_LAUNCH_HANGFILE_H
#define SONDE_LAUNCH_HANGFILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "launch/kin.h"

/* Prints the user-level stack of a thread; set by who can walk them (capture/sample).
 * NULL: only the innermost frame is printed. */
typedef void hangfile_stack_fn(pid_t pid, pid_t tid, FILE *out);
extern hangfile_stack_fn *hangfile_user_stack;

/* Writes DIR/hang-NUMBER.txt. */
int hangfile_write(const char *dir, unsigned number, const char *why,
                   const struct kin *kin);

/* Whether a living process of the run has a zone open; `ret_zone` gets the innermost
 * one of the program's main thread or of any other, "" without. */
bool hangfile_zones_open(const char *dir, char *ret_zone, size_t len);

#endif
