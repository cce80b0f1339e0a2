/* kept.h: files that are opened once and read again and again.
 *
 * pread at 0 makes the kernel write a file of /proc or /sys anew; a kept descriptor of
 * /proc/PID/… belongs to that process for ever and fails with ESRCH when it is gone.
 *
 * A program that watches itself may close descriptors it does not know, and use their
 * numbers: each is known by its file, and one that is another by now is neither read nor
 * closed.
 */
#ifndef SONDE_CAPTURE_MONITOR_KEPT_H
#define SONDE_CAPTURE_MONITOR_KEPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/scan.h"
#include "capture/monitor/monitor.h"

static inline const char *proc_root(const struct monitor_roots *r)
{
    return r && r->proc && r->proc[0] ? r->proc : "/proc";
}

static inline const char *sys_root(const struct monitor_roots *r)
{
    return r && r->sys && r->sys[0] ? r->sys : "/sys";
}

/* Opens ROOT/FORMAT for reading; −errno. */
int kept_open(const char *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Remembers which file a descriptor is; returns it. kept_open() has done so. */
int kept_own(int fd);
bool kept_is_own(int fd);
/* Closes, if it is still ours, and forgets. −1 is fine. */
void kept_close(int *fd);
/* The text of the file, at most size − 1 bytes and a NUL. False when it cannot be read
 * (fd −1 included) or is empty. */
bool kept_read(int fd, char *buffer, size_t size, struct scan *ret_text);
/* The first number of the file. */
bool kept_number(int fd, double *ret_value);

#endif
