/* lines.h: small files of one JSON object a line, which many may append to.
 *
 * A line is one write() at the end of the file, so that lines of several processes do not
 * mix. The files lie in folders of the user's, but are read as hostile input: no links, no
 * devices, never more than the newest part of one.
 */
#ifndef SONDE_STORE_LINES_H
#define SONDE_STORE_LINES_H

#include <stddef.h>

#include "base/buf.h"

/* Makes the file (0600) if need be. */
int lines_append(const char *path, const char *line);
/* At most the last `most` bytes: the first line may be a part of one. Added to *text, which
 * stays as it was on failure; −ENOENT: there is none. */
int lines_read_newest(const char *path, size_t most, struct buf *text);

/* The line at *at, its length in *ret_len, and *at behind it; NULL: there is no more. */
const char *lines_next(const struct buf *text, size_t *at, size_t *ret_len);

#endif
