/* tablefiles.h: the files of tables of one kind in a run directory.
 *
 * One way to go through them for everybody who reads. Names are "<kind>-<start>-<pid>-…",
 * so that their order is that of their births: what a report says does not depend on how
 * a file system lists its directories.
 */
#ifndef SONDE_TRACE_TABLEFILES_H
#define SONDE_TRACE_TABLEFILES_H

#include "trace/tables.h"

/* More than any run has; a hostile directory must not fill our memory. */
enum { TABLEFILES_MOST = 100000 };

/* Calls `each` for every file of the kind, oldest first. A file that cannot be opened
 * comes as NULL with `rc` saying why: a run is none the worse for one. The file is freed
 * afterwards. A negative result ends it and is returned; -ENOMEM is never passed over.
 * A directory that cannot be read has no files. */
typedef int tablefile_fn(void *arg, const char *name, struct tablefile *file, int rc);
int tablefiles_each(const char *dir, const char *kind, tablefile_fn *each, void *arg);

/* Opens the newest of a kind that can be opened; -ENOENT: there is none. ret_name, which
 * may be NULL, gets its name. */
struct buf;
int tablefiles_newest(const char *dir, const char *kind, struct buf *ret_name,
                      struct tablefile **ret_file);

#endif
