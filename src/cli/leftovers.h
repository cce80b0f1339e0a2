/* leftovers.h: what a measured command leaves running.
 *
 * A gate that is interrupted, or whose budget ends in the middle of a run, must leave
 * nothing behind, and a command may have started more than one process. So we adopt what
 * it orphans (PR_SET_CHILD_SUBREAPER), and all our children are its.
 */
#ifndef SONDE_CLI_LEFTOVERS_H
#define SONDE_CLI_LEFTOVERS_H

#include <stddef.h>
#include <stdint.h>

/* From now on orphans among our descendants become our children. */
void leftovers_adopt(void);

/* Children that run. */
size_t leftovers_count(void);

/* Ends all descendants: SIGTERM, after `grace_ns` SIGKILL, until none is left. */
void leftovers_end(uint64_t grace_ns);

#endif
