/* spawn.h: start a program so that it cannot tell it was started by Sonde. */
#ifndef SONDE_LAUNCH_SPAWN_H
#define SONDE_LAUNCH_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "launch/signals.h"

struct spawn_options {
    char *const *argv;             /* argv[0] is looked up in PATH */
    const struct signals *signals; /* given back to the program */
    const char *group;             /* cgroup.procs of a group to enter; NULL: none */
    bool null_stdin, null_stdout, null_stderr; /* replaced by /dev/null */
    /* Called while the new process waits to execute the program; may be NULL. */
    void (*before_exec)(void *arg, pid_t pid);
    void *arg;
};

/* Same process group, terminal, directory and environment as ours. 0 and the pid;
 * otherwise −errno, and *ret_no_exec says whether the program could not be executed
 * (true) or no process be made for it (false). */
int spawn(const struct spawn_options *options, pid_t *ret_pid, bool *ret_no_exec);

#endif
