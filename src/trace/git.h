/* git.h: which commit a directory stands at, read from git's own files.
 *
 * No program is run: that would cost milliseconds, and a repository may configure
 * git to run others. Whether the tree has changes cannot be told this way.
 */
#ifndef SONDE_TRACE_GIT_H
#define SONDE_TRACE_GIT_H

#include <stdbool.h>

struct git_state {
    char commit[65];  /* hex of SHA-1 or SHA-256; "" before the first commit */
    char branch[256]; /* "" when detached */
};

/* Looks in `dir` and its parents; false when there is no repository. */
bool git_read(const char *dir, struct git_state *ret_state);

#endif
