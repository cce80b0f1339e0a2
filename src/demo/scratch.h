/* scratch.h: the demo's temporary directory, removed however the demo ends.
 *
 * On return, and on SIGINT, SIGTERM and SIGHUP, which then take their usual effect.
 * One at a time: a signal handler needs to find it.
 */
#ifndef SONDE_DEMO_SCRATCH_H
#define SONDE_DEMO_SCRATCH_H

/* Makes the directory under $TMPDIR or /tmp. 0, −errno, or −EBUSY. */
int scratch_open(void);
/* Full path of a file in it, which will be removed with it. Eight names at most; the
 * string is valid until scratch_close(). NULL when there are more. */
const char *scratch_file(const char *name);
void scratch_close(void);

#endif
