/* symbolise_child.h: do something dangerous in a child process that may die of it. */
#ifndef SONDE_LAUNCH_SYMBOLISE_CHILD_H
#define SONDE_LAUNCH_SYMBOLISE_CHILD_H

/* Runs fn(arg) in a child with little memory, no core file and nothing to print on;
 * waits for it. SIGALRM ends it. What it is to bring back it writes to shared memory.
 * Only for processes with one thread. */
int symbolise_in_child(void (*fn)(void *), void *arg, int *ret_status);

#endif
