/* files.h: whole-file reading and writing, directories, paths.
 *
 * All results are 0 or negative unless said otherwise. Paths are used as they
 * are given; nothing here expands or normalises them.
 */
#ifndef SONDE_BASE_FILES_H
#define SONDE_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/* Reads until len bytes or the end of the file; returns the bytes read.
 * Interrupted and short reads are continued. */
ssize_t fd_read_full(int fd, void *ret_data, size_t len);
ssize_t fd_pread_full(int fd, void *ret_data, size_t len, off_t offset);

/* Writes everything or fails. */
int fd_write_full(int fd, const void *data, size_t len);
int fd_pwrite_full(int fd, const void *data, size_t len, off_t offset);

/* Appends the file's bytes to ret_text, which keeps its old content on failure.
 * SONDE_E_LIMIT when there are more than max_bytes. Works on /proc files, whose
 * size is not known beforehand. */
int file_read_all(const char *path, size_t max_bytes, struct buf *ret_text);

/* Readers see the old content or the new one, also after a power failure. The
 * file gets exactly this mode, whatever the umask; a symbolic link at `path` is
 * replaced, not followed. */
int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode);
/* The same without waiting for the disk: whole after any kill, not after a power
 * failure. For what is written while somebody's program waits. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode);

/* Creates the directory and its missing parents, all with `mode` (less umask).
 * An existing directory is fine. */
int dir_make(const char *path, mode_t mode);

/* Removes a file or a directory with all its content, never following a symbolic
 * link. What does not exist is fine. Goes on after a failure and returns the
 * first one; SONDE_E_LIMIT below 200 levels. */
int file_remove_tree(const char *path);

/* Appends a, one slash, b; just b when b is absolute or a is empty. */
void path_join(struct buf *out, const char *a, const char *b);

/* The part behind the last slash; never NULL, empty for "a/". */
const char *path_base(const char *path);

/* Appends the path up to its last slash: "." without one, "/" for "/a". */
void path_parent(struct buf *out, const char *path);

bool path_is_dir(const char *path);

#endif
