/* guard.h: survive a file that shrinks under its mapping.
 *
 * The files a supervisor maps belong to the profiled program, which may truncate
 * them; touching a page past the new end raises SIGBUS. guard_install() (once, in
 * the supervisor only: never in somebody's program) catches that signal inside
 * guard_run() and turns it into an error. */
#ifndef SONDE_TRACE_GUARD_H
#define SONDE_TRACE_GUARD_H

void guard_install(void);
/* fn(arg), then 0; or −EIO when it hit a page that is not there any more. Without
 * guard_install() it is a plain call. */
int guard_run(void (*fn)(void *), void *arg);

#endif
