/* ownplace.h: files that come with the command, and variables that name them. */
#ifndef SONDE_LAUNCH_OWNPLACE_H
#define SONDE_LAUNCH_OWNPLACE_H

#include <stdbool.h>
#include <stddef.h>

#ifndef SONDE_LIBDIR
#define SONDE_LIBDIR "lib"
#endif

/* The first of `places` (ended by NULL; "%s" is the command's own folder) that can be
 * read. `given`, when neither NULL nor empty, is the only place to look at. The path is
 * absolute, without links. */
bool ownplace_find(const char *given, const char *const *places, char *ret_path,
                   size_t size);
/* Environment: name = first + separator + what it is, or just `first`. */
int ownplace_prepend(const char *name, const char *first, char separator);

#endif
