/* space.h: disk space that is certain before it is written.
 *
 * A store into a mapped hole on a full disk is SIGBUS in somebody's training run,
 * and growing past RLIMIT_FSIZE is SIGXFSZ. Both are turned into errors here. */
#ifndef SONDE_TRACE_SPACE_H
#define SONDE_TRACE_SPACE_H

#include <stdint.h>

/* Makes [offset, offset + len) of the file exist and be allocated, zero where new.
 * −EFBIG: beyond the file-size limit; −ENOSPC: no space. Async-signal-safe. */
int space_reserve(int fd, uint64_t offset, uint64_t len);

#endif
