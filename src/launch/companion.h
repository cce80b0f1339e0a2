/* companion.h: what must be seen from outside, for a session inside a program.
 *
 * A session (sonde_session_start, sonde.session) records by itself; Python stacks and
 * the monitors of `sonde run` need somebody who looks from outside. The companion does
 * that beside the session, into its run directory, for as long as the session wants.
 *
 * Protocol, over standard input and output: the companion goes into the background, so
 * that it is nobody's child, and says its process number on a line; the session lets it
 * look (PR_SET_PTRACER) and writes a byte; the next byte, the end of the input, the end
 * of the process or SIGTERM end it. What could not be captured is then written, a line
 * each, and the output ends.
 */
#ifndef SONDE_LAUNCH_COMPANION_H
#define SONDE_LAUNCH_COMPANION_H

#include <sys/types.h>

#include "launch/captures.h"

struct companion_options {
    const char *dir; /* of the run that the session made */
    pid_t pid;       /* of the program */
    struct capture_options capture;
};

/* Returns in the background process when all is done, and in the first one at once;
 * negative when there is no such run or process. */
int companion_run(const struct companion_options *options);

#endif
