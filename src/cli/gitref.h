/* gitref.h: another commit of this repository, checked out beside it for a while. */
#ifndef SONDE_CLI_GITREF_H
#define SONDE_CLI_GITREF_H

#include <stdbool.h>

#include "base/buf.h"

struct gitref {
    char commit[65];
    struct buf place; /* a directory in $TMPDIR that holds the worktree */
    struct buf tree;  /* the worktree */
    struct buf cwd;   /* where in it we would stand */
    struct buf top;   /* of the tree we stand in */
    int ended_by;     /* the signal that interrupted the build; 0: none */
};

/* Whether this is a commit of the repository we stand in. */
bool gitref_is(const char *ref);

/* Checks it out and runs `build` (NULL: nothing) there with /bin/sh. Prints why not and
 * returns false; release it either way. Between signals_take() and signals_give_back():
 * whoever interrupts the build ends it. */
bool gitref_open(struct gitref *g, const char *ref, const char *build);
void gitref_release(struct gitref *g);

#endif
