/* ownfile.h: a file of ours, open in somebody else's program.
 *
 * Programs close descriptors they do not know (daemons close all of them) and reuse the
 * numbers: a descriptor is checked against device and inode before it is used, and
 * stands above those that programs like. Async-signal-safe. */
#ifndef SONDE_TRACE_OWNFILE_H
#define SONDE_TRACE_OWNFILE_H

#include <stddef.h>
#include <stdint.h>

struct ownfile_id {
    uint64_t dev, ino;
};

/* Creates DIR/<prefix><start_ns>-<pid>-<rand><suffix>, mode 0600, new. */
int ownfile_create(const char *dir, const char *prefix, uint64_t start_ns,
                   const char *suffix, char *ret_path, size_t path_size, int *ret_fd,
                   struct ownfile_id *ret_id);
/* Makes *fd refer to the file again when it no longer does. −ESTALE: the path is
 * another file now. */
int ownfile_check(int *fd, const struct ownfile_id *id, const char *path);
/* Closes *fd if it is the file's still, and forgets it. A number that somebody closed may
 * belong to the program by now. */
void ownfile_close(int *fd, const struct ownfile_id *id);
/* Gives back a descriptor that could not be put above those that programs like: one
 * with so tight a limit needs it itself. ownfile_check() opens it again. */
void ownfile_park(int *fd);
/* The last part of /proc/self/exe, cut; untouched when it cannot be read. */
void ownfile_exe(char *ret_name, size_t size);

#endif
