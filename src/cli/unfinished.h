/* unfinished.h: a folder that is being filled must not outlive an interrupt.
 *
 *     unfinished_hold();                       signals that end us wait
 *     … the folder is made …
 *     unfinished_folder(path, true);           from now on they remove it, then end us
 *     unfinished_done();                       it is whole, or was removed: as before
 */
#ifndef SONDE_CLI_UNFINISHED_H
#define SONDE_CLI_UNFINISHED_H

#include <stdbool.h>

void unfinished_hold(void);
/* Copies the path. `made`: the folder itself is ours, too, not only what is in it. */
void unfinished_folder(const char *path, bool made);
void unfinished_done(void);

#endif
