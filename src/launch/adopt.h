/* adopt.h: finish runs whose supervisor has died.
 *
 * A run is an orphan when run.json has no end, and neither its supervisor nor its
 * program is alive. Whoever looks at runs next adopts it: folds what is left and
 * writes the end that nobody saw. A run is left alone while its program lives, and
 * when it belongs to another machine or container, whose processes we cannot see.
 */
#ifndef SONDE_LAUNCH_ADOPT_H
#define SONDE_LAUNCH_ADOPT_H

#include <stdbool.h>

struct adopt_result {
    unsigned adopted, failed;
    char first_problem[256]; /* "" without one */
};

/* All runs of a store. Reads one small file per run when there is nothing to do.
 * A store that does not exist has no orphans. */
int adopt_orphans(const char *sonde_dir, struct adopt_result *ret_result);

/* One run directory: 1 when it was adopted, 0 when there was nothing to do. */
int adopt_run(const char *dir);

#endif
