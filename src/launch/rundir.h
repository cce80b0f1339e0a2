/* rundir.h: the place of a run: its id, its directory, the run we may be inside of. */
#ifndef SONDE_LAUNCH_RUNDIR_H
#define SONDE_LAUNCH_RUNDIR_H

#include <stdbool.h>

#include "trace/runfile.h"

struct rundir {
    char id[RUN_ID_LEN]; /* eight hex digits */
    char *path;          /* absolute; owned */
    bool created;        /* the directory was not there before */
};

/* SONDE_DIR/runs/<id>, or `output` itself when that is given. Directories get mode
 * 0700 whatever the umask. −ENOTEMPTY: `output` exists and holds something. */
int rundir_create(const char *sonde_dir, const char *output, struct rundir *ret_dir);

/* Removes what was made, for a program that never started. */
void rundir_discard(struct rundir *dir);
void rundir_release(struct rundir *dir);

/* The run that SONDE_RUN says we are part of: a directory with a control file. */
bool rundir_inside_run(void);

#endif
