/* witness.h: was a signal sent to us alone, or to the whole process group?
 *
 * kill(-group), a batch system and a service manager that end a job send their signal to
 * every process of it: the program has its own then, and one that we pass on would be a
 * second (many programs save at the first and give up at the second). The signal itself
 * does not tell. So there is a process in our group that does nothing else than to be
 * there, with all signals blocked: what is meant for us alone does not reach it.
 *
 * It ends when we close our end of its socket, by dying or otherwise. It is our child, not
 * an orphan: in many containers nobody buries those.
 */
#ifndef SONDE_LAUNCH_WITNESS_H
#define SONDE_LAUNCH_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct witness {
    pid_t pid; /* 0: none; then no signal was seen by it */
    int fd;
    uint32_t asked;
};

/* Starts it, with all signals blocked (signals_take()), before the program. Without memory
 * or processes to be had there is none. */
void witness_start(struct witness *ret_witness);
void witness_end(struct witness *witness);

/* Whether the signal, which we have just got, has come to it as well. */
bool witness_saw(struct witness *witness, int signal);
/* It is known who else got the signal: it is not to be taken for the next one. */
void witness_forget(struct witness *witness, int signal);

#endif
